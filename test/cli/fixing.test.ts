/** `svc validate --fix`: which fixes are kept, and how files are written. */
import {
	chmodSync,
	chownSync,
	lstatSync,
	readdirSync,
	readFileSync,
	realpathSync,
	statSync,
	symlinkSync,
	writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { fixConfiguration, writeFixes } from '../../cli/configuration/fixing.ts';
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import { runCommand, temporaryFolder } from '../harness.ts';

const OPTIONS = { lint: true, strict: false };
const UNUSED = ':8080 {\n\t@unused path /x\n\trespond ok\n}\n';
const USED = ':8080 {\n\trespond ok\n}\n';

function inputOf(text: string, folder = realpathSync(temporaryFolder())): ConfigInput & { readonly path: string } {
	const file = path.join(folder, 'Configfile');
	writeFileSync(file, text);
	return { format: 'configfile', text, name: 'Configfile', path: file };
}

const fixing = suite('fixing');

fixing('fixing again changes nothing', async () => {
	const messy = 'let a 1\n:8080{\n  @unused path /x\n  @api path /api*\n\trespnod @api "{hots}"\n}\n';
	const first = await fixConfiguration(inputOf(messy), OPTIONS, 'unsafe');
	assert.is(first.input.text, ':8080 {\n\t@api path /api /api/*\n\trespond @api "{host}"\n}\n');
	const second = await fixConfiguration(inputOf(first.input.text), OPTIONS, 'unsafe');
	assert.equal([second.fixCount, second.changedFiles], [0, []]);
	assert.equal(second.validation.diagnostics, []);
});

fixing('of several fixes, only the one that would break a test is left out', async () => {
	const text =
		':8080 {\n\t@unused path /x\n\t@api path /api*\n\t@old path /old*\n\trespond @api api\n\trespond @old old\n}\ntest "t" {\n\tGET http://localhost:8080/apix\n\texpect body api\n}\n';
	const { input, validation } = await fixConfiguration(inputOf(text), OPTIONS, 'unsafe');
	assert.match(input.text, '@api path /api*\n\t@old path /old /old/*\n');
	assert.not.match(input.text, '@unused');
	assert.is(validation.tests.failed, 0);
	assert.equal(
		validation.diagnostics.map(({ code }) => code),
		['path/prefix-without-slash'],
	);
});

fixing('warnings of a configuration that is refused are left alone', async () => {
	// A definition that looks unused may be used in the part that could not be read, so no definition is removed.
	const { fixCount: count } = await fixConfiguration(inputOf(`${UNUSED.slice(0, -2)}\troot\n}\n`), OPTIONS, 'safe');
	assert.is(count, 0);
});

fixing('a file is formatted by a safe fix only if formatting changes none of its words', async () => {
	const messy = ':8080\n  respond ok\n';
	// The newline that the formatter adds at the end of a file becomes part of the quoted word.
	const unclosed = ':8080\n  respond "ok';
	for (const [text, count] of [
		[messy, 1],
		[unclosed, 0],
	] as const) {
		const input = { ...inputOf(text), format: 'compatfile' } as const;
		assert.is((await fixConfiguration(input, OPTIONS, 'safe')).fixCount, count, text);
	}
});

fixing('a file keeps the rights of its group, whatever the umask, and its owner and group', async () => {
	const { path: file } = inputOf(UNUSED);
	chmodSync(file, 0o664);
	// Only the superuser may change the owner of a file.
	const isSuperuser = process.getuid!() === 0;
	if (isSuperuser) chownSync(file, 65_534, 65_533);
	const { uid, gid } = statSync(file);
	const { changedFiles } = await fixConfiguration(
		{ format: 'configfile', text: UNUSED, name: 'Configfile', path: file },
		OPTIONS,
		'safe',
	);
	const umask = process.umask(0o027);
	try {
		writeFixes(changedFiles);
	} finally {
		process.umask(umask);
	}
	const stats = statSync(file);
	assert.is(readFileSync(file, 'utf8'), USED);
	assert.is(stats.mode & 0o7777, 0o664);
	assert.equal([stats.uid, stats.gid], [uid, gid]);
});

// Only the superuser can act as another user.
if (process.getuid!() === 0) {
	fixing('a file of another user keeps its group if whoever fixes it is in that group', async () => {
		const [otherUser, user, userGroup, sharedGroup] = [65_530, 65_531, 65_532, 65_533];
		const { path: file } = inputOf(UNUSED);
		chownSync(file, otherUser, sharedGroup);
		chmodSync(file, 0o640);
		chownSync(path.dirname(file), user, userGroup);
		const { changedFiles } = await fixConfiguration(
			{ format: 'configfile', text: UNUSED, name: 'Configfile', path: file },
			OPTIONS,
			'safe',
		);
		const groups = process.getgroups!();
		process.setgroups!([sharedGroup]);
		process.setegid!(userGroup);
		process.seteuid!(user);
		try {
			writeFixes(changedFiles);
		} finally {
			process.seteuid!(0);
			process.setegid!(0);
			process.setgroups!(groups);
		}
		const { uid, gid, mode } = statSync(file);
		assert.is(readFileSync(file, 'utf8'), USED);
		assert.equal([uid, gid, mode & 0o7777], [user, sharedGroup, 0o640]);
	});
}

fixing('a file that is not UTF-8 is left alone, because its other characters would be lost', async () => {
	const { path: file } = inputOf(UNUSED);
	const bytes = Buffer.from(`# caf\xe9\n${UNUSED}`, 'latin1');
	writeFileSync(file, bytes);
	const { changedFiles } = await fixConfiguration(
		{ format: 'configfile', text: bytes.toString(), name: 'Configfile', path: file },
		OPTIONS,
		'safe',
	);
	assert.throws(() => writeFixes(changedFiles), /`.*Configfile` is not UTF-8: see line 1\. Convert it first/);
	assert.ok(readFileSync(file).equals(bytes));
	const unformatted = Buffer.concat([Buffer.from('\n\n'), bytes]);
	writeFileSync(file, unformatted);
	const formatting = await runCommand(['fmt', '--overwrite', file]);
	assert.is(formatting.status, 1);
	assert.match(formatting.stderr, 'is not UTF-8: see line 3.');
	assert.ok(readFileSync(file).equals(unformatted));
});

fixing('a file keeps its mode, its link and its byte order mark', async () => {
	const folder = realpathSync(temporaryFolder());
	const target = path.join(folder, 'target');
	const link = path.join(folder, 'Configfile');
	writeFileSync(target, `\ufeff${UNUSED}`);
	chmodSync(target, 0o640);
	symlinkSync('target', link);
	const { changedFiles } = await fixConfiguration(
		{ format: 'configfile', text: UNUSED, name: 'Configfile', path: link },
		OPTIONS,
		'safe',
	);
	writeFixes(changedFiles);
	assert.is(readFileSync(target, 'utf8'), `\ufeff${USED}`);
	assert.is(statSync(target).mode & 0o777, 0o640);
	assert.ok(lstatSync(link).isSymbolicLink());
	assert.equal(readdirSync(folder).sort(), ['Configfile', 'target']);
});

fixing('a file that was changed meanwhile is not overwritten', async () => {
	const input = inputOf(UNUSED);
	const { changedFiles } = await fixConfiguration(input, OPTIONS, 'safe');
	writeFileSync(input.path, `${UNUSED}# by someone else\n`);
	assert.throws(() => writeFixes(changedFiles), /was changed while it was being fixed; nothing was written/);
	assert.is(readFileSync(input.path, 'utf8'), `${UNUSED}# by someone else\n`);
});

fixing('a file that has gone is an error, not a crash', async () => {
	const input = inputOf(UNUSED);
	const { changedFiles } = await fixConfiguration(input, OPTIONS, 'safe');
	assert.throws(
		() => writeFixes(changedFiles.map(one => ({ ...one, path: `${input.path}.gone` }))),
		/cannot be read: ENOENT/,
	);
});

fixing.run();

/**
 * Lint findings while a text is edited: rules skip what is unchanged, and the findings equal those that a fresh inspection gives.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Diagnostic } from '../../../compiler/diagnostics/diagnostic.ts';
import type { Dialect } from '../../../compiler/dialects/dialect.ts';
import { Workspace } from '../../../compiler/queries/workspace.ts';
import type { FileKind } from '../../../compiler/source/reader.ts';
import { ReadError, type Reader } from '../../../compiler/source/reader.ts';

const PATH = '/work/Configfile';

/** The kinds of the files whose existence rules may test. A test may change them between checks. */
const kinds = new Map<string, FileKind>();

const reader: Reader = {
	workingDirectory: '/work',
	readText: file => {
		throw new ReadError('ENOENT', file);
	},
	readBytes: file => {
		throw new ReadError('ENOENT', file);
	},
	list: () => [],
	kind: file => kinds.get(file),
	env: name => (name === 'TOKEN' ? 'abcdefgh12345678' : undefined),
};

async function check(workspace: Workspace, text: string, dialect: Dialect): Promise<readonly string[]> {
	workspace.setOpenText(PATH, { text, dialect });
	const { diagnostics } = (await workspace.check(PATH))!;
	return diagnostics.map(describe);
}

/** Returns everything that an editor shows of a diagnostic. */
function describe({ code, message, label, hint, span, related, fix }: Diagnostic): string {
	const place = (at: Diagnostic['span']): string =>
		at ? `${at.source.position(at.start).line}:${at.source.text.slice(at.start, at.end)}` : '';
	const edits = fix?.edits.map(edit => `${place(edit.span)}→${edit.text}`);
	return [code, place(span), message, label, hint, related?.map(one => place(one.span)), edits].join(' | ');
}

/**
 * Checks texts one after the other in one workspace. Each result must equal the result of a new workspace. Returns the codes of
 * the findings after each step.
 */
async function codesAfterEach(
	steps: readonly (string | (() => void))[],
	dialect: Dialect = 'configfile',
): Promise<string[][]> {
	const edited = new Workspace(reader, []);
	const codes: string[][] = [];
	let text = '';
	for (const step of steps) {
		if (typeof step === 'string') text = step;
		else step();
		const found = await check(edited, text, dialect);
		assert.equal(found, await check(new Workspace(reader, []), text, dialect), text);
		codes.push(found.map(finding => finding.slice(0, finding.indexOf(' '))));
	}
	return codes;
}

const memory = suite('lint memory');

memory('finds a loop through a site that was edited, in a site that was not', async () => {
	const text = (answer: string): string => `a.test {\n\tredir * https://b.test/\n}\n\nb.test {\n\t${answer}\n}\n`;
	assert.equal(await codesAfterEach([text('respond hi'), text('redir * https://a.test/'), text('respond hi')]), [
		[],
		['redirect/loop', 'redirect/loop'],
		[],
	]);
});

memory('follows redirects whose paths seem to be disjoint until something rewrites them', async () => {
	const text = (line: string): string => `a.test {\n\t${line}\n\tredir /old/* /new\n\trespond hi\n}\n`;
	const codes = await codesAfterEach([
		text('header X-A b'),
		text('rewrite /new /old/'),
		text('redir /new /old/'),
		text('redir /new* /newer'),
	]);
	assert.equal(codes, [
		[],
		['redirect/loop'],
		['redirect/loop', 'redirect/loop'],
		['redirect/loop', 'path/prefix-without-slash', 'redirect/loop'],
	]);
});

memory('finds a secret once a file contains it', async () => {
	const site = 'a.test {\n\treverse_proxy 127.0.0.1:9000 {\n\t\theader_up Authorization {$TOKEN}\n\t}\n}\n';
	assert.equal(await codesAfterEach([site, `# abcdefgh12345678\n${site}`, site]), [[], ['secret/in-file'], []]);
});

memory('notices private files that appear', async () => {
	kinds.set('/srv', 'directory');
	const text = 'a.test {\n\troot /srv\n\tfile_server\n}\n';
	const createFile = (): void => void kinds.set('/srv/.env', 'file');
	const deleteFile = (): void => void kinds.delete('/srv/.env');
	assert.equal(await codesAfterEach([text, createFile, deleteFile]), [[], ['files/private-files'], []]);
});

memory('moves findings with their site', async () => {
	const site = 'a.test {\n\theader Set-Cookie a=b\n\trespond /x* 404\n}\n';
	const added = 'b.test {\n\trespond hi\n}\n\n';
	const codes = ['header/cookie-without-flags', 'path/prefix-without-slash'];
	assert.equal(await codesAfterEach([site, `# comment\n${site}`, `${added}${site}`, site]), [
		codes,
		codes,
		codes,
		codes,
	]);
});

memory('checks sites again when a setting changes', async () => {
	const site =
		'http://a.internal {\n\tbasic_auth {\n\t\ta $2a$14$Zkx19XLiW6VYouLHR5NmfOFU0z2GTNmpkT/5qqR7hx4IjWJPDhjvG\n\t}\n\trespond hi\n}\n';
	const options = '{\n\tservers {\n\t\ttrusted_proxies static private_ranges\n\t}\n}\n';
	const codes = await codesAfterEach([`${options}${site}`, site, `${options}${site}`]);
	assert.equal(codes, [[], ['auth/in-clear'], []]);
});

memory('checks a site again when the address of another takes its requests', async () => {
	const text = (address: string): string =>
		`http://a.test:8080 {\n\trespond hi\n}\n\n${address} {\n\t@old host old.test\n\trespond @old gone\n\trespond hi\n}\n`;
	const codes = await codesAfterEach([text('http://old.test'), text('http://b.test'), text('http://old.test')]);
	assert.ok(!codes[0]!.includes('host/never-matches'));
	assert.ok(codes[1]!.includes('host/never-matches'));
	assert.equal(codes[2], codes[0]);
});

memory('finds unused names of a Compatfile, in sites that are parsed again and in others', async () => {
	const text = (used: string): string =>
		`(unused) {\n\tencode gzip\n}\n\na.test {\n\t@a path /a\n\t@b path /b\n\trespond${used} hi\n}\n\nb.test {\n\t@c path /c\n\trespond hi\n}\n`;
	const codes = await codesAfterEach([text(' @a'), text(' @b'), text('')], 'compatfile');
	const unused = (count: number): string[] => ['snippet/unused', ...Array(count).fill('matcher/unused')];
	assert.equal(codes, [unused(2), unused(2), unused(3)]);
});

memory.run();

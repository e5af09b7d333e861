/** Archives of the store: an exported archive can be imported again, and malicious archives change nothing. */
import {
	existsSync,
	mkdirSync,
	readdirSync,
	readFileSync,
	renameSync,
	rmSync,
	statSync,
	symlinkSync,
	writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { Header } from 'tar';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ArchiveError } from '../../../runtime/storage/archive-error.ts';
import { exportStore } from '../../../runtime/storage/archive-export.ts';
import { importArchive } from '../../../runtime/storage/archive-import.ts';
import { openFileStore } from '../../../runtime/storage/file-store.ts';
import { runCommand, temporaryFolder } from '../../harness.ts';

const archives = suite('archives');

interface Entry {
	readonly path: string;
	readonly content?: string | Uint8Array;
	readonly type?: string;
	readonly linkpath?: string;
	readonly size?: number;
}

/** Returns a tar archive with the given entries, which may be invalid. */
function tar(...entries: Entry[]): Buffer {
	const parts = entries.map(({ path: name, content = '', type = 'File', linkpath, size }) => {
		const bytes = Buffer.from(content as string);
		const block = Buffer.alloc(512);
		const header = new Header({
			path: name,
			mode: 0o777,
			size: size ?? bytes.length,
			type: type as 'File',
			...(linkpath === undefined ? {} : { linkpath }),
		});
		header.encode(block, 0);
		return Buffer.concat([block, bytes, Buffer.alloc((512 - (bytes.length % 512)) % 512)]);
	});
	return Buffer.concat([...parts, Buffer.alloc(1024)]);
}

async function* chunks(bytes: Uint8Array, size = 1000): AsyncGenerator<Uint8Array> {
	for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

/** Creates a store with one value. Returns the folder of the store. */
async function storeWith(): Promise<string> {
	const folder = temporaryFolder();
	await openFileStore(folder).write('pki/authorities/local/root.crt', 'the original root');
	return folder;
}

archives('an export is imported completely, with long names, alongside existing values', async () => {
	const store = openFileStore(temporaryFolder());
	const long = `certificates/${'i'.repeat(90)}/${'n'.repeat(120)}/${'n'.repeat(120)}.crt`;
	await store.write(long, 'certificate');
	await store.write('pki/authorities/local/root.key', Buffer.alloc(100_000, 7));
	await store.write('empty', '');
	await store.lock('held');
	const parts: Uint8Array[] = [];
	const { values } = await exportStore(store, async bytes => void parts.push(Uint8Array.from(bytes)));
	assert.is(values, 3);
	const folder = await storeWith();
	assert.is((await importArchive(chunks(Buffer.concat(parts)), folder)).values, 3);
	const restored = openFileStore(folder);
	assert.equal(await restored.list(''), [
		long,
		'empty',
		'pki/authorities/local/root.crt',
		'pki/authorities/local/root.key',
	]);
	assert.equal(await restored.read('pki/authorities/local/root.key'), Buffer.alloc(100_000, 7));
	assert.is((await restored.read(long))!.toString(), 'certificate');
	for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
		const { mode } = statSync(path.join(entry.parentPath, entry.name));
		assert.is(mode & 0o777, entry.isDirectory() ? 0o700 : 0o600, entry.name);
	}
});

const HOSTILE: { [what: string]: Buffer } = {
	'an absolute path': tar({ path: 'ok', content: 'x' }, { path: '/tmp/svc-evil', content: 'x' }),
	'a path with ..': tar({ path: 'ok', content: 'x' }, { path: 'a/../../evil', content: 'x' }),
	'the path ..': tar({ path: '..', content: 'x' }),
	'a symbolic link': tar({ path: 'ok', content: 'x' }, { path: 'l', type: 'SymbolicLink', linkpath: '/etc' }),
	'a hard link': tar({ path: 'ok', content: 'x' }, { path: 'l', type: 'Link', linkpath: '/etc/passwd' }),
	'a device': tar({ path: 'ok', content: 'x' }, { path: 'd', type: 'CharacterDevice' }),
	'a pipe': tar({ path: 'ok', content: 'x' }, { path: 'p', type: 'FIFO' }),
	'an oversized value': tar({ path: 'ok', content: 'x' }, { path: 'big', size: 17 * 1024 * 1024 }),
	'a duplicate name': tar({ path: 'ok', content: 'x' }, { path: './ok', content: 'y' }),
	'a backslash': tar({ path: 'a\\..\\b', content: 'x' }),
	'a lock': tar({ path: 'locks/issue_a.lock', content: 'x' }),
	'a drive': tar({ path: 'C:/x', content: 'x' }),
	'an empty segment': tar({ path: 'a//b', content: 'x' }),
	'no value': tar({ path: 'folder/', type: 'Directory' }),
	'no entry': Buffer.alloc(1024),
	'no byte': Buffer.alloc(0),
	'other content than tar': Buffer.from('this is not an archive '.repeat(100)),
	'a cut end': tar({ path: 'a', content: 'x'.repeat(5000) }).subarray(0, 3000),
	'compressed bytes': gzipSync(tar({ path: 'a', content: 'x' })),
	'a file where the store has a folder': tar({ path: 'ok', content: 'x' }, { path: 'pki/authorities', content: 'x' }),
	'a folder where the store has a file': tar(
		{ path: 'pki/authorities/local/other', content: 'x' },
		{ path: 'pki/authorities/local/root.crt/x', content: 'x' },
	),
};

for (const [what, archive] of Object.entries(HOSTILE)) {
	archives(`an archive with ${what} is refused, and the store is unchanged`, async () => {
		const folder = await storeWith();
		const error = await importArchive(chunks(archive), folder).then(
			() => undefined,
			caught => caught,
		);
		assert.instance(error, ArchiveError);
		assert.match(error.message, /^[A-Z`].*\.$/);
		assert.equal(await openFileStore(folder).list(''), ['pki/authorities/local/root.crt']);
		assert.equal(readdirSync(folder), ['pki']);
		assert.is(readFileSync(path.join(folder, 'pki/authorities/local/root.crt'), 'utf8'), 'the original root');
	});
}

archives('a symbolic link in the folder does not lead an import outside', async () => {
	const folder = temporaryFolder();
	const outside = temporaryFolder();
	symlinkSync(outside, path.join(folder, 'pki'));
	const error = await importArchive(chunks(tar({ path: 'pki/x', content: 'x' })), folder).catch(caught => caught);
	assert.match(error.message, /is not a folder/);
	assert.equal(readdirSync(outside), []);
});

archives('the next process that opens the store rolls back an interrupted import', async () => {
	for (const placed of [0, 1, 2, 3]) {
		const folder = temporaryFolder();
		const store = openFileStore(folder);
		const keys = ['a/one', 'b/two', 'c/three'];
		await store.write('a/one', 'before');
		await store.write('b/two', 'before');
		// Recreates the state that a process leaves if it dies when `placed` of the three values are in place.
		const aside = path.join(folder, 'import.0123456789ab');
		for (const part of ['old', 'new/a', 'new/b', 'new/c']) mkdirSync(path.join(aside, part), { recursive: true });
		writeFileSync(path.join(aside, 'plan.json'), JSON.stringify(keys));
		for (const [at, key] of keys.entries()) {
			writeFileSync(path.join(aside, 'new', key), 'after');
			if (at >= placed) continue;
			const target = path.join(folder, key);
			if (existsSync(target)) renameSync(target, path.join(aside, 'old', String(at)));
			mkdirSync(path.dirname(target), { recursive: true });
			renameSync(path.join(aside, 'new', key), target);
		}
		assert.not.ok((await store.list('')).some(key => key.startsWith('import.')));
		// An import that another process is performing is left alone.
		const lock = await store.tryLock('store_import');
		await store.recover!();
		assert.ok(existsSync(aside));
		const error = await importArchive(chunks(tar({ path: 'x', content: 'x' })), folder).catch(caught => caught);
		assert.match(error.message, 'Another process is importing');
		await lock!.release();
		await store.recover!();
		assert.equal(await store.list(''), ['a/one', 'b/two'], `${placed} in place`);
		for (const key of ['a/one', 'b/two'])
			assert.is((await store.read(key))!.toString(), 'before', `${placed} in place`);
		assert.not.ok(existsSync(aside));
	}
});

archives('an interrupted rollback of an import is resumed, and values already restored stay', async () => {
	const folder = temporaryFolder();
	const store = openFileStore(folder);
	const aside = path.join(folder, 'import.0123456789ab');
	for (const part of ['old', 'new']) mkdirSync(path.join(aside, part), { recursive: true });
	writeFileSync(path.join(aside, 'plan.json'), JSON.stringify(['one', 'two', 'three']));
	for (const at of [0, 1]) writeFileSync(path.join(aside, 'old', String(at)), 'before');
	for (const key of ['two', 'three']) writeFileSync(path.join(folder, key), 'after');
	// A folder replaces the file of the first value. This value is rolled back last, and rolling it back fails.
	mkdirSync(path.join(folder, 'one', 'x'), { recursive: true });
	const error = await store.recover!().catch(caught => caught);
	assert.match(error.message, 'cannot be rolled back: it is a folder');
	assert.is((await store.read('two'))!.toString(), 'before');
	rmSync(path.join(folder, 'one'), { recursive: true });
	await store.recover!();
	assert.equal(await store.list(''), ['one', 'two']);
	for (const key of ['one', 'two']) assert.is((await store.read(key))!.toString(), 'before', key);
	assert.not.ok(existsSync(aside));
});

archives('the commands export and import, in one word or two, to files and standard streams', async () => {
	const folder = temporaryFolder();
	const from = path.join(folder, 'from');
	const to = path.join(folder, 'to');
	await openFileStore(from).write('certificates/local/a/a.crt', 'A');
	const archive = path.join(folder, 'store.tar');
	const exported = await runCommand(['storage', 'export', '-o', archive], { env: { SVC_TLS_STORE: from } });
	assert.is(exported.status, 0, exported.stderr);
	assert.is(statSync(archive).mode & 0o777, 0o600);
	writeFileSync(path.join(folder, 'Configfile'), `{\n\tstorage file_system to\n}\n`);
	const imported = await runCommand(['storage-import', '-i', archive, '-c', path.join(folder, 'Configfile')], {
		env: { SVC_TLS_STORE: from },
	});
	assert.is(imported.status, 0, imported.stderr);
	assert.is(readFileSync(path.join(to, 'certificates/local/a/a.crt'), 'utf8'), 'A');
	const piped = await runCommand(['storage-export', '-o', '-'], { env: { SVC_TLS_STORE: to } });
	assert.is(piped.status, 0, piped.stderr);
	assert.is(Buffer.byteLength(piped.stdout), readFileSync(archive).length);
	mkdirSync(path.join(folder, 'empty'));
	const nothing = await runCommand(['storage-export', '-o', path.join(folder, 'x.tar')], {
		env: { SVC_TLS_STORE: path.join(folder, 'empty') },
	});
	assert.is(nothing.status, 1);
	assert.match(nothing.stderr, /is empty; there is nothing to export/);
	assert.not.ok(readdirSync(folder).some(name => name.startsWith('x.tar')));
	const refused = await runCommand(['storage', 'import', '-i', '-'], {
		env: { SVC_TLS_STORE: path.join(folder, 'empty') },
	});
	assert.is(refused.status, 1);
	assert.match(refused.stderr, /contains nothing to restore/);
	assert.equal(readdirSync(path.join(folder, 'empty')), []);
});

archives.run();

/** The store in a folder: complete values, private files, and locks that do not outlive their process. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openFileStore } from '../../../runtime/storage/file-store.ts';
import { toKeySegment } from '../../../runtime/storage/store.ts';
import { storeFolder } from '../../../runtime/storage/store-location.ts';
import { ROOT, temporaryFolder } from '../../harness.ts';
import { addStoreCases, assertRefuses } from './store-contract.ts';

const files = suite('file store');

addStoreCases(files, async () => {
	const folder = path.join(temporaryFolder(), 'store');
	return () => openFileStore(folder);
});

files('folders and lock files are removed with their last value or holder', async () => {
	const folder = path.join(temporaryFolder(), 'store');
	const store = openFileStore(folder);
	await store.write('a/b/c.txt', 'one');
	await store.write('a/d.bin', 'two');
	await store.remove('a/b/c.txt');
	assert.equal(readdirSync(path.join(folder, 'a')), ['d.bin']);
	await (await store.lock('name')).release();
	assert.equal(readdirSync(path.join(folder, 'locks')), []);
});

files('files are of mode 600 and folders of 700, whatever the umask', async () => {
	const folder = path.join(temporaryFolder(), 'store');
	const mask = process.umask(0);
	try {
		await openFileStore(folder).write('x/y/z', 'secret');
	} finally {
		process.umask(mask);
	}
	for (const part of ['', 'x', 'x/y']) assert.is(statSync(path.join(folder, part)).mode & 0o777, 0o700);
	assert.is(statSync(path.join(folder, 'x/y/z')).mode & 0o777, 0o600);
});

files('symbolic links are not followed', async () => {
	const folder = temporaryFolder();
	const store = openFileStore(folder);
	writeFileSync(path.join(folder, 'target'), 'outside');
	symlinkSync(path.join(folder, 'target'), path.join(folder, 'link'));
	await assertRefuses('store/unreadable', store.read('link'));
	await store.write('link', 'inside');
	assert.is(readFileSync(path.join(folder, 'target'), 'utf8'), 'outside');
	assert.is((await store.read('link'))!.toString(), 'inside');
});

files('a value whose writer died is not visible, and its file is removed eventually', async () => {
	const folder = temporaryFolder();
	const store = openFileStore(folder);
	await store.write('a/b', 'whole');
	const unfinished = path.join(folder, 'a/b.0123.unfinished');
	writeFileSync(unfinished, 'ha');
	assert.equal(await store.list(''), ['a/b']);
	const old = new Date(Date.now() - 7_200_000);
	utimesSync(unfinished, old, old);
	await store.list('');
	assert.equal(readdirSync(path.join(folder, 'a')), ['b']);
});

files('names become path segments that cannot lead outside', () => {
	assert.is(toKeySegment('*.Example.com'), 'wildcard_.example.com');
	assert.is(toKeySegment('::1'), '--1');
	assert.not.match(toKeySegment('../../etc/passwd'), /\.\.|\//);
	assert.is(toKeySegment('..'), '_');
});

files("the location of the store comes from the option, then the variable, then the user's data directory", () => {
	assert.is(storeFolder({ root: '/srv/store' }, { SVC_TLS_STORE: '/var/x' }), '/srv/store');
	assert.is(storeFolder(undefined, { SVC_TLS_STORE: '/var/x', XDG_DATA_HOME: '/d' }), '/var/x');
	if (process.platform !== 'linux') return;
	assert.is(storeFolder(undefined, { XDG_DATA_HOME: '/d', HOME: '/home/me' }), '/d/svc');
	assert.is(storeFolder({}, { XDG_DATA_HOME: 'relative', HOME: '/home/me' }), '/home/me/.local/share/svc');
});

files("a killed process's lock is free at once; one that is not refreshed becomes free after a while", async () => {
	const folder = temporaryFolder();
	const text = `import { openFileStore } from '${ROOT}/runtime/storage/file-store.ts';
		await openFileStore(${JSON.stringify(folder)}).lock('name');
		console.log('held');
		setInterval(() => {}, 1000);`;
	const child = spawn(process.execPath, ['--input-type=module', '-e', text], {
		stdio: ['ignore', 'pipe', 'inherit'],
	});
	await once(child.stdout, 'data');
	const store = openFileStore(folder);
	assert.is(await store.tryLock('name'), undefined);
	child.kill('SIGKILL');
	await once(child, 'exit');
	const lock = await store.tryLock('name');
	assert.ok(lock);
	await lock.release();

	mkdirSync(path.join(folder, 'locks'), { recursive: true });
	const foreign = path.join(folder, 'locks/name.lock');
	writeFileSync(foreign, JSON.stringify({ id: 'x', machine: 'elsewhere', pid: 1, started: '1' }));
	assert.is(await store.tryLock('name'), undefined);
	const old = new Date(Date.now() - 60_000);
	utimesSync(foreign, old, old);
	assert.ok(await store.tryLock('name'));
});

files('nothing is written under a lock that another process took over', async () => {
	const folder = temporaryFolder();
	const store = openFileStore(folder);
	const lost = new AbortController();
	const fenced = store.fenced({ lost: lost.signal, release: async () => {} });
	await fenced.write('a', 'one');
	lost.abort();
	await assertRefuses('store/lock-lost', fenced.write('a', 'two'));
	await assertRefuses('store/lock-lost', fenced.remove('a'));
	assert.is((await store.read('a'))!.toString(), 'one');
});

files.run();

/** A file that a killed process was writing is removed at the next start. The files of a running process are kept. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Autosave } from '../../../cli/serving/autosave.ts';
import { openFileStore } from '../../../runtime/storage/file-store.ts';
import { unfinishedName } from '../../../runtime/storage/unfinished-files.ts';
import { ROOT, runCommand, temporaryFolder } from '../../harness.ts';
import { eventually } from '../running-server.ts';

const MODULE = pathToFileURL(path.join(ROOT, 'runtime/storage/unfinished-files.ts')).href;

/** A program that starts to write a file and then waits to be killed. */
const PROGRAM = `
import { writeFileSync } from 'node:fs';
import { unfinishedName } from ${JSON.stringify(MODULE)};
writeFileSync(unfinishedName(process.argv[1]), 'half');
console.log('written');
setInterval(() => {}, 1000);
`;

async function killedWhileWriting(file: string): Promise<void> {
	const child = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM, file], {
		stdio: ['ignore', 'pipe', 'inherit'],
	});
	await once(child.stdout, 'data');
	child.kill('SIGKILL');
	await once(child, 'close');
}

const names = (folder: string): string[] => readdirSync(folder).filter(name => name !== 'locks');

const unfinished = suite('unfinished files');

unfinished(
	'files of a killed process are removed when a store is recovered, and those of a living process stay',
	async () => {
		if (process.platform !== 'linux') return;
		const folder = temporaryFolder();
		mkdirSync(path.join(folder, 'a'));
		await killedWhileWriting(path.join(folder, 'a/b'));
		const own = unfinishedName(path.join(folder, 'a/c'));
		const other = path.join(folder, 'a/d.0123.unfinished');
		for (const file of [own, other]) writeFileSync(file, 'half');
		assert.is(names(path.join(folder, 'a')).length, 3);
		await openFileStore(folder).recover?.();
		assert.equal(names(path.join(folder, 'a')).sort(), [path.basename(own), path.basename(other)].sort());
	},
);

unfinished('the longest possible key can be written', async () => {
	const folder = temporaryFolder();
	const store = openFileStore(folder);
	const key = 'x'.repeat(240);
	await store.write(key, 'value');
	assert.equal(await store.list(''), [key]);
});

unfinished('locks that were being acquired are removed as well', async () => {
	if (process.platform !== 'linux') return;
	const folder = temporaryFolder();
	const store = openFileStore(folder);
	const held = await store.lock('held');
	const left = path.join(folder, 'locks', 'x.lock.0123456789abcdef');
	const holder = { id: '0123456789abcdef', machine: 'elsewhere', pid: 1, started: '1' };
	writeFileSync(left, JSON.stringify(holder));
	await store.recover?.();
	assert.ok(existsSync(left), 'a process on another machine may still be alive');
	const own = JSON.parse((await import('node:fs')).readFileSync(path.join(folder, 'locks', 'held.lock'), 'utf8'));
	writeFileSync(left, JSON.stringify({ ...own, started: '1' }));
	await store.recover?.();
	assert.not.ok(existsSync(left));
	assert.ok(existsSync(path.join(folder, 'locks', 'held.lock')));
	await held.release();
});

unfinished('unfinished saves of the configuration are removed, although nothing is saved', async () => {
	if (process.platform !== 'linux') return;
	const folder = temporaryFolder();
	await killedWhileWriting(path.join(folder, 'autosave.json'));
	assert.is(names(folder).length, 1);
	new Autosave(folder, error => assert.unreachable(error.message));
	await eventually('cleaned', () => names(folder).length === 0);
});

unfinished('an export removes unfinished files of an earlier export', async () => {
	if (process.platform !== 'linux') return;
	const folder = temporaryFolder();
	const store = openFileStore(path.join(folder, 'store'));
	await store.write('a', 'b');
	const output = path.join(folder, 'store.tar');
	await killedWhileWriting(output);
	const { status, stderr } = await runCommand(['storage-export', '-o', output], {
		env: { SVC_TLS_STORE: path.join(folder, 'store') },
	});
	assert.is(status, 0, stderr);
	assert.equal(readdirSync(folder).sort(), ['store', 'store.tar']);
});

unfinished.run();

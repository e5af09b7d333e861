/**
 * The disk tier when file operations fail, and while another process uses its folder: no outdated or purged response is served
 * again.
 */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import files, { type FileHandle, open } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { lockFolder } from '../../../../runtime/cache/disk/disk-folder.ts';
import { writeFully, writePiecesFully } from '../../../../runtime/cache/disk/write-fully.ts';
import { PurgeNotRecorded } from '../../../../runtime/cache/purging.ts';
import { temporaryFolder, until } from '../../../harness.ts';
import {
	bodyForKey,
	type CacheProcess,
	lookUp,
	pauseFor,
	putResponse,
	readCachedBody,
	startCacheProcess,
	waitForRecords,
} from './disk-process.ts';

const faults = suite('faults of a disk tier');

/** Makes the given file operations fail during `run`. */
async function whileFailing(
	broken: { readonly [name in 'writev' | 'write' | 'writeFile' | 'datasync' | 'unlink']?: true },
	run: () => Promise<void>,
): Promise<void> {
	const some = await open('/dev/null');
	const handles: FileHandle = Object.getPrototypeOf(some);
	await some.close();
	const { writev, write, writeFile, datasync } = handles;
	const { unlink } = files;
	const fails = (): Promise<never> => Promise.reject(Object.assign(new Error('no space left'), { code: 'ENOSPC' }));
	if (broken.writev) handles.writev = fails;
	if (broken.write) handles.write = fails;
	if (broken.writeFile) handles.writeFile = fails;
	if (broken.datasync) handles.datasync = fails;
	if (broken.unlink) files.unlink = fails;
	syncBuiltinESMExports();
	try {
		await run();
	} finally {
		Object.assign(handles, { writev, write, writeFile, datasync });
		files.unlink = unlink;
		syncBuiltinESMExports();
	}
}

/** Asserts that a new process does not find the key. */
async function assertGone(folder: string, key: string): Promise<void> {
	const again = await startCacheProcess(folder);
	assert.is((await lookUp(again, key)).length, 0, key);
	await again.end('closed');
}

const disk = ({ registry }: CacheProcess) => registry.reports()[0]!.disk!;

for (const selection of [{ host: 'example.test', path: '/k' }, { tag: 't' }, { host: 'example.test', prefix: '/k' }]) {
	const by = Object.keys(selection).at(-1)!;

	faults(`a purge by ${by} that cannot be written drops everything on disk`, async () => {
		const folder = temporaryFolder();
		const process = await startCacheProcess(folder);
		putResponse(process, 'k', bodyForKey('k', 100), { tags: ['t'] });
		await waitForRecords(process, 1);
		await whileFailing({ writev: true }, async () => {
			assert.is(await process.registry.purge(selection), 1);
		});
		await process.end('crashed');
		await assertGone(folder, 'k');
	});

	faults(`a purge by ${by} that cannot be synced to disk drops everything on disk`, async () => {
		const folder = temporaryFolder();
		const process = await startCacheProcess(folder);
		putResponse(process, 'k', bodyForKey('k', 100), { tags: ['t'] });
		await waitForRecords(process, 1);
		// Only syncing the contents of files fails. The folder itself can still be synced.
		await whileFailing({ datasync: true }, async () => {
			assert.is(await process.registry.purge(selection), 1);
		});
		assert.is(disk(process).failures, 1);
		assert.equal(
			readdirSync(folder).filter(name => name.endsWith('.segment')),
			[],
		);
		await process.end('crashed');
		await assertGone(folder, 'k');
	});

	faults(`a purge by ${by} is recorded separately if segments can be neither written nor removed`, async () => {
		const folder = temporaryFolder();
		const process = await startCacheProcess(folder);
		putResponse(process, 'k', bodyForKey('k', 100), { tags: ['t'] });
		await waitForRecords(process, 1);
		await whileFailing({ writev: true, unlink: true }, async () => {
			assert.is(await process.registry.purge(selection), 1);
		});
		assert.is((await lookUp(process, 'k')).length, 0);
		await process.end('crashed');
		assert.ok(existsSync(path.join(folder, '1.segment')), 'the segment could not be removed');
		await assertGone(folder, 'k');
	});

	faults(
		`a purge by ${by} that cannot be recorded in any file is reported as failed, and is done in memory`,
		async () => {
			const folder = temporaryFolder();
			const process = await startCacheProcess(folder);
			putResponse(process, 'k', bodyForKey('k', 100), { tags: ['t'] });
			await waitForRecords(process, 1);
			await whileFailing({ writev: true, write: true, unlink: true }, async () => {
				const failure = await process.registry.purge(selection).catch(error => error);
				assert.instance(failure, PurgeNotRecorded);
				assert.is((await lookUp(process, 'k')).length, 0, 'found neither in memory nor on disk');
			});
			assert.ok(process.messages.includes('the cache disk cannot be written'));
			// If the purge is repeated once the disk works again, it becomes permanent.
			assert.is(await process.registry.purge(selection), 0);
			await process.end('crashed');
			await assertGone(folder, 'k');
		},
	);

	faults(`a purge by ${by} in a process without the folder outlives both processes`, async () => {
		const folder = temporaryFolder();
		const first = await startCacheProcess(folder);
		putResponse(first, 'k', bodyForKey('k', 100), { tags: ['t'] });
		await waitForRecords(first, 1);
		const second = await startCacheProcess(folder);
		assert.match(second.messages.join('\n'), /^another process uses the cache folder: .*$/);
		await second.registry.purge(selection);
		await second.end('closed');
		await first.end('closed');
		await assertGone(folder, 'k');
		assert.equal(
			readdirSync(folder).filter(name => name.startsWith('forgotten')),
			[],
			'applied purge records are deleted',
		);
	});

	faults(`a purge by ${by} during a server stop is permanent`, async () => {
		const folder = temporaryFolder();
		const process = await startCacheProcess(folder);
		putResponse(process, 'k', bodyForKey('k', 100), { tags: ['t'] });
		await waitForRecords(process, 1);
		const stopped = process.end('closed');
		await process.registry.purge(selection);
		await stopped;
		await assertGone(folder, 'k');
	});
}

faults('entries invalidated in a process without the folder, or after its release, do not come back', async () => {
	const folder = temporaryFolder();
	const first = await startCacheProcess(folder);
	for (const key of ['a', 'b', 'other']) putResponse(first, key, bodyForKey(key, 100));
	await waitForRecords(first, 3);
	const second = await startCacheProcess(folder);
	await second.cache.invalidate('example.test', '/a', undefined);
	await second.end('closed');
	await first.end('closed');
	await first.cache.invalidate('example.test', '/b', undefined);
	const again = await startCacheProcess(folder);
	assert.is((await lookUp(again, 'a')).length, 0);
	assert.is((await lookUp(again, 'b')).length, 0);
	assert.is((await lookUp(again, 'other')).length, 1);
	await again.end('closed');
});

faults('a response stored before the folder was opened replaces the older version on disk', async () => {
	const folder = temporaryFolder();
	const first = await startCacheProcess(folder);
	for (const key of ['k', 'other']) putResponse(first, key, bodyForKey(`${key} old`, 100));
	await waitForRecords(first, 2);
	const second = await startCacheProcess(folder);
	putResponse(second, 'k', bodyForKey('k new', 100));
	await first.end('closed');
	await until('the folder to be free', () => second.messages.length >= 2);
	assert.ok(readCachedBody(second.cache, (await lookUp(second, 'k'))[0]!).equals(bodyForKey('k new', 100)));
	second.cache.remove((await lookUp(second, 'k'))[0]!);
	assert.is((await lookUp(second, 'k')).length, 0, 'the older version came back');
	await pauseFor(50);
	await second.end('crashed');
	const again = await startCacheProcess(folder);
	assert.is((await lookUp(again, 'k')).length, 0);
	assert.is((await lookUp(again, 'other')).length, 1);
	await again.end('closed');
});

faults('an older version is removed even if the new one cannot be written', async () => {
	const folder = temporaryFolder();
	const process = await startCacheProcess(folder);
	putResponse(process, 'k', bodyForKey('k old', 100));
	putResponse(process, 'other', bodyForKey('other', 100));
	await waitForRecords(process, 2);
	await whileFailing({ writev: true }, async () => {
		putResponse(process, 'k', bodyForKey('k new', 100));
		await until('two failures', () => disk(process).failures >= 2);
	});
	assert.is(disk(process).idle, 'failing');
	await process.end('crashed');
	await assertGone(folder, 'k');
});

faults('an unreadable purge record counts as a purge of everything', async () => {
	const folder = temporaryFolder();
	const first = await startCacheProcess(folder);
	putResponse(first, 'k', bodyForKey('k', 100));
	await waitForRecords(first, 1);
	await first.end('closed');
	await files.writeFile(path.join(folder, 'forgotten-00000000-0000-4000-8000-000000000000.jsonl'), '{"purge":{"ta');
	await assertGone(folder, 'k');
});

faults('a write that the system cuts short is continued, and fails with the reason of the second call', async () => {
	const file = path.join(temporaryFolder(), 'file');
	const handle = await open(file, 'w');
	const writtenShort = ((pieces: Uint8Array[], position: number) =>
		handle.write(pieces[0]!.subarray(0, 1), 0, 1, position)) as never;
	const pieces = [Buffer.from('one '), Buffer.from('two')];
	await handle.write('> ');
	await writePiecesFully(Object.assign(handle, { writev: writtenShort }), pieces, 2);
	assert.is(readFileSync(file, 'utf8'), '> one two');
	let calls = 0;
	const write = async (_: Uint8Array, offset: number): Promise<{ bytesWritten: number }> => {
		calls++;
		if (offset === 0) return { bytesWritten: 3 };
		throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
	};
	const failure = await writeFully({ write } as never, Buffer.from('seven b'), null).catch(error => error);
	assert.is(failure.code, 'ENOSPC');
	assert.is(calls, 2);
	const nothing = async () => ({ bytesWritten: 0 });
	const stuck = await writeFully({ write: nothing } as never, Buffer.from('x'), 0).catch(error => error);
	assert.is(stuck.message, '0 of 1 bytes were written.');
	await handle.close();
});

faults('a lock that cannot be written leaves no file', async () => {
	const folder = temporaryFolder();
	await whileFailing({ writeFile: true }, async () => {
		const failure = await lockFolder(folder).catch(error => error);
		assert.is(failure.code, 'ENOSPC');
	});
	assert.equal(readdirSync(folder), []);
	await (await lockFolder(folder))!.release();
});

faults.run();

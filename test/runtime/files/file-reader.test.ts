/** The file reader: which paths it opens, where symbolic links may lead, and that it closes every descriptor. */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
	chmodSync,
	closeSync,
	mkdirSync,
	mkdtempSync,
	openSync,
	readdirSync,
	readFileSync,
	renameSync,
	rmSync,
	symlinkSync,
	truncateSync,
	writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Body, type BodySource, isStream } from '../../../compiler/exchange/body.ts';
import { FileError, type OpenFile } from '../../../compiler/exchange/leases.ts';
import { createFileReader } from '../../../runtime/files/file-reader.ts';
import { setIoMode } from '../../../runtime/sockets/io-mode.ts';
import { pauseFor, until } from '../../harness.ts';

// The direct system calls for files exist only in the I/O mode `direct`.
setIoMode('direct');

const reader = createFileReader();
/** A file reader without the direct system calls, as on other systems. */
const plainReader = createFileReader(false, false);
const scratch = mkdtempSync(join(tmpdir(), 'svc-files-'));
const root = join(scratch, 'www');
const BIG = 300_000;
const big = Buffer.alloc(BIG, 'abcdefghij');

function build(): void {
	mkdirSync(join(root, 'docs/inner'), { recursive: true });
	mkdirSync(join(scratch, 'private'));
	mkdirSync(join(scratch, 'www-other'));
	writeFileSync(join(root, 'hello.txt'), 'hello');
	writeFileSync(join(root, 'empty.txt'), '');
	writeFileSync(join(root, 'big.bin'), big);
	writeFileSync(join(root, 'docs/page.html'), '<p>');
	writeFileSync(join(root, 'docs/äöü 😀.txt'), 'unicode');
	writeFileSync(join(root, 'back\\slash.txt'), 'backslash');
	writeFileSync(join(root, '..dots'), 'dots');
	writeFileSync(join(root, 'gone (deleted)'), 'still here');
	writeFileSync(Buffer.concat([Buffer.from(`${root}/latin-`), Buffer.from([0xe9, 0xff])]), 'bytes');
	writeFileSync(join(scratch, 'private/secret.txt'), 'secret');
	writeFileSync(join(scratch, 'www-other/x.txt'), 'sibling');
	writeFileSync(join(root, 'locked.txt'), 'locked');
	chmodSync(join(root, 'locked.txt'), 0);
	symlinkSync('hello.txt', join(root, 'inside.txt'));
	symlinkSync('docs', join(root, 'inside-folder'));
	symlinkSync(join(scratch, 'private/secret.txt'), join(root, 'out.txt'));
	symlinkSync('../private', join(root, 'out-folder'));
	symlinkSync('../www-other', join(root, 'sibling'));
	symlinkSync('out-folder', join(root, 'chain1'));
	symlinkSync('chain1/secret.txt', join(root, 'chain2'));
	symlinkSync('../www/hello.txt', join(root, 'out-and-back.txt'));
	symlinkSync('loop-b', join(root, 'loop-a'));
	symlinkSync('loop-a', join(root, 'loop-b'));
	symlinkSync('nothing', join(root, 'dangling'));
	symlinkSync('/dev/null', join(root, 'device'));
	symlinkSync('www', join(scratch, 'current'));
	execFileSync('mkfifo', [join(root, 'pipe')]);
}

function opened(path: string, follow = false, from = root): OpenFile {
	return reader.open(from, path, follow) as OpenFile;
}

function reasonOf(path: string, follow = false): string {
	try {
		opened(path, follow).close();
		return 'opened';
	} catch (error) {
		assert.instance(error, FileError);
		return (error as FileError).reason;
	}
}

async function text(body: Body): Promise<string> {
	if (!isStream(body)) return typeof body === 'string' ? body : Buffer.from(body ?? []).toString();
	const parts: Buffer[] = [];
	for (;;) {
		const piece = await body.pull();
		if (piece === null) return Buffer.concat(parts).toString();
		parts.push(Buffer.from(piece));
	}
}

function descriptors(): number {
	return readdirSync('/proc/self/fd').length;
}

async function settled(count: number): Promise<void> {
	await until('no more files are open', () => descriptors() <= count);
	assert.is(descriptors(), count);
}

const paths = suite('file reader: which paths open');
paths.before(build);

const TABLE: readonly [path: string, plain: string, following: string][] = [
	['/hello.txt', 'hello', 'hello'],
	['/empty.txt', '', ''],
	['/docs/page.html', '<p>', '<p>'],
	['//docs//page.html', '<p>', '<p>'],
	['/docs/./page.html', '<p>', '<p>'],
	['/docs/äöü 😀.txt', 'unicode', 'unicode'],
	['/back\\slash.txt', 'backslash', 'backslash'],
	['/..dots', 'dots', 'dots'],
	['/gone (deleted)', 'still here', 'still here'],
	['/latin-\udce9\udcff', 'bytes', 'bytes'],
	['/inside.txt', 'hello', 'hello'],
	['/inside-folder/page.html', '<p>', '<p>'],
	['/out-and-back.txt', 'hello', 'hello'],
	['/out.txt', '!not_found', 'secret'],
	['/out-folder', '!not_found', '!directory'],
	['/out-folder/secret.txt', '!not_found', 'secret'],
	['/out-folder/nothing.txt', '!not_found', '!not_found'],
	['/sibling/x.txt', '!not_found', 'sibling'],
	['/chain1/secret.txt', '!not_found', 'secret'],
	['/chain2', '!not_found', 'secret'],
	['/loop-a', '!not_found', '!not_found'],
	['/dangling', '!not_found', '!not_found'],
	['/nothing', '!not_found', '!not_found'],
	['/hello.txt/', '!not_found', '!not_found'],
	['/hello.txt/x', '!not_found', '!not_found'],
	[`/${'x'.repeat(300)}`, '!not_found', '!not_found'],
	[`/${'x/'.repeat(5000)}`, '!not_found', '!not_found'],
	['/docs', '!directory', '!directory'],
	['/inside-folder', '!directory', '!directory'],
	['/', '!directory', '!directory'],
	['/device', '!forbidden', '!forbidden'],
	['/pipe', '!forbidden', '!forbidden'],
	['/hello.txt\0', '!invalid', '!invalid'],
	['/\0', '!invalid', '!invalid'],
	['/../private/secret.txt', '!invalid', '!invalid'],
	['/docs/../hello.txt', '!invalid', '!invalid'],
	['/docs/..', '!invalid', '!invalid'],
	['/..', '!invalid', '!invalid'],
	['hello.txt', '!invalid', '!invalid'],
	['', '!invalid', '!invalid'],
	['/\ud800', '!invalid', '!invalid'],
	['/\udc2f', '!invalid', '!invalid'],
];

for (const [path, plain, following] of TABLE) {
	for (const [follow, expected] of [
		[false, plain],
		[true, following],
	] as const) {
		paths(`${JSON.stringify(path.slice(0, 40))}${follow ? ' following links' : ''}`, async () => {
			const before = descriptors();
			if (expected.startsWith('!')) assert.is(reasonOf(path, follow), expected.slice(1));
			else {
				const file = opened(path, follow);
				assert.is(await text(file.body(0, file.size)), expected);
			}
			assert.is(descriptors(), before);
		});
		paths(`${JSON.stringify(path.slice(0, 40))}${follow ? ' following links' : ''}, by Node alone`, async () => {
			const before = descriptors();
			let found: string;
			try {
				const file = plainReader.open(root, path, follow) as OpenFile;
				found = await text(file.body(0, file.size));
			} catch (error) {
				found = `!${(error as FileError).reason}`;
			}
			assert.is(found, expected);
			assert.is(descriptors(), before);
		});
	}
}

paths('an unreadable file is forbidden', () => {
	// Root may read any file, so this check needs another user.
	if (process.getuid?.() === 0) return;
	assert.is(reasonOf('/locked.txt'), 'forbidden');
});

paths('a socket is refused', async () => {
	const server = createServer();
	await new Promise<void>(resolve => server.listen(join(root, 'sock'), resolve));
	try {
		assert.is(reasonOf('/sock'), 'forbidden');
	} finally {
		await new Promise(resolve => server.close(resolve));
	}
});

paths('a FIFO is refused without blocking', () => {
	const startedAt = performance.now();
	assert.is(reasonOf('/pipe'), 'forbidden');
	assert.ok(performance.now() - startedAt < 1000);
});

paths('a root that is a symbolic link is served, also after the link is replaced', async () => {
	const current = join(scratch, 'current');
	assert.is(await text(opened('/hello.txt', false, current).body(0, 5)), 'hello');
	symlinkSync('www-other', join(scratch, 'next'));
	renameSync(join(scratch, 'next'), current);
	assert.is(await text(opened('/x.txt', false, current).body(0, 7)), 'sibling');
});

paths('a missing root has no files', () => {
	assert.throws(
		() => reader.open(join(scratch, 'no-root'), '/x', false),
		(error: FileError) => error.reason === 'not_found',
	);
});

paths("a sibling folder whose name starts with the root's name is outside the root", () => {
	assert.is(reader.kind(root, '/sibling', false), undefined);
	assert.is(reader.kind(root, '/sibling', true), 'directory');
});

paths('`kind` distinguishes files from folders and hides everything outside the root', () => {
	assert.is(reader.kind(root, '/hello.txt', false), 'file');
	assert.is(reader.kind(root, '/docs', false), 'directory');
	assert.is(reader.kind(root, '/out.txt', false), undefined);
	assert.is(reader.kind(root, '/out.txt', true), 'file');
	assert.is(reader.kind(root, '/pipe', false), undefined);
	assert.is(reader.kind(root, '/nothing', false), undefined);
	assert.throws(
		() => reader.kind(root, '/a\0', false),
		(error: FileError) => error.reason === 'invalid',
	);
});

paths('an open file has its real path and its path below the root', () => {
	const file = opened('/inside-folder/page.html');
	assert.is(file.path, join(root, 'docs/page.html'));
	assert.is(file.relativePath, '/docs/page.html');
	file.close();
	const outside = opened('/out.txt', true);
	assert.is(outside.path, join(scratch, 'private/secret.txt'));
	assert.is(outside.relativePath, undefined);
	outside.close();
});

paths.after(() => rmSync(scratch, { recursive: true, force: true }));
paths.run();

const bodies = suite('file reader: bodies');
bodies.before(() => {
	mkdirSync(root, { recursive: true });
	writeFileSync(join(root, 'big.bin'), big);
	writeFileSync(join(root, 'small.bin'), 'small');
});

bodies('a small file is returned as a whole and closed at once', () => {
	const before = descriptors();
	const file = opened('/small.bin');
	const body = file.body(0, file.size);
	assert.is(descriptors(), before);
	file.close();
	assert.ok(isStream(body));
	assert.is(body.length, 5);
	assert.is(Buffer.from(body.pull() as Uint8Array).toString(), 'small');
	assert.is(body.pull(), null);
	body.cancel();
});

bodies('a large file is streamed in bounded pieces and closed after the last one', async () => {
	const before = descriptors();
	const file = opened('/big.bin');
	const body = file.body(0, file.size);
	assert.ok(isStream(body));
	assert.is(body.length, BIG);
	let received = 0;
	while (received < BIG) {
		const piece = (await body.pull())!;
		assert.ok(piece.length <= 256 * 1024);
		assert.equal(piece[0], big[received]);
		received += piece.length;
	}
	await settled(before);
	assert.is(await body.pull(), null);
});

bodies('a range returns exactly its bytes', async () => {
	const file = opened('/big.bin');
	assert.is(await text(file.body(13, 200_001)), big.toString('latin1', 13, 200_001));
	const tail = opened('/big.bin');
	assert.is(await text(tail.body(BIG - 3, BIG)), 'hij');
});

bodies('several ranges share one descriptor, which `close` closes', async () => {
	// The bodies of the previous test close their files a moment after they have ended.
	await pauseFor(50);
	const before = descriptors();
	const file = opened('/big.bin');
	assert.is(await text(file.body(0, 4, true)), 'abcd');
	assert.is(await text(file.body(100_000, 250_000, true)), big.toString('latin1', 100_000, 250_000));
	assert.is(descriptors(), before + 1);
	file.close();
	file.close();
	await settled(before);
});

bodies('a canceled body is closed at once', async () => {
	const before = descriptors();
	const file = opened('/big.bin');
	const body = file.body(0, file.size);
	assert.ok(isStream(body));
	await body.pull();
	body.cancel();
	body.cancel();
	await settled(before);
	assert.is(await body.pull(), null);
});

bodies('if canceled during a read, the descriptor is closed after the read', async () => {
	// Where the system cannot report which files are in the page cache, the thread pool does all reads.
	const opened = (path: string): OpenFile => plainReader.open(root, path, false) as OpenFile;
	const before = descriptors();
	const file = opened('/big.bin');
	const body = file.body(0, file.size);
	assert.ok(isStream(body));
	const pending = body.pull();
	body.cancel();
	assert.is(await pending, null);
	await settled(before);
	const kept = opened('/big.bin');
	const part = kept.body(0, 200_000, true);
	assert.ok(isStream(part));
	const reading = part.pull();
	kept.close();
	// A read that is in progress keeps the descriptor open.
	assert.is((await reading)?.length, 65_536);
	assert.is(descriptors(), before + 1);
	part.cancel();
	await settled(before);
});

bodies('data in the page cache is pulled synchronously', async () => {
	const before = descriptors();
	const file = opened('/big.bin');
	const body = file.body(0, file.size);
	assert.ok(isStream(body));
	assert.ok(Buffer.isBuffer(body.pull()));
	body.cancel();
	assert.is(body.sendTo!(1), 0);
	await settled(before);
});

bodies(
	'where the kernel cannot send a file, a client that stops reading keeps at most 64 KiB of it in memory',
	async () => {
		const before = descriptors();
		for (const files of [reader, plainReader]) {
			const file = files.open(root, '/big.bin', false) as OpenFile;
			const body = file.body(0, file.size);
			assert.ok(isStream(body));
			let count = 0;
			for (;;) {
				const piece = await body.pull();
				if (piece === null) break;
				assert.ok(piece.buffer.byteLength <= 65_536, `${piece.buffer.byteLength}`);
				count += piece.byteLength;
			}
			assert.is(count, BIG);
		}
		await settled(before);
	},
);

bodies('the kernel sends a file directly, and no more bytes than exist', async () => {
	const before = descriptors();
	const out = join(root, 'out.bin');
	const target = openSync(out, 'w');
	const file = opened('/big.bin');
	const part = file.body(1, 200_002, true);
	assert.ok(isStream(part));
	assert.is(part.sendTo!(target), 200_001);
	assert.is(part.pull(), null);
	truncateSync(join(root, 'big.bin'), 200_000);
	const rest = file.body(100_000, file.size);
	assert.ok(isStream(rest));
	// The part after the truncation is not in the page cache. So the thread pool reads it, and reports that it is missing.
	assert.is(rest.sendTo!(target), 0);
	assert.is((await rest.pull())?.length, 100_000);
	try {
		await rest.pull();
		assert.unreachable('the truncation went unnoticed');
	} catch (error) {
		assert.instance(error, FileError);
	}
	closeSync(target);
	assert.ok(readFileSync(out).equals(big.subarray(1, 200_002)));
	rmSync(out);
	writeFileSync(join(root, 'big.bin'), big);
	await settled(before);
});

bodies('on a worker thread, Node prints no warning about descriptors', async () => {
	// Node tracks the descriptors that its threads open and close, and warns about unknown ones.
	const thread = new Worker(
		`const { createFileReader } = await import(${JSON.stringify(import.meta.resolve('../../../runtime/files/file-reader.ts'))});
		const { parentPort } = await import('node:worker_threads');
		const warnings = [];
		// Ignores the warning that node:ffi is experimental, which servers suppress as well (--disable-warning).
		process.on('warning', ({ name, message }) => name === 'ExperimentalWarning' || warnings.push(message));
		const reader = createFileReader();
		for (const path of ['/small.bin', '/big.bin']) {
			const file = reader.open(${JSON.stringify(root)}, path, false);
			const body = file.body(0, file.size);
			body.cancel?.();
			file.close();
		}
		setTimeout(() => parentPort.postMessage(warnings), 20);`,
		{ eval: true },
	);
	assert.equal((await once(thread, 'message'))[0], []);
	await thread.terminate();
});

bodies('sending to an invalid descriptor sends nothing', () => {
	const file = opened('/big.bin');
	const body = file.body(0, file.size);
	assert.ok(isStream(body));
	assert.is(body.sendTo!(-1), 0);
	assert.is(body.sendTo!(999_999), 0);
	assert.is((body.pull() as Uint8Array)[0], 97);
	body.cancel();
});

bodies('a file that shrinks while it is sent fails visibly and closes', async () => {
	const before = descriptors();
	writeFileSync(join(root, 'shrinks.bin'), big);
	const file = opened('/shrinks.bin');
	const body = file.body(0, file.size);
	assert.ok(isStream(body));
	await body.pull();
	truncateSync(join(root, 'shrinks.bin'), 70_000);
	await body.pull();
	try {
		await body.pull();
		assert.unreachable('the truncation went unnoticed');
	} catch (error) {
		assert.instance(error, FileError);
	}
	await settled(before);
});

bodies('a small file that shrinks before it is read is refused', () => {
	const before = descriptors();
	writeFileSync(join(root, 'shrinks.txt'), '0123456789');
	const file = opened('/shrinks.txt');
	truncateSync(join(root, 'shrinks.txt'), 4);
	assert.throws(
		() => file.body(0, file.size),
		(error: FileError) => error.reason === 'unavailable',
	);
	assert.is(descriptors(), before);
});

bodies('a file that grows is sent with its original length', async () => {
	writeFileSync(join(root, 'grows.txt'), '0123456789');
	const file = opened('/grows.txt');
	writeFileSync(join(root, 'grows.txt'), '0123456789abcdef');
	assert.is(await text(file.body(0, file.size)), '0123456789');
});

bodies('a symbolic link replaced during requests never leads outside the root', async () => {
	mkdirSync(join(scratch, 'private'), { recursive: true });
	writeFileSync(join(scratch, 'private/secret.txt'), 'secret');
	writeFileSync(join(root, 'hello.txt'), 'hello');
	const swapper = `
		const { symlinkSync, renameSync } = require('node:fs');
		for (let i = 0; ; i++) {
			symlinkSync(i % 2 ? 'hello.txt' : '../private/secret.txt', process.argv[1] + '/swap-next');
			renameSync(process.argv[1] + '/swap-next', process.argv[1] + '/swap');
		}`;
	const { spawn } = await import('node:child_process');
	const child = spawn(process.execPath, ['-e', swapper, root], { stdio: 'ignore' });
	try {
		const seen = { opened: 0, refused: 0 };
		const end = performance.now() + 1500;
		while (performance.now() < end) {
			for (let i = 0; i < 50; i++) {
				try {
					const file = opened('/swap');
					assert.is(Buffer.from((file.body(0, file.size) as BodySource).pull() as Uint8Array).toString(), 'hello');
					seen.opened += 1;
				} catch (error) {
					if (!(error instanceof FileError)) throw error;
					assert.is(error.reason, 'not_found');
					seen.refused += 1;
				}
			}
			await new Promise(resolve => setImmediate(resolve));
			if (seen.opened > 500 && seen.refused > 500) break;
		}
		assert.ok(seen.opened > 0 && seen.refused > 0, JSON.stringify(seen));
	} finally {
		child.kill('SIGKILL');
		await new Promise(resolve => child.once('exit', resolve));
	}
});

bodies.after(() => rmSync(scratch, { recursive: true, force: true }));
bodies.run();

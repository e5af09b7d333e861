/**
 * Encoding and reading files never blocks a thread for long: no single step of this work takes 20 ms, and the thread pool reads
 * data that is not in memory. Steps are measured in CPU time of the thread, on which other load has little influence. The length
 * of whole event-loop turns, in which all clients are served, is only printed.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, realpathSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Body, type BodySource, isStream } from '../../../compiler/exchange/body.ts';
import type { Coding, OpenFile } from '../../../compiler/exchange/leases.ts';
import { ThreadCompressor } from '../../../runtime/compression/thread-compressor.ts';
import { createFileReader } from '../../../runtime/files/file-reader.ts';
import { temporaryFolder } from '../../harness.ts';

const CLIENTS = 16;
const TURNS = 14;
/** Number of pieces after which a response writer yields to other connections. */
const PIECES_A_TURN = 32;
/** Maximum milliseconds of one step. */
const MAX_STEP_MS = 20;

/** Input limit for levels of at least {@link SLOW_LEVEL}, which would otherwise keep the thread pool busy for seconds. */
const MAX_FOR_SLOW = 60_000;
const SLOW_LEVEL = 11;
const CODINGS: readonly Coding[] = [
	{ name: 'gzip' },
	{ name: 'gzip', level: 1 },
	{ name: 'gzip', level: 9 },
	{ name: 'br' },
	{ name: 'br', level: 11 },
	{ name: 'zstd' },
	{ name: 'zstd', level: 19 },
];

const stalls = suite('no stalls');
const root = realpathSync(temporaryFolder());
const SIZES = { 'small.txt': 4000, 'middle.json': 60_000, 'large.txt': 1_500_000, 'huge.bin': 20_000_000 };

/** Returns bytes that, like text, are neither all the same nor random. */
function content(length: number): Buffer {
	if (length > 1_000_000) return Buffer.alloc(length, content(1_000_000));
	const bytes = Buffer.alloc(length);
	let state = length;
	for (let i = 0; i < length; i++) {
		state = (state * 48_271) % 2_147_483_647;
		bytes[i] = state % 7 === 0 ? 97 + (state % 26) : 32 + ((i * i) % 64);
	}
	return bytes;
}

let longest = 0;

/** Returns the CPU milliseconds of this thread so far. */
function cpuMilliseconds(): number {
	const { user, system } = process.threadCpuUsage();
	return (user + system) / 1000;
}

/** Runs a synchronous step of work and updates `longest`, the duration of the longest step. */
function runStep<T>(work: () => T): T {
	const before = cpuMilliseconds();
	const result = work();
	longest = Math.max(longest, cpuMilliseconds() - before);
	return result;
}

/** Pulls a body as response writers do. Resolves to its length. */
async function drain(body: Body): Promise<number> {
	if (body === null) return 0;
	if (!isStream(body)) return body.length;
	let count = 0;
	for (let pieces = 1; ; pieces++) {
		const piece = await runStep(() => body.pull());
		if (piece === null) return count;
		count += piece.length;
		if (pieces % PIECES_A_TURN === 0) await new Promise(resolve => setImmediate(resolve));
	}
}

stalls.before(() => {
	for (const [name, size] of Object.entries(SIZES)) writeFileSync(path.join(root, name), content(size));
});

stalls('files are read and encoded for many clients at the same time in short steps', async () => {
	const reader = createFileReader();
	const compressor = new ThreadCompressor();
	const text = content(700_000);
	let answers = 0;
	async function client(number: number): Promise<void> {
		for (let turn = number; turn < number + TURNS; turn++) {
			const coding = CODINGS[turn % CODINGS.length]!;
			const isSlow = (coding.level ?? 0) >= SLOW_LEVEL;
			const name = Object.keys(SIZES)[(turn >> 2) % (isSlow ? 2 : 4)]!;
			if (turn % 3 === 0) {
				const options = { minimum: 500, flush: false, identity: undefined };
				const bytes = text.subarray(0, 1000 + ((turn * 7919) % (isSlow ? MAX_FOR_SLOW : text.length - 1000)));
				await drain((await runStep(() => compressor.encode(bytes, coding, options))).body);
			} else {
				const file = runStep(() => reader.open(root, `/${name}`, false)) as OpenFile;
				const body = runStep(() => file.body(0, file.size));
				if (turn % 3 === 1 || name === 'huge.bin' || body === null) await drain(body);
				else {
					const options = { minimum: 500, flush: false, identity: file };
					await drain((await runStep(() => compressor.encode(body, coding, options))).body);
				}
			}
			answers += 1;
			await new Promise(resolve => setImmediate(resolve));
		}
	}
	const turns: number[] = [];
	let isOver = false;
	const clients = Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(number))).then(() => {
		isOver = true;
	});
	// The event-loop turn in which this test starts all clients is always long, so the measurement begins after it.
	while (answers < CLIENTS) await new Promise(resolve => setImmediate(resolve));
	longest = 0;
	let last = cpuMilliseconds();
	while (!isOver) {
		await new Promise(resolve => setImmediate(resolve));
		const now = cpuMilliseconds();
		turns.push(now - last);
		last = now;
	}
	await clients;
	turns.sort((a, b) => a - b);
	const at = (share: number): string => turns[Math.floor((turns.length - 1) * share)]!.toFixed(2);
	console.log(
		`${answers} answers: longest piece of work ${longest.toFixed(2)} ms, longest turn ${at(1)} ms, p99 ${at(0.99)} ms`,
	);
	assert.is(answers, CLIENTS * TURNS);
	assert.ok(longest < MAX_STEP_MS, `${longest} ms`);
});

stalls('a large file that is not in memory is read by the thread pool', async () => {
	const file = path.join(root, 'huge.bin');
	// Makes dd write back dirty pages and evict the file from the page cache.
	const forget = ['if=/dev/null', `of=${file}`, 'conv=notrunc,fdatasync', 'oflag=nocache', 'count=0'];
	if (spawnSync('dd', forget).status !== 0) {
		console.log('skipped: dd cannot evict the file from the page cache');
		return;
	}
	const before = readdirSync('/proc/self/fd').length;
	const opened = createFileReader(false).open(root, '/huge.bin', false) as OpenFile;
	const body = opened.body(0, opened.size) as BodySource;
	let waited = 0;
	let count = 0;
	for (;;) {
		const piece = body.pull();
		if (piece instanceof Promise) waited += 1;
		const bytes = await piece;
		if (bytes === null) break;
		assert.ok(bytes.length <= 128 * 1024, 'the piece is larger than 128 KiB');
		count += bytes.length;
	}
	assert.is(count, SIZES['huge.bin']);
	console.log(`${waited} of ${Math.ceil(count / 131_072)} pieces were read by the thread pool`);
	assert.ok(waited > 0);
	assert.is(readdirSync('/proc/self/fd').length, before);
});

stalls.run();

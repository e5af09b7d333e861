/** Writing logs: order, file modes, limits, and shared outputs. */
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { AccessBatch } from '../../../runtime/logs/access-batch.ts';
import { openLogFile } from '../../../runtime/logs/file-writer.ts';
import { releaseSegment, segmentBytes } from '../../../runtime/logs/log-segment.ts';
import { LogOutputError, LogSinks, sinkKey } from '../../../runtime/logs/log-sinks.ts';
import { ProcessLog } from '../../../runtime/logs/process-log.ts';
import { until } from '../../harness.ts';
import { recordingLog } from '../running-server.ts';

let folder = '';
const writers = suite('log writers');
writers.before.each(() => {
	folder = mkdtempSync(join(tmpdir(), 'svc-log-'));
});
writers.after.each(() => rmSync(folder, { recursive: true }));

writers('a file is appended to in order, with mode 600 in folders of mode 700', async () => {
	const path = join(folder, 'a/b/access.log');
	const writer = openLogFile(path, '/');
	for (let i = 0; i < 1000; i++) writer.write(`${i}\n`);
	await writer.close();
	const again = openLogFile('a/b/access.log', folder);
	again.write('again\n');
	await again.close();
	const lines = readFileSync(path, 'utf8').split('\n');
	assert.equal(
		lines.slice(0, 1000).map(Number),
		Array.from({ length: 1000 }, (_, i) => i),
	);
	assert.is(lines[1000], 'again');
	assert.is(statSync(path).mode & 0o777, 0o600);
	assert.is(statSync(join(folder, 'a/b')).mode & 0o777, 0o700);
});

writers('text beyond the queue limit is dropped and reported', async () => {
	const writer = openLogFile(join(folder, 'x'), '/');
	const megabyte = 'x'.repeat(1024 * 1024);
	let taken = 0;
	while (writer.write(megabyte) && taken < 100) taken++;
	assert.ok(taken >= 8 && taken < 12, String(taken));
	await writer.flush();
	assert.ok(writer.write('again'));
	await writer.close();
});

writers('an impossible path is an error at once, also in /proc', () => {
	const sinks = new LogSinks({}, folder);
	for (const path of ['/proc/none/x/y.log', folder, '']) {
		assert.throws(
			() => sinks.acquire({ writer: 'file', path }),
			(error: unknown) => error instanceof LogOutputError,
		);
	}
	assert.throws(() => sinks.acquire({ writer: 'carrier-pigeon' }), 'no log output');
});

writers('outputs with equal settings are one writer, closed by their last user', async () => {
	const sinks = new LogSinks({}, folder);
	const output = { writer: 'file', path: 'shared.log' };
	const first = sinks.acquire(output);
	assert.is(sinks.acquire({ path: 'shared.log', writer: 'file' }), first);
	sinks.release(sinkKey(output));
	first.write('text\n');
	sinks.release(sinkKey(output));
	assert.is(sinks.get(sinkKey(output)), undefined);
	await sinks.flush(1000);
	assert.is(readFileSync(join(folder, 'shared.log'), 'utf8'), 'text\n');
});

writers(
	'a batch is sent when it is full or old, and lines are dropped when too many batches are outstanding',
	async () => {
		const posted: { memory: SharedArrayBuffer; text: string; entries: number }[] = [];
		const long: string[] = [];
		let dropped = 0;
		const outstanding = new Int32Array(1);
		const batch = new AccessBatch({
			postText: text => void long.push(text),
			postSegment: (memory, length, entries) =>
				void posted.push({ memory, text: segmentBytes(memory, length).toString(), entries }),
			reportDropped: entries => {
				dropped += entries;
			},
			charsInTransit: outstanding,
			charsInTransitSlot: 0,
		});
		batch.write('one\n');
		batch.write('zwö 二 😀\n');
		assert.equal(posted, []);
		await until('the batch is sent', () => posted.length > 0);
		assert.equal(
			posted.map(({ text, entries }) => [text, entries]),
			[['one\nzwö 二 😀\n', 2]],
		);
		// Lines are not split. A line that does not fit goes into the next segment.
		for (let i = 0; i < 5; i++) batch.write(`${'x'.repeat(50_000)}\n`);
		assert.equal(
			posted.slice(1).map(({ text, entries }) => [text.length, entries]),
			[[150_003, 3]],
		);
		assert.is(long.length, 0);
		batch.write('y'.repeat(90_000));
		assert.is(outstanding[0], 90_000, 'a line too long for any segment is sent on its own');
		assert.equal([long.length, posted.length], [1, 3], 'after the lines before it');
		const before = posted.length;
		for (let i = 0; i < 200; i++) batch.write('x'.repeat(50_000));
		assert.ok(dropped > 100, String(dropped));
		assert.is(posted.length, 32);
		const lost = dropped;
		releaseSegment(posted[before]!.memory);
		batch.write('again\n');
		batch.flush();
		assert.equal([dropped, posted.at(-1)!.text], [lost, 'again\n']);
	},
);

writers('process logs take the namespaces they include; the longest matching prefix decides', () => {
	const out = recordingLog();
	const err = recordingLog();
	const sinks = new LogSinks({ stdout: out, stderr: err }, folder);
	const log = new ProcessLog(sinks, false, false);
	const settings = {
		logs: {
			default: { level: 'WARN', exclude: ['http'] },
			http: { output: { writer: 'stdout' }, include: ['http'], exclude: ['http.log'] },
		},
	};
	log.activate(log.prepare(settings as never));
	log.log('info', 'runtime', 'too low');
	log.log('warn', 'runtime', 'one');
	log.log('error', 'http', 'two');
	log.log('error', 'http.log.error', 'nowhere');
	log.log('error', 'httpd', 'three');
	log.close();
	assert.equal(
		err.entries.map(({ msg }) => msg),
		['one', 'three'],
	);
	assert.equal(
		out.entries.map(({ msg }) => msg),
		['two'],
	);
});

writers(
	'the logs of the first configuration get what was logged during the start, but standard error only once',
	async () => {
		const err = recordingLog();
		const sinks = new LogSinks({ stderr: err }, folder);
		const log = new ProcessLog(sinks, false, false);
		const readMessages = (file: string) =>
			readFileSync(join(folder, file), 'utf8')
				.trimEnd()
				.split('\n')
				.map(line => JSON.parse(line).msg);
		log.log('warn', 'pki', 'kept in memory only');
		log.log('debug', 'pki', 'too low');
		const first = {
			logs: { default: { output: { writer: 'file', path: 'first.log' } }, all: { output: { writer: 'stderr' } } },
		};
		log.activate(log.prepare(first as never));
		log.log('info', 'runtime', 'serving');
		const second = { logs: { default: { output: { writer: 'file', path: 'second.log' } } } };
		log.activate(log.prepare(second as never));
		log.log('info', 'config', 'applied');
		log.close();
		await sinks.flush(1000);
		assert.equal(readMessages('first.log'), ['kept in memory only', 'serving']);
		assert.equal(readMessages('second.log'), ['applied'], 'later configurations do not get it again');
		assert.equal(
			err.entries.map(({ msg }) => msg),
			['kept in memory only', 'serving'],
		);
	},
);

writers.run();

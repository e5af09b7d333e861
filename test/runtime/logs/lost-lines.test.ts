/**
 * Lines that cannot be written: each line is either complete in the file or absent. Lost lines are counted, and reported without
 * flooding the log.
 */

import { once } from 'node:events';
import { fstatSync, readFileSync, write } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLogFile } from '../../../runtime/logs/file-writer.ts';
import type { LogEntry } from '../../../runtime/logs/log-entry.ts';
import { countLines, type LineKind, LogLosses, type WriterEvents } from '../../../runtime/logs/log-losses.ts';
import { LogSinks, sinkKey } from '../../../runtime/logs/log-sinks.ts';
import { DescriptorWriter } from '../../../runtime/logs/log-writer.ts';
import { ProcessLog } from '../../../runtime/logs/process-log.ts';
import { temporaryFolder } from '../../harness.ts';
import { eventually, recordingLog, respondingSite, withServer } from '../running-server.ts';

/**
 * A fake disk with a limited number of free bytes, shared by files and pipes. A write that does not fit writes as many bytes as
 * fit, and then fails.
 */
class SmallDisk {
	freeBytes: number;
	code = 'ENOSPC';

	constructor(room: number) {
		this.freeBytes = room;
	}

	readonly write = ((fd: number, bytes: Buffer, offset: number, length: number, _: null, done: never): void => {
		const callback = done as (error: NodeJS.ErrnoException | null, written: number) => void;
		// Space freed by truncating a file is not counted, because the writer cannot rely on it.
		const fits = Math.min(length, this.freeBytes);
		if (fits === 0) {
			setImmediate(callback, Object.assign(new Error(this.code), { code: this.code }), 0);
			return;
		}
		this.freeBytes -= fits;
		write(fd, bytes, offset, fits, null, callback);
	}) as unknown as typeof write;
}

class Counted implements WriterEvents {
	readonly lines: Record<LineKind, number> = { access: 0, process: 0 };
	readonly causes = new Set<string>();
	writes = 0;

	onLost(lines: number, kind: LineKind, cause: string): void {
		this.lines[kind] += lines;
		if (lines > 0) this.causes.add(cause);
	}

	onWritten(): void {
		this.writes++;
	}
}

const line = (number: number): string => `{"number":${number},"text":"${'x'.repeat(100)}"}\n`;

/** Returns the numbers of all lines of a text. Asserts that each line is complete. */
function lineNumbers(text: string): number[] {
	assert.ok(text === '' || text.endsWith('\n'), `torn: ${text.slice(-40)}`);
	const lines = text.split('\n').slice(0, -1);
	return lines.map(entry => {
		const { number } = JSON.parse(entry);
		assert.is(`${entry}\n`, line(number));
		return number;
	});
}

const lost = suite('lost log lines');

lost('on a full disk no line of a file is truncated, and every line is either written or counted', async () => {
	for (let room = 0; room < 400; room += 7) {
		const disk = new SmallDisk(room);
		const events = new Counted();
		const file = path.join(temporaryFolder(), 'access.log');
		const writer = openLogFile(file, '/', {}, { write: disk.write, events });
		for (let i = 0; i < 3; i++) writer.write(line(i), 'access');
		await writer.flush();
		writer.writeBytes!(Buffer.from(line(3) + line(4)), () => {});
		await writer.flush();
		const before = lineNumbers(readFileSync(file, 'utf8'));
		assert.is(before.length + events.lines.access, 5, `room for ${room}`);
		disk.freeBytes = 1_000_000;
		writer.write(line(5), 'process');
		await writer.close();
		assert.equal(lineNumbers(readFileSync(file, 'utf8')), [...before, 5]);
		assert.is(events.lines.process, 0);
		if (events.lines.access > 0) assert.equal([...events.causes], ['ENOSPC']);
	}
});

lost('a partial line that cannot be removed is completed first, whatever was lost meanwhile', async () => {
	const disk = new SmallDisk(130);
	const events = new Counted();
	const file = path.join(temporaryFolder(), 'out.log');
	const opened = openLogFile(file, '/');
	await opened.close();
	const { openSync, closeSync } = await import('node:fs');
	const descriptor = openSync(file, 'a');
	const writer = new DescriptorWriter(descriptor, { write: disk.write, events });
	for (let i = 0; i < 3; i++) {
		writer.write(line(i), 'access');
		await writer.flush();
	}
	assert.is(fstatSync(descriptor).size, 130);
	assert.is(events.lines.access, 1);
	disk.freeBytes = 20;
	writer.write(line(3), 'access');
	await writer.flush();
	assert.is(fstatSync(descriptor).size, 150);
	disk.freeBytes = 1_000_000;
	writer.write(line(4), 'access');
	await writer.close();
	closeSync(descriptor);
	assert.equal(lineNumbers(readFileSync(file, 'utf8')), [0, 1, 4]);
	assert.is(events.lines.access, 2);
});

lost('text that another program wrote after a partial line is kept', async () => {
	const { appendFileSync } = await import('node:fs');
	const file = path.join(temporaryFolder(), 'shared.log');
	const disk = new SmallDisk(50);
	const events = new Counted();
	const interfering = ((...args: Parameters<typeof write>) => {
		if (disk.freeBytes === 0) appendFileSync(file, 'another\n');
		(disk.write as (...args: Parameters<typeof write>) => void)(...args);
	}) as typeof write;
	const writer = openLogFile(file, '/', {}, { write: interfering, events });
	writer.write(line(1), 'access');
	await writer.flush();
	disk.freeBytes = 1_000_000;
	await writer.close();
	assert.match(readFileSync(file, 'utf8'), /another\n$/);
});

lost('a closed pipe and a full device: every line is counted by its kind', async () => {
	const disk = new SmallDisk(0);
	disk.code = 'EPIPE';
	const events = new Counted();
	const pipe = new DescriptorWriter(1, { write: disk.write, events });
	pipe.write('a\nb\n', 'access');
	pipe.write('c\n');
	await pipe.close();
	assert.equal(events.lines, { access: 2, process: 1 });
	assert.equal([...events.causes], ['EPIPE']);
	if (process.platform !== 'linux') return;
	const full = new Counted();
	const device = openLogFile('/dev/full', '/', {}, { events: full });
	device.write('a\nb\n', 'access');
	await device.close();
	assert.equal(full.lines, { access: 2, process: 0 });
});

lost('lines that do not fit in the queue are counted', async () => {
	const events = new Counted();
	const stuck = new DescriptorWriter(1, { write: (() => {}) as never, events });
	const megabyte = `${'x'.repeat(1024 * 1024)}\n`;
	let taken = 0;
	while (stuck.write(megabyte, 'access')) taken++;
	let given = false;
	assert.is(
		stuck.writeBytes(Buffer.from('a\nb\n'), () => (given = true)),
		false,
	);
	assert.ok(given && taken > 4);
	assert.equal(events.lines, { access: 3, process: 0 });
	assert.equal([...events.causes], ['it does not keep up']);
});

lost('collectors: lines in transit when the connection breaks, and lines left at the end, are counted', async () => {
	const server = createServer(socket => socket.pause()).listen(0, '127.0.0.1');
	await once(server, 'listening');
	const { port } = server.address() as { port: number };
	const sinks = new LogSinks({}, '/');
	const output = { writer: 'net', address: `tcp/127.0.0.1:${port}` } as const;
	const accepted = once(server, 'connection');
	const writer = sinks.acquire(output);
	await sinks.whenAllOpened();
	const megabyte = `${'x'.repeat(1024 * 1024)}\n`;
	for (let i = 0; i < 7; i++) sinks.write(sinkKey(output), megabyte, 1);
	const [socket] = await accepted;
	socket.resetAndDestroy();
	server.close();
	// The server cannot know whether lines that are already in the system's buffers have reached the collector.
	await eventually('the losses are counted', () => sinks.lostLines('access') > 0);
	await writer.flush();
	const before = sinks.lostLines('access');
	sinks.write(sinkKey(output), 'a\nb\n', 2);
	sinks.release(sinkKey(output));
	await sinks.flush(10_000);
	assert.ok(sinks.lostLines('access') - before >= 2);
	assert.ok(sinks.lostLines('access') <= 9);
});

lost('the first loss is reported at once, further losses periodically, and recovery once', async () => {
	const entries: LogEntry[] = [];
	const losses = new LogLosses('file a.log', entry => entries.push(entry), 50);
	losses.onWritten();
	assert.is(entries.length, 0);
	for (let i = 0; i < 1000; i++) losses.onLost(1, 'access', 'ENOSPC');
	assert.equal(
		entries.map(({ level, message, fields }) => [level, message, fields]),
		[['error', 'log entries were lost', { output: 'file a.log', cause: 'the disk is full (ENOSPC)', lost: 1 }]],
	);
	await eventually('the other losses are reported', () => entries.length === 2);
	assert.equal(entries[1]!.fields, { output: 'file a.log', cause: 'the disk is full (ENOSPC)', lost: 999 });
	losses.onLost(3, 'process', 'EIO');
	losses.onWritten();
	await eventually('the recovery is reported', () => entries.length === 4);
	assert.equal(entries[2]!.fields, { output: 'file a.log', cause: 'the device reports an error (EIO)', lost: 3 });
	assert.equal([entries[3]!.level, entries[3]!.message], ['info', 'a log output works again']);
	assert.equal(entries[3]!.fields, { output: 'file a.log', lost: 1003 });
	assert.equal(losses.lostLines, { access: 1000, process: 3 });
	losses.close();
});

lost('lines in bytes are counted by their line ends', () => {
	const counts = ['', 'a', 'a\n', 'a\nb', 'a\nb\n', '\n\n'].map(text => countLines(Buffer.from(text)));
	assert.equal(counts, [0, 1, 1, 2, 2, 2]);
});

lost('a loss is reported to the outputs that work, or to standard error if none does', async () => {
	const [stdout, stderr] = [recordingLog(), recordingLog()];
	const sinks = new LogSinks({ stdout, stderr }, '/', undefined, (entry, key) => log.reportFailure(entry, key));
	const log: ProcessLog = new ProcessLog(sinks, false, false);
	const full = { writer: 'file', path: '/dev/full' };
	log.activate(log.prepare({ logs: { default: { output: full } } } as never));
	log.log('info', 'a', 'nobody reads this');
	await eventually('the loss is reported', () => stderr.entries.length === 1);
	assert.is(stderr.entries[0]!.msg, 'log entries were lost');
	assert.is(stderr.entries[0]!.output, 'file /dev/full');
	assert.is(sinks.lostLines('process'), 1);
	log.activate(log.prepare({ logs: { default: { output: full }, other: { output: { writer: 'stdout' } } } } as never));
	log.reportFailure({ level: 'error', logger: 'logs', message: 'again' }, sinkKey(full));
	assert.equal(
		stdout.entries.map(({ msg }) => msg),
		['again'],
	);
	log.close();
});

lost('a server counts access entries lost to a full device, and reports the loss once', async () => {
	if (process.platform !== 'linux') return;
	const logs = [{ format: { encoder: 'json' }, output: { writer: 'file', path: '/dev/full' } }];
	const sites = [respondingSite('hello', { logs } as never)];
	await withServer({ settings: { metrics: {} }, sites }, {}, async ({ runtime, get, log }) => {
		for (let i = 0; i < 10; i++) await get();
		await eventually('the losses are counted', async () =>
			/^svc_access_log_dropped_total 10$/m.test(await runtime.metrics()),
		);
		const reports = log.entries.filter(({ logger }) => logger === 'logs');
		assert.is(reports.length, 1);
		assert.is(reports[0]!.cause, 'the disk is full (ENOSPC)');
		assert.match(await runtime.metrics(), /^svc_process_log_dropped_total 0$/m);
	});
});

lost.run();

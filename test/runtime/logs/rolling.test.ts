/** Log files that are rolled by the server and by other programs: no line is lost or split. */
import {
	existsSync,
	linkSync,
	mkdirSync,
	mkdtempSync,
	readdirSync,
	readFileSync,
	renameSync,
	rmSync,
	statSync,
	writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync, gzipSync, zstdDecompressSync } from 'node:zlib';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { FileProblems } from '../../../runtime/logs/file-problems.ts';
import { openLogFile } from '../../../runtime/logs/file-writer.ts';
import type { LogEntry } from '../../../runtime/logs/log-entry.ts';
import type { WriterEvents } from '../../../runtime/logs/log-losses.ts';
import { nextRoll } from '../../../runtime/logs/roll-times.ts';
import { RolledFiles } from '../../../runtime/logs/rolled-files.ts';
import { until, waitForClock, waitForNothing } from '../../harness.ts';

let folder = '';
const rolling = suite('rolled log files');
rolling.before.each(() => {
	folder = mkdtempSync(join(tmpdir(), 'svc-log-'));
});
rolling.after.each(() => rmSync(folder, { recursive: true }));

/** Returns every line in the folder's files, compressed or not, sorted by the number at the start of the line. */
function allLines(): string[] {
	return readdirSync(folder)
		.flatMap(name => {
			const bytes = readFileSync(join(folder, name));
			const text = name.endsWith('.gz') ? gunzipSync(bytes) : name.endsWith('.zst') ? zstdDecompressSync(bytes) : bytes;
			assert.ok(text.length === 0 || text.toString().endsWith('\n'), `${name} ends in the middle of a line`);
			return text.toString().split('\n').slice(0, -1);
		})
		.sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10));
}

async function settled(expectation: () => boolean): Promise<void> {
	await until(String(expectation), expectation);
}

for (const [compression, suffix] of [
	['none', '.log'],
	['gzip', '.log.gz'],
	['zstd', '.log.zst'],
] as const) {
	rolling(`rolling by size with compression ${compression} loses and splits no line`, async () => {
		const writer = openLogFile('access.log', folder, { rolling: { size: 2000, compression, keep: 0 } });
		const lines = Array.from({ length: 500 }, (_, i) => `${i} ${'x'.repeat(i % 90)}`);
		for (let i = 0; i < lines.length; i += 25) {
			writer.write(`${lines.slice(i, i + 25).join('\n')}\n`);
			if (i % 100 === 0) await writer.flush();
		}
		await writer.close();
		const rolled = () => readdirSync(folder).filter(name => name !== 'access.log');
		await settled(() => rolled().every(name => name.endsWith(suffix)));
		assert.equal(allLines(), lines);
		assert.ok(rolled().length >= 10, rolled().join(' '));
		for (const name of readdirSync(folder)) {
			assert.is(statSync(join(folder, name)).mode & 0o777, 0o600, name);
			if (compression === 'none') assert.ok(statSync(join(folder, name)).size <= 2000, name);
		}
		assert.match(rolled()[0]!, /^access-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}(?:-\d+)?\.log/);
	});
}

/** Records what a writer reports about its file, but not about files that it has rolled. */
class RecordedTasks implements WriterEvents {
	readonly results: string[] = [];

	onLost(): void {}
	onWritten(): void {}
	onFileTask(task: string, code: string | undefined): void {
		if (task !== 'clean_up') this.results.push(`${task} ${code ?? 'done'}`);
	}
}

rolling('a file that cannot be rolled is reported, and again once it can', async () => {
	const events = new RecordedTasks();
	const path = join(folder, 'logs', 'a.log');
	const writer = openLogFile(path, '/', { rolling: { size: 20, compression: 'none' } }, { events });
	writer.write('1 a line of text\n');
	await writer.flush();
	// The folder is another one now, in which the file does not exist.
	renameSync(join(folder, 'logs'), join(folder, 'moved'));
	writer.write('2 a line of text\n');
	await writer.flush();
	assert.equal(events.results, ['roll ENOENT']);
	renameSync(join(folder, 'moved'), join(folder, 'logs'));
	writer.write('3 a line of text\n');
	await writer.flush();
	writer.write('4 a line of text\n');
	await writer.close();
	assert.equal(events.results.slice(0, 3), ['roll ENOENT', 'roll done', 'reopen done']);
});

rolling('a removed file that cannot be created again is reported, and again once it is', async () => {
	const events = new RecordedTasks();
	const path = join(folder, 'logs', 'a.log');
	const writer = openLogFile(path, '/', {}, { events });
	rmSync(join(folder, 'logs'), { recursive: true });
	writeFileSync(join(folder, 'logs'), 'a file in place of the folder');
	await settled(() => {
		writer.write('1\n');
		return events.results.length > 0;
	});
	await writer.flush();
	assert.is(events.results[0], 'reopen ENOTDIR');
	rmSync(join(folder, 'logs'));
	await settled(() => {
		writer.write('2\n');
		return existsSync(path);
	});
	await writer.close();
	assert.is(events.results.at(-1), 'reopen done');
});

rolling('rolled files that cannot be compressed or deleted are reported', async () => {
	const codes: (string | undefined)[] = [];
	const name = 'a-2020-01-01T00-00-00.000.log';
	writeFileSync(join(folder, name), '1\n');
	const files = new RolledFiles(join(folder, 'a.log'), { keep: 1 }, 0o600, code => codes.push(code));
	mkdirSync(join(folder, `${name}.gz.unfinished`));
	await files.cleanUp();
	rmSync(join(folder, `${name}.gz.unfinished`), { recursive: true });
	await files.cleanUp();
	assert.equal(codes, ['EISDIR', undefined]);
	assert.equal(readdirSync(folder), [`${name}.gz`]);
});

rolling('a problem of a log file is reported when it begins and when it ends, in words', () => {
	const entries: LogEntry[] = [];
	const problems = new FileProblems('file a.log', entry => entries.push(entry));
	problems.onResult('roll', undefined);
	for (let i = 0; i < 10; i++) problems.onResult('reopen', 'EACCES');
	problems.onResult('roll', 'EPERM');
	problems.onResult('reopen', undefined);
	problems.onResult('reopen', undefined);
	assert.equal(
		entries.map(({ level, message, fields }) => [level, message, fields!.cause]),
		[
			[
				'error',
				'a log file was removed or renamed, and no new one can be created: entries still go to the old file',
				'permission denied (EACCES)',
			],
			['error', 'a log file cannot be rolled, so it keeps growing', 'permission denied (EPERM)'],
			['info', 'a log file has been created again', undefined],
		],
	);
});

rolling('a line longer than the size limit gets a file of its own', async () => {
	const writer = openLogFile('a.log', folder, { rolling: { size: 50, compression: 'none' } });
	writer.write(`1 short\n2 ${'x'.repeat(200)}\n3 short\n`);
	await writer.close();
	assert.equal(
		allLines().map(line => line[0]),
		['1', '2', '3'],
	);
});

rolling('the oldest files are deleted if there are too many, and so are files that are too old', async () => {
	for (let i = 0; i < 5; i++) writeFileSync(join(folder, `a-2020-01-0${i + 1}T00-00-00.000.log`), `${i}\n`);
	const kept = new RolledFiles(join(folder, 'a.log'), { keep: 2, compression: 'none' }, 0o600);
	await kept.cleanUp();
	assert.is(readdirSync(folder).length, 2);
	await waitForClock(20);
	await new RolledFiles(join(folder, 'a.log'), { keep: 0, keep_for: 1, compression: 'none' }, 0o600).cleanUp();
	assert.is(readdirSync(folder).length, 0);
});

rolling(
	'files named in the default layout are kept and deleted by the same rules after the layout changes',
	async () => {
		const before = join(folder, 'a-2026-01-02T03-04-05.006.log');
		writeFileSync(before, '1\n');
		const files = new RolledFiles(
			join(folder, 'a.log'),
			{ keep: 0, compression: 'none', time_format: '20060102' },
			0o600,
		);
		await files.cleanUp();
		assert.ok(existsSync(before));
		const own = files.rolledPath(Date.now(), 0);
		writeFileSync(own, '2\n');
		await new RolledFiles(
			join(folder, 'a.log'),
			{ keep: 1, compression: 'none', time_format: '20060102' },
			0o600,
		).cleanUp();
		assert.equal(readdirSync(folder), [own.slice(folder.length + 1)]);
	},
);

rolling('when a log is opened, files left by a killed process are compressed or removed', async () => {
	const rolled = join(folder, 'a-2020-01-01T00-00-00.000-1.log');
	const unfinished = join(folder, 'a-2020-01-02T00-00-00.000.log.gz.unfinished');
	writeFileSync(rolled, '1\n');
	writeFileSync(unfinished, 'half');
	const writer = openLogFile('a.log', folder);
	await settled(() => existsSync(`${rolled}.gz`) && !existsSync(rolled));
	assert.not.ok(existsSync(unfinished));
	await writer.close();
	assert.equal(allLines(), ['1']);
});

rolling('files of another log whose name starts the same are not taken for rolled files', async () => {
	const others = ['a-api.log', 'a-2020.log', 'a-api.log.gz.unfinished', 'a-api-2020-01-01T00-00-00.000.log'];
	for (const name of others) writeFileSync(join(folder, name), 'not ours\n');
	for (const time_format of ['2006-01-02T15-04-05.000', '20060102', 'Jan _2 2006 15h04 -0700 MST']) {
		const files = new RolledFiles(join(folder, 'a.log'), { keep: 1, keep_for: 1, time_format }, 0o600);
		const own = files.rolledPath(Date.now(), 0);
		writeFileSync(own, 'ours\n');
		await waitForClock(10);
		await files.cleanUp();
		assert.not.ok(existsSync(own) || existsSync(`${own}.gz`), time_format);
	}
	assert.equal(readdirSync(folder).sort(), others.sort());
});

rolling('with names that contain only the day, several rolls on one day overwrite nothing', async () => {
	const settings = { rolling: { size: 20, time_format: '2006-01-02', keep: 0 } };
	const writer = openLogFile('a.log', folder, settings);
	for (let i = 0; i < 4; i++) {
		writer.write(`${i} ${'x'.repeat(15)}\n`);
		await writer.flush();
		await settled(() => readdirSync(folder).every(name => name === 'a.log' || name.endsWith('.log.gz')));
	}
	await writer.close();
	assert.equal(
		allLines().map(line => line[0]),
		['0', '1', '2', '3'],
	);
});

rolling('after another program renames the log file, a new one is started and no line is lost', async () => {
	const writer = openLogFile('a.log', folder, { rolling: false });
	writer.write('1\n');
	await writer.flush();
	renameSync(join(folder, 'a.log'), join(folder, 'a.log.1'));
	writer.write('2\n');
	await writer.flush();
	await waitForClock(1050);
	writer.write('3\n');
	await writer.flush();
	writer.write('4\n');
	await writer.close();
	assert.equal(allLines(), ['1', '2', '3', '4']);
	assert.match(readFileSync(join(folder, 'a.log'), 'utf8'), /4\n$/);
});

rolling('the next roll follows intervals, minutes of the hour, and times of day', () => {
	const at = Date.UTC(2026, 10, 21, 9, 30, 15);
	const next = (settings: Parameters<typeof nextRoll>[0], opened = at) =>
		new Date(nextRoll(settings, opened, at)).toISOString().slice(0, 19);
	assert.is(nextRoll({}, at, at), Number.POSITIVE_INFINITY);
	assert.is(next({ interval: 3_600_000 }), '2026-11-21T10:30:15');
	assert.is(next({ minutes: [0, 30, 45] }), '2026-11-21T09:45:00');
	assert.is(next({ minutes: [30] }), '2026-11-21T10:30:00');
	assert.is(next({ at: ['09:00', '23:59'] }), '2026-11-21T23:59:00');
	assert.is(next({ at: ['09:30'] }), '2026-11-22T09:30:00');
	assert.is(next({ at: ['09:30'], interval: 5000, minutes: [31] }), '2026-11-21T09:30:20');
});

rolling('at the end of an interval, a file without new lines is rolled, and an empty one is not', async () => {
	const writer = openLogFile('a.log', folder, { rolling: { interval: 1000, compression: 'none' } });
	writer.write('1\n');
	await settled(() => readdirSync(folder).length === 2);
	assert.is(statSync(join(folder, 'a.log')).size, 0);
	await waitForNothing(1200);
	assert.is(readdirSync(folder).length, 2);
	await writer.close();
});

rolling('a line, a roll or a compression interrupted by a kill is completed', async () => {
	const rolled = join(folder, 'a-2026-11-21T09-00-00.000.log');
	// Simulates a process that was killed while it renamed the file: the file has both names, and its last line is incomplete.
	writeFileSync(rolled, '1\n2');
	linkSync(rolled, join(folder, 'a.log'));
	// Simulates a process that was killed after it wrote the compressed file, but before it removed the original.
	const older = join(folder, 'a-2026-11-21T08-00-00.000.log');
	writeFileSync(older, '0\n');
	writeFileSync(`${older}.gz`, gzipSync('0\n'));
	const first = openLogFile('a.log', folder);
	first.write('3\n');
	await first.close();
	await settled(() => !existsSync(older) && existsSync(`${rolled}.gz`));
	assert.is(gunzipSync(readFileSync(`${older}.gz`)).toString(), '0\n');
	assert.is(gunzipSync(readFileSync(`${rolled}.gz`)).toString(), '1\n2');
	assert.is(readFileSync(join(folder, 'a.log'), 'utf8'), '3\n');
	writeFileSync(join(folder, 'a.log'), '3\n4');
	const second = openLogFile('a.log', folder);
	second.write('5\n');
	await second.close();
	assert.is(readFileSync(join(folder, 'a.log'), 'utf8'), '3\n4\n5\n');
});

rolling.run();

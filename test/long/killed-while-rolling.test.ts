/**
 * A process that is killed at any moment while it rolls and compresses its log loses, splits or duplicates no line that was
 * written. Only the line that is being written at the kill may be cut short, because Linux then ends a write at a page boundary;
 * the next process terminates that line. KILLS sets the number of kills.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLogFile } from '../../runtime/logs/file-writer.ts';
import { Random } from '../compiler/syntax/random-text.ts';
import { ROOT, temporaryFolder, until } from '../harness.ts';

const KILLS = Number(process.env.KILLS ?? 150);

/**
 * A program that writes numbered lines as fast as the file accepts them, and prints the number of the last line that is in the
 * file.
 */
const PROGRAM = `
import { openLogFile } from ${JSON.stringify(pathToFileURL(path.join(ROOT, 'runtime/logs/file-writer.ts')).href)};
const [folder, life] = process.argv.slice(1);
const writer = openLogFile('access.log', folder, { rolling: { size: 200000, keep: 0, keep_for: 0 } });
for (let line = 0; ; line += 50) {
	let text = '';
	for (let at = 0; at < 50; at++) text += life + ' ' + (line + at) + ' ' + 'x'.repeat(80) + ' end\\n';
	writer.write(text);
	await writer.flush();
	process.stdout.write(line + 49 + '\\n');
}
`;

const killed = suite('killed while rolling');

killed(`after ${KILLS} kills, every line is there exactly once and complete`, async () => {
	const folder = temporaryFolder();
	const random = new Random(Number(process.env.SEED ?? 1));
	/** The number of the last line that each process reported as written. */
	const reportedLines: number[] = [];
	for (let life = 0; life < KILLS; life++) {
		const child = spawn(process.execPath, ['--input-type=module', '-e', PROGRAM, folder, String(life)], {
			stdio: ['ignore', 'pipe', 'inherit'],
		});
		let output = '';
		child.stdout.setEncoding('utf8').on('data', chunk => {
			output = (output + chunk).slice(-100);
		});
		await once(child.stdout, 'data');
		await new Promise(resolve => setTimeout(resolve, random.below(25)));
		child.kill('SIGKILL');
		await once(child, 'close');
		reportedLines.push(Number(output.trimEnd().split('\n').at(-1)));
	}
	// The next writer terminates the line that the last process left unfinished.
	const writer = openLogFile('access.log', folder, { rolling: { size: 200_000, keep: 0, keep_for: 0 } });
	const compressed = (): boolean => readdirSync(folder).every(name => name === 'access.log' || name.endsWith('.gz'));
	await until('all files to be compressed', compressed);
	await writer.close();
	const seen = reportedLines.map(() => new Set<number>());
	const cut: string[] = [];
	const files = readdirSync(folder);
	for (const name of files) {
		if (name.endsWith('.unfinished')) continue;
		const bytes = readFileSync(path.join(folder, name));
		const text = (name.endsWith('.gz') ? gunzipSync(bytes) : bytes).toString();
		const lines = text.split('\n');
		assert.is(lines.pop(), '', name);
		for (const line of lines) {
			const parts = /^(\d+) (\d+) x{80} end$/.exec(line);
			if (parts === null) {
				cut.push(line);
				continue;
			}
			const life = seen[Number(parts[1])]!;
			assert.not.ok(life.has(Number(parts[2])), `${name}: ${line} again`);
			life.add(Number(parts[2]));
		}
	}
	// A line that was cut must be the start of the line that its process would have written next. Each process may leave at most
	// one cut line, which it must not have reported as written.
	const next = seen
		.map((lines, life) => ({ life, line: lines.values().reduce((most, line) => Math.max(most, line), -1) + 1 }))
		.filter(({ life, line }) => line > reportedLines[life]!);
	for (const half of cut) {
		const at = next.findIndex(({ life, line }) => `${life} ${line} ${'x'.repeat(80)} end`.startsWith(half));
		assert.ok(at !== -1, `unexpected partial line: ${half}`);
		next.splice(at, 1);
	}
	let total = 0;
	for (const [life, lines] of seen.entries()) {
		for (let line = 0; line <= reportedLines[life]!; line++) assert.ok(lines.has(line), `life ${life}, line ${line}`);
		total += lines.size;
	}
	console.log(`killed ${KILLS} times, ${total} lines in ${files.length} files, ${cut.length} cut short by a kill`);
});

killed.run();

/** Runs each test file that calls `roundCount` with its large number of rounds. */
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { MORE_ROUNDS_VARIABLE } from '../round-count.ts';
import { testFiles } from '../run.ts';

const TESTS_FOLDER = path.resolve(import.meta.dirname, '..');

/** Number of files that run at the same time. One file takes as long as all others together. */
const PARALLEL_FILES = 2;

// In this order, fuzz/regexps.test.ts, which takes longest, starts first.
const files = testFiles(TESTS_FOLDER, ['long', 'peers', 'bench'])
	.filter(file => /\broundCount\(/.test(readFileSync(file, 'utf8')))
	.reverse();

/** Runs a test file. Throws the file's output if one of its tests fails. */
async function runFile(file: string): Promise<void> {
	const child = spawn(process.execPath, ['--disable-warning=ExperimentalWarning', file], {
		env: { ...process.env, [MORE_ROUNDS_VARIABLE]: '1' },
		stdio: ['ignore', 'pipe', 'pipe'],
	});
	const { promise: ended, resolve } = Promise.withResolvers<number | null>();
	child.once('close', resolve);
	const output = await Promise.all([text(child.stdout), text(child.stderr)]);
	assert.is(await ended, 0, output.join(''));
}

const runs = new Map(files.map(file => [file, Promise.withResolvers<void>()]));
const waiting = [...files];

async function runWaitingFiles(): Promise<void> {
	for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
		const { resolve, reject } = runs.get(file)!;
		await runFile(file).then(resolve, reject);
	}
}

const rounds = suite('many rounds of random tests');

rounds.before(() => {
	// A file may fail before the suite awaits its result.
	for (const { promise } of runs.values()) promise.catch(() => {});
	for (let i = 0; i < PARALLEL_FILES; i++) void runWaitingFiles();
});

rounds('some test files have a larger number of rounds', () => {
	assert.ok(files.length > 0);
});

for (const file of files) rounds(path.relative(TESTS_FOLDER, file), () => runs.get(file)!.promise);

rounds.run();

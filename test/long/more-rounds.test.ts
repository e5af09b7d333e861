/** Runs each test file that calls `roundCount` with its large number of rounds. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { MORE_ROUNDS_VARIABLE } from '../round-count.ts';
import { testFiles } from '../run.ts';

const TESTS_FOLDER = path.resolve(import.meta.dirname, '..');

const files = testFiles(TESTS_FOLDER, ['long', 'peers', 'bench']).filter(file =>
	/\broundCount\(/.test(readFileSync(file, 'utf8')),
);

const rounds = suite('many rounds of random tests');

rounds('some test files have a larger number of rounds', () => {
	assert.ok(files.length > 0);
});

for (const file of files) {
	rounds(path.relative(TESTS_FOLDER, file), () => {
		const { status, stdout, stderr } = spawnSync(process.execPath, ['--disable-warning=ExperimentalWarning', file], {
			env: { ...process.env, [MORE_ROUNDS_VARIABLE]: '1' },
			encoding: 'utf8',
		});
		assert.is(status, 0, stdout + stderr);
	});
}

rounds.run();

/** Runs the random regular-expression tests with more rounds. The seeds are always the same; REGEXP_SEED sets the first one. */
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

const regexps = suite('random regular expressions');

regexps('random expressions match in linear time, with the results of a backtracking engine', () => {
	const { status, stdout, stderr } = spawnSync(
		process.execPath,
		[path.join(import.meta.dirname, '../fuzz/regexps.test.ts')],
		{ env: { ...process.env, REGEXP_ROUNDS: '6000' }, encoding: 'utf8' },
	);
	assert.is(status, 0, stdout + stderr);
});

regexps.run();

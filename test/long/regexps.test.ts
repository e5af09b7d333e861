/** The tests of random regular expressions with more of them; the seeds are the same each time, or begin with REGEXP_SEED. */
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

const regexps = suite('random regular expressions');

regexps('many are searched in linear time, and as an engine that backtracks would', () => {
	const { status, stdout, stderr } = spawnSync(
		process.execPath,
		[path.join(import.meta.dirname, '../fuzz/regexps.test.ts')],
		{ env: { ...process.env, REGEXP_ROUNDS: '10000' }, encoding: 'utf8' },
	);
	assert.is(status, 0, stdout + stderr);
});

regexps.run();

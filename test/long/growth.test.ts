/** Runs test/fuzz/growth.test.ts with texts of ten million characters, in a process of its own. */
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

const growth = suite('growth');

growth('ten million repeated braces, quotes or pairs are processed within the time limit', () => {
	const { status, stdout, stderr } = spawnSync(
		process.execPath,
		[path.join(import.meta.dirname, '../fuzz/growth.test.ts')],
		{
			env: { ...process.env, GROWTH_LENGTH: '10000000' },
			encoding: 'utf8',
		},
	);
	assert.is(status, 0, stdout + stderr);
});

growth.run();

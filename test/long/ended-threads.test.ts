/** Ending a thread never ends the process, whatever V8 optimizes at that moment. */
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

const test = suite('ended threads');
const run = promisify(execFile);

test('threads whose calls are being optimized can be ended one after another', async () => {
	const program = path.join(import.meta.dirname, 'ended-threads.ts');
	const { stdout } = await run(process.execPath, ['--no-warnings', program, '150']);
	assert.is(stdout, 'all ended\n');
});

test.run();

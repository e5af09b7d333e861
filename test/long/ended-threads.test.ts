/** Ending a thread never ends the process, whatever V8 is optimizing at that moment. */
import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

const test = suite('ended threads');
const run = promisify(execFile);

test('150 threads can be ended one after another while V8 optimizes their foreign calls', async () => {
	const program = path.join(import.meta.dirname, 'ended-threads.ts');
	const { stdout } = await run(process.execPath, ['--no-warnings', program, '150']);
	assert.is(stdout, 'all ended\n');
});

test.run();

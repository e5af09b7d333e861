/** What commands do with a standard output that is slow, gone or full. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { runCommand, SVC, temporaryFolder } from '../harness.ts';

const output = suite('standard output');

/** A command whose output is larger than a pipe. */
const LONG_OUTPUT = ['schema'];

output('a non-blocking pipe that is full gets the rest when it has room', async () => {
	const pipe = path.join(temporaryFolder(), 'pipe');
	assert.is(spawnSync('mkfifo', [pipe]).status, 0);
	const descriptor = openSync(pipe, constants.O_RDWR);
	const child = spawn(SVC, LONG_OUTPUT, { stdio: ['ignore', descriptor, 'inherit'] });
	const exited = once(child, 'exit');
	// Node makes the pipe non-blocking, also for the command, which has the same open pipe.
	const reader = new Socket({ fd: descriptor, readable: true, writable: false });
	const chunks: Buffer[] = [];
	reader.on('data', (chunk: Buffer) => chunks.push(chunk));
	const [status] = await exited;
	const { stdout } = await runCommand(LONG_OUTPUT);
	while (Buffer.concat(chunks).length < Buffer.byteLength(stdout)) await once(reader, 'data');
	reader.destroy();
	assert.is(status, 0);
	assert.is(Buffer.concat(chunks).toString(), stdout);
});

output('a reader that has gone is no failure', async () => {
	const shell = spawn('sh', ['-c', '{ "$0" schema; echo $? >&2; } | head -c 10', SVC], {
		stdio: ['ignore', 'pipe', 'pipe'],
	});
	let stderr = '';
	shell.stderr.on('data', chunk => {
		stderr += chunk;
	});
	await once(shell, 'close');
	assert.is(stderr, '0\n');
});

output('a full device is a failure', () => {
	const full = openSync('/dev/full', 'w');
	const { status } = spawnSync(SVC, ['version'], { stdio: ['ignore', full, 'ignore'] });
	closeSync(full);
	assert.is(status, 1);
});

output.run();

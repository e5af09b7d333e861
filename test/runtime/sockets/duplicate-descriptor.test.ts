/** Descriptors that are taken away from a thread: the thread's event loop keeps running, and the socket stays open elsewhere. */
import { spawnSync } from 'node:child_process';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { canDuplicateDescriptors } from '../../../runtime/sockets/duplicate-descriptor.ts';

const test = suite('detached descriptors');

test('a listening socket that is taken away before the event loop has polled it does not end the process', () => {
	if (!canDuplicateDescriptors()) return;
	const module = new URL('../../../runtime/sockets/duplicate-descriptor.ts', import.meta.url).href;
	// The event loop polls the socket for the first time after this script has run.
	const source = `
		import { createServer, connect } from 'node:net';
		const { detachDescriptor, duplicateDescriptor } = await import(${JSON.stringify(module)});
		await new Promise(resolve => setImmediate(resolve));
		const server = createServer(() => process._rawDebug('accepted')).listen(0);
		const { fd } = server._handle;
		const { port } = server.address();
		const copy = duplicateDescriptor(fd);
		detachDescriptor(fd, copy);
		// The kernel accepts the connection for the socket, which the copy keeps open. The server does not see it.
		connect(port, '127.0.0.1').once('connect', () => {
			process._rawDebug('connected');
			setImmediate(() => process.exit());
		});`;
	const { status, signal, stderr } = spawnSync(
		process.execPath,
		['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', source],
		{ encoding: 'utf8' },
	);
	assert.is(signal, null);
	assert.is(status, 0, stderr);
	assert.match(stderr, /^connected$/m);
	assert.not.match(stderr, /^accepted$/m);
});

test.run();

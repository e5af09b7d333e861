/**
 * The client that sends requests while the build makes code caches. It reports a server that does not answer, instead of waiting
 * forever.
 */
import { createServer, type Server, type Socket } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { sendSampleRequests } from '../../../cli/packaging/sample-client.ts';

const sampleClient = suite('client of the sample');

const RESPONSE = 'HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n';

/** A fake clock. While it is running, it advances by a second each time it is read. */
class FakeClock {
	#nowMs = 0;
	isRunning = false;
	readonly now = (): number => {
		if (this.isRunning) this.#nowMs += 1000;
		return this.#nowMs;
	};
}

/** Runs a server, passes its listening descriptor on, and closes it and its connections at the end. */
async function withServer(
	onConnection: (socket: Socket) => void,
	run: (listeningDescriptor: number) => Promise<void>,
): Promise<void> {
	const sockets: Socket[] = [];
	const server: Server = createServer(socket => {
		sockets.push(socket);
		onConnection(socket);
	});
	await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
	try {
		await run((server as unknown as { _handle: { fd: number } })._handle.fd);
	} finally {
		for (const socket of sockets) socket.destroy();
		await new Promise(resolve => server.close(resolve));
	}
}

/** Returns the message with which a promise rejects. */
async function rejection(promise: Promise<void>): Promise<string> {
	return promise.then(
		() => assert.unreachable('the promise was not rejected'),
		(error: Error) => error.message,
	) as Promise<string>;
}

sampleClient('gives up after a minute without an answer, and says which request has none', async () => {
	const clock = new FakeClock();
	await withServer(
		socket =>
			socket.on('data', () => {
				clock.isRunning = true;
			}),
		async descriptor => {
			const message = await rejection(sendSampleRequests(descriptor, clock.now));
			assert.is(message, 'The server of the sample did not answer request 1 of 2 within 60 seconds.');
		},
	);
	const laterClock = new FakeClock();
	await withServer(
		socket => {
			socket.once('data', () => {
				socket.write(RESPONSE);
				socket.on('data', () => {
					laterClock.isRunning = true;
				});
			});
		},
		async descriptor => {
			const message = await rejection(sendSampleRequests(descriptor, laterClock.now));
			assert.is(message, 'The server of the sample did not answer request 2 of 2 within 60 seconds.');
		},
	);
});

sampleClient('gives up if the connection is not closed', async () => {
	const clock = new FakeClock();
	let requests = 0;
	await withServer(
		socket =>
			socket.on('data', () => {
				socket.write(RESPONSE);
				clock.isRunning = ++requests === 2;
			}),
		async descriptor => {
			const message = await rejection(sendSampleRequests(descriptor, clock.now));
			assert.is(message, 'The server of the sample did not close the connection within 60 seconds.');
		},
	);
});

sampleClient('is done when the server has answered and closed the connection', async () => {
	let answers = 0;
	await withServer(
		socket =>
			socket.on('data', () => {
				socket.write(RESPONSE);
				if (++answers === 2) socket.end();
			}),
		async descriptor => sendSampleRequests(descriptor),
	);
	assert.is(answers, 2);
});

// The client makes system calls that only Linux has.
if (process.platform === 'linux') sampleClient.run();

/**
 * A thread for a test, whose poller waits in place of Node's event loop, unless the I/O mode is `node`. It listens, posts its port to
 * its parent, and answers each line that it receives with a line, once it has done what the line says.
 */
import { readFile } from 'node:fs/promises';
import { connect, type Socket } from 'node:net';
import { performance } from 'node:perf_hooks';
import { parentPort, workerData } from 'node:worker_threads';
import { ThreadVitals } from '../../../runtime/metrics/thread-vitals.ts';
import { createListeningSocket } from '../../../runtime/sockets/create-listening-socket.ts';
import { DirectListeningSocket } from '../../../runtime/sockets/direct-listening-socket.ts';
import type { AcceptedSocket, DirectSocket } from '../../../runtime/sockets/direct-socket.ts';
import { isDirectIo, setIoMode } from '../../../runtime/sockets/io-mode.ts';
import type { ListeningOwner } from '../../../runtime/sockets/listening-socket.ts';
import { threadPoller } from '../../../runtime/sockets/socket-poller.ts';
import { until } from '../../harness.ts';

const BUFFER = Buffer.allocUnsafeSlow(65_536);

if (workerData.io !== undefined) setIoMode(workerData.io);

/** Keeps the thread from doing anything else. */
function block(milliseconds: number): void {
	const startedAt = performance.now();
	while (performance.now() - startedAt < milliseconds);
}

let unreferencedCallbacks = 0;
const caughtErrors: string[] = [];
process.on('uncaughtException', (error: Error) => caughtErrors.push(error.message));

/** What the thread does for each line, which may end with a colon and a number of milliseconds. `answer` sends a line to the client. */
const actions: { readonly [name: string]: (answer: (text: string) => void, milliseconds: number) => void } = {
	nothing: answer => answer('nothing'),
	turns: answer => answer(String(performance.nodeTiming.uvMetricsInfo.loopCount)),
	timer: answer => void setTimeout(answer, 20, 'timer'),
	'timer during a long callback': answer => {
		const startedAt = performance.now();
		setTimeout(() => answer(String(performance.now() - startedAt)), 300);
		block(300);
	},
	immediate: answer => void setImmediate(answer, 'immediate'),
	'unreferenced immediate': answer => {
		setImmediate(() => unreferencedCallbacks++).unref();
		answer('set');
	},
	'count of unreferenced immediates': answer => answer(String(unreferencedCallbacks)),
	tick: answer => process.nextTick(answer, 'tick'),
	promise: answer => void Promise.resolve('promise').then(answer),
	order: answer => {
		const order: string[] = [];
		setImmediate(() => answer([...order, 'immediate'].join()));
		queueMicrotask(() => order.push('microtask'));
		process.nextTick(() => order.push('tick'));
	},
	file: answer => void readFile(import.meta.filename).then(bytes => answer(bytes.length > 0 ? 'file' : 'empty')),
	message: answer => {
		parentPort!.once('message', answer);
		parentPort!.postMessage('ask');
	},
	"a socket of Node's": answer => {
		const socket = connect(workerData.echoPort, '127.0.0.1').setEncoding('latin1');
		socket.once('data', text => {
			answer(String(text));
			socket.destroy();
		});
		socket.write('echo');
	},
	'an error in a tick': answer => {
		process.nextTick(() => {
			throw new Error('in a tick');
		});
		setTimeout(() => answer(caughtErrors.splice(0).join()), 1);
	},
	'an error in a microtask': answer => {
		queueMicrotask(() => {
			throw new Error('in a microtask');
		});
		setTimeout(() => answer(caughtErrors.splice(0).join()), 1);
	},
	'an error': answer => {
		setTimeout(() => answer(caughtErrors.splice(0).join()), 1);
		throw new Error('in a handler');
	},
	record: answer => {
		const vitals = new ThreadVitals(workerData.vitals);
		vitals.requestRecording();
		vitals.recordIfWanted();
		answer('recording');
	},
	'blocked callback': (answer, milliseconds) => {
		block(milliseconds);
		answer('blocked callback');
	},
	'blocked promise': (answer, milliseconds) => {
		void Promise.resolve().then(() => {
			block(milliseconds);
			answer('blocked promise');
		});
	},
	'blocked timer': (answer, milliseconds) => {
		setTimeout(() => {
			block(milliseconds);
			answer('blocked timer');
		}, 1);
	},
	'blocked immediate': (answer, milliseconds) => {
		setImmediate(() => {
			block(milliseconds);
			answer('blocked immediate');
		});
	},
	'blocked message': (answer, milliseconds) => {
		parentPort!.once('message', () => {
			block(milliseconds);
			answer('blocked message');
		});
		parentPort!.postMessage('ask');
	},
	exit: () => process.exit(7),
};

/** Calls `receive` with what arrives as text. */
function read(socket: AcceptedSocket, receive: (text: string) => void): void {
	if (!isDirectIo()) {
		(socket as Socket).setEncoding('latin1').on('data', receive);
		return;
	}
	(socket as DirectSocket).start(BUFFER, {
		onReceived: count => receive(BUFFER.toString('latin1', 0, count)),
		onPeerEnded: () => socket.destroy(),
		onDrained: () => {},
		onClosed: () => {},
	});
}

const owner: ListeningOwner = {
	needsStream: false,
	onAccepted(socket) {
		let text = '';
		read(socket, newText => {
			text += newText;
			const lines = text.split('\n');
			text = lines.pop()!;
			for (const line of lines) {
				const [name, milliseconds] = line.split(':');
				actions[name!]!(answer => void socket.write(`${answer}\n`, 'latin1'), Number(milliseconds));
			}
		});
	},
	onAcceptFailed: error => {
		throw error;
	},
};

if (isDirectIo()) {
	threadPoller();
	await until('the poller works', () => threadPoller() !== undefined);
}
const listening = createListeningSocket(owner);
await listening.listen({ port: 0, host: '127.0.0.1', reusePort: false });
if (listening instanceof DirectListeningSocket)
	await until('connections are accepted without Node', () => listening.acceptsItself);
parentPort!.postMessage(listening.address!.port);
// Keeps the thread alive.
parentPort!.on('message', () => {});

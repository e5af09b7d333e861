/**
 * A thread for a test, whose poller waits in place of Node's event loop. It listens, posts its port to its parent, and answers each
 * line that it receives with a line, once it has done what the line says.
 */
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { performance } from 'node:perf_hooks';
import { parentPort, workerData } from 'node:worker_threads';
import { ThreadVitals } from '../../../runtime/metrics/thread-vitals.ts';
import { DirectListeningSocket } from '../../../runtime/sockets/direct-listening-socket.ts';
import type { DirectSocket } from '../../../runtime/sockets/direct-socket.ts';
import { threadPoller } from '../../../runtime/sockets/socket-poller.ts';
import { until } from '../../harness.ts';

const BUFFER = Buffer.allocUnsafeSlow(65_536);

let unreferencedCallbacks = 0;
const caughtErrors: string[] = [];
process.on('uncaughtException', (error: Error) => caughtErrors.push(error.message));

/** What the thread does for each line. `answer` sends a line to the client. */
const actions: { readonly [line: string]: (answer: (text: string) => void) => void } = {
	nothing: answer => answer('nothing'),
	turns: answer => answer(String(performance.nodeTiming.uvMetricsInfo.loopCount)),
	timer: answer => void setTimeout(answer, 20, 'timer'),
	'timer during a long callback': answer => {
		const startedAt = performance.now();
		setTimeout(() => answer(String(performance.now() - startedAt)), 300);
		while (performance.now() - startedAt < 300);
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
		const vitals = new ThreadVitals();
		vitals.requestRecording();
		vitals.recordIfWanted();
		answer('recording');
	},
	exit: () => process.exit(7),
};

threadPoller();
await until('the poller works', () => threadPoller() !== undefined);
const listening = new DirectListeningSocket({
	needsStream: false,
	onAccepted(socket) {
		let text = '';
		(socket as DirectSocket).start(BUFFER, {
			onReceived(count) {
				text += BUFFER.toString('latin1', 0, count);
				const lines = text.split('\n');
				text = lines.pop()!;
				for (const line of lines) actions[line]!(answer => void socket.write(`${answer}\n`, 'latin1'));
			},
			onPeerEnded: () => socket.destroy(),
			onDrained: () => {},
			onClosed: () => {},
		});
	},
	onAcceptFailed: error => {
		throw error;
	},
});
await listening.listen({ port: 0, host: '127.0.0.1', reusePort: false });
await until('connections are accepted without Node', () => listening.acceptsItself);
parentPort!.postMessage(listening.address!.port);
// Keeps the thread alive.
parentPort!.on('message', () => {});

/**
 * A worker thread with an upstream that responds before it has read the whole request, and then resets the connection. It signals
 * through shared memory when both have been sent.
 */
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { parentPort, workerData } from 'node:worker_threads';

/** What the thread gets as its `workerData`. */
export interface ResettingUpstreamInput {
	readonly answer: Uint8Array;
	/** Bytes sent as soon as a connection is accepted. */
	readonly hello: Uint8Array;
	/** Number of request bytes to read before responding. */
	readonly reads: number;
	/** Certificate and key as PEM, for TLS. */
	readonly tls?: { readonly cert: string; readonly key: string } | undefined;
	/** Memory whose first element is set to 1 when a connection has been reset. */
	readonly done: Int32Array;
}

const { answer, hello, reads, tls, done } = workerData as ResettingUpstreamInput;

function accept(socket: Socket): void {
	socket.on('error', () => {});
	// The reset would discard data that is still waiting to be sent.
	socket.setNoDelay(true);
	socket.write(hello);
	let receivedBytes = 0;
	socket.on('data', bytes => {
		receivedBytes += bytes.length;
		if (receivedBytes < reads) return;
		receivedBytes = Number.NEGATIVE_INFINITY;
		socket.write(answer, () => {
			const { _handle: handle } = socket as { _handle?: { _parent?: { reset(done: () => void): void } } };
			// A TLS connection is reset through its underlying socket.
			if (tls) handle!._parent!.reset(() => {});
			else socket.resetAndDestroy();
			Atomics.store(done, 0, 1);
			Atomics.notify(done, 0);
		});
	});
}

const server = tls ? createTlsServer({ ...tls }, accept) : createServer(accept);
server.listen(0, '127.0.0.1', () => parentPort!.postMessage((server.address() as AddressInfo).port));

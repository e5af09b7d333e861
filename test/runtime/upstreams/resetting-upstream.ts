/**
 * A thread with an upstream that answers before it has read the whole of a request, and ends the connection with a reset:
 * both have arrived when it says so in shared memory.
 */
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import { parentPort, workerData } from 'node:worker_threads';

/** What the thread is given. */
export interface ResettingUpstream {
	readonly answer: Uint8Array;
	/** Sent as soon as a connection is there. */
	readonly hello: Uint8Array;
	/** Bytes of a request that it reads before it answers. */
	readonly reads: number;
	/** PEM of certificate and key, for TLS. */
	readonly tls?: { readonly cert: string; readonly key: string } | undefined;
	/** Becomes 1 when a connection has been reset. */
	readonly done: Int32Array;
}

const { answer, hello, reads, tls, done } = workerData as ResettingUpstream;

function accept(socket: Socket): void {
	socket.on('error', () => {});
	// What waits to be acknowledged would be lost.
	socket.setNoDelay(true);
	socket.write(hello);
	let seen = 0;
	socket.on('data', bytes => {
		seen += bytes.length;
		if (seen < reads) return;
		seen = Number.NEGATIVE_INFINITY;
		socket.write(answer, () => {
			const { _handle: handle } = socket as { _handle?: { _parent?: { reset(done: () => void): void } } };
			// The reset of a TLS connection is that of the one below.
			if (tls) handle!._parent!.reset(() => {});
			else socket.resetAndDestroy();
			Atomics.store(done, 0, 1);
			Atomics.notify(done, 0);
		});
	});
}

const server = tls ? createTlsServer({ ...tls }, accept) : createServer(accept);
server.listen(0, '127.0.0.1', () => parentPort!.postMessage((server.address() as AddressInfo).port));

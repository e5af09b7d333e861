/** Starts a thread that runs waiting-thread.ts, and connects to it. */
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { Worker } from 'node:worker_threads';
import { ThreadVitals } from '../../../runtime/metrics/thread-vitals.ts';
import { type IoMode, ioMode } from '../../../runtime/sockets/io-mode.ts';

/** Sends a line and resolves to the answer. */
export type Ask = (line: string) => Promise<string>;

/** A thread that runs waiting-thread.ts, and the connections to it. */
export class WaitingThread {
	readonly worker: Worker;
	/** What the thread publishes once it has been asked to `record`. */
	readonly vitals: ThreadVitals;
	readonly #echo: Server;
	readonly #clients: Socket[] = [];
	#port = 0;

	private constructor(echo: Server, io: IoMode) {
		this.#echo = echo;
		const vitals = new SharedArrayBuffer(ThreadVitals.BYTES);
		this.vitals = new ThreadVitals(vitals);
		this.worker = new Worker(new URL('./waiting-thread.ts', import.meta.url), {
			workerData: { echoPort: (echo.address() as AddressInfo).port, io, vitals },
		});
	}

	static async start(io: IoMode = ioMode()): Promise<WaitingThread> {
		const echo = createServer(socket => socket.pipe(socket)).listen(0, '127.0.0.1');
		await once(echo, 'listening');
		const thread = new WaitingThread(echo, io);
		[thread.#port] = await once(thread.worker, 'message');
		thread.worker.on('message', what => {
			if (what === 'ask') thread.worker.postMessage('message');
		});
		return thread;
	}

	/** Opens a connection. */
	async connect(): Promise<Ask> {
		const client = connect(this.#port, '127.0.0.1');
		this.#clients.push(client);
		await once(client, 'connect');
		const lines = createInterface(client);
		return async line => {
			client.write(`${line}\n`);
			const [answer] = await once(lines, 'line');
			return answer;
		};
	}

	async end(): Promise<void> {
		for (const client of this.#clients) client.destroy();
		this.#echo.close();
		await this.worker.terminate();
	}
}

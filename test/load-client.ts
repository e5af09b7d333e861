/** Keep-alive clients that check every response and measure its time. They are the request load during configuration changes. */
import { connect, type Socket } from 'node:net';

/** A response as read by the load client. */
export interface LoadResponse {
	readonly status: number;
	readonly head: string;
	readonly body: string;
	/** The value that `mark` returned when the request was sent. */
	readonly mark: number;
}

export interface LoadResult {
	readonly requests: number;
	/** The first twenty failures; empty if every response was correct. */
	readonly failures: readonly string[];
	readonly failed: number;
	/** Response times in milliseconds, sorted. */
	readonly times: Float64Array;
}

/** Returns a quantile of a sorted list: `quantile(times, 0.99)`. */
export function quantile(sorted: Float64Array, share: number): number {
	return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/**
 * Runs `connections` clients until `stop` is called. Each client sends one request at a time on one connection. `check` describes
 * what is wrong with a response, or returns undefined. `mark` is called as each request is sent. With `reconnect`, a connection
 * that the server has closed is reopened, and its lost request is not a failure.
 */
export function startLoad(options: {
	port: number;
	connections: number;
	request: string | ((connection: number) => string);
	check: (response: LoadResponse) => string | undefined;
	mark?: () => number;
	reconnect?: boolean;
}): { stop(): Promise<LoadResult>; readonly requests: number } {
	const failures: string[] = [];
	const times: number[] = [];
	let failed = 0;
	let requests = 0;
	let stopping = false;
	const fail = (what: string): void => {
		failed++;
		if (failures.length < 20) failures.push(what);
	};
	const client = (index: number): Promise<void> =>
		new Promise(resolve => {
			const request = typeof options.request === 'string' ? options.request : options.request(index);
			let socket: Socket;
			const open = (): void => {
				let buffered = '';
				let sentAt = 0;
				let mark = 0;
				let isOver = false;
				const send = (): void => {
					mark = options.mark?.() ?? 0;
					sentAt = performance.now();
					socket.write(request);
				};
				const end = (what: string | undefined): void => {
					if (isOver) return;
					isOver = true;
					socket.destroy();
					if (!stopping && options.reconnect) {
						setTimeout(open, 5);
						return;
					}
					if (what !== undefined && !stopping) fail(what);
					resolve();
				};
				socket = connect(options.port, '127.0.0.1', send);
				socket.setNoDelay(true);
				socket.setEncoding('latin1');
				socket.on('data', (chunk: string) => {
					buffered += chunk;
					const headEnd = buffered.indexOf('\r\n\r\n');
					if (headEnd === -1) return;
					const head = buffered.slice(0, headEnd);
					const length = /^content-length: *(\d+)/im.exec(head);
					if (!length) return end(`no Content-Length in: ${head}`);
					const bodyEnd = headEnd + 4 + Number(length[1]);
					if (buffered.length < bodyEnd) return;
					times.push(performance.now() - sentAt);
					requests++;
					const wrong = options.check({
						status: Number(head.slice(9, 12)),
						head,
						body: buffered.slice(headEnd + 4, bodyEnd),
						mark,
					});
					if (wrong !== undefined) fail(wrong);
					if (buffered.length > bodyEnd) return end(`bytes after the response: ${buffered.slice(bodyEnd)}`);
					buffered = '';
					if (stopping) return end(undefined);
					send();
				});
				socket.on('error', error => end(String(error)));
				socket.on('close', () => end('the server closed the connection'));
			};
			open();
		});
	const clients = Array.from({ length: options.connections }, (_, index) => client(index));
	return {
		get requests() {
			return requests;
		},
		async stop() {
			stopping = true;
			await Promise.all(clients);
			return { requests, failures, failed, times: Float64Array.from(times).sort() };
		},
	};
}

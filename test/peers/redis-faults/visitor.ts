/**
 * A process that sends requests to machines at constant rates, whether or not earlier ones were answered. Its parent sends the
 * {@link VisitorPlan} first. It answers every later message, `take`, with the samples since the previous one.
 */
import { Agent, request } from 'node:http';

export interface VisitorPlan {
	/** Address of each machine; all of them listen on port 80. */
	readonly machines: readonly string[];
	/** Requests a second to each machine, by path. To a path that ends in `/`, a number below `pageCount` is appended. */
	readonly rates: { readonly [path: string]: number };
	readonly pageCount: number;
}

/** A request that has ended. */
export interface Sample {
	/** Index of the machine. */
	readonly machine: number;
	/** The path as it is in the plan. */
	readonly path: string;
	/** The status of the response; 0 if there was none. */
	readonly status: number;
	/** The beginning of the body, or the error. */
	readonly text: string;
	/** When the request was sent, in milliseconds since the epoch, and how long the response took. */
	readonly sentAt: number;
	readonly elapsedMs: number;
}

/** Milliseconds after which a request has failed. */
const REQUEST_TIMEOUT_MS = 10_000;
const MAX_TEXT_LENGTH = 100;

let samples: Sample[] = [];
const agent = new Agent({ keepAlive: true, maxFreeSockets: 64 });

function send(host: string, machine: number, path: string, target: string): void {
	const startedAt = performance.now();
	let isDone = false;
	const finish = (status: number, text: string): void => {
		if (isDone) return;
		isDone = true;
		const elapsedMs = performance.now() - startedAt;
		const sentAt = performance.timeOrigin + startedAt;
		samples.push({ machine, path, status, text: text.slice(0, MAX_TEXT_LENGTH), sentAt, elapsedMs });
	};
	const sending = request(
		{ host, path: target, agent, headers: { host: 'shop.test' }, timeout: REQUEST_TIMEOUT_MS },
		response => {
			let body = '';
			response.setEncoding('utf8').on('data', (text: string) => {
				body += text;
			});
			response.on('end', () => finish(response.statusCode!, body));
			response.on('error', error => finish(0, String(error)));
		},
	);
	sending.on('timeout', () => sending.destroy(new Error('timeout')));
	sending.on('error', error => finish(0, String(error)));
	sending.end();
}

/** Sends requests at random intervals, as independent visitors would. */
function visit(host: string, machine: number, path: string, perSecond: number, pageCount: number): void {
	let count = 0;
	const next = (): void => {
		send(host, machine, path, path.endsWith('/') ? path + (count++ % pageCount) : path);
		setTimeout(next, (2 * Math.random() * 1000) / perSecond);
	};
	setTimeout(next, (Math.random() * 1000) / perSecond);
}

process.on('message', (message: 'take' | VisitorPlan) => {
	if (message === 'take') {
		process.send!(samples);
		samples = [];
		return;
	}
	for (const [machine, host] of message.machines.entries())
		for (const [path, perSecond] of Object.entries(message.rates))
			visit(host, machine, path, perSecond, message.pageCount);
});
process.on('disconnect', () => process.exit());

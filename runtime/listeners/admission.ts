/** Who is let in when a listener has limits: connections by count, requests by count and by a queue with a bound and a deadline. */
import type { ServerLimits } from '../../compiler/document/server-settings.ts';
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import { HttpError } from '../../compiler/exchange/http-error.ts';
import { DEFAULT_QUEUE, DEFAULT_QUEUE_TIME } from '../../compiler/modules/options/servers/limits.ts';
import type { OverloadLimit } from '../metrics/refusals.ts';
import { type ClientCounts, clientKey } from './client-counts.ts';
import type { PlaceMaker } from './place-maker.ts';

/** Numbers of one thread's row: one cache line, so that threads do not write to one another's. */
export const ADMISSION_SLOTS = 16;

const CONNECTIONS = 0;
const REQUESTS = 1;
const QUEUED = 2;

/** Kinds of things that a client has. */
const CLIENT_CONNECTIONS = 1;
const CLIENT_REQUESTS = 2;

/** Milliseconds between two looks at the queue, for places that other threads leave and for deadlines. */
const LOOK = 10;

/** What an admission needs. */
export interface AdmissionParts {
	/** A row of ADMISSION_SLOTS Int32 for each thread. */
	readonly memory: SharedArrayBuffer;
	readonly clients: ClientCounts;
	/** This thread's row. */
	readonly row: number;
	/** Address of the client of a request: behind a trusted proxy not that of the connection. */
	readonly clientIp: (x: Exchange) => string;
	/** Something was turned away. */
	readonly rejected: (limit: OverloadLimit) => void;
	/** So many more wait. */
	readonly queued: (by: 1 | -1) => void;
}

interface Waiter {
	readonly x: Exchange;
	readonly deadline: number;
	readonly settle: (error: HttpError | undefined) => void;
}

/** The gate of one listener on one thread. Its counts are those of all threads; two that ask at once may both be let in. */
export class Admission {
	#limits: ServerLimits = {};
	readonly #parts: AdmissionParts;
	readonly #counts: Int32Array;
	readonly #own: number;
	/** Requests that have been let in, with the client they count for ('' when clients are not counted). */
	readonly #inside = new Map<Exchange, string>();
	#queue: Waiter[] = [];
	#timer: NodeJS.Timeout | undefined;

	constructor(parts: AdmissionParts) {
		this.#parts = parts;
		this.#counts = new Int32Array(parts.memory);
		this.#own = parts.row * ADMISSION_SLOTS;
	}

	/** Sets the limits; those of connections hold for connections that come. */
	configure(limits: ServerLimits): void {
		this.#limits = limits;
		this.#pump();
	}

	/** Whether connections have to be shown to {@link connected}. */
	get boundsConnections(): boolean {
		return (this.#limits.connections ?? 0) > 0 || (this.#limits.connections_per_client ?? 0) > 0;
	}

	/** Whether requests have to be shown to {@link enter}. */
	get boundsRequests(): boolean {
		return (this.#limits.requests ?? 0) > 0 || (this.#limits.requests_per_client ?? 0) > 0 || this.#inside.size > 0;
	}

	/** Seconds that a client that was turned away is told to wait. */
	get retryAfter(): string {
		return String(Math.ceil((this.#limits.retry_after ?? 1000) / 1000));
	}

	/**
	 * A connection from an address: what to call when it has ended, or undefined when it is one too many. When all connections
	 * are, `places` may close another one for it.
	 */
	connected(address: string, places: PlaceMaker): (() => void) | undefined {
		const { connections = 0, connections_per_client: perClient = 0 } = this.#limits;
		const client = perClient > 0 ? clientKey(address) : '';
		const { clients } = this.#parts;
		if (perClient > 0 && clients.count(client, CLIENT_CONNECTIONS) >= perClient) {
			return this.#rejected('connections_per_client');
		}
		if (connections > 0) {
			if (this.#total(CONNECTIONS) < connections) places.reset();
			else if (!places.make()) return this.#rejected('connections');
		}
		this.#add(CONNECTIONS, 1);
		if (perClient > 0) clients.add(client, CLIENT_CONNECTIONS, 1);
		return () => {
			this.#add(CONNECTIONS, -1);
			if (perClient > 0) clients.add(client, CLIENT_CONNECTIONS, -1);
		};
	}

	/**
	 * A request: undefined when it may run, an error of status 503 when it may not, or a promise of one of these when it has to
	 * wait. Whatever the answer, {@link leave} ends it.
	 */
	enter(x: Exchange): undefined | HttpError | Promise<undefined | HttpError> {
		const { requests = 0, requests_per_client: perClient = 0, queue = DEFAULT_QUEUE } = this.#limits;
		let client = '';
		if (perClient > 0) {
			const { clients } = this.#parts;
			client = clientKey(this.#parts.clientIp(x));
			if (clients.count(client, CLIENT_REQUESTS) >= perClient) return this.#refusal('requests_per_client');
			clients.add(client, CLIENT_REQUESTS, 1);
		}
		if (requests === 0 || (this.#queue.length === 0 && this.#total(REQUESTS) < requests)) {
			this.#begin(x, client);
			return undefined;
		}
		if (this.#total(QUEUED) >= queue) {
			if (client !== '') this.#parts.clients.add(client, CLIENT_REQUESTS, -1);
			return this.#refusal('queue');
		}
		return this.#wait(x, client);
	}

	/** A request has ended. */
	leave(x: Exchange): void {
		const client = this.#inside.get(x);
		if (client === undefined) return;
		this.#inside.delete(x);
		this.#add(REQUESTS, -1);
		if (client !== '') this.#parts.clients.add(client, CLIENT_REQUESTS, -1);
		this.#pump();
	}

	#begin(x: Exchange, client: string): void {
		this.#inside.set(x, client);
		this.#add(REQUESTS, 1);
	}

	#wait(x: Exchange, client: string): Promise<undefined | HttpError> {
		const deadline = performance.now() + (this.#limits.queue_time ?? DEFAULT_QUEUE_TIME);
		this.#add(QUEUED, 1);
		this.#parts.queued(1);
		this.#timer ??= setInterval(() => this.#look(), LOOK).unref();
		return new Promise(resolve => {
			const settle = (error: HttpError | undefined): void => {
				this.#add(QUEUED, -1);
				this.#parts.queued(-1);
				if (error === undefined) this.#begin(x, client);
				else if (client !== '') this.#parts.clients.add(client, CLIENT_REQUESTS, -1);
				resolve(error);
			};
			const waiter: Waiter = { x, deadline, settle };
			this.#queue.push(waiter);
			x.onGone(() => {
				const at = this.#queue.indexOf(waiter);
				if (at === -1) return;
				this.#queue.splice(at, 1);
				settle(new HttpError(503, 'The client has left.'));
			});
		});
	}

	/** Lets in those that wait, first come first, as far as there are places. */
	#pump(): void {
		const { requests = 0 } = this.#limits;
		while (this.#queue.length > 0 && (requests === 0 || this.#total(REQUESTS) < requests)) {
			this.#queue.shift()!.settle(undefined);
		}
		if (this.#queue.length > 0 || this.#timer === undefined) return;
		clearInterval(this.#timer);
		this.#timer = undefined;
	}

	#look(): void {
		const now = performance.now();
		// They came in order, and all wait equally long.
		while (this.#queue.length > 0 && this.#queue[0]!.deadline <= now) {
			this.#queue.shift()!.settle(this.#refusal('queue_time'));
		}
		this.#pump();
	}

	#rejected(limit: OverloadLimit): undefined {
		this.#parts.rejected(limit);
		return undefined;
	}

	#refusal(limit: OverloadLimit): HttpError {
		this.#parts.rejected(limit);
		return new HttpError(503, 'The server has too much to do.', { headers: [['Retry-After', this.retryAfter]] });
	}

	#total(slot: number): number {
		let sum = 0;
		for (let at = slot; at < this.#counts.length; at += ADMISSION_SLOTS) sum += Atomics.load(this.#counts, at);
		return sum;
	}

	#add(slot: number, by: 1 | -1): void {
		Atomics.add(this.#counts, this.#own + slot, by);
	}
}

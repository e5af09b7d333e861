/** Admission control of a listener: limits on connections, and on requests with a bounded queue and a deadline. */
import type { ServerLimits } from '../../compiler/document/server-settings.ts';
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import { HttpError } from '../../compiler/exchange/http-error.ts';
import { DEFAULT_QUEUE_LENGTH, DEFAULT_QUEUE_TIME_MS } from '../../compiler/modules/options/servers/limits.ts';
import type { OverloadLimit } from '../metrics/refusals.ts';
import { type ClientCounts, clientKey } from '../threads/client-counts.ts';
import type { PlaceMaker } from './place-maker.ts';

/**
 * Number of Int32 values in a thread's row. A row fills one cache line, so that threads do not slow each other down by false
 * sharing.
 */
export const ADMISSION_SLOT_COUNT = 16;

/** Indexes of the counts in a thread's row. */
const CONNECTIONS_SLOT = 0;
const REQUESTS_SLOT = 1;
const QUEUED_SLOT = 2;

/** The two kinds of counts of each client: its connections, and its requests. */
const CLIENT_CONNECTIONS = 1;
const CLIENT_REQUESTS = 2;

/**
 * Milliseconds between checks of the queue for requests that have reached their deadlines, or can run because other threads have
 * become less busy.
 */
const CHECK_INTERVAL_MS = 10;

/** Maximum number of attempts to take a slot while other threads compete for it. */
const MAX_ATTEMPTS = 100;

export interface AdmissionDeps {
	/** A row of {@link ADMISSION_SLOT_COUNT} Int32 values for each thread. */
	readonly memory: SharedArrayBuffer;
	readonly clients: ClientCounts;
	/** Index of this thread's row. */
	readonly row: number;
	/** Returns a request's client address, taking trusted proxies into account. */
	readonly clientIp: (x: Exchange) => string;
	/** Called when a connection or request was rejected, with the limit that was reached. */
	readonly onRejected: (limit: OverloadLimit) => void;
	/** Called when the number of waiting requests changes. */
	readonly onQueueChanged: (change: 1 | -1) => void;
}

interface Waiter {
	readonly x: Exchange;
	readonly deadline: number;
	/** Ends the wait: with an error, or with undefined if a slot has been taken for the request. */
	readonly settle: (error: HttpError | undefined) => void;
}

/**
 * The admission of one listener on one thread. Counts cover all threads. The limits of connections and requests, in total and per
 * client, are exact, with one exception: the total of connections may be exceeded while idle ones are being closed to make room.
 * The queue can become slightly longer than its limit when several threads check it at the same moment.
 */
export class Admission {
	#limits: ServerLimits = {};
	readonly #deps: AdmissionDeps;
	readonly #counts: Int32Array;
	readonly #rowStart: number;
	/** The requests that are running, each with the key of its client; '' if requests are not limited per client. */
	readonly #clientByRequest = new Map<Exchange, string>();
	#queue: Waiter[] = [];
	#timer: NodeJS.Timeout | undefined;

	constructor(deps: AdmissionDeps) {
		this.#deps = deps;
		this.#counts = new Int32Array(deps.memory);
		this.#rowStart = deps.row * ADMISSION_SLOT_COUNT;
	}

	/** Sets the limits; connection limits apply to new connections. */
	configure(limits: ServerLimits): void {
		this.#limits = limits;
		this.#admitWaiting();
	}

	/** True if connections must be passed to {@link admit}. */
	get limitsConnections(): boolean {
		return (this.#limits.connections ?? 0) > 0 || (this.#limits.connections_per_client ?? 0) > 0;
	}

	/** True if requests must be passed to {@link admitRequest}. */
	get limitsRequests(): boolean {
		return (
			(this.#limits.requests ?? 0) > 0 || (this.#limits.requests_per_client ?? 0) > 0 || this.#clientByRequest.size > 0
		);
	}

	/** The value of `Retry-After` for rejected clients, in seconds. */
	get retryAfter(): string {
		return String(Math.ceil((this.#limits.retry_after ?? 1000) / 1000));
	}

	/** True if another connection would not exceed the total limit. */
	get hasConnectionRoom(): boolean {
		const { connections = 0 } = this.#limits;
		return connections === 0 || this.#sumOverThreads(CONNECTIONS_SLOT) < connections;
	}

	/**
	 * Admits a connection. Returns a function to call when the connection ends, or undefined if it is rejected. If
	 * the total limit has been reached, `placeMaker` may close an idle connection to make room. If it finds none, but
	 * other threads have connections, `mayWait` is called; if it returns true, the result is `waits`.
	 */
	admit(address: string, placeMaker: PlaceMaker): (() => void) | undefined;
	admit(address: string, placeMaker: PlaceMaker, mayWait: () => boolean): (() => void) | 'waits' | undefined;
	admit(address: string, placeMaker: PlaceMaker, mayWait?: () => boolean): (() => void) | 'waits' | undefined {
		const { connections = 0, connections_per_client: maxPerClient = 0 } = this.#limits;
		const client = maxPerClient > 0 ? clientKey(address) : '';
		const { clients } = this.#deps;
		if (maxPerClient > 0 && !this.#takeClientSlot(client, CLIENT_CONNECTIONS, maxPerClient)) {
			return this.#countRejection('connections_per_client');
		}
		if (this.#takeSlot(CONNECTIONS_SLOT, connections)) placeMaker.resetFreedSlots();
		else if (placeMaker.makeRoom()) this.#changeCount(CONNECTIONS_SLOT, 1);
		else {
			if (maxPerClient > 0) clients.addToCount(client, CLIENT_CONNECTIONS, -1);
			const ownCount = Atomics.load(this.#counts, this.#rowStart + CONNECTIONS_SLOT);
			if (mayWait && this.#sumOverThreads(CONNECTIONS_SLOT) > ownCount && mayWait()) return 'waits';
			return this.#countRejection('connections');
		}
		return () => {
			this.#changeCount(CONNECTIONS_SLOT, -1);
			if (maxPerClient > 0) clients.addToCount(client, CLIENT_CONNECTIONS, -1);
		};
	}

	/**
	 * Admits a request. Returns undefined if it may run, a 503 error if it is rejected, or a promise of one of these if it must
	 * wait. In all cases, {@link endRequest} must be called when the request ends.
	 */
	admitRequest(x: Exchange): undefined | HttpError | Promise<undefined | HttpError> {
		const { requests_per_client: maxPerClient = 0, queue: maxQueued = DEFAULT_QUEUE_LENGTH } = this.#limits;
		let client = '';
		if (maxPerClient > 0) {
			client = clientKey(this.#deps.clientIp(x));
			if (!this.#takeClientSlot(client, CLIENT_REQUESTS, maxPerClient))
				return this.#createRefusal('requests_per_client');
		}
		if (this.#queue.length === 0 && this.#takeRequestSlot()) {
			this.#clientByRequest.set(x, client);
			return undefined;
		}
		if (this.#sumOverThreads(QUEUED_SLOT) >= maxQueued) {
			if (client !== '') this.#deps.clients.addToCount(client, CLIENT_REQUESTS, -1);
			return this.#createRefusal('queue');
		}
		return this.#waitInQueue(x, client);
	}

	/** Records the end of a request, and admits waiting requests in its place. */
	endRequest(x: Exchange): void {
		const client = this.#clientByRequest.get(x);
		if (client === undefined) return;
		this.#clientByRequest.delete(x);
		this.#changeCount(REQUESTS_SLOT, -1);
		if (client !== '') this.#deps.clients.addToCount(client, CLIENT_REQUESTS, -1);
		this.#admitWaiting();
	}

	/** Takes a slot for a running request. Returns false if the limit is reached. */
	#takeRequestSlot(): boolean {
		return this.#takeSlot(REQUESTS_SLOT, this.#limits.requests ?? 0);
	}

	/** Adds 1 to a count over all threads. Returns false, and changes nothing, if the limit is reached. A limit of 0 means none. */
	#takeSlot(slot: number, limit: number): boolean {
		if (limit === 0) {
			this.#changeCount(slot, 1);
			return true;
		}
		for (let attempt = 0; attempt < MAX_ATTEMPTS && this.#sumOverThreads(slot) < limit; attempt++) {
			this.#changeCount(slot, 1);
			// Another thread may have taken the last slot between the check and the change.
			if (this.#sumOverThreads(slot) <= limit) return true;
			this.#changeCount(slot, -1);
		}
		return false;
	}

	/** Adds 1 to a client's count over all threads, like {@link #takeSlot}. */
	#takeClientSlot(client: string, kind: number, limit: number): boolean {
		const { clients } = this.#deps;
		for (let attempt = 0; attempt < MAX_ATTEMPTS && clients.clientCount(client, kind) < limit; attempt++) {
			clients.addToCount(client, kind, 1);
			if (clients.clientCount(client, kind) <= limit) return true;
			clients.addToCount(client, kind, -1);
		}
		return false;
	}

	#waitInQueue(x: Exchange, client: string): Promise<undefined | HttpError> {
		const deadline = performance.now() + (this.#limits.queue_time ?? DEFAULT_QUEUE_TIME_MS);
		this.#changeCount(QUEUED_SLOT, 1);
		this.#deps.onQueueChanged(1);
		this.#timer ??= setInterval(() => this.#checkQueue(), CHECK_INTERVAL_MS).unref();
		return new Promise(resolve => {
			const settle = (error: HttpError | undefined): void => {
				this.#changeCount(QUEUED_SLOT, -1);
				this.#deps.onQueueChanged(-1);
				if (error === undefined) this.#clientByRequest.set(x, client);
				else if (client !== '') this.#deps.clients.addToCount(client, CLIENT_REQUESTS, -1);
				resolve(error);
			};
			const waiter: Waiter = { x, deadline, settle };
			this.#queue.push(waiter);
			x.onGone(() => {
				const at = this.#queue.indexOf(waiter);
				if (at === -1) return;
				this.#queue.splice(at, 1);
				settle(new HttpError(503, 'The client has disconnected.'));
			});
		});
	}

	/** Admits waiting requests in order of arrival while there are free slots. */
	#admitWaiting(): void {
		while (this.#queue.length > 0 && this.#takeRequestSlot()) this.#queue.shift()!.settle(undefined);
		if (this.#queue.length > 0 || this.#timer === undefined) return;
		clearInterval(this.#timer);
		this.#timer = undefined;
	}

	#checkQueue(): void {
		const now = performance.now();
		// The maximum waiting time is the same for all requests, so the queue is in the order of the deadlines.
		while (this.#queue.length > 0 && this.#queue[0]!.deadline <= now) {
			this.#queue.shift()!.settle(this.#createRefusal('queue_time'));
		}
		this.#admitWaiting();
	}

	#countRejection(limit: OverloadLimit): undefined {
		this.#deps.onRejected(limit);
		return undefined;
	}

	#createRefusal(limit: OverloadLimit): HttpError {
		this.#deps.onRejected(limit);
		return new HttpError(503, 'The server is overloaded.', { headers: [['Retry-After', this.retryAfter]] });
	}

	#sumOverThreads(slot: number): number {
		let sum = 0;
		for (let at = slot; at < this.#counts.length; at += ADMISSION_SLOT_COUNT) sum += Atomics.load(this.#counts, at);
		return sum;
	}

	#changeCount(slot: number, change: 1 | -1): void {
		Atomics.add(this.#counts, this.#rowStart + slot, change);
	}
}

/** One request to an upstream, from the choice of a connection to the end of the response. */
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import type { HeaderList } from '../../compiler/exchange/header-list.ts';
import type { UpstreamError, UpstreamRequest, UpstreamResponse } from '../../compiler/exchange/leases.ts';
import type { ClientCall } from '../protocols/http1/client-call.ts';
import type { ClientConnection } from '../protocols/http1/client-connection.ts';
import type { PooledUpstream } from './pooled-upstream.ts';

/** Gets the outcome; the parts of a promise. */
export interface Outcome {
	resolve(response: UpstreamResponse): void;
	reject(error: UpstreamError): void;
}

/** What a call tells its pool. */
export interface CallOwner {
	/** A connection is free again. */
	released(upstream: PooledUpstream, connection: ClientConnection, reusable: boolean): void;
}

/** A call. It is counted as in flight from its making to the end of its response. */
export class UpstreamCall implements ClientCall {
	readonly request: UpstreamRequest;
	readonly #upstream: PooledUpstream;
	readonly #owner: CallOwner;
	readonly #onInform: ((status: number, headers: HeaderList) => void) | undefined;
	readonly #resolve: Outcome['resolve'];
	readonly #reject: Outcome['reject'];
	#connection: ClientConnection | undefined;
	#retried = false;

	constructor(
		x: Exchange,
		upstream: PooledUpstream,
		request: UpstreamRequest,
		onInform: ((status: number, headers: HeaderList) => void) | undefined,
		owner: CallOwner,
		resolve: Outcome['resolve'],
		reject: Outcome['reject'],
	) {
		this.request = request;
		this.#upstream = upstream;
		this.#owner = owner;
		this.#onInform = onInform;
		this.#resolve = resolve;
		this.#reject = reject;
		this.#connection = upstream.take();
		upstream.count(1);
		this.#connection.send(this);
		x.onGone(() => this.#connection?.cancel(this));
	}

	informed(status: number, headers: HeaderList): void {
		this.#onInform?.(status, headers);
	}

	answered(response: UpstreamResponse): void {
		this.#resolve(response);
	}

	failed(error: UpstreamError, untouched: boolean): void {
		if (untouched && !this.#retried && isIdempotent(this.request.method)) {
			// The upstream closed an idle connection while the request was on its way: a fresh one tells whether it is there.
			this.#retried = true;
			this.#connection = this.#upstream.open();
			this.#connection.send(this);
			return;
		}
		this.#connection = undefined;
		this.#upstream.count(-1);
		this.#reject(error);
	}

	released(connection: ClientConnection, reusable: boolean): void {
		this.#connection = undefined;
		this.#upstream.count(-1);
		this.#owner.released(this.#upstream, connection, reusable);
	}
}

/** Methods that may be sent again when it is not known whether they were carried out (RFC 9110 §9.2.2). */
function isIdempotent(method: string): boolean {
	switch (method) {
		case 'GET':
		case 'HEAD':
		case 'OPTIONS':
		case 'TRACE':
		case 'PUT':
		case 'DELETE':
			return true;
		default:
			return false;
	}
}

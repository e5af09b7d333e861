/** A request whose connection is being opened. */
import { UpstreamError } from '../../../compiler/exchange/leases.ts';
import type { CallCarrier, ClientCall } from '../../protocols/http1/client-call.ts';
import type { DialAttempt, Dialer, DialOwner } from '../../sockets/dialer.ts';
import type { UpstreamSocket } from '../../sockets/upstream-socket.ts';

/** Callbacks for the result of opening a connection. */
export interface ConnectionRequester {
	/** Called with the open socket, on which the request must be sent. */
	onConnected(socket: UpstreamSocket, call: ClientCall): void;
	/** Called if connecting failed with `error`, or if the request was canceled. The owner need not notify the request. */
	onNotConnected(error: UpstreamError | undefined): void;
}

/**
 * Opens a connection for a request. It is the request's carrier in the meantime: if the request is canceled, it stops dialing.
 */
export class WaitingCall implements CallCarrier, DialOwner {
	readonly #call: ClientCall;
	readonly #owner: ConnectionRequester;
	readonly #attempt: DialAttempt;
	readonly #startedAt = performance.now();
	#isFinished = false;

	/** Starts dialing. */
	constructor(dialer: Dialer, call: ClientCall, owner: ConnectionRequester) {
		this.#call = call;
		this.#owner = owner;
		call.carrier = this;
		this.#attempt = dialer.dial(this);
	}

	cancel(call: ClientCall): void {
		if (call !== this.#call || this.#isFinished) return;
		this.#isFinished = true;
		this.#attempt.abandon();
		this.#owner.onNotConnected(undefined);
		call.onFailure(new UpstreamError('response', 'the request was canceled'), false);
	}

	onDialed(socket: UpstreamSocket): void {
		this.#isFinished = true;
		this.#call.connectTime = performance.now() - this.#startedAt;
		this.#owner.onConnected(socket, this.#call);
	}

	onDialFailed(error: UpstreamError): void {
		this.#isFinished = true;
		this.#owner.onNotConnected(error);
		this.#call.onFailure(error, false);
	}
}

/** A call whose connection is still being made. */
import { UpstreamError } from '../../../compiler/exchange/leases.ts';
import type { CallCarrier, ClientCall } from '../../protocols/http1/client-call.ts';
import type { UpstreamSocket } from '../../sockets/upstream-socket.ts';
import type { Dialer, Dialing, DialOwner } from './dialer.ts';

/** Who gets what comes of dialing. */
export interface DialedFor {
	/** Puts the call on the wire. */
	connected(wire: UpstreamSocket, call: ClientCall): void;
	/** Nothing came of it: for the upstream's reason, which `error` is, or because the call was given up. The call is told. */
	notConnected(error: UpstreamError | undefined): void;
}

/** Carries a call until its connection is there. */
export class WaitingCall implements CallCarrier, DialOwner {
	readonly #call: ClientCall;
	readonly #owner: DialedFor;
	readonly #dialing: Dialing;
	readonly #began = performance.now();
	#over = false;

	/** Begins to dial. */
	constructor(dialer: Dialer, call: ClientCall, owner: DialedFor) {
		this.#call = call;
		this.#owner = owner;
		call.carrier = this;
		this.#dialing = dialer.dial(this);
	}

	cancel(call: ClientCall): void {
		if (call !== this.#call || this.#over) return;
		this.#over = true;
		this.#dialing.abandon();
		this.#owner.notConnected(undefined);
		call.failed(new UpstreamError('response', 'the exchange was given up'), false);
	}

	dialed(wire: UpstreamSocket): void {
		this.#over = true;
		this.#call.connectTime = performance.now() - this.#began;
		this.#owner.connected(wire, this.#call);
	}

	dialFailed(error: UpstreamError): void {
		this.#over = true;
		this.#owner.notConnected(error);
		this.#call.failed(error, false);
	}
}

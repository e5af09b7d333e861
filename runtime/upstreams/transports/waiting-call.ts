/** A call whose connection is still being made. */
import { UpstreamError } from '../../../compiler/exchange/leases.ts';
import type { CallCarrier, ClientCall } from '../../protocols/http1/client-call.ts';
import type { Wire } from '../../protocols/wire.ts';
import type { Dialer, Dialing, DialOwner } from './dialer.ts';

/** Carries a call until its connection is there; `connected` puts it there. */
export class WaitingCall implements CallCarrier, DialOwner {
	readonly #call: ClientCall;
	readonly #connected: (wire: Wire, call: ClientCall) => void;
	readonly #dialing: Dialing;
	readonly #began = performance.now();
	#over = false;

	/** Begins to dial. */
	constructor(dialer: Dialer, call: ClientCall, connected: (wire: Wire, call: ClientCall) => void) {
		this.#call = call;
		this.#connected = connected;
		call.carrier = this;
		this.#dialing = dialer.dial(this);
	}

	cancel(call: ClientCall): void {
		if (call !== this.#call || this.#over) return;
		this.#over = true;
		this.#dialing.abandon();
		call.failed(new UpstreamError('response', 'the exchange was given up'), false);
	}

	dialed(wire: Wire): void {
		this.#over = true;
		this.#call.connectTime = performance.now() - this.#began;
		this.#connected(wire, this.#call);
	}

	dialFailed(error: UpstreamError): void {
		this.#over = true;
		this.#call.failed(error, false);
	}
}

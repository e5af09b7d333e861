/** A dialer that first waits for TLS material from the main thread. */
import { UpstreamError } from '../../../compiler/exchange/leases.ts';
import type { Dialer, Dialing, DialOwner } from '../../sockets/dialer.ts';
import type { ClientTlsContext } from './tls-context.ts';

/** A dialer that waits for TLS material and then uses another dialer. */
export class ProvisionedDialer implements Dialer {
	readonly #dialer: Dialer;
	readonly #context: ClientTlsContext;

	constructor(dialer: Dialer, context: ClientTlsContext) {
		this.#dialer = dialer;
		this.#context = context;
	}

	dial(owner: DialOwner): Dialing {
		const pending = this.#context.pending();
		if (!pending) return this.#dialer.dial(owner);
		let abandoned = false;
		let dialing: Dialing | undefined;
		void pending.then(problem => {
			if (abandoned) return;
			if (problem === undefined) dialing = this.#dialer.dial(owner);
			else owner.dialFailed(new UpstreamError('connect', problem));
		});
		return {
			abandon() {
				abandoned = true;
				dialing?.abandon();
			},
		};
	}
}

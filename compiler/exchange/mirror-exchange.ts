/** The exchange of a mirrored request, whose response is discarded. */
import { performance } from 'node:perf_hooks';
import { Exchange } from './exchange.ts';

/** An exchange for a copy of a request. The server itself is the client, and calls `markGone` to abandon the exchange. */
export class MirrorExchange extends Exchange {
	/** The exchange whose request was copied. It may have ended. */
	readonly original: Exchange;

	constructor(original: Exchange) {
		super(original.protocol, original.connection, original.received, original.request, NO_TRANSPORT, performance.now());
		this.original = original;
	}
}

const NO_TRANSPORT = { sendInterim: () => {}, watch: () => {} };

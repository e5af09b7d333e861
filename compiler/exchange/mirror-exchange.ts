/** The exchange of a mirrored request, whose response nobody receives. */
import { performance } from 'node:perf_hooks';
import { Exchange } from './exchange.ts';

/** The client of this exchange is the server itself, which calls `markGone` to abandon it. */
export class MirrorExchange extends Exchange {
	/** The exchange whose request was copied. It may have ended. */
	readonly original: Exchange;

	constructor(original: Exchange) {
		super(original.protocol, original.connection, original.received, original.request, NO_TRANSPORT, performance.now());
		this.original = original;
	}
}

const NO_TRANSPORT = { sendInterim: () => {}, watch: () => {} };

/** The exchange of a mirrored request, whose response nobody receives. */
import { performance } from 'node:perf_hooks';
import { Exchange } from './exchange.ts';

/** Its client is this server, which calls `gone` to give it up. */
export class MirrorExchange extends Exchange {
	/** The exchange whose request was copied. It may have ended. */
	readonly of: Exchange;

	constructor(of: Exchange) {
		super(of.protocol, of.connection, of.received, of.request, SILENT, performance.now());
		this.of = of;
	}
}

const SILENT = { inform: () => {}, watch: () => {} };

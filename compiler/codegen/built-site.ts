/** A site after code generation. */
import type { Handler } from '../exchange/handler.ts';
import type { AccessLog } from '../exchange/leases.ts';

/** What serves the requests of one site. */
export interface BuiltSite {
	/** First address, as written: for logs, tests and `explain`. */
	readonly name: string;
	/** The whole pipeline, error routes included. Throws only when the error routes fail too. Sets `x.site` and `x.accessLogs`. */
	readonly handle: Handler;
	/** What `handle` runs when it has set `x.site` and that is all it does itself: sites may share it. */
	readonly main: Handler | undefined;
	readonly logs: readonly AccessLog[];
}

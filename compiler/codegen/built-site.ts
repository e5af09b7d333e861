/** A site after code generation. */
import type { Handler } from '../exchange/handler.ts';
import type { AccessLog } from '../exchange/leases.ts';

/** A built site, which serves requests. */
export interface BuiltSite {
	/** First address, as written; for logs, tests and `explain`. */
	readonly name: string;
	/**
	 * The whole pipeline, including error routes. Throws only if the error routes fail too. Sets `x.site` and `x.accessLogs`.
	 */
	readonly handle: Handler;
	/**
	 * The function that `handle` calls after setting `x.site`; undefined if `handle` does anything else. Several sites may share one
	 * function.
	 */
	readonly mainHandler: Handler | undefined;
	readonly logs: readonly AccessLog[];
}

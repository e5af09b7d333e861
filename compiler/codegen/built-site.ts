/** A site after code generation. */
import type { Handler } from '../exchange/handler.ts';
import type { AccessLog } from '../exchange/leases.ts';

export interface BuiltSite {
	/** The site's first address, as written. Logs, tests and `explain` show it. */
	readonly name: string;
	/**
	 * The whole pipeline, including error routes. Throws only if the error routes fail as well. Sets `x.siteName` and `x.accessLogs`.
	 */
	readonly runSite: Handler;
	/**
	 * The pipeline that `runSite` calls after setting `x.siteName`; undefined if `runSite` does more than that. Several sites may
	 * share one function.
	 */
	readonly mainHandler: Handler | undefined;
	readonly logs: readonly AccessLog[];
}

/** Determines which of a site's access logs receive the entry of a request. */

import type { Settings, SiteLog } from '../document/document.ts';
import type { AccessLogSettings } from '../document/log-namespaces.ts';
import { accessLogTargets, namedLogTargets } from '../document/log-namespaces.ts';
import { canonicalHost, hostMatches } from '../exchange/authority.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { AccessLog, Leases } from '../exchange/leases.ts';

/** Selects the access logs for a request. */
export type AccessLogSelector = (x: Exchange) => readonly AccessLog[];

/** The access logs that a site leases. */
export class SiteLogs {
	/** All logs that the site writes to by default. */
	readonly all: readonly AccessLog[];
	/** Selects logs by the request's host. Never selects logs used only through `log_name`. Undefined if there are none. */
	readonly choose: AccessLogSelector | undefined;
	/** True if any log receives entries, even if only through `log_name`. */
	used: boolean;
	readonly #byName = new Map<string, readonly AccessLog[]>();
	readonly #settings: Settings;
	readonly #leases: Leases;

	constructor(logs: readonly SiteLog[], settings: Settings, leases: Leases) {
		this.#settings = settings;
		this.#leases = leases;
		const leased = logs.map(log => this.#lease(accessLogTargets(log, settings)));
		logs.forEach(({ name }, at) => {
			if (name !== undefined) this.#byName.set(name, [...(this.#byName.get(name) ?? []), ...leased[at]!]);
		});
		const chosen = logs.flatMap((log, at) => (log.no_hostname ? [] : [{ log, targets: leased[at]! }]));
		this.all = leased.flat();
		this.used = this.all.length > 0;
		if (chosen.length === 0) {
			this.choose = undefined;
			return;
		}
		const always = chosen.flatMap(({ targets }) => targets);
		if (chosen.every(({ log }) => log.hostnames === undefined)) {
			this.choose = () => always;
			return;
		}
		const limited = chosen.map(({ log, targets }) => ({
			targets,
			patterns: log.hostnames?.map(name => canonicalHost(name) ?? name),
		}));
		this.choose = x =>
			limited.flatMap(({ targets, patterns }) =>
				patterns === undefined || patterns.some(pattern => hostMatches(x.request.host, pattern)) ? targets : [],
			);
	}

	/** Returns the logs for a logger name: those of the site, otherwise the process logs that include this logger. */
	named(name: string): readonly AccessLog[] {
		let logs = this.#byName.get(name);
		if (!logs) {
			logs = this.#lease(namedLogTargets(name, this.#settings));
			this.used = true;
			this.#byName.set(name, logs);
		}
		return logs;
	}

	#lease(targets: readonly AccessLogSettings[]): AccessLog[] {
		return targets.map(settings => this.#leases.lease('access_log', settings));
	}
}

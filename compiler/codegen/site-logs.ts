/** The access logs of one site: which of them get a request's entry. */

import type { Settings, SiteLog } from '../document/document.ts';
import type { AccessLogSettings } from '../document/log-namespaces.ts';
import { accessLogTargets, namedLogTargets } from '../document/log-namespaces.ts';
import { canonicalHost, hostMatches } from '../exchange/authority.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { AccessLog, Leases } from '../exchange/leases.ts';

/** Selects the logs of a request. */
export type LogChoice = (x: Exchange) => readonly AccessLog[];

/** The leased logs of a site. */
export class SiteLogs {
	/** All logs that the site writes to by default. */
	readonly all: readonly AccessLog[];
	/** Selects logs by host, and never those used only by `log_name`. Undefined: there are none. */
	readonly choose: LogChoice | undefined;
	/** True once any log gets entries, even only through `log_name`. */
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

	/** Returns the logs of a name: the site's own, or the process logs that include its logger. */
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

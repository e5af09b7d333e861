/** Determines which access logs of a site record a request. */

import type { Settings, SiteLog } from '../document/document.ts';
import type { AccessLogSettings } from '../document/log-namespaces.ts';
import { accessLogTargets, namedLogTargets } from '../document/log-namespaces.ts';
import { canonicalHost, hostMatches } from '../exchange/authority.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { AccessLog, Leases } from '../exchange/leases.ts';

/** Returns the access logs that record a request. */
export type AccessLogSelector = (x: Exchange) => readonly AccessLog[];

/** The access logs that a site leases. */
export class SiteLogs {
	/** The logs of all of the site's `log` settings, including logs that are used only through `log_name`. */
	readonly defaultLogs: readonly AccessLog[];
	/**
	 * Selects logs by the host of the request. Logs that are used only through `log_name` are never selected. Undefined if the site
	 * has no logs, or all of them are used only through `log_name`.
	 */
	readonly selectLogs: AccessLogSelector | undefined;
	/** True if any log receives entries, even if only through `log_name`. */
	hasLogs: boolean;
	readonly #logsByName = new Map<string, readonly AccessLog[]>();
	readonly #settings: Settings;
	readonly #leases: Leases;

	constructor(logs: readonly SiteLog[], settings: Settings, leases: Leases) {
		this.#settings = settings;
		this.#leases = leases;
		const logsByEntry = logs.map(log => this.#leaseLogs(accessLogTargets(log, settings)));
		logs.forEach(({ name }, index) => {
			if (name !== undefined)
				this.#logsByName.set(name, [...(this.#logsByName.get(name) ?? []), ...logsByEntry[index]!]);
		});
		const selectableLogs = logs.flatMap((log, index) =>
			log.no_hostname ? [] : [{ log, targets: logsByEntry[index]! }],
		);
		this.defaultLogs = logsByEntry.flat();
		this.hasLogs = this.defaultLogs.length > 0;
		if (selectableLogs.length === 0) {
			this.selectLogs = undefined;
			return;
		}
		const unconditionalLogs = selectableLogs.flatMap(({ targets }) => targets);
		if (selectableLogs.every(({ log }) => log.hostnames === undefined)) {
			this.selectLogs = () => unconditionalLogs;
			return;
		}
		const logRules = selectableLogs.map(({ log, targets }) => ({
			targets,
			patterns: log.hostnames?.map(name => canonicalHost(name) ?? name),
		}));
		this.selectLogs = x =>
			logRules.flatMap(({ targets, patterns }) =>
				patterns === undefined || patterns.some(pattern => hostMatches(x.request.host, pattern)) ? targets : [],
			);
	}

	/** Returns the logs with a logger name: those of the site or, if it has none, the process logs that include this logger. */
	logsNamed(name: string): readonly AccessLog[] {
		let logs = this.#logsByName.get(name);
		if (!logs) {
			logs = this.#leaseLogs(namedLogTargets(name, this.#settings));
			this.hasLogs = true;
			this.#logsByName.set(name, logs);
		}
		return logs;
	}

	#leaseLogs(targets: readonly AccessLogSettings[]): AccessLog[] {
		return targets.map(settings => this.#leases.lease('access_log', settings));
	}
}

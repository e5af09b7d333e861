/** Determines which logs receive the entries of each logger, and to which outputs the access log of a site writes. */

import type { Settings, SiteLog } from './document.ts';
import type { LogFormat, LogOutput, LogSampling } from './log-settings.ts';

declare module '../exchange/leases.ts' {
	interface LeaseKinds {
		access_log: { settings: AccessLogSettings; lease: AccessLog };
	}
}

/** The settings of an access log. Sites with equal settings share one lease. */
export interface AccessLogSettings {
	/** The logger's name in its entries: `http.log.access` or `http.log.access.NAME`. */
	readonly logger: string;
	readonly output: LogOutput;
	/** The format of entries. The format `default` depends on the output. */
	readonly format: LogFormat;
	readonly level: string;
	readonly sampling?: LogSampling;
}

/** Name of the main process log. */
const DEFAULT_LOG_NAME = 'default';
/** Name of the unnamed access logger, and the namespace that contains the named access loggers. */
const ACCESS_NAMESPACE = 'http.log.access';

function accessLoggerName(name: string | undefined): string {
	return name === undefined || name === DEFAULT_LOG_NAME ? ACCESS_NAMESPACE : `${ACCESS_NAMESPACE}.${name}`;
}

/**
 * Reports whether a log receives the entries of a logger. A namespace covers the names that begin with its segments. If both an
 * included and an excluded namespace cover the logger, the longer one decides.
 */
export function includesLogger(log: Pick<SiteLog, 'include' | 'exclude'>, logger: string): boolean {
	const includedLength = longestPrefixLength(log.include, logger);
	if (log.include && log.include.length > 0 && includedLength === -1) return false;
	const excludedLength = longestPrefixLength(log.exclude, logger);
	return excludedLength === -1 || includedLength > excludedLength;
}

function longestPrefixLength(namespaces: readonly string[] | undefined, logger: string): number {
	let maxLength = -1;
	for (const name of namespaces ?? []) {
		if (logger === name || logger.startsWith(`${name}.`)) maxLength = Math.max(maxLength, name.length);
	}
	return maxLength;
}

/**
 * Returns the settings with which a site's access log is written. A log with a name or settings of its own has its own output, and
 * the main process log omits its entries; settings that it lacks come from the process log of the same name. Any other access log
 * writes to the main process log. In addition, every other process log receives the entries that it includes.
 */
export function accessLogTargets(log: SiteLog, settings: Settings): AccessLogSettings[] {
	const logger = accessLoggerName(log.name);
	const logs: { readonly [name: string]: SiteLog } = settings.logs ?? {};
	const hasOwnOutput = log.name !== undefined || !!(log.output || log.format || log.level || log.sampling);
	const name = log.name ?? DEFAULT_LOG_NAME;
	const processLog = Object.hasOwn(logs, name) ? logs[name]! : {};
	const targets: AccessLogSettings[] = [];
	if (hasOwnOutput) targets.push(accessLogSettings(logger, { ...processLog, ...log }, settings));
	else if (includesLogger(processLog, logger)) targets.push(accessLogSettings(logger, processLog, settings));
	for (const [otherName, otherLog] of Object.entries(logs)) {
		if (otherName === DEFAULT_LOG_NAME || otherName === name || !includesLogger(otherLog, logger)) continue;
		targets.push(accessLogSettings(logger, otherLog, settings));
	}
	return targets;
}

/**
 * Returns the settings of all process logs that receive the entries of the access logger `name`, which `log_name` uses but the
 * site does not define.
 */
export function namedLogTargets(name: string, settings: Settings): AccessLogSettings[] {
	const logger = accessLoggerName(name);
	const { [DEFAULT_LOG_NAME]: defaultLog = {}, ...otherLogs } = (settings.logs ?? {}) as {
		readonly [name: string]: SiteLog;
	};
	return [defaultLog, ...Object.values(otherLogs)]
		.filter(log => includesLogger(log, logger))
		.map(log => accessLogSettings(logger, log, settings));
}

function accessLogSettings(logger: string, log: SiteLog, settings: Settings): AccessLogSettings {
	return {
		logger,
		output: log.output ?? { writer: 'stderr' },
		format: log.format ?? { encoder: 'default' },
		level: log.level ?? (settings.debug ? 'DEBUG' : 'INFO'),
		...(log.sampling ? { sampling: log.sampling } : {}),
	};
}

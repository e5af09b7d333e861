/** Finds values that match the schema but can never be used, so that they are reported before anything is started. */
import type { Report } from '../diagnostics/diagnostic.ts';
import type { Document, SiteBind, SiteLog } from '../document/document.ts';
import { escapePointer } from '../document/json-pointer.ts';
import { isListenHost, parseListenHost } from '../document/listen-host.ts';
import { isSiteAddress, parseSiteAddress } from '../document/site-address.ts';
import { parseIpRange } from '../exchange/ip-ranges.ts';
import { compilePathPatterns, PathPatternError } from '../modules/matchers/path-pattern.ts';
import type { Reader } from '../source/reader.ts';

/**
 * Reports options that store private values in Redis although there is no Redis server, or no key to encrypt values: a certificate
 * store, and a response cache that the machines share.
 */
function checkStores({ settings }: Document, report: Report): void {
	const cluster = settings?.cluster;
	if (cluster?.keys) return;
	const { storage, cache } = (settings ?? {}) as {
		readonly storage?: { readonly store?: unknown };
		readonly cache?: { readonly shared?: unknown };
	};
	const reportStore = (pointer: string, optionText: string): void =>
		report({
			code: cluster ? 'cluster/no-key' : 'cluster/missing',
			severity: 'error',
			pointer,
			message: cluster
				? `${optionText} needs the \`key\` of \`cluster\`, which encrypts what is stored.`
				: `${optionText} needs the option \`cluster\`, which names the Redis server.`,
			hint: cluster
				? 'Write `key {$CLUSTER_KEY}` in `cluster`.'
				: 'Write `cluster redis://host:6379 { key {$CLUSTER_KEY} }`.',
		});
	if (storage?.store === 'redis') reportStore('/settings/storage', '`storage redis`');
	if (cache?.shared !== undefined) reportStore('/settings/cache/shared', '`shared`');
}

/** Reports settings of `cluster` that do not fit the kind of Redis servers: one server, Sentinels, or a Redis Cluster. */
function checkClusterAddresses({ settings }: Document, report: Report): void {
	const { cluster } = settings ?? {};
	if (!cluster) return;
	const add = (code: string, message: string, hint: string): void => {
		report({ code, severity: 'error', pointer: '/settings/cluster', message, hint });
	};
	if (cluster.sentinel && cluster.mode) {
		const hint = 'Remove `sentinel` or `mode cluster`.';
		add('cluster/sentinel-and-mode', 'A Redis Cluster has no Sentinels.', hint);
	} else if (cluster.other_addresses && !cluster.sentinel && !cluster.mode) {
		const hint =
			'Write `sentinel <master>` for Sentinels, `mode cluster` for nodes of a Redis Cluster, or name one server.';
		add('cluster/many-addresses', 'Several addresses need `sentinel` or `mode cluster`.', hint);
	}
	if (cluster.mode && cluster.database) {
		const hint = 'Remove the number of the database.';
		add('cluster/database-in-cluster', 'A Redis Cluster has no numbered databases.', hint);
	}
}

/**
 * Reports invalid hosts to listen on, address ranges and log outputs, a missing DNS provider, settings of `cluster` that do not fit
 * each other, and stores in Redis without their settings.
 */
export function checkValues(document: Document, report: Report): void {
	const acmeDns = document.settings?.acme_dns as { readonly provider?: unknown } | undefined;
	if (acmeDns?.provider === 'default' && document.settings?.dns === undefined) {
		report({
			code: 'tls/no-dns-provider',
			severity: 'error',
			pointer: '/settings/acme_dns',
			message: "acme_dns specified without DNS provider config, but no provider specified with 'dns' global option",
			hint: 'Name a provider here, or with the option `dns`.',
		});
	}
	checkStores(document, report);
	checkClusterAddresses(document, report);
	const checkHosts = (hosts: unknown, pointer: string): void => {
		if (!Array.isArray(hosts)) return;
		hosts.forEach((host: unknown, index) => {
			if (typeof host !== 'string') return;
			const parsed = parseListenHost(host);
			if (!isListenHost(parsed)) report({ ...parsed, severity: 'error', pointer: `${pointer}/${index}` });
		});
	};
	const defaultBind = document.settings?.default_bind;
	if (Array.isArray(defaultBind)) checkHosts(defaultBind.map(hostOfBind), '/settings/default_bind');
	for (const [name, log] of Object.entries(document.settings?.logs ?? {})) {
		checkOutput(log, `/settings/logs/${escapePointer(name)}`, report);
	}
	(document.sites ?? []).forEach(({ bind, addresses, logs }, index) => {
		addresses.forEach((address, addressIndex) => {
			const mistake = address.includes('/') && /[[\\%]/.test(address) ? pathMistake(address) : undefined;
			if (mistake === undefined) return;
			const pointer = `/sites/${index}/addresses/${addressIndex}`;
			report({ code: 'path/invalid-pattern', severity: 'error', pointer, message: mistake });
		});
		// Values other than lists are reported by the schema.
		if (Array.isArray(bind)) checkHosts(bind.map(hostOfBind), `/sites/${index}/bind`);
		if (Array.isArray(logs)) {
			for (const [logIndex, log] of logs.entries()) checkOutput(log, `/sites/${index}/logs/${logIndex}`, report);
		}
	});
	const trustedRanges = document.settings?.trusted_proxies as unknown;
	// If there are sites, building them reports invalid ranges, so ranges are checked here only if there are none.
	if (!Array.isArray(trustedRanges) || (document.sites ?? []).length > 0) return;
	trustedRanges.forEach((range: unknown, index) => {
		if (typeof range !== 'string' || parseIpRange(range)) return;
		const message = `\`${range}\` is not an IP address or range.`;
		const pointer = `/settings/trusted_proxies/${index}`;
		report({ code: 'value/not-an-ip-range', severity: 'error', pointer, message });
	});
}

/** Reports placeholders in a log output that depend on a request, because logs are opened when the configuration is loaded. */
function checkOutput(log: SiteLog, pointer: string, report: Report): void {
	for (const field of ['path', 'address'] as const) {
		const text = (log.output as { readonly [field: string]: unknown } | undefined)?.[field];
		if (typeof text !== 'string') continue;
		const unavailablePlaceholder = text
			.match(/(?<!\\)\{[^{}]*\}/g)
			?.find(placeholder => !/^\{(?:(?:env|system|file|time)\.|time\.now\})/.test(placeholder));
		if (unavailablePlaceholder === undefined) continue;
		report({
			code: 'log/invalid-output',
			severity: 'error',
			pointer: `${pointer}/output/${field}`,
			message: `\`${text}\` cannot be used here: ${unavailablePlaceholder} has no value outside of a request.`,
			hint: 'Write the name, or use a value of the machine: {env.NAME}, {system.hostname}.',
		});
	}
}

export function hostOfBind(entry: SiteBind): string {
	return typeof entry === 'object' && entry !== null ? entry.host : entry;
}

/** Returns why the path of an address is not a valid pattern; undefined if it is valid, or if the address has other mistakes. */
function pathMistake(text: string): string | undefined {
	const address = parseSiteAddress(text);
	if (!isSiteAddress(address) || address.path === '') return undefined;
	try {
		compilePathPatterns([address.path]);
		return undefined;
	} catch (error) {
		if (error instanceof PathPatternError) return error.message;
		throw error;
	}
}

/** Reports log outputs that name a folder instead of a file. */
export function checkLogFiles(document: Document, reader: Reader, report: Report): void {
	const isFolderByPath = new Map<string, boolean>();
	const checkLog = ({ output }: SiteLog, pointer: string): void => {
		const path = output?.path;
		if (output?.writer !== 'file' || typeof path !== 'string' || path.includes('{')) return;
		let isFolder = isFolderByPath.get(path);
		if (isFolder === undefined) {
			isFolder = reader.kind(path) === 'directory';
			isFolderByPath.set(path, isFolder);
		}
		if (!isFolder) return;
		const message = `The log file \`${path}\` is a folder.`;
		report({ code: 'log/folder', severity: 'error', pointer: `${pointer}/output/path`, message });
	};
	for (const [name, log] of Object.entries(document.settings?.logs ?? {})) {
		checkLog(log, `/settings/logs/${escapePointer(name)}`);
	}
	(document.sites ?? []).forEach(({ logs }, site) => {
		logs?.forEach((log, index) => {
			checkLog(log, `/sites/${site}/logs/${index}`);
		});
	});
}

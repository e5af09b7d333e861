/** The debug log entry of a finished exchange: the step that decided it, where that step is configured, and the upstream. */

import { proxyFactsOf } from '../../compiler/codegen/context/proxy-facts.ts';
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import type { LogEntry } from '../logs/log-entry.ts';

/**
 * Returns the entry. `place` is where the deciding step is configured, such as `Configfile:12`. Omits header fields and the
 * query, which may contain secrets.
 */
export function createDebugEntry(x: Exchange, place: string | undefined): LogEntry {
	const proxyFacts = proxyFactsOf(x);
	const upstream = proxyFacts?.upstream && {
		address: proxyFacts.upstream.address,
		tries: proxyFacts.retryCount + 1,
		latency: proxyFacts.answeredAt === 0 ? undefined : toSeconds(proxyFacts.answeredAt - proxyFacts.attemptStartedAt),
		error: proxyFacts.failure,
	};
	return {
		level: 'debug',
		logger: 'http.handlers',
		message:
			x.siteName === '' ? 'no site matches the request' : x.answeredBy === '' ? 'no handler answered' : 'answered',
		fields: {
			remote_ip: x.connection.remoteAddress,
			method: x.received.method,
			host: x.received.authority,
			path: x.received.path,
			rewritten: x.request.path === x.received.path ? undefined : x.request.path,
			site: x.siteName === '' ? undefined : x.siteName,
			handler: x.answeredBy === '' ? undefined : x.answeredBy,
			at: place,
			status: x.response.status,
			upstream,
			cache: x.cacheStatus === '' ? undefined : x.cacheStatus,
			duration: toSeconds(performance.now() - x.startedAt),
		},
	};
}

function toSeconds(milliseconds: number): number {
	return Math.round(milliseconds * 1e3) / 1e6;
}

/** The values of the placeholders `{http.reverse_proxy.*}` in one exchange. */

import type { Exchange } from '../../exchange/exchange.ts';
import type { Upstream, UpstreamResponse } from '../../exchange/leases.ts';
import { STATUS_CODES } from '../../exchange/status-codes.ts';

/**
 * Facts about the proxying of one exchange, recorded as it proceeds. Strings are formatted only when a placeholder is read. Times
 * are measured by `performance.now()`.
 */
export class ProxyFacts {
	/** The chosen upstream; undefined until one has been chosen. */
	upstream: Upstream | undefined;
	/** Maximum number of concurrent requests to each upstream; 0 for no limit. */
	readonly maxRequests: number;
	/** When proxying started. */
	readonly startedAt: number;
	/** When the current attempt started. */
	attemptStartedAt: number;
	/** When the response head of the current attempt arrived; 0 if it has not. */
	answeredAt = 0;
	retryCount = 0;
	response: UpstreamResponse | undefined = undefined;
	/** Why the last attempt got no response, or a truncated one; undefined if it succeeded. */
	failure: string | undefined = undefined;
	/** Set while matchers decide whether to retry a failed attempt: true if it got no response, false if it got one. */
	isTransportError: boolean | undefined = undefined;
	/**
	 * Facts of a proxy that ran earlier in this exchange: `forward_auth`, or the proxy whose `handle_response` or error route
	 * contains this proxy.
	 */
	readonly earlierFacts: ProxyFacts | undefined;

	/** @param earlierFacts The facts of a proxy that ran earlier. Placeholders show them until this proxy has facts of its own. */
	constructor(
		upstream: Upstream | undefined,
		maxRequests: number,
		startedAt: number,
		earlierFacts: ProxyFacts | undefined,
	) {
		this.upstream = upstream;
		this.maxRequests = maxRequests;
		this.startedAt = startedAt;
		this.attemptStartedAt = startedAt;
		this.earlierFacts = earlierFacts;
	}

	/** Returns the value of `{http.reverse_proxy.<path>}`; undefined if the placeholder does not exist or has no value yet. */
	placeholderValue(path: string): string | number | boolean | undefined {
		if (path.startsWith('upstream.')) return this.#upstreamValue(path.slice(9));
		switch (path) {
			case 'retries':
				return this.retryCount;
			case 'duration':
				return formatSeconds(performance.now() - this.startedAt);
			case 'duration_ms':
				return performance.now() - this.startedAt;
			case 'status_code':
				return this.#lastResponse()?.status;
			case 'status_text':
				return statusText(this.#lastResponse());
			case 'is_transport_error':
				return this.isTransportError;
		}
		if (path.startsWith('header.')) return this.#lastResponse()?.headers.getAll(path.slice(7).toLowerCase()).join(',');
		return undefined;
	}

	#lastResponse(): UpstreamResponse | undefined {
		for (let facts: ProxyFacts | undefined = this; facts !== undefined; facts = facts.earlierFacts) {
			if (facts.response) return facts.response;
		}
		return undefined;
	}

	#upstreamValue(name: string): string | number | boolean | undefined {
		const { upstream } = this;
		if (!upstream) return this.earlierFacts?.placeholderValue(`upstream.${name}`);
		switch (name) {
			case 'address':
				return upstream.address;
			case 'network_address':
				return upstream.port === 0 ? upstream.address : `tcp/${upstream.address}`;
			case 'hostport':
				return upstream.port === 0 ? upstream.host : upstream.address;
			case 'host':
				return upstream.host;
			case 'port':
				return upstream.port === 0 ? '' : upstream.port;
			case 'requests':
				return upstream.active;
			case 'max_requests':
				return this.maxRequests;
			case 'fails':
				return upstream.fails;
			case 'latency':
				return this.answeredAt === 0
					? this.earlierFacts?.placeholderValue(`upstream.${name}`)
					: formatSeconds(this.answeredAt - this.attemptStartedAt);
			case 'latency_ms':
				return this.answeredAt === 0
					? this.earlierFacts?.placeholderValue(`upstream.${name}`)
					: this.answeredAt - this.attemptStartedAt;
			case 'duration':
				return formatSeconds(performance.now() - this.attemptStartedAt);
			case 'duration_ms':
				return performance.now() - this.attemptStartedAt;
			default:
				return undefined;
		}
	}
}

/** Returns the status and reason phrase, as in a status line. */
function statusText(response: UpstreamResponse | undefined): string | undefined {
	if (!response) return undefined;
	return `${response.status} ${response.reason ?? STATUS_CODES[response.status] ?? ''}`.trimEnd();
}

function formatSeconds(milliseconds: number): string {
	return `${Number((milliseconds / 1000).toFixed(9))}s`;
}

/** Returns the facts about the proxying of an exchange; undefined until proxying has started. */
export function proxyFactsOf(x: Exchange): ProxyFacts | undefined {
	return x.proxyFacts as ProxyFacts | undefined;
}

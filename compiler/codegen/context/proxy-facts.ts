/** Facts about the proxying of one exchange: the values of `{http.reverse_proxy.*}`. */

import type { Exchange } from '../../exchange/exchange.ts';
import type { Upstream, UpstreamResponse } from '../../exchange/leases.ts';
import { STATUS_CODES } from '../../exchange/status-codes.ts';

/** Filled as the exchange proceeds; strings are formatted only when a placeholder is read. Times are `performance.now()`. */
export class ProxyFacts {
	/** Undefined until an upstream has been chosen. */
	upstream: Upstream | undefined;
	/** Number of concurrent requests at which an upstream counts as full; 0 for no limit. */
	readonly maxRequests: number;
	/** When proxying started, by `performance.now()`. */
	readonly startedAt: number;
	/** When the current attempt started. */
	attemptAt: number;
	/** When the response head arrived; 0 before. */
	answeredAt = 0;
	/** Number of retries. */
	retries = 0;
	response: UpstreamResponse | undefined = undefined;
	/** Why the last attempt got no response, or a truncated one; undefined if it succeeded. */
	failure: string | undefined = undefined;
	/** While a failed attempt is evaluated: true if there was no response, false if there was one. */
	transportError: boolean | undefined = undefined;
	/**
	 * Facts of a proxy that ran earlier in this exchange: that of `forward_auth`, or the one whose `handle_response` or error route
	 * runs this proxy.
	 */
	readonly before: ProxyFacts | undefined;

	/** @param before The exchange's facts so far; placeholders show them until there are new ones. */
	constructor(upstream: Upstream | undefined, maxRequests: number, startedAt: number, before: ProxyFacts | undefined) {
		this.upstream = upstream;
		this.maxRequests = maxRequests;
		this.startedAt = startedAt;
		this.attemptAt = startedAt;
		this.before = before;
	}

	/** Returns the value of `{http.reverse_proxy.<path>}`; undefined if the placeholder does not exist or has no value yet. */
	placeholder(path: string): string | number | boolean | undefined {
		if (path.startsWith('upstream.')) return this.#ofUpstream(path.slice(9));
		switch (path) {
			case 'retries':
				return this.retries;
			case 'duration':
				return seconds(performance.now() - this.startedAt);
			case 'duration_ms':
				return performance.now() - this.startedAt;
			case 'status_code':
				return this.#lastResponse()?.status;
			case 'status_text':
				return statusText(this.#lastResponse());
			case 'is_transport_error':
				return this.transportError;
		}
		if (path.startsWith('header.')) return this.#lastResponse()?.headers.getAll(path.slice(7).toLowerCase()).join(',');
		return undefined;
	}

	#lastResponse(): UpstreamResponse | undefined {
		for (let facts: ProxyFacts | undefined = this; facts !== undefined; facts = facts.before) {
			if (facts.response) return facts.response;
		}
		return undefined;
	}

	#ofUpstream(name: string): string | number | boolean | undefined {
		const { upstream } = this;
		if (!upstream) return this.before?.placeholder(`upstream.${name}`);
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
					? this.before?.placeholder(`upstream.${name}`)
					: seconds(this.answeredAt - this.attemptAt);
			case 'latency_ms':
				return this.answeredAt === 0 ? this.before?.placeholder(`upstream.${name}`) : this.answeredAt - this.attemptAt;
			case 'duration':
				return seconds(performance.now() - this.attemptAt);
			case 'duration_ms':
				return performance.now() - this.attemptAt;
			default:
				return undefined;
		}
	}
}

/** Returns status and reason phrase, as in the received status line. */
function statusText(response: UpstreamResponse | undefined): string | undefined {
	if (!response) return undefined;
	return `${response.status} ${response.reason ?? STATUS_CODES[response.status] ?? ''}`.trimEnd();
}

function seconds(milliseconds: number): string {
	return `${Number((milliseconds / 1000).toFixed(9))}s`;
}

/** Returns the facts about an exchange, once proxying has started. */
export function proxyFactsOf(x: Exchange): ProxyFacts | undefined {
	return x.proxyFacts as ProxyFacts | undefined;
}

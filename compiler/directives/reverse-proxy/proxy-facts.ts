/** What proxying found out about one exchange: the values of `{http.reverse_proxy.*}`. */

import type { Upstream, UpstreamResponse } from '../../exchange/leases.ts';
import { STATUS_CODES } from '../../exchange/status-codes.ts';

/** Variable of the exchange that holds the {@link ProxyFacts}. */
export const PROXY_FACTS_VARIABLE = 'http.reverse_proxy';

/** Filled while the exchange goes on; texts are made only when a placeholder asks. Times are `performance.now()`. */
export class ProxyFacts {
	readonly upstream: Upstream;
	readonly startedAt: number;
	/** When the response's head had come; 0 before. */
	answeredAt = 0;
	response: UpstreamResponse | undefined = undefined;

	constructor(upstream: Upstream, startedAt: number) {
		this.upstream = upstream;
		this.startedAt = startedAt;
	}

	/** Value of `{http.reverse_proxy.<path>}`; undefined when there is no such placeholder, or nothing to say yet. */
	placeholder(path: string): string | number | undefined {
		switch (path) {
			case 'upstream.address':
				return this.upstream.address;
			case 'upstream.hostport':
				return this.upstream.port === 0 ? this.upstream.host : this.upstream.address;
			case 'upstream.host':
				return this.upstream.host;
			case 'upstream.port':
				return this.upstream.port === 0 ? '' : this.upstream.port;
			case 'upstream.requests':
				return this.upstream.active;
			case 'upstream.max_requests':
			case 'upstream.fails':
			case 'retries':
				return 0;
			case 'upstream.latency':
				return this.answeredAt === 0 ? undefined : seconds(this.answeredAt - this.startedAt);
			case 'upstream.latency_ms':
				return this.answeredAt === 0 ? undefined : this.answeredAt - this.startedAt;
			case 'upstream.duration':
			case 'duration':
				return seconds(performance.now() - this.startedAt);
			case 'upstream.duration_ms':
			case 'duration_ms':
				return performance.now() - this.startedAt;
			case 'status_code':
				return this.response?.status;
			case 'status_text':
				return this.response && (STATUS_CODES[this.response.status] ?? '');
		}
		if (path.startsWith('header.')) return this.response?.headers.getAll(path.slice(7).toLowerCase()).join(',');
		return undefined;
	}
}

function seconds(milliseconds: number): string {
	return `${Number((milliseconds / 1000).toFixed(9))}s`;
}

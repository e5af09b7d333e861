/** The pool of upstreams that `reverse_proxy` leases, and the settings that identify it. */
import type { Matcher } from '../../../document/document.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import type { Upstream, UpstreamOutcome, UpstreamRequest, UpstreamResponse } from '../../../exchange/leases.ts';
import type { ShedSettings } from './shed-settings.ts';
import type { TransportSettings } from './transports/transport-settings.ts';

declare module '../../../exchange/leases.ts' {
	interface LeaseKinds {
		upstreams: { settings: UpstreamSettings; lease: UpstreamPool };
	}
}

/** Active health checks of a pool's static upstreams; times in milliseconds. */
export interface HealthCheckSettings {
	/** Path and query to request; default `/`. */
	readonly uri?: string;
	/** Address to check instead of each upstream's own. */
	readonly upstream?: string;
	/** Port to check instead of each upstream's own. */
	readonly port?: number;
	/** Milliseconds between checks, varied by up to a tenth; default 30000. */
	readonly interval?: number;
	/** Timeout, in milliseconds, for the whole response; default 5000. */
	readonly timeout?: number;
	/** Number of consecutive checks that must pass before an unhealthy upstream counts as healthy; default 1. */
	readonly passes?: number;
	/** Number of consecutive checks that must fail before a healthy upstream counts as unhealthy; default 1. */
	readonly fails?: number;
	/** Expected status or class, such as `204` or `2xx`; default `2xx`. */
	readonly status?: string;
	/** Regular expression that the body must match. */
	readonly body?: string;
	readonly method?: string;
	readonly request_body?: string;
	readonly follow_redirects?: boolean;
	readonly headers?: readonly { readonly name: string; readonly value: string }[];
}

/** Settings of an upstream's circuit breaker; times in milliseconds. */
export interface CircuitSettings {
	/** Share of failed requests at which the breaker opens, 0 to 1; default 0.5. */
	readonly error_ratio?: number;
	/** Milliseconds after which a response counts as slow; default 0, which disables the check. */
	readonly slow_after?: number;
	/** Share of slow responses at which the breaker opens; default 0.5. */
	readonly slow_ratio?: number;
	/** Minimum number of requests in a window before the breaker may open; default 20. */
	readonly min_requests?: number;
	/** Length in milliseconds of the window in which requests are counted; default 10000. */
	readonly window?: number;
	/** Milliseconds for which the breaker stays open; default 10000. */
	readonly open_for?: number;
	/** Number of requests that must succeed to close the breaker; default 3. */
	readonly probes?: number;
}

/** Limits a pool's retries in proportion to its requests. */
export interface RetryBudget {
	/** Number of retries, possibly fractional, that each request adds to the budget; default 1. */
	readonly ratio?: number;
	/** Number of retries that the budget gains per second; default 10. */
	readonly per_second?: number;
}

/** A DNS source from which a pool's addresses are looked up. */
export type DynamicSource =
	| {
			readonly source: 'a';
			readonly name: string;
			readonly port?: string;
			readonly refresh?: number;
			readonly resolvers?: readonly string[];
			readonly dial_timeout?: number;
			readonly versions?: readonly ('ipv4' | 'ipv6')[];
	  }
	| {
			readonly source: 'srv';
			/** Full name, such as `_http._tcp.example.com`; or the domain, if `service` and `proto` are given. */
			readonly name: string;
			readonly service?: string;
			readonly proto?: string;
			readonly refresh?: number;
			readonly resolvers?: readonly string[];
			readonly dial_timeout?: number;
			readonly grace_period?: number;
	  }
	| { readonly source: 'multi'; readonly sources: readonly DynamicSource[] };

/** Settings of a pool of upstreams, whose canonical JSON is the pool's key. */
export interface UpstreamSettings {
	/** Name of the pool, if it is a named one (`upstream api { … }`). */
	readonly name?: string;
	/** Addresses: `host:port`, `unix//path`, or a template with placeholders that is resolved per request. */
	readonly to: readonly string[];
	/** Addresses of `to` that are used only while no other address is available. */
	readonly backup?: readonly string[];
	/** ID of a load-balancing policy and its settings. */
	readonly balance?: { readonly policy: string; readonly [setting: string]: unknown };
	/** Connection timeout in milliseconds; default 3000. */
	readonly connect_timeout?: number;
	/** Timeout, in milliseconds, from the end of the request to the response head; default no limit. */
	readonly response_header_timeout?: number;
	/** Milliseconds for which an idle connection stays open; 0 disables keep-alive. Default 120000, for FastCGI 0. */
	readonly keepalive?: number;
	/** Maximum number of idle connections of one thread to one upstream; default 32. */
	readonly keepalive_idle_conns?: number;
	/** Maximum number of bytes of a response head; default 10 MiB. */
	readonly max_response_header?: number;
	/** How upstreams are reached; default HTTP/1.1 in plain text. */
	readonly transport?: TransportSettings;
	/** The source from which addresses are looked up. The addresses of `to` are used while a lookup finds none. */
	readonly dynamic?: DynamicSource;
	/** Maximum number of retries; default 0, or unlimited with `retry_duration`. */
	readonly retries?: number;
	/** Milliseconds from the first attempt within which retries may start. */
	readonly retry_duration?: number;
	/** Milliseconds to wait before another attempt if no upstream is left to try; default 250. */
	readonly retry_interval?: number;
	/** The failures and responses that are retried. */
	readonly retry_match?: Matcher;
	readonly retry_budget?: RetryBudget;
	readonly health?: HealthCheckSettings;
	/** Milliseconds for which a failed request is remembered, for passive health checks; default 0, which disables them. */
	readonly fail_duration?: number;
	/** Number of remembered failures that make an upstream unavailable; default 1. */
	readonly max_fails?: number;
	readonly unhealthy_status?: readonly string[];
	/** A response that takes at least this many milliseconds to begin counts as a failure. */
	readonly unhealthy_latency?: number;
	/** Number of concurrent requests at which an upstream is full and gets no more requests. */
	readonly unhealthy_request_count?: number;
	readonly circuit?: CircuitSettings;
	/** Milliseconds over which a recovering upstream returns to its full share. */
	readonly slow_start?: number;
	/** Present if requests are refused while all available upstreams are overloaded. */
	readonly shed?: ShedSettings;
	readonly [setting: string]: unknown;
}

/** A pool of upstreams with its connections and state. It is kept across reloads that do not change its settings. */
export interface UpstreamPool {
	readonly settings: UpstreamSettings;
	/**
	 * Chooses an upstream for this exchange, other than those in `avoid`; undefined if none is available. If addresses contain
	 * placeholders, the caller passes the resolved addresses (`host:port`, `unix//path`) to choose from.
	 */
	select(x: Exchange, avoid?: readonly Upstream[], resolvedAddresses?: readonly string[]): Upstream | undefined;
	/**
	 * Must be called directly after `select` has found no upstream. If the only reason is that the available upstreams have reached
	 * the limits of `shed`, counts the request as refused and returns true.
	 */
	countShed(): boolean;
	/**
	 * With `dynamic`: looks up names, which the caller has rendered for this request, and returns the addresses to pass to `select`.
	 * Returns undefined if nothing was found, so that the addresses of `to` are used. Returns a promise only if it has to wait.
	 */
	lookUp?(names: readonly string[]): readonly string[] | undefined | Promise<readonly string[] | undefined>;
	/**
	 * Reports whether a failed attempt at this upstream may be followed by a retry, and charges the retry to the pool's retry budget.
	 * If `isFree`, the retry is not charged, because the failed attempt sent nothing.
	 */
	mayRetry(upstream: Upstream, isFree: boolean): boolean;
	/** Waits between two attempts. Resolves to false if the client has disconnected. */
	pause(x: Exchange, milliseconds: number): Promise<boolean>;
	/** Returns the milliseconds since `startedAt`, a time of `performance.now()`, by the clock that `pause` uses. */
	elapsed(x: Exchange, startedAt: number): number;
	/**
	 * Registers an upgraded stream. When the last configuration that uses the pool has been replaced, `close` is called after
	 * `delayMs` milliseconds, unless the returned function has been called before.
	 */
	registerStream(close: () => void, delayMs: number): () => void;
	/** Sends a request. Calls the methods of `outcome` with the result, possibly before this method returns. */
	send(x: Exchange, upstream: Upstream, request: UpstreamRequest, outcome: UpstreamOutcome): void;
}

/** Sends a request and returns a promise for the response, which rejects with UpstreamError. Interim responses go to the client. */
export function requestFromUpstream(
	pool: UpstreamPool,
	x: Exchange,
	upstream: Upstream,
	request: UpstreamRequest,
): Promise<UpstreamResponse> {
	return new Promise((resolve, reject) => {
		const onInterim = (status: number, headers: HeaderList): void => x.sendInterim(status, headers);
		pool.send(x, upstream, request, { onInterim: onInterim, onResponse: resolve, onError: reject });
	});
}

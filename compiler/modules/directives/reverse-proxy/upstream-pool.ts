/** What `reverse_proxy` leases: a pool of upstreams, and the settings that are its key. */
import type { Matcher } from '../../../document/document.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import type { Upstream, UpstreamOutcome, UpstreamRequest, UpstreamResponse } from '../../../exchange/leases.ts';
import type { TransportSettings } from './transports/transport-settings.ts';

declare module '../../../exchange/leases.ts' {
	interface LeaseKinds {
		upstreams: { settings: UpstreamSettings; lease: UpstreamPool };
	}
}

/** Active checks of a pool's static upstreams; times in milliseconds. */
export interface HealthCheckSettings {
	/** Path and query that are asked for; `/` if left out. */
	readonly uri?: string;
	/** Address that is checked instead of each upstream's own. */
	readonly upstream?: string;
	/** Port that is checked instead of the upstream's. */
	readonly port?: number;
	/** 30000 if left out; each interval is up to a tenth shorter or longer. */
	readonly interval?: number;
	/** For the whole answer; 5000 if left out. */
	readonly timeout?: number;
	/** Checks in a row that must pass, or fail, to change the state; 1 if left out. */
	readonly passes?: number;
	readonly fails?: number;
	/** `204`, `2xx`; any 2xx if left out. */
	readonly status?: string;
	/** Regular expression that the body must match. */
	readonly body?: string;
	readonly method?: string;
	readonly request_body?: string;
	readonly follow_redirects?: boolean;
	readonly headers?: readonly { readonly name: string; readonly value: string }[];
}

/** When an upstream is left alone for its failures, and how it is tried again; times in milliseconds. */
export interface CircuitSettings {
	/** Share of failed requests from which the circuit opens, 0 to 1; 0.5 if left out. */
	readonly error_ratio?: number;
	/** From when on an answer is slow; 0 or left out: none is. */
	readonly slow_after?: number;
	/** Share of slow answers from which the circuit opens; 0.5 if left out. */
	readonly slow_ratio?: number;
	/** Requests of a window before anything is concluded; 20 if left out. */
	readonly min_requests?: number;
	/** 10000 if left out. */
	readonly window?: number;
	/** How long nothing is sent; 10000 if left out. */
	readonly open_for?: number;
	/** Requests that must succeed to close it again; 3 if left out. */
	readonly probes?: number;
}

/** What retries of a pool may cost. */
export interface RetryBudget {
	/** Retries per request; 1 if left out. */
	readonly ratio?: number;
	/** Retries a second beside those; 10 if left out. */
	readonly per_second?: number;
}

/** Where a pool's addresses are looked up. */
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
			/** Full name, `_http._tcp.example.com`; or below `service` and `proto`. */
			readonly name: string;
			readonly service?: string;
			readonly proto?: string;
			readonly refresh?: number;
			readonly resolvers?: readonly string[];
			readonly dial_timeout?: number;
			readonly grace_period?: number;
	  }
	| { readonly source: 'multi'; readonly sources: readonly DynamicSource[] };

/** Settings of a pool of upstreams: the pool's key is this object's canonical JSON. */
export interface UpstreamSettings {
	/** Name, when the configuration gave one (`upstream api { … }`). */
	readonly name?: string;
	/** Addresses: `host:port`, `unix//path`, or a template with placeholders that is resolved per request. */
	readonly to: readonly string[];
	/** Id of a balancing provider and its settings. */
	readonly balance?: { readonly policy: string; readonly [setting: string]: unknown };
	/** Milliseconds to connect; 3000 if left out. */
	readonly connect_timeout?: number;
	/** Milliseconds from the end of the request to the response's head; no bound if left out. */
	readonly response_header_timeout?: number;
	/** Milliseconds that an idle connection is kept; 120000 if left out, 0 turns keep-alive off. */
	readonly keepalive?: number;
	/** Idle connections kept for one upstream on one thread; 32 if left out. */
	readonly keepalive_idle_conns?: number;
	/** Bytes of a response's head; 10 MiB if left out. */
	readonly max_response_header?: number;
	/** HTTP/1.1 in plain text if left out. */
	readonly transport?: TransportSettings;
	/** Where addresses are looked up; `to` then holds those that serve while nothing is found. */
	readonly dynamic?: DynamicSource;
	/** Attempts after the first, at most; 0 if left out, or without bound with `retry_duration`. */
	readonly retries?: number;
	/** Milliseconds within which attempts are begun. */
	readonly retry_duration?: number;
	/** Milliseconds between attempts when nothing can be chosen; 250 if left out. */
	readonly retry_interval?: number;
	/** Which failures and responses are tried again (see retries/retry-predicate.ts). */
	readonly retry_match?: Matcher;
	readonly retry_budget?: RetryBudget;
	readonly health?: HealthCheckSettings;
	/** Milliseconds that a failure of a request is remembered; 0 or left out: none is. */
	readonly fail_duration?: number;
	/** Remembered failures that make an upstream unavailable; 1 if left out. */
	readonly max_fails?: number;
	readonly unhealthy_status?: readonly string[];
	/** Milliseconds until an answer begins that are a failure. */
	readonly unhealthy_latency?: number;
	/** Requests in flight at which an upstream is full. */
	readonly unhealthy_request_count?: number;
	readonly circuit?: CircuitSettings;
	/** Milliseconds in which an upstream that comes back gets more and more requests. */
	readonly slow_start?: number;
	readonly [setting: string]: unknown;
}

/** A pool of upstreams: choice, connections and state, kept across reloads that leave its settings alone. */
export interface UpstreamPool {
	readonly settings: UpstreamSettings;
	/**
	 * Chooses an upstream for this exchange, avoiding those given; undefined when none is available. With addresses that
	 * hold placeholders the caller gives all addresses resolved (`host:port`, `unix//path`): the choice is among them.
	 */
	select(x: Exchange, avoid?: readonly Upstream[], resolved?: readonly string[]): Upstream | undefined;
	/**
	 * With `dynamic`: the addresses for names as they are rendered for this request (see dynamicNames), to be given to
	 * `select`; undefined when nothing was found, so that those of `to` serve. A promise only while a look-up is waited for.
	 */
	lookUp?(names: readonly string[]): readonly string[] | undefined | Promise<readonly string[] | undefined>;
	/**
	 * Whether an attempt at this upstream may be followed by another: takes it out of the pool's budget, unless it is free
	 * because nothing was sent.
	 */
	mayRetry(upstream: Upstream, free: boolean): boolean;
	/** Counts requests that wait for an upstream. */
	waiting(by: 1 | -1): void;
	/**
	 * Keeps a joined stream until the returned function is called: `close` is called once no configuration that is served
	 * uses the pool, after `delay` milliseconds.
	 */
	joined(close: () => void, delay: number): () => void;
	/** Sends a request; `outcome` is told what comes of it, perhaps before this returns. */
	send(x: Exchange, upstream: Upstream, request: UpstreamRequest, outcome: UpstreamOutcome): void;
}

/** Sends a request, as a promise that rejects with UpstreamError. Interim responses go to the client. */
export function sendToUpstream(
	pool: UpstreamPool,
	x: Exchange,
	upstream: Upstream,
	request: UpstreamRequest,
): Promise<UpstreamResponse> {
	return new Promise((resolve, reject) => {
		const informed = (status: number, headers: HeaderList): void => x.inform(status, headers);
		pool.send(x, upstream, request, { informed, answered: resolve, failed: reject });
	});
}

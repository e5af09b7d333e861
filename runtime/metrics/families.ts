/** The metric families with labels: their names, help texts, types and buckets. */

/** A labeled family whose series are in the threads' pages of shared memory (see {@link SeriesPages}). */
export interface SeriesFamily {
	readonly name: string;
	readonly help: string;
	readonly type: 'counter' | 'gauge' | 'histogram';
	/** Upper bounds of a histogram's buckets, without `+Inf`. */
	readonly buckets?: readonly number[];
}

const SECONDS_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const BYTES_BUCKETS = [256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304];

/** Families about requests. They are collected only with the `metrics` setting. */
export const HTTP_FAMILIES = {
	inFlight: {
		name: 'std_http_requests_in_flight',
		help: 'Requests being handled, by server.',
		type: 'gauge',
	},
	requests: { name: 'std_http_requests_total', help: 'Requests handled, by server and handler.', type: 'counter' },
	errors: {
		name: 'std_http_request_errors_total',
		help: 'Requests that failed in a handler, by server and handler.',
		type: 'counter',
	},
	duration: {
		name: 'std_http_request_duration_seconds',
		help: 'Seconds from the end of a request head to the end of its response.',
		type: 'histogram',
		buckets: SECONDS_BUCKETS,
	},
	responseDuration: {
		name: 'std_http_response_duration_seconds',
		help: 'Seconds from the end of a request head to the start of its response.',
		type: 'histogram',
		buckets: SECONDS_BUCKETS,
	},
	requestSize: {
		name: 'std_http_request_size_bytes',
		help: 'Size of request bodies in bytes.',
		type: 'histogram',
		buckets: BYTES_BUCKETS,
	},
	responseSize: {
		name: 'std_http_response_size_bytes',
		help: 'Size of response bodies in bytes.',
		type: 'histogram',
		buckets: BYTES_BUCKETS,
	},
} as const satisfies { readonly [name: string]: SeriesFamily };

/** Families about requests to upstreams, labeled by upstream. They are collected only with the `metrics` setting. */
export const UPSTREAM_FAMILIES = {
	connect: {
		name: 'svc_upstream_connect_seconds',
		help: 'Seconds to connect to an upstream; reused connections are not counted.',
		type: 'histogram',
		buckets: SECONDS_BUCKETS,
	},
	firstByte: {
		name: 'svc_upstream_first_byte_seconds',
		help: 'Seconds from sending a request to the head of its response.',
		type: 'histogram',
		buckets: SECONDS_BUCKETS,
	},
	total: {
		name: 'svc_upstream_duration_seconds',
		help: 'Seconds from sending a request to the end of its response.',
		type: 'histogram',
		buckets: SECONDS_BUCKETS,
	},
	errors: {
		name: 'svc_upstream_errors_total',
		help: 'Failed attempts, by upstream and kind: connect, request, response, timeout.',
		type: 'counter',
	},
	retries: {
		name: 'svc_upstream_retries_total',
		help: 'Attempts on this upstream that were retried.',
		type: 'counter',
	},
} as const satisfies { readonly [name: string]: SeriesFamily };

/** Families about TLS, always collected. */
export const TLS_FAMILIES = {
	handshakes: {
		name: 'svc_tls_handshakes_total',
		help: 'TLS handshakes, by version and result: ok, or why it failed.',
		type: 'counter',
	},
	resumptions: {
		name: 'svc_tls_sessions_resumed_total',
		help: 'TLS handshakes that resumed a session, by version.',
		type: 'counter',
	},
} as const satisfies { readonly [name: string]: SeriesFamily };

/** Families about the events that modules count, always collected. */
export const MODULE_FAMILIES = {
	events: { name: 'svc_module_events_total', help: 'Events that modules count, by name.', type: 'counter' },
	concurrencyLimits: {
		name: 'svc_limit_concurrent_requests_total',
		help: 'Requests counted by `limit_concurrent`, by zone and outcome: admitted, queued, refused, timed_out, left or would_refuse.',
		type: 'counter',
	},
	rateLimits: {
		name: 'svc_rate_limit_requests_total',
		help: 'Requests counted by `rate_limit`, by zone and outcome: admitted, delayed, refused or would_refuse.',
		type: 'counter',
	},
	rateLimitWaits: {
		name: 'svc_rate_limit_waits_total',
		help: 'Requests that waited until Redis had counted earlier ones, by zone.',
		type: 'counter',
	},
	rateLimitFallbacks: {
		name: 'svc_rate_limit_fallbacks_total',
		help: 'Requests decided without Redis because it was unavailable or too slow, by zone and policy: local, allow or deny.',
		type: 'counter',
	},
	mirrored: {
		name: 'svc_mirror_requests_total',
		help: 'Copies of requests that `mirror` has sent, by upstream and outcome: answered, failed or timed_out.',
		type: 'counter',
	},
	shed: {
		name: 'svc_upstream_shed_requests_total',
		help: 'Requests that `shed` has refused because the upstreams were overloaded, by pool: its name or addresses.',
		type: 'counter',
	},
	mirrorDrops: {
		name: 'svc_mirror_dropped_total',
		help: 'Requests that `mirror` has not copied, by upstream and reason.',
		type: 'counter',
	},
} as const satisfies { readonly [name: string]: SeriesFamily };

/** Every family whose series are in the threads' pages of shared memory. */
export const SERIES_FAMILIES: readonly SeriesFamily[] = [
	...Object.values(HTTP_FAMILIES),
	...Object.values(UPSTREAM_FAMILIES),
	...Object.values(TLS_FAMILIES),
	...Object.values(MODULE_FAMILIES),
];

/** Returns how many slots one series of a family needs. A histogram needs a slot for each bucket, for `+Inf`, and for the sum. */
export function slotsPerSeries(family: SeriesFamily): number {
	return family.buckets ? family.buckets.length + 2 : 1;
}

/** Everything that `/metrics` shows, as one prom-client registry that reads shared memory when scraped. */
import { Counter, type Metric, Registry } from 'prom-client';
import { CACHE_EVENTS } from '../../compiler/exchange/response-cache.ts';
import type { CacheReport } from '../cache/cache-board.ts';
import type { CertificateReadings } from '../certificates/certificate-metrics.ts';
import { CIRCUIT_STATES } from '../upstreams/circuit-breaker.ts';
import type { UpstreamReport } from '../upstreams/pool-board.ts';
import { cacheSlot } from './cache-counters.ts';
import { ROW } from './counter-row.ts';
import { SERIES_FAMILIES, type SeriesFamily } from './families.ts';
import { HTTP2_SESSIONS_SLOT, HTTP2_SLOT_FAMILIES, HTTP2_STREAMS_SLOT } from './http2-counters.ts';
import { registerProcessMetrics } from './process-metrics.ts';
import { SLOT_FAMILIES, type SlotFamily } from './refusals.ts';
import type { ThreadTotals } from './thread-totals.ts';

/** What the main thread itself knows. */
export interface RuntimeGauges {
	readonly ready: () => boolean;
	readonly generation: () => number;
	/** Whether the last load was applied, and when the last successful one was (seconds since the epoch, 0 for never). */
	readonly lastReload: () => { readonly successful: boolean; readonly successAt: number };
	readonly workerRestarts: () => number;
	/** Access entries that the main thread dropped. */
	readonly accessLogDropped: () => number;
	/** What is known of each upstream, and requests that wait for one. */
	readonly upstreams: () => readonly UpstreamReport[];
	readonly upstreamsWaited: () => number;
	/** How full each response cache is. */
	readonly caches: () => readonly CacheReport[];
	/** Spans of requests that a collector has taken, and those that the main thread dropped. */
	readonly spansExported: () => number;
	readonly spansDropped: () => number;
	readonly certificates: () => CertificateReadings;
}

/** The metrics of a runtime. */
export class MetricsRegistry {
	readonly #registry = new Registry();
	readonly #adminRequests: Counter<'path' | 'method' | 'code'>;
	readonly #adminErrors: Counter<'path' | 'method' | 'code'>;

	constructor(totals: ThreadTotals, gauges: RuntimeGauges) {
		for (const family of SERIES_FAMILIES) {
			this.#registry.registerMetric(seriesMetric(family, totals));
		}
		const registers = [this.#registry];
		const number = (name: string, help: string, type: 'counter' | 'gauge', read: () => number) => {
			this.#registry.registerMetric(plainMetric(name, help, type, read));
		};
		const labelNames = ['path', 'method', 'code'] as const;
		this.#adminRequests = new Counter({
			name: 'std_admin_http_requests_total',
			help: 'Admin API requests.',
			labelNames,
			registers,
		});
		this.#adminErrors = new Counter({
			name: 'std_admin_http_request_errors_total',
			help: 'Admin API requests answered with a status of 400 or more.',
			labelNames,
			registers,
		});
		number('std_config_last_reload_successful', 'Whether the last load was applied.', 'gauge', () =>
			gauges.lastReload().successful ? 1 : 0,
		);
		number(
			'std_config_last_reload_success_timestamp_seconds',
			'When the last applied load was applied.',
			'gauge',
			() => gauges.lastReload().successAt,
		);
		number('svc_config_generation', 'Number of the configuration being served.', 'gauge', gauges.generation);
		number('svc_ready', 'Whether every listener is bound and no stop has begun.', 'gauge', () =>
			gauges.ready() ? 1 : 0,
		);
		number('svc_connections', 'Open client connections.', 'gauge', () => totals.total(ROW.connections));
		number('svc_http2_connections', 'Open HTTP/2 connections.', 'gauge', () => totals.total(HTTP2_SESSIONS_SLOT));
		number('svc_http2_streams_total', 'HTTP/2 streams that carried a request.', 'counter', () =>
			totals.total(HTTP2_STREAMS_SLOT),
		);
		number('svc_connections_accepted_total', 'Client connections accepted.', 'counter', () =>
			totals.total(ROW.accepted),
		);
		for (const family of [...SLOT_FAMILIES, ...HTTP2_SLOT_FAMILIES])
			this.#registry.registerMetric(slotMetric(family, totals));
		number('svc_overload_queued', 'Requests that wait because a listener has too many in flight.', 'gauge', () =>
			totals.total(ROW.queued),
		);
		number('svc_overload_queued_total', 'Requests that have had to wait so.', 'counter', () =>
			totals.total(ROW.queuedRequests),
		);
		number(
			'svc_overload_accept_failures_total',
			'Connections that could not be accepted for want of file descriptors or memory.',
			'counter',
			() => totals.total(ROW.acceptFailures),
		);
		number(
			'svc_response_fields_dropped_total',
			'Fields of responses left out because they cannot be sent.',
			'counter',
			() => totals.total(ROW.droppedFields),
		);
		number(
			'svc_worker_restarts_total',
			'Worker threads that died and were replaced.',
			'counter',
			gauges.workerRestarts,
		);
		number(
			'svc_access_log_dropped_total',
			'Access log entries dropped because writing did not keep up.',
			'counter',
			() => totals.total(ROW.accessLogDropped) + gauges.accessLogDropped(),
		);
		number('svc_trace_spans_exported_total', 'Spans that a collector has taken.', 'counter', gauges.spansExported);
		number(
			'svc_trace_spans_dropped_total',
			'Spans dropped because they could not be exported, or not fast enough.',
			'counter',
			() => totals.total(ROW.spansDropped) + gauges.spansDropped(),
		);
		number(
			'svc_upstream_queue',
			'Requests that wait for an upstream to become available.',
			'gauge',
			gauges.upstreamsWaited,
		);
		registerCacheMetrics(this.#registry, totals, gauges.caches);
		registerUpstreamGauges(this.#registry, gauges.upstreams);
		registerCertificateMetrics(this.#registry, gauges.certificates);
		registerProcessMetrics(this.#registry);
	}

	/** Counts answered requests of the Admin API. */
	countAdminRequests(path: string, method: string, status: number, count: number): void {
		const labels = { path, method, code: String(status) };
		this.#adminRequests.inc(labels, count);
		if (status >= 400) this.#adminErrors.inc(labels, count);
	}

	/** Prometheus text exposition 0.0.4. */
	render(): Promise<string> {
		return this.#registry.metrics();
	}
}

/** One series for each upstream; where several pools have it, the worst that is known of it counts. */
function registerUpstreamGauges(registry: Registry, reports: () => readonly UpstreamReport[]): void {
	const gauge = (
		name: string,
		help: string,
		value: (report: UpstreamReport) => number,
		join: (a: number, b: number) => number,
	) => {
		const samples = () => {
			const values = new Map<string, number>();
			for (const report of reports()) {
				const known = values.get(report.address);
				values.set(report.address, known === undefined ? value(report) : join(known, value(report)));
			}
			return [...values].map(([upstream, sum]) => ({ labels: { upstream }, value: sum }));
		};
		registry.registerMetric(ownMetric(name, help, 'gauge', samples));
	};
	gauge(
		'std_reverse_proxy_upstreams_healthy',
		'Whether an upstream is healthy, by active checks and remembered failures.',
		({ healthy }) => (healthy ? 1 : 0),
		Math.min,
	);
	gauge(
		'svc_upstream_requests_in_flight',
		'Requests that an upstream is answering.',
		({ requests }) => requests,
		(a, b) => a + b,
	);
	gauge(
		'svc_upstream_circuit_state',
		'State of an upstream’s circuit: 0 closed, 1 open, 2 half-open.',
		({ circuit }) => CIRCUIT_STATES.indexOf(circuit),
		Math.max,
	);
}

/** What response caches do, of all threads, and how full they are, all stores together. */
function registerCacheMetrics(registry: Registry, totals: ThreadTotals, reports: () => readonly CacheReport[]): void {
	const sum = (value: (report: CacheReport) => number) => () =>
		reports().reduce((total, report) => total + value(report), 0);
	const requests = ['hit', 'miss', 'stale', 'bypass'] as const;
	registry.registerMetric(
		ownMetric('svc_cache_requests_total', 'Requests that a response cache saw, by what it did.', 'counter', () =>
			requests.map(status => ({ labels: { status }, value: totals.total(cacheSlot(status)) })),
		),
	);
	const helps = {
		revalidated: ['svc_cache_revalidated_total', 'Stored responses that their origin has confirmed.'],
		collapsed: ['svc_cache_collapsed_total', 'Requests that waited for the same one that was under way.'],
		store: ['svc_cache_stores_total', 'Responses that were stored.'],
	} as const;
	for (const event of CACHE_EVENTS) {
		if (event !== 'revalidated' && event !== 'collapsed' && event !== 'store') continue;
		const [name, help] = helps[event];
		registry.registerMetric(plainMetric(name, help, 'counter', () => totals.total(cacheSlot(event))));
	}
	const figures: readonly [name: string, help: string, type: 'counter' | 'gauge', read: () => number][] = [
		[
			'svc_cache_evictions_total',
			'Stored responses that had to make room for others.',
			'counter',
			sum(one => one.evictions),
		],
		['svc_cache_purged_total', 'Stored responses that were purged.', 'counter', sum(one => one.purged)],
		['svc_cache_entries', 'Responses that are stored.', 'gauge', sum(one => one.entries)],
		['svc_cache_bytes', 'Bytes that stored responses take, tables included.', 'gauge', sum(one => one.bytes)],
		['svc_cache_ceiling_bytes', 'Bytes that they may take.', 'gauge', sum(one => one.ceiling)],
	];
	for (const figure of figures) registry.registerMetric(plainMetric(...figure));
}

function registerCertificateMetrics(registry: Registry, readings: () => CertificateReadings): void {
	const metrics: readonly [name: string, help: string, type: string, samples: () => Sample[]][] = [
		[
			'svc_tls_certificate_expiry_timestamp_seconds',
			'When a certificate that is served ends, by subject and issuer.',
			'gauge',
			() => distinct(readings().expiry),
		],
		[
			'svc_tls_certificate_attempts_total',
			'Attempts to obtain or renew a certificate, by issuer and result.',
			'counter',
			() => [...readings().attempts],
		],
		[
			'svc_tls_ocsp_responses_total',
			'OCSP responses that were fetched, by result.',
			'counter',
			() => [...readings().ocsp],
		],
		[
			'svc_tls_certificates_missing',
			'Names that should have a certificate and have none.',
			'gauge',
			() => [{ labels: {}, value: readings().missing }],
		],
	];
	for (const metric of metrics) registry.registerMetric(ownMetric(...metric));
}

/** Of samples with the same labels the least: two series with one name would be no exposition. */
function distinct(samples: CertificateReadings['expiry']): Sample[] {
	const byLabels = new Map<string, Sample>();
	for (const sample of samples) {
		const key = JSON.stringify(sample.labels);
		const known = byLabels.get(key);
		if (!known || sample.value < known.value) byLabels.set(key, sample);
	}
	return [...byLabels.values()];
}

interface Sample {
	readonly value: number;
	readonly labels: { readonly [name: string]: string | number };
	readonly metricName?: string;
}

/** A metric object of ours: prom-client asks `get` and prints; its own histogram cannot be set from outside. */
function ownMetric(name: string, help: string, type: string, samples: () => Sample[]): Metric {
	const get = async () => ({ name, help, type, values: samples(), aggregator: 'sum' });
	return { name, help, get, reset: () => {} } as unknown as Metric;
}

function plainMetric(name: string, help: string, type: 'counter' | 'gauge', read: () => number): Metric {
	return ownMetric(name, help, type, () => [{ value: read(), labels: {} }]);
}

function slotMetric({ name, help, label, slots }: SlotFamily, totals: ThreadTotals): Metric {
	return ownMetric(name, help, 'counter', () =>
		slots.map(([value, slot]) => ({ labels: { [label]: value }, value: totals.total(slot) })),
	);
}

function seriesMetric(family: SeriesFamily, totals: ThreadTotals): Metric {
	const { name, help, type, buckets } = family;
	if (!buckets) {
		return ownMetric(name, help, type, () =>
			totals.series(name).map(({ labels, values }) => ({ labels, value: values[0]! })),
		);
	}
	return ownMetric(name, help, type, () => {
		const samples: Sample[] = [];
		for (const { labels, values } of totals.series(name)) {
			let count = 0;
			for (let i = 0; i <= buckets.length; i++) {
				count += values[i]!;
				samples.push({ metricName: `${name}_bucket`, labels: { ...labels, le: buckets[i] ?? '+Inf' }, value: count });
			}
			samples.push({ metricName: `${name}_sum`, labels, value: values[buckets.length + 1]! });
			samples.push({ metricName: `${name}_count`, labels, value: count });
		}
		return samples;
	});
}

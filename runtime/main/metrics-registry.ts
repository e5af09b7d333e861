/** The registry of all metrics that `/metrics` returns. A scrape reads them from shared memory. */
import type { MetricsFormat } from '../../compiler/exchange/metrics-format.ts';
import type { CertificateReadings } from '../certificates/certificate-metrics.ts';
import type { ClusterReport } from '../cluster/cluster.ts';
import type { ConcurrencyReport } from '../concurrency-limits/concurrency-tables.ts';
import { CollectedFamilies } from '../metrics/collected-families.ts';
import { ROW_SLOT } from '../metrics/counter-row.ts';
import {
	Exposition,
	type MetricFamily,
	type MetricLabels,
	type MetricSample,
	type PlainFamily,
} from '../metrics/exposition.ts';
import { SERIES_FAMILIES, type SeriesFamily } from '../metrics/families.ts';
import { fileFamilies } from '../metrics/file-counters.ts';
import { HTTP2_LABELED_FAMILIES, HTTP2_SESSIONS_SLOT, HTTP2_STREAMS_SLOT } from '../metrics/http2-counters.ts';
import { HTTP3_LABELED_FAMILIES, HTTP3_PLAIN_FAMILIES } from '../metrics/http3-counters.ts';
import { plainFamily } from '../metrics/plain-family.ts';
import { processFamilies } from '../metrics/process-metrics.ts';
import { type LabeledSlotFamily, REFUSAL_FAMILIES } from '../metrics/refusals.ts';
import type { ScrapeResult } from '../metrics/scrape-memory.ts';
import type { ThreadTotals } from '../metrics/thread-totals.ts';
import { garbageCollectionFamily, type NamedVitals, vitalFamilies } from '../metrics/vital-families.ts';
import { ioMode } from '../sockets/io-mode.ts';
import { expectedTlsMode } from '../sockets/tls-mode.ts';
import type { UpstreamReport } from '../upstreams/pool-registry.ts';
import type { CacheReport } from './cache-registry.ts';
import type { LastReload, RollbackHistory } from './load-record.ts';
import {
	cacheFamilies,
	certificateFamilies,
	clusterFamilies,
	concurrencyFamilies,
	upstreamFamilies,
} from './state-families.ts';

/** The values that the main thread provides for metrics. */
export interface RuntimeGauges {
	readonly version: () => string;
	readonly ready: () => boolean;
	readonly generation: () => number;
	/** The result of the last reload, and the time of the last successful one (in seconds since the epoch, 0 for never). */
	readonly lastReload: () => LastReload;
	/** The rollbacks since the process started. */
	readonly rollbacks: () => RollbackHistory;
	readonly workerRestarts: () => number;
	/** Number of times that a thread stopped responding, for each kind of thread. */
	readonly threadStalls: () => { readonly [thread: string]: number };
	/** Returns the number of lost entries of access logs. */
	readonly accessLogDropped: () => number;
	/** Returns the number of lost entries of the process log. */
	readonly processLogDropped: () => number;
	/** Returns the state of each upstream. */
	readonly upstreams: () => readonly UpstreamReport[];
	/** Returns the number of requests that are waiting for an upstream. */
	readonly requestsWaitingForUpstream: () => number;
	/** The state of each response cache. */
	readonly caches: () => readonly CacheReport[];
	/** How many requests of each zone of concurrency limits run and wait. */
	readonly concurrency: () => readonly ConcurrencyReport[];
	/** The state of the cluster; undefined if the process belongs to none. */
	readonly cluster: () => ClusterReport | undefined;
	/** Returns the number of spans accepted by a collector. */
	readonly spansExported: () => number;
	/** Returns the number of spans dropped by the main thread. */
	readonly spansDropped: () => number;
	readonly certificates: () => CertificateReadings;
	/** Event-loop lag, garbage collection and heap of the threads that are not workers. */
	readonly vitals: readonly NamedVitals[];
}

interface AdminRequests {
	readonly labels: MetricLabels;
	readonly hasFailed: boolean;
	value: number;
}

export class MetricsRegistry {
	/** Families of histograms and of the workers' labeled series. There may be thousands of series. */
	readonly #seriesFamilies: readonly MetricFamily[];
	readonly #collectedFamilies: CollectedFamilies;
	readonly #exposition = new Exposition();
	readonly #totals: ThreadTotals;
	readonly #gauges: RuntimeGauges;
	readonly #adminRequests = new Map<string, AdminRequests>();

	constructor(totals: ThreadTotals, gauges: RuntimeGauges) {
		this.#totals = totals;
		this.#gauges = gauges;
		this.#seriesFamilies = [
			...SERIES_FAMILIES.map(family => seriesFamily(family, totals)),
			garbageCollectionFamily(() => this.#allVitals()),
		];
		this.#collectedFamilies = new CollectedFamilies([
			{
				name: 'std_admin_http_requests_total',
				help: 'Admin API requests.',
				type: 'counter',
				samples: () => [...this.#adminRequests.values()],
			},
			{
				name: 'std_admin_http_request_errors_total',
				help: 'Admin API requests answered with a status of 400 or more.',
				type: 'counter',
				samples: () => [...this.#adminRequests.values()].filter(({ hasFailed }) => hasFailed),
			},
			...runtimeFamilies(gauges),
			...rowFamilies(totals),
			...[...REFUSAL_FAMILIES, ...HTTP2_LABELED_FAMILIES, ...HTTP3_LABELED_FAMILIES].map(family =>
				slotFamily(family, totals),
			),
			plainFamily(
				'svc_access_log_dropped_total',
				'Access log entries lost because they could not be written, or not fast enough.',
				'counter',
				() => totals.slotTotal(ROW_SLOT.accessLogDropped) + gauges.accessLogDropped(),
			),
			plainFamily(
				'svc_process_log_dropped_total',
				'Entries of the process log lost because they could not be written, or not fast enough.',
				'counter',
				() => totals.slotTotal(ROW_SLOT.processLogDropped) + gauges.processLogDropped(),
			),
			plainFamily(
				'svc_trace_spans_dropped_total',
				'Spans dropped because they could not be exported, or not fast enough.',
				'counter',
				() => totals.slotTotal(ROW_SLOT.spansDropped) + gauges.spansDropped(),
			),
			...fileFamilies(totals),
			...cacheFamilies(totals, gauges.caches),
			...upstreamFamilies(gauges.upstreams),
			...concurrencyFamilies(gauges.concurrency),
			...clusterFamilies(gauges.cluster),
			...certificateFamilies(gauges.certificates),
			...processFamilies(),
			...vitalFamilies(() => this.#allVitals()),
		]);
	}

	/** Counts Admin API requests that were answered with this status. */
	countAdminRequests(path: string, method: string, status: number, count: number): void {
		const key = `${path} ${method} ${status}`;
		const existingRequests = this.#adminRequests.get(key);
		if (existingRequests) existingRequests.value += count;
		else
			this.#adminRequests.set(key, { labels: { path, method, code: status }, hasFailed: status >= 400, value: count });
	}

	/** Names of all metric families, as in the Prometheus format. */
	get names(): readonly string[] {
		return [...this.#seriesFamilies.map(({ name }) => name), ...this.#collectedFamilies.names];
	}

	/** Renders all metrics as UTF-8. Does not wait for other threads. */
	async render(format: MetricsFormat): Promise<ScrapeResult> {
		const collectedText = await this.#collectedFamilies.render(format);
		const scrape = this.#exposition.render(this.#seriesFamilies, format, collectedText);
		for (const [, vitals] of this.#allVitals()) vitals.startPeriod();
		return scrape;
	}

	#allVitals(): readonly NamedVitals[] {
		const workers = this.#totals.threadVitals().map(([index, vitals]): NamedVitals => [`worker-${index}`, vitals]);
		return [...this.#gauges.vitals, ...workers];
	}
}

function runtimeFamilies(gauges: RuntimeGauges): PlainFamily[] {
	const buildLabels = {
		version: gauges.version(),
		target: `${process.platform}-${process.arch}`,
		node: process.version,
		io: ioMode(),
		tls: expectedTlsMode(),
	};
	return [
		plainFamily('std_config_last_reload_successful', 'Whether the last load was applied.', 'gauge', () =>
			gauges.lastReload().isSuccessful ? 1 : 0,
		),
		plainFamily(
			'std_config_last_reload_success_timestamp_seconds',
			'Time of the last successful load.',
			'gauge',
			() => gauges.lastReload().lastSuccessAt,
		),
		{
			name: 'svc_config_rollbacks_total',
			help: 'Rollbacks of unconfirmed loads, by result.',
			type: 'counter',
			samples: () => {
				const { succeeded, failed } = gauges.rollbacks();
				return [
					{ labels: { result: 'success' }, value: succeeded },
					{ labels: { result: 'failure' }, value: failed },
				];
			},
		},
		plainFamily(
			'svc_config_rollback_failed',
			'Whether the configuration being served could not be rolled back.',
			'gauge',
			() => (gauges.rollbacks().isStuck ? 1 : 0),
		),
		{
			name: 'svc_build_info',
			help: 'Always 1; its labels describe the build.',
			type: 'gauge',
			samples: () => [{ labels: buildLabels, value: 1 }],
		},
		plainFamily('svc_config_generation', 'Number of the configuration being served.', 'gauge', gauges.generation),
		plainFamily(
			'svc_ready',
			'Whether every listener is bound, every thread responds and no stop has begun.',
			'gauge',
			() => (gauges.ready() ? 1 : 0),
		),
		plainFamily(
			'svc_worker_restarts_total',
			'Worker threads that died or stopped responding and were replaced.',
			'counter',
			gauges.workerRestarts,
		),
		{
			name: 'svc_thread_stalls_total',
			help: 'Number of times that a thread stopped responding, by kind of thread.',
			type: 'counter',
			samples: () => Object.entries(gauges.threadStalls()).map(([thread, value]) => ({ labels: { thread }, value })),
		},
		plainFamily('svc_trace_spans_exported_total', 'Spans accepted by a collector.', 'counter', gauges.spansExported),
		plainFamily(
			'svc_upstream_queue',
			'Requests waiting for an upstream to become available.',
			'gauge',
			gauges.requestsWaitingForUpstream,
		),
	];
}

/** Returns the metric families whose value is one slot of the counter row, summed over all threads. */
function rowFamilies(totals: ThreadTotals): PlainFamily[] {
	const families: readonly [name: string, help: string, type: 'counter' | 'gauge', slot: number][] = [
		['svc_connections', 'Open client connections.', 'gauge', ROW_SLOT.connections],
		['svc_connections_accepted_total', 'Client connections accepted.', 'counter', ROW_SLOT.accepted],
		[
			'svc_requests_in_flight',
			'Requests between their head and the end of their response.',
			'gauge',
			ROW_SLOT.inFlight,
		],
		['svc_http2_connections', 'Open HTTP/2 connections.', 'gauge', HTTP2_SESSIONS_SLOT],
		['svc_http2_streams_total', 'HTTP/2 streams that carried a request.', 'counter', HTTP2_STREAMS_SLOT],
		...HTTP3_PLAIN_FAMILIES,
		// The name is not `svc_overload_queued`, because OpenMetrics gives that name to the family of `svc_overload_queued_total`.
		['svc_overload_queue', 'Requests waiting because a listener has too many in flight.', 'gauge', ROW_SLOT.queued],
		[
			'svc_overload_queued_total',
			'Requests that had to wait because a listener had too many in flight.',
			'counter',
			ROW_SLOT.queuedRequests,
		],
		[
			'svc_overload_accept_failures_total',
			'Connections that could not be accepted for lack of file descriptors or memory.',
			'counter',
			ROW_SLOT.acceptFailures,
		],
		[
			'svc_overload_idle_closed_total',
			'Idle client connections closed to make room for others.',
			'counter',
			ROW_SLOT.gaveWay,
		],
		[
			'svc_response_fields_dropped_total',
			'Response fields dropped because they cannot be sent.',
			'counter',
			ROW_SLOT.droppedFields,
		],
	];
	return families.map(([name, help, type, slot]) => plainFamily(name, help, type, () => totals.slotTotal(slot)));
}

function slotFamily({ name, help, label, slots }: LabeledSlotFamily, totals: ThreadTotals): PlainFamily {
	const slotLabels = slots.map(([value, slot]) => ({ labels: { [label]: value }, slot }));
	const samples = () => slotLabels.map(({ labels, slot }) => ({ labels, value: totals.slotTotal(slot) }));
	return { name, help, type: 'counter', samples };
}

function seriesFamily({ name, help, type, buckets }: SeriesFamily, totals: ThreadTotals): MetricFamily {
	if (!buckets || type !== 'histogram') {
		const samples = () => {
			const seriesSamples: MetricSample[] = [];
			totals.forEachSeries(name, (labels, values) => seriesSamples.push({ labels, value: values[0]! }));
			return seriesSamples;
		};
		return { name, help, type: type === 'gauge' ? 'gauge' : 'counter', samples };
	}
	return { name, help, type, bounds: buckets, histograms: take => totals.forEachSeries(name, take) };
}

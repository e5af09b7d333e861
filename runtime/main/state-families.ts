/** Metric families about state on the main thread: upstreams, response caches, concurrency limits, certificates. */

import type { DiskTierReport } from '../cache/disk/disk-tier.ts';
import type { CertificateReadings } from '../certificates/certificate-metrics.ts';
import type { ClusterReport } from '../cluster/cluster.ts';
import { ROLLOUT_PHASES } from '../cluster/rollout-decision.ts';
import type { ConcurrencyReport } from '../concurrency-limits/concurrency-tables.ts';
import { cacheEventSlot } from '../metrics/cache-counters.ts';
import type { MetricSample, PlainFamily } from '../metrics/exposition.ts';
import { plainFamily } from '../metrics/plain-family.ts';
import type { ThreadTotals } from '../metrics/thread-totals.ts';
import { CIRCUIT_STATES } from '../upstreams/circuit-breaker.ts';
import type { UpstreamReport } from '../upstreams/pool-registry.ts';
import type { CacheReport } from './cache-registry.ts';

/** Returns one series for each upstream. If an upstream is in several pools, its worst state is reported. */
export function upstreamFamilies(reports: () => readonly UpstreamReport[]): PlainFamily[] {
	const createGauge = (
		name: string,
		help: string,
		value: (report: UpstreamReport) => number | undefined,
		combine: (a: number, b: number) => number,
	): PlainFamily => {
		const samples = () => {
			const valuesByUpstream = new Map<string, number>();
			for (const report of reports()) {
				const reportedValue = value(report);
				if (reportedValue === undefined) continue;
				const previousValue = valuesByUpstream.get(report.address);
				valuesByUpstream.set(
					report.address,
					previousValue === undefined ? reportedValue : combine(previousValue, reportedValue),
				);
			}
			return [...valuesByUpstream].map(([upstream, combined]) => ({ labels: { upstream }, value: combined }));
		};
		return { name, help, type: 'gauge', samples };
	};
	return [
		createGauge(
			'std_reverse_proxy_upstreams_healthy',
			'Whether an upstream is healthy, by active checks and recent failures.',
			({ healthy }) => (healthy ? 1 : 0),
			Math.min,
		),
		createGauge(
			'svc_upstream_requests_in_flight',
			'Requests in flight to an upstream.',
			({ requests }) => requests,
			(a, b) => a + b,
		),
		createGauge(
			'svc_upstream_circuit_state',
			"State of an upstream's circuit breaker: 0 closed, 1 open, 2 half-open.",
			({ circuit }) => CIRCUIT_STATES.indexOf(circuit),
			Math.max,
		),
		createGauge(
			'svc_upstream_concurrency_limit',
			'Limit of requests that wait for the response heads of an upstream with `shed`.',
			({ concurrencyLimit }) => concurrencyLimit,
			Math.min,
		),
	];
}

/**
 * Returns how many requests of each zone of concurrency limits run and wait. The numbers of zones with equal names are added up.
 */
export function concurrencyFamilies(reports: () => readonly ConcurrencyReport[]): PlainFamily[] {
	const createGauge = (name: string, help: string, value: (report: ConcurrencyReport) => number): PlainFamily => {
		const samples = () => {
			const valuesByZone = new Map<string, number>();
			for (const report of reports())
				valuesByZone.set(report.zone, (valuesByZone.get(report.zone) ?? 0) + value(report));
			return [...valuesByZone].map(([zone, sum]) => ({ labels: { zone }, value: sum }));
		};
		return { name, help, type: 'gauge', samples };
	};
	return [
		createGauge(
			'svc_limit_concurrent_running',
			'Requests of a zone of `limit_concurrent` that run.',
			report => report.running,
		),
		createGauge(
			'svc_limit_concurrent_waiting',
			'Requests of a zone of `limit_concurrent` that wait.',
			report => report.waiting,
		),
	];
}

/** Returns metrics about the cluster and the purges of all machines. Outside of a cluster, they have no series. */
export function clusterFamilies(report: () => ClusterReport | undefined): PlainFamily[] {
	const createFamily = (
		name: string,
		help: string,
		type: 'counter' | 'gauge',
		read: (cluster: ClusterReport) => readonly MetricSample[],
	): PlainFamily => {
		const samples = (): readonly MetricSample[] => {
			const cluster = report();
			return cluster ? read(cluster) : [];
		};
		return { name, help, type, samples };
	};
	const createSample = (value: number, labels: MetricSample['labels'] = {}): MetricSample => ({ labels, value });
	return [
		createFamily('svc_cluster_connected', 'Whether Redis is connected.', 'gauge', cluster => [
			createSample(cluster.isConnected ? 1 : 0),
		]),
		createFamily('svc_cluster_contact_age_seconds', 'Seconds since Redis has last answered.', 'gauge', cluster => [
			createSample(cluster.contactAgeSeconds),
		]),
		createFamily('svc_cluster_members', 'Running processes of the cluster.', 'gauge', cluster => [
			createSample(cluster.members),
		]),
		createFamily(
			'svc_cluster_purges_total',
			'Purges sent to other machines and received from them.',
			'counter',
			cluster => [
				createSample(cluster.purges.sent, { direction: 'sent' }),
				createSample(cluster.purges.received, { direction: 'received' }),
			],
		),
		createFamily(
			'svc_cluster_purges_unconfirmed_total',
			'Confirmations of purges by other machines that did not arrive in time.',
			'counter',
			cluster => [createSample(cluster.purges.unconfirmed)],
		),
		createFamily(
			'svc_cluster_complete_purges_total',
			'Times that all stored responses were purged because purges could have been missed.',
			'counter',
			cluster => [createSample(cluster.purges.complete)],
		),
		createFamily(
			'svc_cluster_limit_reports_total',
			'Reports of the usage of shared rate limits to Redis, by result.',
			'counter',
			cluster => [
				createSample(cluster.limits.reports, { result: 'counted' }),
				createSample(cluster.limits.failures, { result: 'failed' }),
			],
		),
		createFamily(
			'svc_cluster_limit_keys_total',
			'Keys of shared rate limits in the reports that Redis has counted.',
			'counter',
			cluster => [createSample(cluster.limits.keys)],
		),
		createFamily(
			'svc_cluster_cache_available',
			'Whether this machine shares responses with the others at the moment.',
			'gauge',
			({ responses }) => (responses ? [createSample(responses.isAvailable ? 1 : 0)] : []),
		),
		createFamily(
			'svc_cluster_cache_lookups_total',
			'Responses that were looked for in Redis, because the cache of this machine did not have them.',
			'counter',
			({ responses }) =>
				responses
					? [
							createSample(responses.found, { result: 'found' }),
							createSample(responses.absent, { result: 'absent' }),
							createSample(responses.unavailable, { result: 'unavailable' }),
						]
					: [],
		),
		createFamily(
			'svc_cluster_cache_waits_total',
			'Times that this machine waited for the response to a request of another machine.',
			'counter',
			({ responses }) => (responses ? [createSample(responses.waits)] : []),
		),
		createFamily(
			'svc_cluster_cache_stores_total',
			'Responses of this machine for the others. A fenced one was too late, and Redis has refused it.',
			'counter',
			({ responses }) =>
				responses
					? [
							createSample(responses.stored, { result: 'stored' }),
							createSample(responses.fenced, { result: 'fenced' }),
							createSample(responses.failed, { result: 'failed' }),
						]
					: [],
		),
		createFamily(
			'svc_cluster_cache_purged_total',
			'Responses found in Redis that were not used, because they had been purged.',
			'counter',
			({ responses }) => (responses ? [createSample(responses.purged)] : []),
		),
		createFamily(
			'svc_rollout_publication_served',
			'Number of the publication that this machine serves; 0 for its own file.',
			'gauge',
			({ rollout }) => (rollout ? [createSample(rollout.serves)] : []),
		),
		createFamily(
			'svc_rollout_publication_age_seconds',
			'Seconds since the publication that this machine serves was published.',
			'gauge',
			({ rollout }) => (rollout?.ageSeconds === undefined ? [] : [createSample(rollout.ageSeconds)]),
		),
		createFamily(
			'svc_rollout_publication_from_disk',
			'1 if the publication comes from the disk and Redis has not answered since the start, otherwise 0.',
			'gauge',
			({ rollout }) => (rollout ? [createSample(rollout.isFromDisk ? 1 : 0)] : []),
		),
		createFamily(
			'svc_rollout_publication_wanted',
			'Number of the publication that this machine has to serve.',
			'gauge',
			({ rollout }) => (rollout ? [createSample(rollout.wanted)] : []),
		),
		createFamily(
			'svc_rollout_publication_latest',
			'Number of the publication that was published last, as far as this machine knows.',
			'gauge',
			({ rollout }) => (rollout?.latest ? [createSample(rollout.latest.publication)] : []),
		),
		createFamily(
			'svc_rollout_phase',
			'1 for the phase of the latest rollout, 0 for the others.',
			'gauge',
			({ rollout }) =>
				rollout?.latest
					? ROLLOUT_PHASES.map(phase => createSample(phase === rollout.latest!.phase ? 1 : 0, { phase }))
					: [],
		),
		createFamily(
			'svc_rollout_failures_total',
			'Failures of this machine to serve a publication, by kind.',
			'counter',
			({ rollout }) =>
				rollout ? Object.entries(rollout.failures).map(([kind, count]) => createSample(count, { kind })) : [],
		),
	];
}

/** Metrics of the disk tier of response caches: name, help, type and value. */
const DISK_FAMILIES: readonly (readonly [string, string, 'counter' | 'gauge', (disk: DiskTierReport) => number])[] = [
	['svc_cache_disk_bytes', 'Size of the disk files of response caches in bytes.', 'gauge', report => report.bytes],
	[
		'svc_cache_disk_ceiling_bytes',
		'Maximum size of the disk files of response caches in bytes.',
		'gauge',
		report => report.ceiling,
	],
	['svc_cache_disk_entries', 'Responses stored on disk.', 'gauge', report => report.entries],
	['svc_cache_disk_writes_total', 'Responses written to disk.', 'counter', report => report.written],
	[
		'svc_cache_disk_skipped_total',
		'Responses not written to disk because too many were waiting.',
		'counter',
		report => report.skipped,
	],
	['svc_cache_disk_recalls_total', 'Responses loaded from disk into memory.', 'counter', report => report.recalled],
	['svc_cache_disk_damaged_total', 'Responses found damaged on disk.', 'counter', report => report.damaged],
	['svc_cache_disk_failures_total', 'Failed disk operations.', 'counter', report => report.failures],
];

/** Returns the events of response caches on all threads, and the total size of all caches. */
export function cacheFamilies(totals: ThreadTotals, reports: () => readonly CacheReport[]): PlainFamily[] {
	const createSum = (value: (report: CacheReport) => number) => () =>
		reports().reduce((total, report) => total + value(report), 0);
	const requests = (['hit', 'miss', 'stale', 'bypass'] as const).map(status => ({ labels: { status }, status }));
	const events = [
		['revalidated', 'svc_cache_revalidated_total', 'Stored responses that were revalidated by their origin.'],
		['collapsed', 'svc_cache_collapsed_total', 'Requests coalesced with an identical one in progress.'],
		['store', 'svc_cache_stores_total', 'Responses stored.'],
	] as const;
	return [
		{
			name: 'svc_cache_requests_total',
			help: 'Requests handled by a response cache, by result.',
			type: 'counter',
			samples: () =>
				requests.map(({ labels, status }) => ({ labels, value: totals.slotTotal(cacheEventSlot(status)) })),
		},
		...events.map(([event, name, help]) =>
			plainFamily(name, help, 'counter', () => totals.slotTotal(cacheEventSlot(event))),
		),
		plainFamily(
			'svc_cache_evictions_total',
			'Stored responses evicted to make room.',
			'counter',
			createSum(report => report.evictions),
		),
		plainFamily(
			'svc_cache_purged_total',
			'Stored responses purged.',
			'counter',
			createSum(report => report.purged),
		),
		plainFamily(
			'svc_cache_entries',
			'Responses currently stored.',
			'gauge',
			createSum(report => report.entries),
		),
		plainFamily(
			'svc_cache_bytes',
			'Bytes used by stored responses, including tables.',
			'gauge',
			createSum(report => report.bytes),
		),
		plainFamily(
			'svc_cache_ceiling_bytes',
			'Maximum bytes for stored responses.',
			'gauge',
			createSum(report => report.ceiling),
		),
		...DISK_FAMILIES.map(([name, help, type, value]) =>
			plainFamily(
				name,
				help,
				type,
				createSum(({ disk }) => (disk === undefined ? 0 : value(disk))),
			),
		),
	];
}

/** Returns metrics of the served certificates, and of the attempts to obtain certificates. */
export function certificateFamilies(readings: () => CertificateReadings): PlainFamily[] {
	return [
		{
			name: 'svc_tls_certificate_expiry_timestamp_seconds',
			help: 'Expiry of served certificates, by subject and issuer.',
			type: 'gauge',
			samples: () => distinctSamples(readings().expiry),
		},
		{
			name: 'svc_tls_certificate_attempts_total',
			help: 'Attempts to obtain or renew a certificate, by issuer and result.',
			type: 'counter',
			samples: () => readings().attempts,
		},
		{
			name: 'svc_tls_ocsp_responses_total',
			help: 'OCSP fetches, by result.',
			type: 'counter',
			samples: () => readings().ocsp,
		},
		plainFamily(
			'svc_tls_certificates_missing',
			'Names that should have a certificate but have none.',
			'gauge',
			() => readings().missing,
		),
	];
}

/** Of samples with equal labels, keeps the one with the lowest value. Duplicate series would make the exposition invalid. */
function distinctSamples(samples: CertificateReadings['expiry']): MetricSample[] {
	const samplesByLabels = new Map<string, MetricSample>();
	for (const sample of samples) {
		const key = JSON.stringify(sample.labels);
		const previousSample = samplesByLabels.get(key);
		if (!previousSample || sample.value < previousSample.value) samplesByLabels.set(key, sample);
	}
	return [...samplesByLabels.values()];
}

/** Families of what the main thread keeps: upstreams, response caches, certificates. */
import type { CacheReport } from '../cache/cache-registry.ts';
import type { DiskReport } from '../cache/disk/disk-tier.ts';
import type { CertificateReadings } from '../certificates/certificate-metrics.ts';
import { CIRCUIT_STATES } from '../upstreams/circuit-breaker.ts';
import type { UpstreamReport } from '../upstreams/pool-registry.ts';
import { cacheSlot } from './cache-counters.ts';
import type { PlainFamily, Sample } from './exposition.ts';
import { plainFamily } from './plain-family.ts';
import type { ThreadTotals } from './thread-totals.ts';

/** One series for each upstream; where several pools have it, the worst that is known of it counts. */
export function upstreamFamilies(reports: () => readonly UpstreamReport[]): PlainFamily[] {
	const gauge = (
		name: string,
		help: string,
		value: (report: UpstreamReport) => number,
		join: (a: number, b: number) => number,
	): PlainFamily => {
		const samples = () => {
			const values = new Map<string, number>();
			for (const report of reports()) {
				const known = values.get(report.address);
				values.set(report.address, known === undefined ? value(report) : join(known, value(report)));
			}
			return [...values].map(([upstream, joined]) => ({ labels: { upstream }, value: joined }));
		};
		return { name, help, type: 'gauge', samples };
	};
	return [
		gauge(
			'std_reverse_proxy_upstreams_healthy',
			'Whether an upstream is healthy, by active checks and remembered failures.',
			({ healthy }) => (healthy ? 1 : 0),
			Math.min,
		),
		gauge(
			'svc_upstream_requests_in_flight',
			'Requests that an upstream is answering.',
			({ requests }) => requests,
			(a, b) => a + b,
		),
		gauge(
			'svc_upstream_circuit_state',
			'State of the circuit of an upstream: 0 closed, 1 open, 2 half-open.',
			({ circuit }) => CIRCUIT_STATES.indexOf(circuit),
			Math.max,
		),
	];
}

/** What the disks behind response caches do. */
const DISK_FAMILIES: readonly (readonly [string, string, 'counter' | 'gauge', (disk: DiskReport) => number])[] = [
	['svc_cache_disk_bytes', 'Bytes of the files of response caches.', 'gauge', one => one.bytes],
	['svc_cache_disk_ceiling_bytes', 'Bytes that they may take.', 'gauge', one => one.ceiling],
	['svc_cache_disk_entries', 'Responses in them.', 'gauge', one => one.entries],
	['svc_cache_disk_writes_total', 'Responses that were written to disk.', 'counter', one => one.written],
	['svc_cache_disk_skipped_total', 'Responses that were not: too much was waiting.', 'counter', one => one.skipped],
	['svc_cache_disk_recalls_total', 'Responses that came back into memory.', 'counter', one => one.recalled],
	['svc_cache_disk_damaged_total', 'Responses that were not as they were written.', 'counter', one => one.damaged],
	['svc_cache_disk_failures_total', 'Times that a disk took nothing.', 'counter', one => one.failures],
];

/** What response caches do, of all threads, and how full they are, all stores together. */
export function cacheFamilies(totals: ThreadTotals, reports: () => readonly CacheReport[]): PlainFamily[] {
	const sum = (value: (report: CacheReport) => number) => () =>
		reports().reduce((total, report) => total + value(report), 0);
	const requests = (['hit', 'miss', 'stale', 'bypass'] as const).map(status => ({ labels: { status }, status }));
	const events = [
		['revalidated', 'svc_cache_revalidated_total', 'Stored responses that their origin has confirmed.'],
		['collapsed', 'svc_cache_collapsed_total', 'Requests that waited for the same one that was under way.'],
		['store', 'svc_cache_stores_total', 'Responses that were stored.'],
	] as const;
	return [
		{
			name: 'svc_cache_requests_total',
			help: 'Requests that a response cache saw, by what it did.',
			type: 'counter',
			samples: () => requests.map(({ labels, status }) => ({ labels, value: totals.total(cacheSlot(status)) })),
		},
		...events.map(([event, name, help]) => plainFamily(name, help, 'counter', () => totals.total(cacheSlot(event)))),
		plainFamily(
			'svc_cache_evictions_total',
			'Stored responses that had to make room for others.',
			'counter',
			sum(one => one.evictions),
		),
		plainFamily(
			'svc_cache_purged_total',
			'Stored responses that were purged.',
			'counter',
			sum(one => one.purged),
		),
		plainFamily(
			'svc_cache_entries',
			'Responses that are stored.',
			'gauge',
			sum(one => one.entries),
		),
		plainFamily(
			'svc_cache_bytes',
			'Bytes that stored responses take, tables included.',
			'gauge',
			sum(one => one.bytes),
		),
		plainFamily(
			'svc_cache_ceiling_bytes',
			'Bytes that they may take.',
			'gauge',
			sum(one => one.ceiling),
		),
		...DISK_FAMILIES.map(([name, help, type, value]) =>
			plainFamily(
				name,
				help,
				type,
				sum(({ disk }) => (disk === undefined ? 0 : value(disk))),
			),
		),
	];
}

/** Certificates that are served, and what became of attempts to get them. */
export function certificateFamilies(readings: () => CertificateReadings): PlainFamily[] {
	return [
		{
			name: 'svc_tls_certificate_expiry_timestamp_seconds',
			help: 'When a certificate that is served ends, by subject and issuer.',
			type: 'gauge',
			samples: () => distinct(readings().expiry),
		},
		{
			name: 'svc_tls_certificate_attempts_total',
			help: 'Attempts to obtain or renew a certificate, by issuer and result.',
			type: 'counter',
			samples: () => readings().attempts,
		},
		{
			name: 'svc_tls_ocsp_responses_total',
			help: 'OCSP responses that were fetched, by result.',
			type: 'counter',
			samples: () => readings().ocsp,
		},
		plainFamily(
			'svc_tls_certificates_missing',
			'Names that should have a certificate and have none.',
			'gauge',
			() => readings().missing,
		),
	];
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

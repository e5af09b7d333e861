/** The shipped dashboard and alert rules use only metrics and labels that exist. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { MetricsRegistry } from '../../../runtime/main/metrics-registry.ts';
import { ThreadTotals } from '../../../runtime/metrics/thread-totals.ts';
import { ROOT } from '../../harness.ts';

const folder = path.join(ROOT, 'cli/packaging/monitoring');
const rules = readFileSync(path.join(folder, 'prometheus-rules.yml'), 'utf8');
const dashboard = JSON.parse(readFileSync(path.join(folder, 'grafana-dashboard.json'), 'utf8'));

const names = new Set(
	new MetricsRegistry(new ThreadTotals(), {
		version: () => 'v1',
		ready: () => true,
		generation: () => 1,
		lastReload: () => ({ isSuccessful: true, lastSuccessAt: 0 }),
		rollbacks: () => ({ succeeded: 0, failed: 0, isStuck: false }),
		workerRestarts: () => 0,
		threadStalls: () => ({ worker: 2 }),
		accessLogDropped: () => 0,
		processLogDropped: () => 0,
		upstreams: () => [],
		requestsWaitingForUpstream: () => 0,
		caches: () => [],
		concurrency: () => [],
		cluster: () => undefined,
		spansExported: () => 0,
		spansDropped: () => 0,
		certificates: () => ({ attempts: [], expiry: [], ocsp: [], missing: 0 }),
		vitals: [],
	}).names,
);

/** Returns the metric names in a text that do not occur in any scrape of the server. */
function unknownMetrics(text: string): string[] {
	const metricNames = [...text.matchAll(/\b(?:svc|std|process|nodejs)_[a-z0-9_]+/g)].map(([name]) => name);
	assert.ok(metricNames.length > 10);
	return metricNames.filter(name => !names.has(name) && !names.has(name.replace(/_(bucket|sum|count)$/, '')));
}

const monitoring = suite('monitoring');

monitoring('alerts use only existing metrics', () => {
	assert.equal(unknownMetrics(rules), []);
});

monitoring('the dashboard uses only existing metrics, and its panels do not overlap', () => {
	const { panels } = dashboard;
	const places = new Set<string>();
	for (const { id, type, gridPos, targets } of panels) {
		const place = `${gridPos.x} ${gridPos.y}`;
		assert.not.ok(places.has(place), `panel ${id}`);
		places.add(place);
		if (type !== 'row') assert.ok(targets.length > 0, `panel ${id}`);
	}
	assert.is(new Set(panels.map(({ id }: { id: number }) => id)).size, panels.length);
	const queries = panels.flatMap(({ targets = [] }) => targets.map(({ expr }: { expr: string }) => expr));
	assert.equal(unknownMetrics(queries.join('\n')), []);
});

monitoring('alerts and the dashboard cover rollouts and the contact to Redis', () => {
	const clusterMetrics = [
		'svc_cluster_contact_age_seconds',
		...[...names].filter(name => name.startsWith('svc_rollout_')),
	];
	const text = JSON.stringify(dashboard);
	// The dashboard need not show the number of the latest publication: once a machine has to serve it, other metrics contain it.
	const shown = clusterMetrics.filter(name => name !== 'svc_rollout_publication_latest');
	assert.equal(
		shown.filter(name => !text.includes(name)),
		[],
	);
	const alerting = shown.filter(name => name !== 'svc_rollout_failures_total');
	assert.equal(
		alerting.filter(name => !rules.includes(name)),
		[],
	);
});

monitoring.run();

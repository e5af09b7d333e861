/** promtool's checks accept our scrapes and alert rules. */
import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { freePorts, ROOT, serve, temporaryFolder } from '../harness.ts';

const promtool = suite('promtool');

function runPromtool(args: readonly string[], input = ''): void {
	const result = spawnSync('promtool', args, { encoding: 'utf8', input });
	assert.is(result.status, 0, result.stdout + result.stderr);
}

promtool('accepts the scraped metrics', async () => {
	const [port, admin] = (await freePorts(2)) as [number, number];
	const folder = temporaryFolder();
	const file = path.join(folder, 'Configfile');
	writeFileSync(
		file,
		`{\n\tadmin 127.0.0.1:${admin}\n\tmetrics {\n\t\tper_host\n\t}\n}\nhttp://127.0.0.1:${port} {\n\trespond /hi "hello"\n\treverse_proxy 127.0.0.1:1\n}\n`,
	);
	const server = await serve([file], port, { env: { XDG_STATE_HOME: folder } });
	try {
		for (const target of ['/hi', '/up', '/hi?x']) await (await fetch(`http://127.0.0.1:${port}${target}`)).text();
		// The compile thread starts with the first request of the Admin API that needs it.
		await (await fetch(`http://127.0.0.1:${admin}/config/`)).text();
		const scrape = async () => (await fetch(`http://127.0.0.1:${admin}/metrics`)).text();
		await scrape();
		const text = await scrape();
		assert.match(text, 'svc_upstream_errors_total{');
		for (const thread of ['main', 'compiler', 'worker-0']) {
			assert.match(text, `nodejs_eventloop_lag_p99_seconds{thread="${thread}"}`);
			assert.match(text, `nodejs_gc_duration_seconds_count{thread="${thread}",kind="minor"}`);
		}
		runPromtool(['check', 'metrics'], text);
	} finally {
		await server.stop();
	}
});

promtool('accepts the alert rules', () => {
	runPromtool(['check', 'rules', path.join(ROOT, 'cli/packaging/monitoring/prometheus-rules.yml')]);
});

promtool('a rollback that failed raises its alert at once, one that succeeded does not', () => {
	const folder = temporaryFolder();
	const file = path.join(folder, 'rollback.yml');
	const labels = 'instance="a.example:2019"';
	const rules = path.join(ROOT, 'cli/packaging/monitoring/prometheus-rules.yml');
	const test = (value: number, alerts: unknown[]) => ({
		interval: '15s',
		input_series: [{ series: `svc_config_rollback_failed{${labels}}`, values: `0 ${value} ${value}` }],
		alert_rule_test: [{ eval_time: '30s', alertname: 'SvcRollbackFailed', exp_alerts: alerts }],
	});
	const annotations = {
		summary: 'a.example:2019 serves a configuration that nobody confirmed and could not roll it back',
		description:
			'The process log says why. Once the cause is removed, svc reload --revert tries again; svc reload with a good configuration ends it too.',
	};
	const firing = { exp_labels: { instance: 'a.example:2019', severity: 'critical' }, exp_annotations: annotations };
	// The rules are written as JSON, which is valid YAML.
	writeFileSync(
		file,
		JSON.stringify({ rule_files: [rules], evaluation_interval: '15s', tests: [test(1, [firing]), test(0, [])] }),
	);
	runPromtool(['test', 'rules', file]);
});

promtool(
	'alerts fire if Redis does not answer, a rollout is stopped or stays paused, or a publication is not served',
	() => {
		const folder = temporaryFolder();
		const file = path.join(folder, 'rollouts.yml');
		const labels = 'instance="a.example:2019",job="svc"';
		const instance = { instance: 'a.example:2019', job: 'svc' };
		const series = (name: string, values: string, more = '') => ({ series: `${name}{${labels}${more}}`, values });
		const test = (
			input_series: readonly object[],
			eval_time: string,
			alertname: string,
			exp_labels: object | undefined,
			annotations: object = {},
		) => ({
			interval: '1m',
			input_series,
			alert_rule_test: [
				{
					eval_time,
					alertname,
					exp_alerts: exp_labels
						? [{ exp_labels: { ...exp_labels, severity: 'warning' }, exp_annotations: annotations }]
						: [],
				},
			],
		});
		const contact = (age: string) => [series('svc_cluster_contact_age_seconds', `${age}x90`)];
		const phase = (name: string, contactAge = '5') => [
			series('svc_rollout_phase', '0 1 1', `,phase="${name}"`),
			...contact(contactAge),
		];
		const publications = (served: string) => [
			series('svc_rollout_publication_served', served),
			series('svc_rollout_publication_wanted', '2x20'),
		];
		const disk = (days: number, fromDisk: 0 | 1) => [
			series('svc_rollout_publication_age_seconds', `${days * 86_400}x5`),
			series('svc_rollout_publication_from_disk', `${fromDisk}x5`),
		];
		const old = {
			summary: 'a.example:2019 has started without Redis and serves a publication that is 8d 0h 0m 0s old',
			description:
				'The publication comes from the disk of the machine. Another one may be final by now, which the machine loads as soon as Redis answers it.',
		};
		const unreachable = {
			summary: 'Redis has not answered a.example:2019 for 40s',
			description:
				'The machine keeps serving, but receives no publications and no purges. Shared rate limits follow their on_error.',
		};
		const stopped = {
			summary: 'the rollout of the latest publication was stopped because of a failure',
			description:
				'The machines have returned to the previous publication, or to their own file if there was none. svc rollout status shows the reason. The alert ends with the next publication.',
		};
		const notServed = {
			summary: 'a.example:2019 does not serve the publication that it should serve',
			description:
				'It keeps serving another publication and retries. svc rollout status and the process log show the reason.',
		};
		const paused = {
			summary: 'the rollout of the latest publication has been paused for an hour',
			description: 'svc rollout resume continues it; svc rollout abort ends it.',
		};
		const pausedFor = (minutes: number, contactAge = '5') => [
			series('svc_rollout_phase', `1x${minutes}`, ',phase="paused"'),
			...contact(contactAge),
		];
		const tests = [
			test(contact('40'), '2m', 'SvcClusterUnreachable', instance, unreachable),
			test(contact('5'), '2m', 'SvcClusterUnreachable', undefined),
			test(phase('stopped'), '2m', 'SvcRolloutStopped', { job: 'svc' }, stopped),
			test(phase('completed'), '2m', 'SvcRolloutStopped', undefined),
			// A machine that Redis does not answer shows the last phase that it knew.
			test(phase('stopped', '300'), '2m', 'SvcRolloutStopped', undefined),
			test(pausedFor(90, '300'), '70m', 'SvcRolloutPaused', undefined),
			test(pausedFor(90), '70m', 'SvcRolloutPaused', { job: 'svc' }, paused),
			test(pausedFor(90), '50m', 'SvcRolloutPaused', undefined),
			test(publications('1x20'), '15m', 'SvcPublicationNotServed', instance, notServed),
			test(publications('1x3 2x16'), '15m', 'SvcPublicationNotServed', undefined),
			test(disk(8, 1), '2m', 'SvcPublicationFromDiskOld', instance, old),
			test(disk(8, 0), '2m', 'SvcPublicationFromDiskOld', undefined),
			test(disk(6, 1), '2m', 'SvcPublicationFromDiskOld', undefined),
		];
		const rules = path.join(ROOT, 'cli/packaging/monitoring/prometheus-rules.yml');
		writeFileSync(file, JSON.stringify({ rule_files: [rules], evaluation_interval: '1m', tests }));
		runPromtool(['test', 'rules', file]);
	},
);

promtool.run();

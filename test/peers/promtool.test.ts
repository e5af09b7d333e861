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

promtool.run();

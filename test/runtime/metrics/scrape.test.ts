/**
 * A scrape of a running server: every metric family with its labels, in both formats. Clients cannot increase the number of label
 * values.
 */
import { once } from 'node:events';
import { connect } from 'node:net';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { METRICS_TYPES, metricsFormat } from '../../../compiler/exchange/metrics-format.ts';
import { ioMode } from '../../../runtime/sockets/io-mode.ts';
import { tlsMode } from '../../../runtime/sockets/tls-mode.ts';
import { temporaryFolder } from '../../harness.ts';
import { eventually, respondingSite, withServer } from '../running-server.ts';

/**
 * Every metric family with its labels, if it has any. Renaming a family breaks users' dashboards, and must be announced to them.
 */
const FAMILIES: { readonly [name: string]: string } = {
	std_http_requests_in_flight: 'server',
	std_http_requests_total: 'server handler host',
	std_http_request_errors_total: 'server handler host',
	std_http_request_duration_seconds: 'server handler host code method',
	std_http_response_duration_seconds: 'server handler host code method',
	std_http_request_size_bytes: 'server handler host code method',
	std_http_response_size_bytes: 'server handler host code method',
	std_admin_http_requests_total: 'path method code',
	std_admin_http_request_errors_total: 'path method code',
	std_config_last_reload_successful: '',
	std_config_last_reload_success_timestamp_seconds: '',
	std_reverse_proxy_upstreams_healthy: 'upstream',
	svc_ready: '',
	svc_config_generation: '',
	svc_config_rollback_failed: '',
	svc_config_rollbacks_total: 'result',
	svc_worker_restarts_total: '',
	svc_thread_stalls_total: 'thread',
	svc_connections: '',
	svc_connections_accepted_total: '',
	svc_requests_in_flight: '',
	svc_requests_refused_total: 'reason',
	svc_client_timeouts_total: 'phase',
	svc_response_fields_dropped_total: '',
	svc_overload_rejected_total: 'limit',
	svc_overload_queue: '',
	svc_overload_queued_total: '',
	svc_overload_accept_failures_total: '',
	svc_overload_idle_closed_total: '',
	svc_http2_connections: '',
	svc_http2_streams_total: '',
	svc_http2_streams_reset_total: 'by',
	svc_http2_connections_cut_total: 'reason',
	svc_http3_connections: '',
	svc_http3_streams_total: '',
	svc_http3_streams_reset_total: 'by',
	svc_http3_connections_cut_total: 'reason',
	svc_http3_handshakes_total: 'result',
	svc_http3_resumptions_total: '',
	svc_http3_refused_total: 'reason',
	svc_http3_datagrams_received_total: '',
	svc_http3_datagrams_sent_total: '',
	svc_http3_datagrams_lost_total: '',
	svc_http3_port_changes_total: '',
	svc_access_log_dropped_total: '',
	svc_process_log_dropped_total: '',
	svc_trace_spans_exported_total: '',
	svc_trace_spans_dropped_total: '',
	svc_files_total: 'from',
	svc_files_kept_bytes: '',
	svc_files_held_open: '',
	svc_encode_responses_total: 'encoding',
	svc_encode_bytes_in_total: 'encoding',
	svc_encode_bytes_out_total: 'encoding',
	svc_encode_kept_total: '',
	svc_encode_skipped_total: '',
	svc_cache_requests_total: 'status',
	svc_cache_revalidated_total: '',
	svc_cache_collapsed_total: '',
	svc_cache_stores_total: '',
	svc_cache_evictions_total: '',
	svc_cache_purged_total: '',
	svc_cache_entries: '',
	svc_cache_bytes: '',
	svc_cache_ceiling_bytes: '',
	svc_cache_disk_bytes: '',
	svc_cache_disk_ceiling_bytes: '',
	svc_cache_disk_entries: '',
	svc_cache_disk_writes_total: '',
	svc_cache_disk_skipped_total: '',
	svc_cache_disk_recalls_total: '',
	svc_cache_disk_damaged_total: '',
	svc_cache_disk_failures_total: '',
	svc_upstream_connect_seconds: 'upstream',
	svc_upstream_first_byte_seconds: 'upstream',
	svc_upstream_duration_seconds: 'upstream',
	svc_upstream_errors_total: 'upstream kind',
	svc_upstream_retries_total: 'upstream',
	svc_upstream_queue: '',
	svc_upstream_requests_in_flight: 'upstream',
	svc_upstream_circuit_state: 'upstream',
	svc_upstream_concurrency_limit: 'upstream',
	svc_upstream_shed_requests_total: 'pool',
	svc_tls_handshakes_total: 'version result',
	svc_tls_sessions_resumed_total: 'version',
	svc_module_events_total: 'event',
	svc_limit_concurrent_requests_total: 'zone outcome',
	svc_limit_concurrent_running: 'zone',
	svc_limit_concurrent_waiting: 'zone',
	svc_cluster_connected: '',
	svc_cluster_contact_age_seconds: '',
	svc_cluster_members: '',
	svc_cluster_purges_total: 'direction',
	svc_cluster_purges_unconfirmed_total: '',
	svc_cluster_complete_purges_total: '',
	svc_cluster_limit_reports_total: 'result',
	svc_cluster_limit_keys_total: '',
	svc_cluster_cache_available: '',
	svc_cluster_cache_lookups_total: 'result',
	svc_cluster_cache_waits_total: '',
	svc_cluster_cache_stores_total: 'result',
	svc_cluster_cache_purged_total: '',
	svc_rollout_publication_served: '',
	svc_rollout_publication_age_seconds: '',
	svc_rollout_publication_from_disk: '',
	svc_rollout_publication_wanted: '',
	svc_rollout_publication_latest: '',
	svc_rollout_phase: 'phase',
	svc_rollout_failures_total: 'kind',
	svc_rate_limit_waits_total: 'zone',
	svc_rate_limit_fallbacks_total: 'zone policy',
	svc_rate_limit_requests_total: 'zone outcome',
	svc_mirror_requests_total: 'upstream outcome',
	svc_mirror_dropped_total: 'upstream reason',
	svc_tls_certificate_expiry_timestamp_seconds: 'subject issuer',
	svc_tls_certificate_attempts_total: 'issuer result',
	svc_tls_ocsp_responses_total: 'result',
	svc_tls_certificates_missing: '',
	svc_build_info: 'version target node io tls',
	process_cpu_seconds_total: '',
	svc_process_cpu_seconds_total: '',
	svc_process_resident_memory_bytes: '',
	svc_process_start_time_seconds: '',
	svc_process_open_fds: '',
	svc_process_max_fds: '',
	process_resident_memory_bytes: '',
	process_start_time_seconds: '',
	process_open_fds: '',
	process_max_fds: '',
	svc_process_major_page_faults_total: '',
	svc_process_context_switches_total: 'kind',
	nodejs_eventloop_lag_seconds: 'thread',
	nodejs_eventloop_lag_min_seconds: 'thread',
	nodejs_eventloop_lag_max_seconds: 'thread',
	nodejs_eventloop_lag_mean_seconds: 'thread',
	nodejs_eventloop_lag_stddev_seconds: 'thread',
	nodejs_eventloop_lag_p50_seconds: 'thread',
	nodejs_eventloop_lag_p90_seconds: 'thread',
	nodejs_eventloop_lag_p99_seconds: 'thread',
	nodejs_heap_size_total_bytes: 'thread',
	nodejs_heap_size_used_bytes: 'thread',
	nodejs_external_memory_bytes: 'thread',
	nodejs_gc_duration_seconds: 'thread kind',
};

const SITES = [
	respondingSite('hello', {
		steps: [{ handler: 'proxy', when: { type: 'path', patterns: ['/up'] }, upstreams: { to: ['127.0.0.1:1'] } }],
	}),
];

/** Sends one request on its own connection and resolves when it has been answered. */
async function sendRequest(port: number, host: string, method = 'GET'): Promise<void> {
	const socket = connect(port, '127.0.0.1');
	socket.end(`${method} / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
	socket.resume();
	await once(socket, 'close');
}

const scrape = suite('a scrape');

scrape('has every family, and no other, with exactly these labels', async () => {
	await withServer({ settings: { metrics: { per_host: true } }, sites: SITES }, {}, async ({ runtime, get }) => {
		runtime.countAdminRequest('/metrics', 'GET', 200);
		await get();
		assert.is((await get('/up')).status, 502);
		await eventually('counted', async () => /errors_total\{.*\} 1/.test(await runtime.metrics()));
		const text = await runtime.metrics();
		const names = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name!);
		assert.equal(names.toSorted(), Object.keys(FAMILIES).toSorted());
		for (const [, name, labels = ''] of text.matchAll(/^([a-z_0-9]+)(?:\{(.*)\})? /gm)) {
			const family = FAMILIES[name!] === undefined ? name!.replace(/_(bucket|sum|count)$/, '') : name!;
			const found = [...labels.matchAll(/(\w+)="/g)].map(([, label]) => label).filter(label => label !== 'le');
			assert.is(found.toSorted().join(' '), FAMILIES[family]!.split(' ').toSorted().join(' '), name);
		}
	});
});

scrape("process metrics appear under both the standard names and svc's own", async () => {
	await withServer({ settings: { metrics: {} }, sites: SITES }, {}, async ({ runtime }) => {
		const text = await runtime.metrics();
		const values = new Map([...text.matchAll(/^(\S*process_\S+) (\S+)$/gm)].map(([, name, value]) => [name!, value!]));
		const standard = [...values.keys()].filter(name => name.startsWith('process_'));
		assert.is(standard.length, 5);
		for (const name of standard) assert.is(values.get(`svc_${name}`), values.get(name), name);
		assert.match(
			text,
			new RegExp(`^svc_build_info\\{.*node="${process.version}",io="${ioMode()}",tls="${tlsMode()}"\\} 1$`, 'm'),
		);
	});
});

scrape(
	'requests on which a handler fails are counted for that handler, even if no error route covers the status',
	async () => {
		const at = (path: string) => ({ when: { type: 'path', patterns: [path] } });
		const dead = { to: ['127.0.0.1:1'] };
		const [root, hash] = [temporaryFolder(), '$2b$04$dn9tFKKjjviJcZyNIh9.FegXvwX0ahZVruFNmM.efvz3DjFl884fW'];
		const site = respondingSite('hello', {
			steps: [
				{ handler: 'proxy', ...at('/dead'), upstreams: dead },
				{ handler: 'proxy', ...at('/retried'), upstreams: { ...dead, retries: 1 } },
				{ handler: 'proxy', ...at('/none'), upstreams: { to: ['{http.request.header.X-Upstream}'] } },
				{ handler: 'files', ...at('/file'), root },
				{ handler: 'files', ...at('/passed-on'), root, pass_thru: true },
				{ handler: 'cache', ...at('/cached') },
				{ handler: 'basic_auth', ...at('/staff'), accounts: [{ user: 'bob', hash }] },
			],
		});
		for (const errors of [[], [{ statuses: ['418'], pipeline: [{ handler: 'respond' }] }]]) {
			const document = { settings: { metrics: {} }, sites: [{ ...site, errors }] };
			await withServer(document, {}, async ({ runtime, get }) => {
				for (const [path, status, field] of [
					['/dead', 502],
					['/retried', 502],
					['/none', 502],
					['/file', 404],
					['/passed-on', 200],
					['/cached', 504, { 'Cache-Control': 'only-if-cached' }],
					['/staff', 401],
				] as const) {
					assert.is((await get(path, field)).status, status, path);
				}
				await eventually('counted', async () => /requests_total\{.*"basic_auth"\} 1/.test(await runtime.metrics()));
				const counted = (await runtime.metrics()).matchAll(
					/^std_http_(requests|request_errors)_total\{.*handler="(\w*)"\} (\d+)/gm,
				);
				assert.equal(
					Object.fromEntries([...counted].map(([, family, handler, count]) => [`${family} ${handler}`, Number(count)])),
					{
						'requests proxy': 3,
						'requests files': 1,
						'requests cache': 1,
						'requests basic_auth': 1,
						'requests respond': 1,
						'request_errors proxy': 3,
						'request_errors files': 1,
						'request_errors cache': 1,
						'request_errors basic_auth': 1,
						'request_errors respond': 0,
					},
				);
			});
		}
	},
);

scrape('uses the OpenMetrics format if requested', async () => {
	const site = respondingSite('hello', {
		steps: [{ handler: 'expose_metrics', when: { type: 'path', patterns: ['/metrics'] } }],
	});
	await withServer({ settings: { metrics: {} }, sites: [site] }, {}, async ({ get }) => {
		await get();
		const plain = await get('/metrics');
		assert.is(plain.headers.get('content-type'), METRICS_TYPES.prometheus);
		assert.match(plain.body, /^# TYPE svc_connections_accepted_total counter$/m);
		assert.not.match(plain.body, '# EOF');
		const open = await get('/metrics', { accept: 'application/openmetrics-text;version=1.0.0,text/plain;q=0.5' });
		assert.is(open.headers.get('content-type'), METRICS_TYPES.openmetrics);
		assert.is(open.headers.get('vary'), 'Accept');
		assert.ok(open.body.endsWith('\n# EOF\n'));
		assert.match(open.body, /^# TYPE svc_connections_accepted counter$/m);
		assert.match(open.body, /^svc_connections_accepted_total [1-9]/m);
		assert.match(open.body, /_bucket\{.*le="1\.0"\} /);
		const names = [...open.body.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
		assert.is(new Set(names).size, names.length);
	});
	for (const [accept, format] of [
		[undefined, 'prometheus'],
		['*/*', 'prometheus'],
		['application/openmetrics-text; version=0.0.1,text/plain;version=0.0.4;q=0.2', 'prometheus'],
		['application/openmetrics-text; version="1.0.0"; charset=utf-8', 'openmetrics'],
		['application/openmetrics-text;q=0', 'prometheus'],
		['text/plain;q=0.9,application/openmetrics-text;q=0.3', 'prometheus'],
		[',;q=,=;,', 'prometheus'],
	] as const) {
		assert.is(metricsFormat(accept), format, accept);
	}
});

scrape('has no hosts or methods invented by clients', async () => {
	const settings = { metrics: { per_host: true } };
	const addresses = ['http://:0', 'http://named.example:0'];
	const sites = addresses.map(address => respondingSite('hello', { addresses: [address] }));
	await withServer({ settings, sites }, { threads: 1 }, async ({ runtime, port }) => {
		for (const host of ['named.example', 'a.example', 'b.example']) await sendRequest(port, host);
		await sendRequest(port, 'c.example', 'INVENTED');
		await eventually('counted', async () => /method="OTHER"/.test(await runtime.metrics()));
		const text = await runtime.metrics();
		assert.equal(
			[...new Set([...text.matchAll(/host="([^"]*)"/g)].map(([, host]) => host))],
			['named.example', 'other'],
		);
		assert.not.match(text, 'INVENTED');
	});
});

scrape('distinguishes the first hosts of a catch-all site if configured', async () => {
	const settings = { metrics: { per_host: true, observe_catchall_hosts: true } };
	await withServer({ settings, sites: [respondingSite('hi')] }, { threads: 1 }, async ({ runtime, port }) => {
		await sendRequest(port, 'a.example');
		await eventually('counted', async () => /_requests_total\{.*host="a\.example"\} 1/.test(await runtime.metrics()));
	});
});

scrape.run();

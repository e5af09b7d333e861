/** Bench rows with many upstreams: the cost of choosing among a hundred, and of a retry. */
import { caddyConfiguration, haproxyConfiguration, nginxConfiguration, svcConfiguration } from './configurations.ts';
import type { Contender, LoadTask } from './task.ts';

/** A hundred more addresses on which the static backend listens, at its port {@link Backends.files}. */
export const HUNDRED_BACKEND_ADDRESSES: readonly string[] = Array.from({ length: 100 }, (_, i) => `127.0.1.${i + 1}`);

/** An address on which no process listens, so that connections are refused at once. */
const DEAD_ADDRESS = '127.0.0.1:1';

const PROXY =
	'proxy_pass http://b; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $http_host; proxy_set_header X-Forwarded-For $remote_addr;';
const KEEPALIVE = 'keepalive 512; keepalive_requests 1000000000;';

/** Contenders that choose among a hundred upstreams by `least_conn`. */
const leastConnContenders: readonly Contender[] = [
	{
		server: 'svc',
		configuration: (port, { files }) =>
			svcConfiguration(
				`http://127.0.0.1:${port} {\n\treverse_proxy ${to(files)} {\n\t\tlb_policy least_conn\n\t}\n}\n`,
			),
	},
	{
		server: 'nginx',
		configuration: (port, { files }) =>
			nginxConfiguration(
				`listen 127.0.0.1:${port}; location / { ${PROXY} }`,
				`upstream b { least_conn; ${HUNDRED_BACKEND_ADDRESSES.map(host => `server ${host}:${files};`).join(' ')} ${KEEPALIVE} }`,
			),
	},
	{
		server: 'caddy',
		configuration: (port, { files }) =>
			caddyConfiguration(
				`http://127.0.0.1:${port} {\n\treverse_proxy ${to(files)} {\n\t\tlb_policy least_conn\n\t}\n}\n`,
			),
	},
	{
		server: 'haproxy',
		configuration: (port, { files }) =>
			haproxyConfiguration(`frontend f
	bind 127.0.0.1:${port}
	default_backend b
backend b
	balance leastconn
	http-reuse always
${HUNDRED_BACKEND_ADDRESSES.map((host, i) => `\tserver s${i} ${host}:${files}`).join('\n')}
`),
	},
];

/**
 * Contenders in which every second request first tries an upstream that refuses the connection. Caddy may choose the same
 * upstream again.
 */
const retryContenders: readonly Contender[] = [
	{
		server: 'svc',
		configuration: (port, { files }) =>
			svcConfiguration(
				`http://127.0.0.1:${port} {\n\treverse_proxy ${DEAD_ADDRESS} 127.0.0.1:${files} {\n\t\tlb_policy round_robin\n\t\tlb_retries 1\n\t}\n}\n`,
			),
	},
	{
		server: 'nginx',
		configuration: (port, { files }) =>
			nginxConfiguration(
				`listen 127.0.0.1:${port}; error_log /dev/null; location / { ${PROXY} }`,
				`upstream b { server ${DEAD_ADDRESS} max_fails=0; server 127.0.0.1:${files} max_fails=0; ${KEEPALIVE} }`,
			),
	},
	{
		server: 'caddy',
		configuration: (port, { files }) =>
			caddyConfiguration(
				`http://127.0.0.1:${port} {\n\treverse_proxy ${DEAD_ADDRESS} 127.0.0.1:${files} {\n\t\tlb_policy round_robin\n\t\tlb_retries 50\n\t\tlb_try_interval 1ns\n\t}\n}\n`,
			),
	},
	{
		server: 'haproxy',
		configuration: (port, { files }) =>
			haproxyConfiguration(`frontend f
	bind 127.0.0.1:${port}
	default_backend b
backend b
	balance roundrobin
	http-reuse always
	retries 1
	option redispatch 1
	server dead ${DEAD_ADDRESS}
	server s 127.0.0.1:${files}
`),
	},
];

function to(files: number): string {
	return HUNDRED_BACKEND_ADDRESSES.map(host => `${host}:${files}`).join(' ');
}

export const POOL_TASKS: readonly LoadTask[] = [
	{
		name: 'proxy 14 B, least_conn over 100 upstreams',
		load: { kind: 'requests', path: '/' },
		contenders: leastConnContenders,
		bounds: { caddy: 0.6 },
	},
	{
		name: 'proxy 14 B, every second request retried',
		load: { kind: 'requests', path: '/' },
		contenders: retryContenders,
		bounds: { caddy: 0.6 },
	},
];

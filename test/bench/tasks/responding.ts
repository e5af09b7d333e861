/** Bench rows without an upstream: fixed responses under many kinds of traffic. */
import type { RequestLoad } from '../load.ts';
import { caddyConfiguration, haproxyConfiguration, nginxConfiguration, svcConfiguration } from './configurations.ts';
import type { Contender, LoadTask } from './task.ts';

/** Contenders that answer with 14 bytes. */
export const FIXED_RESPONSE_CONTENDERS: readonly Contender[] = [
	{
		server: 'svc',
		configuration: port => svcConfiguration(`http://127.0.0.1:${port} {\n\trespond "Hello, world!\n"\n}\n`),
	},
	{
		server: 'nginx',
		configuration: port =>
			nginxConfiguration(
				`listen 127.0.0.1:${port} backlog=4096; location / { default_type text/plain; return 200 "Hello, world!\\n"; }`,
			),
	},
	{
		server: 'caddy',
		configuration: port => caddyConfiguration(`http://127.0.0.1:${port} {\n\trespond "Hello, world!\n"\n}\n`),
	},
	{
		server: 'haproxy',
		configuration: port =>
			haproxyConfiguration(`frontend f
	bind 127.0.0.1:${port} backlog 4096
	http-request return status 200 content-type text/plain string "Hello, world!\\n"
`),
	},
	{ server: 'node', configuration: () => '' },
];

/** The contenders that can hold 10,000 connections within the usual descriptor limit. */
export const CONTENDERS_FOR_10K_CONNECTIONS: readonly Contender[] = FIXED_RESPONSE_CONTENDERS.filter(
	({ server }) => server !== 'haproxy',
);

/** Returns a task that measures fixed responses. Its result is one row of the table. */
function responseTask(name: string, load: Partial<RequestLoad>, bounds: LoadTask['bounds']): LoadTask {
	const contenders = load.connections === 10_000 ? CONTENDERS_FOR_10K_CONNECTIONS : FIXED_RESPONSE_CONTENDERS;
	return { name, load: { path: '/', ...load, kind: 'requests' }, contenders, ...(bounds && { bounds }) };
}

const FIELDS = Object.fromEntries(
	Array.from({ length: 30 }, (_, index) => [`X-Field-${index}`, `value of field ${index}`]),
);

const HOSTS = Array.from({ length: 1000 }, (_, index) => `host-${index}.example`);
const ROUTES = Array.from({ length: 20 }, (_, index) => `/route-${index}/`);

/** Returns the sites of one or many hosts as text. Each has twenty routes, the last of which the load requests. */
function siteTexts(hosts: readonly string[], port: number): string {
	const routes = ROUTES.map(route => `\thandle ${route}* {\n\t\trespond "Hello, world!\n"\n\t}\n`).join('');
	return hosts.map(host => `http://${host}:${port} {\n\tbind 127.0.0.1\n${routes}}\n`).join('');
}

/** Returns a site that limits requests by the parameter `key`; `zoneLine` is a further line of the zone. */
function limitedSite(port: number, zoneLine: string): string {
	return `http://127.0.0.1:${port} {\n\trate_limit all 20000 per 1m {\n\t\tkey {query.key}\n\t\t${zoneLine}\n\t}\n\trespond "Hello, world!\n"\n}\n`;
}

export const RESPONSE_TASKS: readonly LoadTask[] = [
	responseTask('respond 14 B', {}, { nginx: 1.05, caddy: 0.5 }),
	// The server caches parsed request heads, so every request of this load has a different head.
	responseTask(
		'respond 14 B, heads that differ',
		{ path: '/page/%d', below: [1_000_000] },
		{ nginx: 1.05, caddy: 0.5 },
	),
	responseTask('respond 14 B, a connection for each request', { headers: { Connection: 'close' } }, { caddy: 0.5 }),
	responseTask('respond 14 B, 16 requests pipelined', { pipelined: 16 }, { caddy: 0.5 }),
	responseTask('respond 14 B, 16 connections', { connections: 16 }, { caddy: 0.5 }),
	responseTask('respond 14 B, 10,000 connections', { connections: 10_000 }, { caddy: 0.5 }),
	responseTask('respond 14 B, 30 request fields', { headers: FIELDS }, { caddy: 0.5 }),
	{
		name: '1,000 hosts with 20 routes each',
		load: { kind: 'requests', path: '/route-19/', hosts: HOSTS },
		warmUp: 3,
		contenders: [
			{ server: 'svc', configuration: port => svcConfiguration(siteTexts(HOSTS, port)) },
			// This one site serves every host. The load requests the same hosts from it as from the other servers.
			{ label: 'svc, one site', server: 'svc', configuration: port => svcConfiguration(siteTexts([''], port)) },
			{
				server: 'nginx',
				configuration: port => {
					const routes = ROUTES.map(route => `location ${route} { return 200 "Hello, world!\\n"; }`).join(' ');
					const servers = HOSTS.map(host => `server { listen 127.0.0.1:${port}; server_name ${host}; ${routes} }`);
					return nginxConfiguration(
						'',
						`server_names_hash_max_size 8192; server_names_hash_bucket_size 64;\n${servers.join('\n')}`,
					);
				},
			},
			{
				server: 'caddy',
				configuration: port => caddyConfiguration(siteTexts(HOSTS, port)),
			},
		],
		bounds: { 'svc, one site': 1.1, caddy: 0.5 },
	},
	{
		name: 'respond under a rate limit',
		load: { kind: 'requests', path: '/' },
		contenders: [
			{
				label: 'svc, limited',
				server: 'svc',
				configuration: port =>
					svcConfiguration(
						`http://127.0.0.1:${port} {\n\trate_limit all 1000000000 per 1s\n\trespond "Hello, world!\n"\n}\n`,
					),
			},
			FIXED_RESPONSE_CONTENDERS[0]!,
			{
				label: 'nginx, limited',
				server: 'nginx',
				// `return` would answer before the limit is checked; `empty_gif`, which is used instead, answers with 43 bytes from
				// memory.
				configuration: port =>
					nginxConfiguration(
						`listen 127.0.0.1:${port} backlog=4096; location / { limit_req zone=all burst=1000000 nodelay; empty_gif; }`,
						'limit_req_zone $binary_remote_addr zone=all:10m rate=1000000r/s;',
					),
			},
		],
		bounds: { 'nginx, limited': 1.05 },
	},
	{
		// A single key, as in the row above, stays in the processor's caches. The cost of a limit is the difference between a server
		// with the limit and the same server without it.
		name: 'respond under a rate limit with 50,000 keys',
		load: { kind: 'requests', path: '/?key=%d', below: [50_000] },
		contenders: [
			{
				label: 'svc, limited',
				server: 'svc',
				configuration: port =>
					svcConfiguration(
						`http://127.0.0.1:${port} {\n\trate_limit all 1000000000 per 1s {\n\t\tkey {query.key}\n\t}\n\trespond "Hello, world!\n"\n}\n`,
					),
			},
			FIXED_RESPONSE_CONTENDERS[0]!,
			{
				label: 'nginx, limited',
				server: 'nginx',
				configuration: port =>
					nginxConfiguration(
						`listen 127.0.0.1:${port} backlog=4096; location / { limit_req zone=all burst=1000000 nodelay; empty_gif; }`,
						'limit_req_zone $arg_key zone=all:10m rate=1000000r/s;',
					),
			},
			{
				label: 'nginx, unlimited',
				server: 'nginx',
				configuration: port => nginxConfiguration(`listen 127.0.0.1:${port} backlog=4096; location / { empty_gif; }`),
			},
		],
	},
	{
		// Each key uses about a third of its limit and is reported to Redis after 1,000 requests, so that requests never wait.
		name: 'respond under a rate limit that machines share, with 1,000 keys',
		load: { kind: 'requests', path: '/?key=%d', below: [1000] },
		contenders: [
			{
				label: 'svc, shared limit',
				server: 'svc',
				needsRedis: true,
				configuration: (port, { redis }) =>
					svcConfiguration(
						limitedSite(port, 'shared'),
						1,
						`\tcluster redis://127.0.0.1:${redis} {\n\t\tkey {$CLUSTER_KEY:${'bench'.padEnd(43, 'A')}=}\n\t}\n`,
					),
			},
			FIXED_RESPONSE_CONTENDERS[0]!,
			{ label: 'svc, limited', server: 'svc', configuration: port => svcConfiguration(limitedSite(port, '')) },
		],
	},
	{
		name: 'respond below a limited rate',
		load: { kind: 'requests', path: '/' },
		contenders: [
			{
				label: 'svc, limited',
				server: 'svc',
				configuration: port =>
					svcConfiguration(`http://127.0.0.1:${port} {\n\tlimit_rate 100MiB\n\trespond "Hello, world!\n"\n}\n`),
			},
			FIXED_RESPONSE_CONTENDERS[0]!,
			{
				label: 'nginx, limited',
				server: 'nginx',
				configuration: port =>
					nginxConfiguration(
						`listen 127.0.0.1:${port} backlog=4096; location / { limit_rate 100m; default_type text/plain; return 200 "Hello, world!\\n"; }`,
					),
			},
		],
		bounds: { svc: 1.05 },
	},
	{
		name: 'two threads on two cores',
		load: { kind: 'requests', path: '/' },
		// Each of the two cores has a server thread and a load generator thread. Each server thread compiles its own
		// code, and gets at most half of the load while it does.
		warmUp: 6,
		contenders: [
			{
				label: 'svc, 2 threads',
				server: 'svc',
				cores: '0,1',
				loadCores: [0, 1],
				configuration: port => svcConfiguration(`http://127.0.0.1:${port} {\n\trespond "Hello, world!\n"\n}\n`, 2),
			},
			{ ...FIXED_RESPONSE_CONTENDERS[0]!, label: 'svc, 1 thread', cores: '0', loadCores: [0] },
		],
		// 1.11 is 1/0.9: if a request costs that much more CPU time with two threads, they do 1.8 times the work of one thread.
		bounds: { 'svc, 1 thread': 1.11 },
	},
];

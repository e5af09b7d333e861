/** Bench rows with an upstream: the cost of forwarding requests, bodies and messages. */
import type { MessageLoad, RequestLoad } from '../load.ts';
import { backendCertificate } from './backend-certificate.ts';
import { caddyConfiguration, haproxyConfiguration, nginxConfiguration, svcConfiguration } from './configurations.ts';
import { fileTree } from './file-tree.ts';
import { HUNDRED_BACKEND_ADDRESSES } from './pools.ts';
import type { Backends, Contender, LoadTask } from './task.ts';

/** Sizes in bytes of the backend's files other than `/`, by name. */
export const BACKEND_FILES = { '10k': 10_240, '1m': 1_048_576 } as const;

/** Returns the configuration of the static backend, which is nginx on the load generator's core. */
export function backendConfiguration({ files, secure, h2c }: Backends): string {
	const { certificate, key } = backendCertificate();
	const content = `sendfile on; root .; default_type text/plain; location = / { return 200 "Hello, world!\\n"; }
	location /tree/ { alias ${fileTree()}/; types { application/json json; } }`;
	return nginxConfiguration(
		`listen 127.0.0.1:${files}; ${HUNDRED_BACKEND_ADDRESSES.map(host => `listen ${host}:${files};`).join(' ')} ${content}`,
		`http2_max_requests 1000000000;
	server { listen 127.0.0.1:${secure} ssl; ssl_certificate ${certificate}; ssl_certificate_key ${key}; ${content} }
	server { listen 127.0.0.1:${h2c} http2; ${content} }`,
	);
}

/** Returns contenders that forward everything to one of the backends. */
function proxyContenders(backend: keyof Backends): readonly Contender[] {
	return [
		{
			server: 'svc',
			configuration: (port, to) =>
				svcConfiguration(`http://127.0.0.1:${port} {\n\treverse_proxy 127.0.0.1:${to[backend]}\n}\n`),
		},
		{
			server: 'nginx',
			configuration: (port, to) =>
				nginxConfiguration(
					`listen 127.0.0.1:${port}; location / { proxy_pass http://b; proxy_http_version 1.1; proxy_request_buffering off;
		proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection $upgrade; proxy_set_header Host $http_host;
		proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-Proto $scheme; proxy_set_header X-Forwarded-Host $http_host; }`,
					`map $http_upgrade $upgrade { default upgrade; '' ''; }
	upstream b { server 127.0.0.1:${to[backend]}; keepalive 128; keepalive_requests 1000000000; }`,
				),
		},
		{
			server: 'caddy',
			configuration: (port, to) =>
				caddyConfiguration(`http://127.0.0.1:${port} {\n\treverse_proxy 127.0.0.1:${to[backend]}\n}\n`),
		},
		{
			server: 'haproxy',
			configuration: (port, to) =>
				haproxyConfiguration(`frontend f
	bind 127.0.0.1:${port}
	default_backend b
backend b
	http-reuse always
	server s 127.0.0.1:${to[backend]}
`),
		},
		{ server: 'node', configuration: (_, to) => String(to[backend]) },
	];
}

/** Returns contenders that use TLS or HTTP/2 to the backend. None verifies certificates; all keep connections alive. */
function transportContenders(kind: 'secure' | 'h2c'): readonly Contender[] {
	const scheme = kind === 'secure' ? 'https' : 'h2c';
	const block = kind === 'secure' ? ' {\n\t\ttransport http {\n\t\t\ttls_insecure_skip_verify\n\t\t}\n\t}' : '';
	const site = (port: number, to: Backends) =>
		`http://127.0.0.1:${port} {\n\treverse_proxy ${scheme}://localhost:${to[kind]}${block}\n}\n`;
	const nginxOverTls: Contender = {
		server: 'nginx',
		configuration: (port, to) =>
			nginxConfiguration(
				`listen 127.0.0.1:${port}; location / { proxy_pass https://b; proxy_http_version 1.1; proxy_set_header Connection "";
		proxy_set_header Host localhost; proxy_set_header X-Forwarded-For $remote_addr; }`,
				`upstream b { server 127.0.0.1:${to.secure}; keepalive 128; keepalive_requests 1000000000; }`,
			),
	};
	return [
		{ server: 'svc', configuration: (port, to) => svcConfiguration(site(port, to)) },
		// nginx does not support HTTP/2 to upstreams.
		...(kind === 'secure' ? [nginxOverTls] : []),
		{ server: 'caddy', configuration: (port, to) => caddyConfiguration(site(port, to)) },
		{
			server: 'haproxy',
			configuration: (port, to) =>
				haproxyConfiguration(`frontend f
	bind 127.0.0.1:${port}
	default_backend b
backend b
	http-reuse always
	server s 127.0.0.1:${to[kind]} ${kind === 'secure' ? 'ssl verify none' : 'proto h2'}
`),
		},
	];
}

/** Returns a row of proxied requests. */
function proxyTask(
	name: string,
	load: Omit<RequestLoad, 'kind'> | MessageLoad,
	backend: keyof Backends,
	bounds: LoadTask['bounds'],
): LoadTask {
	const contenders = proxyContenders(backend).filter(({ server }) => server !== 'node' || !('kind' in load));
	return { name, load: { kind: 'requests', ...load }, contenders, ...(bounds && { bounds }) };
}

export const PROXY_TASKS: readonly LoadTask[] = [
	proxyTask('proxy 14 B', { path: '/' }, 'files', { nginx: 1.1, caddy: 0.5 }),
	proxyTask('proxy 10 KB', { path: '/10k' }, 'files', { nginx: 1.2, caddy: 0.5 }),
	proxyTask('proxy 1 MB', { path: '/1m' }, 'files', { nginx: 1.5, caddy: 0.5 }),
	proxyTask('proxy 10 KB in chunks', { path: '/chunked' }, 'program', { caddy: 0.5 }),
	proxyTask('proxy an upload of 1 MB', { path: '/upload', bodyBytes: 1_048_576 }, 'program', { caddy: 0.5 }),
	proxyTask('proxy WebSocket messages', { kind: 'messages', path: '/echo', connections: 64, bytes: 100 }, 'program', {
		caddy: 0.5,
	}),
	{
		name: 'proxy 10 KB, replacing a text that it does not have',
		load: { kind: 'requests', path: '/10k' },
		contenders: [
			{
				label: 'svc, replace',
				server: 'svc',
				configuration: (port, { files }) =>
					svcConfiguration(
						`http://127.0.0.1:${port} {\n\treplace "http://app.internal" "https://example.com"\n\treverse_proxy 127.0.0.1:${files}\n}\n`,
					),
			},
			{
				label: 'nginx, sub_filter',
				server: 'nginx',
				configuration: (port, { files }) =>
					nginxConfiguration(
						`listen 127.0.0.1:${port}; location / { proxy_pass http://b; proxy_http_version 1.1; proxy_set_header Connection "";
		sub_filter "http://app.internal" "https://example.com"; sub_filter_once off; sub_filter_types text/plain; }`,
						`upstream b { server 127.0.0.1:${files}; keepalive 128; keepalive_requests 1000000000; }`,
					),
			},
		],
	},
	{
		name: 'proxy 14 B, with copies to a mirror',
		load: { kind: 'requests', path: '/' },
		contenders: [
			{
				label: 'svc, mirror',
				server: 'svc',
				configuration: (port, { files }) =>
					svcConfiguration(
						`http://127.0.0.1:${port} {\n\tmirror 127.0.0.1:${files}\n\treverse_proxy 127.0.0.1:${files}\n}\n`,
					),
			},
			{
				label: 'nginx, mirror',
				server: 'nginx',
				configuration: (port, { files }) =>
					nginxConfiguration(
						`listen 127.0.0.1:${port}; proxy_http_version 1.1; proxy_set_header Connection "";
		location / { mirror /copy; proxy_pass http://b; }
		location = /copy { internal; proxy_pass http://b$request_uri; }`,
						`upstream b { server 127.0.0.1:${files}; keepalive 256; keepalive_requests 1000000000; }`,
					),
			},
		],
	},
	{
		name: 'proxy 14 B over TLS',
		load: { kind: 'requests', path: '/' },
		contenders: transportContenders('secure'),
		bounds: { caddy: 0.6 },
	},
	{
		name: 'proxy 14 B over HTTP/2',
		load: { kind: 'requests', path: '/' },
		contenders: transportContenders('h2c'),
		bounds: { caddy: 0.6 },
	},
];

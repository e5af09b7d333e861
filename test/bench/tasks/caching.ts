/** Bench rows of the response cache: the cost of a cache hit. */
import { nginxConfiguration, svcConfiguration } from './configurations.ts';
import type { Contender, LoadTask } from './task.ts';

const CACHES: readonly Contender[] = [
	{
		server: 'svc',
		configuration: (port, to) =>
			svcConfiguration(
				`http://127.0.0.1:${port} {\n\tcache {\n\t\tttl 1h\n\t\tstatus_header off\n\t}\n\treverse_proxy 127.0.0.1:${to.files}\n}\n`,
			),
	},
	{
		server: 'nginx',
		configuration: (port, to) =>
			nginxConfiguration(
				`listen 127.0.0.1:${port}; location / { proxy_pass http://127.0.0.1:${to.files}; proxy_cache c; proxy_cache_valid 1h;
		proxy_set_header Host $http_host; }`,
				'proxy_cache_path cache keys_zone=c:10m; sendfile on; open_file_cache max=1000;',
			),
	},
	{
		server: 'varnish',
		configuration: (_, to) => `vcl 4.1;
backend default { .host = "127.0.0.1"; .port = "${to.files}"; }
sub vcl_backend_response { set beresp.ttl = 1h; }
`,
	},
];

const row = (name: string, path: string, bounds: LoadTask['bounds']): LoadTask => ({
	name: `cache hit ${name}`,
	load: { kind: 'requests', path },
	contenders: CACHES,
	...(bounds && { bounds }),
});

export const CACHE_TASKS: readonly LoadTask[] = [
	row('14 B', '/', { nginx: 1, varnish: 0.9 }),
	row('10 KB', '/10k', { nginx: 1, varnish: 0.9 }),
	// The kernel sends the body without copying it for both nginx, from a file, and svc, from a file in memory.
	row('1 MB', '/1m', { nginx: 1.2, varnish: 0.9 }),
];

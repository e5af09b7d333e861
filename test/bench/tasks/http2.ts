/** Bench rows over HTTP/2 without TLS: the cost of framing, header compression and many streams per connection. */
import { caddyConfiguration, nginxConfiguration, svcConfiguration } from './configurations.ts';
import type { Contender, LoadTask } from './task.ts';

const createContenders = (site: string, location: string): readonly Contender[] => [
	{
		server: 'svc',
		configuration: port =>
			svcConfiguration(`http://127.0.0.1:${port} {\n${site}}\n`).replace('{', '{\n\tservers {\n\t\tprotocols h2c\n\t}'),
	},
	{
		server: 'nginx',
		configuration: port => nginxConfiguration(`listen 127.0.0.1:${port} http2; ${location}`),
	},
	{
		server: 'caddy',
		configuration: port =>
			caddyConfiguration(`http://127.0.0.1:${port} {\n${site}}\n`).replace(
				'{',
				'{\n\tservers {\n\t\tprotocols h1 h2c\n\t}',
			),
	},
];

const HELLO = createContenders(
	'\trespond "Hello, world!\n"\n',
	'location / { default_type text/plain; return 200 "Hello, world!\\n"; }',
);

const row = (name: string, connections: number, streams: number, contenders = HELLO): LoadTask => ({
	name: `h2 ${name}`,
	load: { kind: 'streams', path: '/', connections, streams },
	contenders,
	bounds: { nginx: 1.8, caddy: 0.5 },
});

export const HTTP2_TASKS: readonly LoadTask[] = [
	row('respond 14 B, 1 stream on each of 64 connections', 64, 1),
	row('respond 14 B, 10 streams on each of 16 connections', 16, 10),
	row('respond 14 B, 100 streams on each of 4 connections', 4, 100),
];

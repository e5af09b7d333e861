/** Bench rows of observability: the same responses with and without metrics, and with and without an access log. */
import { caddyConfiguration, nginxConfiguration, svcConfiguration } from './configurations.ts';
import type { LoadTask } from './task.ts';

/** Returns the configuration of a server that answers with 14 bytes, with extra lines in its site and its global options. */
function fixedResponseConfiguration(port: number, lines: string, options = ''): string {
	const site = `http://127.0.0.1:${port} {\n${lines}\trespond "Hello, world!\n"\n}\n`;
	return svcConfiguration(site, 1, options);
}

const LOG = '\tlog {\n\t\toutput file access.log {\n\t\t\troll_disabled\n\t\t}\n\t}\n';

/** The metrics and log rows. The log lines of all servers contain about the same facts; nginx writes its `combined` format. */
export const OBSERVABILITY_TASKS: readonly LoadTask[] = [
	{
		name: 'metrics, with a label for hosts',
		load: { kind: 'requests', path: '/' },
		contenders: [
			{
				label: 'svc, metrics',
				server: 'svc',
				configuration: port => fixedResponseConfiguration(port, '', '\tmetrics {\n\t\tper_host\n\t}\n'),
			},
			{ label: 'svc', server: 'svc', configuration: port => fixedResponseConfiguration(port, '') },
		],
		bounds: { svc: 1.03 },
	},
	{
		name: 'an access log',
		load: { kind: 'requests', path: '/' },
		contenders: [
			{ label: 'svc, log', server: 'svc', configuration: port => fixedResponseConfiguration(port, LOG) },
			{ label: 'svc', server: 'svc', configuration: port => fixedResponseConfiguration(port, '') },
			{
				label: 'nginx, log with a buffer',
				server: 'nginx',
				configuration: port =>
					nginxConfiguration(
						`listen 127.0.0.1:${port} backlog=4096; access_log access.log combined buffer=64k flush=1s; location / { default_type text/plain; return 200 "Hello, world!\\n"; }`,
					),
			},
			{
				label: 'caddy, log',
				server: 'caddy',
				configuration: port =>
					caddyConfiguration(
						`http://127.0.0.1:${port} {\n\tlog {\n\t\toutput file access.log {\n\t\t\troll_disabled\n\t\t}\n\t}\n\trespond "Hello, world!\n"\n}\n`,
					),
			},
		],
		bounds: { svc: 1.15 },
	},
];

/** Writes `access_log` and `log_format`. */
import { quoted, word } from './configfile-writer.ts';
import type { ImportContext } from './import-context.ts';
import type { Scope } from './scope.ts';
import { Untranslatable } from './untranslatable.ts';
import { orKeep } from './write-rewrites.ts';

const LOG_PLACEHOLDERS: { readonly [name: string]: string } = {
	...{
		remote_addr: '{client_ip}',
		remote_user: '{user_id}',
		time_local: '{time}',
		request: '{request_line}',
		status: '{status}',
	},
	...{
		body_bytes_sent: '{size}',
		bytes_sent: '{size}',
		host: '{host}',
		http_host: '{request>host}',
		request_method: '{method}',
	},
	...{
		request_uri: '{uri}',
		uri: '{path}',
		args: '{query}',
		query_string: '{query}',
		request_time: '{duration}',
		scheme: '{scheme}',
	},
	...{ server_protocol: '{request>proto}', remote_port: '{request>remote_port}', upstream_addr: '{upstream>address}' },
	...{ upstream_response_time: '{upstream>latency}', ssl_protocol: '{tls_version}', ssl_cipher: '{tls_cipher}' },
	...{ server_name: '{host}', proxy_add_x_forwarded_for: '{client_ip}' },
};

/** Writes the access logs of a server. */
export function writeLogs(scope: Scope, cx: ImportContext): void {
	const { out } = cx;
	for (const logDirective of scope.all('access_log')) {
		orKeep(logDirective, out, () => {
			const [path = '', format = 'combined', ...parameters] = logDirective.args;
			if (path === 'off') return;
			if (parameters.some(text => text.startsWith('if=')))
				throw new Untranslatable('requests are not selected by a variable');
			if (/\$|^(?:syslog|memory):/.test(path)) throw new Untranslatable('only files are written');
			const text = format === 'combined' ? undefined : logFormatText(format, cx);
			out.block('log', () => {
				out.line(
					`output ${path === '/dev/stdout' ? 'stdout' : path === '/dev/stderr' ? 'stderr' : `file ${word(path)}`}`,
				);
				out.line(text === undefined ? 'format combined' : `format text ${quoted(text)}`);
			});
		});
	}
}

function logFormatText(name: string, { logFormats, out }: ImportContext): string {
	const format = logFormats.get(name);
	if (!format) throw new Untranslatable(`there is no log_format \`${name}\``);
	const parts = format.args.slice(1).filter(text => !text.startsWith('escape='));
	const text = parts
		.join('')
		.replace(/\$\{(\w+)\}|\$(\w+)|[{}]/g, (matched, braced: string | undefined, plain: string | undefined) => {
			const variable = braced ?? plain;
			if (variable === undefined) return `\\${matched}`;
			if (Object.hasOwn(LOG_PLACEHOLDERS, variable)) return LOG_PLACEHOLDERS[variable]!;
			const field = /^(?:(sent)_)?http_(\w+)$/.exec(variable);
			if (!field) throw new Untranslatable(`logs have no \`$${variable}\``);
			return `{${field[1] ? 'resp_headers' : 'request>headers'}>${field[2]!.replaceAll('_', '-')}}`;
		});
	out.count(format);
	return text;
}

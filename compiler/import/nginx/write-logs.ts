/** Translates `access_log` and `log_format` to `log`. */
import { quoteText, word } from './configfile-writer.ts';
import type { ImportContext } from './import-context.ts';
import type { Scope } from './scope.ts';
import { Untranslatable } from './untranslatable.ts';
import { translateOrKeep } from './write-rewrites.ts';

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
	for (const logDirective of scope.directivesIn('access_log')) {
		translateOrKeep(logDirective, out, () => {
			const [path = '', formatName = 'combined', ...parameters] = logDirective.args;
			if (path === 'off') return;
			if (parameters.some(text => text.startsWith('if=')))
				throw new Untranslatable('requests are not selected by a variable');
			if (/\$|^(?:syslog|memory):/.test(path)) throw new Untranslatable('only files are written');
			const formatText = formatName === 'combined' ? undefined : logFormatText(formatName, cx);
			out.writeBlock('log', () => {
				out.writeLine(
					`output ${path === '/dev/stdout' ? 'stdout' : path === '/dev/stderr' ? 'stderr' : `file ${word(path)}`}`,
				);
				out.writeLine(formatText === undefined ? 'format combined' : `format text ${quoteText(formatText)}`);
			});
		});
	}
}

function logFormatText(name: string, { logFormats, out }: ImportContext): string {
	const formatDirective = logFormats.get(name);
	if (!formatDirective) throw new Untranslatable(`there is no log_format \`${name}\``);
	const formatParts = formatDirective.args.slice(1).filter(text => !text.startsWith('escape='));
	const text = formatParts
		.join('')
		.replace(/\$\{(\w+)\}|\$(\w+)|[{}]/g, (matched, braced: string | undefined, plain: string | undefined) => {
			const variable = braced ?? plain;
			if (variable === undefined) return `\\${matched}`;
			if (Object.hasOwn(LOG_PLACEHOLDERS, variable)) return LOG_PLACEHOLDERS[variable]!;
			const fieldMatch = /^(?:(sent)_)?http_(\w+)$/.exec(variable);
			if (!fieldMatch) throw new Untranslatable(`logs have no \`$${variable}\``);
			return `{${fieldMatch[1] ? 'resp_headers' : 'request>headers'}>${fieldMatch[2]!.replaceAll('_', '-')}}`;
		});
	out.countTranslated(formatDirective);
	return text;
}

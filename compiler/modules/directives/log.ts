/** `log`: the access logs of a site. */
import type { SiteLog } from '../../document/document.ts';
import type { SiteDirective } from '../contract/directive.ts';
import { LOG_SCHEMA_PROPERTIES, lowerLogBlock } from '../providers/log-settings.ts';

export const log: SiteDirective = {
	kind: 'site',
	id: 'logs',
	names: { configfile: ['log'], compatfile: ['log'] },
	usage:
		'log [name] [{ hostnames <host>… | no_hostname; output <writer>; format <encoder>; level <level>; sampling { … } }]',
	summary: 'Writes an access log for the site.',
	documentation: [
		'Alone, it sends access entries to the process log. With a name or a block, it creates its own logger; several `log`s',
		'of a site write one entry each. Process logs whose `include` names the logger, `http.log.access` or',
		'`http.log.access.NAME`, also get its entries.',
		'',
		'| Line | Meaning |',
		'| --- | --- |',
		'| `hostnames HOST…` | only requests for these hosts |',
		'| `output stdout \\| stderr \\| discard \\| file PATH` | where entries are written; default `stderr` |',
		'| `no_hostname` | only requests for which `log_name` names this log |',
		'| `format console \\| json \\| common \\| combined \\| text TEXT \\| filter \\| append \\| journald` | the format of an entry |',
		'| `level LEVEL` | the lowest level that is written: entries have level `INFO`, with status 500 and above `ERROR` |',
		'| `sampling { first N; thereafter N; interval D }` | of equal entries, writes the first N per interval, then every Nth |',
		'',
		'```',
		'log {',
		'	output file /var/log/site.log {',
		'		mode 0640',
		'	}',
		'	format filter {',
		'		wrap json {',
		'			time_format rfc3339',
		'		}',
		'		request>remote_ip ip_mask 16 32',
		'		request>uri query {',
		'			delete token',
		'		}',
		'		request>headers>User-Agent delete',
		'	}',
		'}',
		'```',
		'',
		'`console` and `json` take `message_key`, `level_key`, `time_key`, `name_key`, `line_ending`, `time_format`, `time_local`,',
		'`duration_format` and `level_format`. The filters of `filter`, by the path of a field, are `delete`, `rename`, `replace`,',
		'`hash`, `ip_mask`, `query`, `cookie`, `set_cookie`, `regexp` and `multi_regexp`; names are case-insensitive, and',
		'`svc validate --lint` reports paths that no entry has.',
		'`combined` writes lines as nginx and Apache do, `common` the same without `Referer` and `User-Agent`, and `text` lines of',
		'your own, such as `format text "{client_ip} {method} {uri} {status} {duration} {header.Accept}"`. In it, placeholders are the',
		'fields of an entry by their paths (`{request>headers>Accept}`, `{upstream>latency}`, `{resp_headers>Content-Type}`), placeholders',
		'of requests whose values an entry has, `{time}`, `{request_line}`, `{level}`, `{env.NAME}`, and names of fields that `log_append`',
		'adds. A field that is absent is `-`, and `svc validate --lint` reports names that no entry has. Quotation marks,',
		'backslashes, controls and everything outside ASCII are written as `\\xHH`,',
		'so no client can forge a line; write what clients choose in quotation marks, because it may contain spaces. The three take',
		'`time_format` (default `common_log`), `time_local` and `duration_format`. Entries that are not about a request are written as',
		'`console` does. `filter` may wrap them. A Compatfile also accepts `format transform TEXT`.',
		'`append` adds fields, `journald` the syslog priority. Values of `Cookie`, `Set-Cookie`, `Authorization`,',
		'`Proxy-Authorization`, and of fields whose names contain api-key, token, secret or password, are not written unless the',
		'option `log_credentials` of `servers` is on. An entry names the `handler` that answered or failed, and `at`',
		'is the place of its directive (`Configfile:12`, or the JSON pointer of the step if the configuration was given as JSON',
		'or was changed through `/config`). `uuid` is included if the configuration uses `{http.request.uuid}`. The fields',
		'of the request are shown as the client sent them.',
	].join('\n'),
	lower: ({ line, args }, site, cx) => {
		const [nameWord] = args;
		const looksLikeOutput =
			nameWord?.quote === 'none' && (/^[./]/.test(nameWord.text) || /^std(?:out|err)$/.test(nameWord.text));
		const usage = looksLikeOutput ? 'log { output stdout | stderr | file <path> }' : log.usage;
		if (cx.count(line, args, 0, 1, usage) && looksLikeOutput && !line.block) {
			const output = /^std/.test(nameWord.text) ? nameWord.text : `file ${nameWord.text}`;
			cx.problem(
				'warning',
				'log/name-of-an-output',
				nameWord.span,
				`\`${nameWord.text}\` is the name of the log here, not an output.`,
				{
					hint: `Write the output in a block: \`output ${output}\`.`,
				},
			);
		}
		const hostnames: string[] = [];
		let noHostname = false;
		const logFields = lowerLogBlock(line, cx, {
			hostnames: (hosts, innerLine) => {
				if (!cx.count(innerLine, hosts, 1, Number.POSITIVE_INFINITY, 'hostnames <host>…')) return;
				hostnames.push(...hosts.map(host => host.text.toLowerCase()));
			},
			no_hostname: (words, innerLine) => {
				cx.count(innerLine, words, 0, 0, 'no_hostname');
				noHostname = true;
			},
			include: (_args, innerLine) => refuseNamespaces(innerLine.words[0]!.text, innerLine.words[0]!.span),
			exclude: (_args, innerLine) => refuseNamespaces(innerLine.words[0]!.text, innerLine.words[0]!.span),
		});
		function refuseNamespaces(word: string, span: Parameters<typeof cx.problem>[2]): void {
			cx.problem('error', 'log/misplaced', span, `${word} is not allowed in the log directive`, {
				hint: `\`${word}\` belongs to the global option \`log\`.`,
			});
		}
		const entry: SiteLog = {
			...(nameWord ? { name: nameWord.text } : {}),
			...(hostnames.length > 0 ? { hostnames } : {}),
			...(noHostname ? { no_hostname: true } : {}),
			...logFields,
		};
		site.logs = [...((site.logs ?? []) as SiteLog[]), cx.origin(entry, line.span)];
	},
	schema: {
		type: 'array',
		description: 'Access logs. An empty object sends entries to the process log.',
		items: {
			type: 'object',
			properties: {
				...LOG_SCHEMA_PROPERTIES,
				hostnames: { type: 'array', items: { type: 'string' }, description: 'Only requests for these hosts.' },
				no_hostname: { type: 'boolean', description: 'Only requests for which `log_name` names it.' },
			},
			additionalProperties: false,
		},
	},
};

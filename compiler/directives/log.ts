/** `log`: the access logs of a site. */
import type { SiteLog } from '../document/document.ts';
import { LOG_PROPERTIES, lowerLogBlock } from '../lower/log-settings.ts';
import { unavailableMessage } from '../lower/unavailable.ts';
import type { SiteDirective } from './directive.ts';

/** Access logs of a site. */
export const log: SiteDirective = {
	kind: 'site',
	id: 'logs',
	names: { configfile: ['log'], compatfile: ['log'] },
	usage: 'log [name] [{ hostnames <host>…; output <writer>; format <encoder>; level <level> }]',
	summary: 'Writes an access log for the site.',
	documentation: [
		'Alone it sends access entries to the process log. With a block it makes a logger of its own; several `log`s of a',
		'site write one entry each.',
		'',
		'| Line | Meaning |',
		'| --- | --- |',
		'| `hostnames HOST…` | only requests for these hosts |',
		'| `output stdout \\| stderr \\| discard \\| file PATH` | where it is written, `stderr` if left out |',
		'| `format console \\| json` | how an entry looks |',
		'| `level LEVEL` | the least level that is written: entries are `INFO`, those of status 500 and up `ERROR` |',
		'',
		'```',
		'log {',
		'	output file /var/log/site.log',
		'	format json',
		'}',
		'```',
	].join('\n'),
	lower: ({ line, args }, site, cx) => {
		cx.count(line, args, 0, 1, log.usage);
		const hostnames: string[] = [];
		const draft = lowerLogBlock(line, cx, {
			hostnames: (hosts, at) => {
				if (!cx.count(at, hosts, 1, Number.POSITIVE_INFINITY, 'hostnames <host>…')) return;
				hostnames.push(...hosts.map(host => host.text.toLowerCase()));
			},
			no_hostname: (_args, at) => {
				cx.problem('error', 'directive/unavailable', at.words[0]!.span, unavailableMessage('no_hostname'));
			},
			include: (_args, at) => refuseNamespaces(at.words[0]!.text, at.words[0]!.span),
			exclude: (_args, at) => refuseNamespaces(at.words[0]!.text, at.words[0]!.span),
		});
		function refuseNamespaces(word: string, span: Parameters<typeof cx.problem>[2]): void {
			cx.problem('error', 'log/misplaced', span, `${word} is not allowed in the log directive`, {
				hint: `\`${word}\` belongs to the global option \`log\`.`,
			});
		}
		const entry: SiteLog = {
			...(args[0] ? { name: args[0].text } : {}),
			...(hostnames.length > 0 ? { hostnames } : {}),
			...draft,
		};
		site.logs = [...((site.logs ?? []) as SiteLog[]), cx.origin(entry, line.span)];
	},
	schema: {
		type: 'array',
		description: 'Access logs. An empty object sends entries to the process log.',
		items: {
			type: 'object',
			properties: {
				...LOG_PROPERTIES,
				hostnames: { type: 'array', items: { type: 'string' }, description: 'Only requests for these hosts.' },
			},
			additionalProperties: false,
		},
	},
};

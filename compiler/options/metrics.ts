/** Global option `metrics`: whether requests are counted. */
import { unavailableMessage } from '../lower/unavailable.ts';
import type { GlobalOption } from './option.ts';

/** `settings.metrics`. */
export const metrics: GlobalOption = {
	id: 'metrics',
	names: { configfile: ['metrics'], compatfile: ['metrics'] },
	usage: 'metrics [{ per_host }]',
	summary: 'Counts requests for `GET /metrics` of the Admin API.',
	documentation:
		'`per_host` adds the label `host`; hosts that no site names become `other`. Changing it needs a restart.\n\n```\n{\n\tadmin\n\tmetrics {\n\t\tper_host\n\t}\n}\n```',
	lower: (line, settings, cx) => {
		cx.count(line, line.words.slice(1), 0, 0, metrics.usage);
		const value: { per_host?: boolean } = {};
		cx.subdirectives(
			line.block,
			{
				per_host: (args, at) => {
					if (cx.count(at, args, 0, 0, 'per_host')) value.per_host = true;
				},
				observe_catchall_hosts: (_args, at) =>
					cx.problem('error', 'option/unavailable', at.words[0]!.span, unavailableMessage('observe_catchall_hosts')),
				otlp: (_args, at) => cx.problem('error', 'option/unavailable', at.words[0]!.span, unavailableMessage('otlp')),
			},
			'metrics',
		);
		settings.metrics = value;
	},
	schema: {
		type: 'object',
		properties: { per_host: { type: 'boolean', description: 'Adds the label `host`.' } },
		additionalProperties: false,
	},
	startup: true,
};

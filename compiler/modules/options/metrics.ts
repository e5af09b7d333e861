/** Global option `metrics`: collects metrics of requests. */
import { unavailableMessage } from '../../lower/context/unavailable.ts';
import type { GlobalOption } from '../contract/option.ts';

/** Global option; sets `settings.metrics` in the document. */
export const metrics: GlobalOption = {
	id: 'metrics',
	names: { configfile: ['metrics'], compatfile: ['metrics'] },
	usage: 'metrics [{ per_host; observe_catchall_hosts }]',
	summary: 'Collects metrics of requests for `GET /metrics` of the Admin API.',
	documentation:
		'`per_host` adds the label `host`; hosts that no site names become `other`; with `observe_catchall_hosts`, only those after the first 1000 of a thread do. Changing it needs a restart.\n\n```\n{\n\tadmin\n\tmetrics {\n\t\tper_host\n\t}\n}\n```',
	lower: (line, settings, cx) => {
		cx.count(line, line.words.slice(1), 0, 0, metrics.usage);
		const metricsSettings: { per_host?: boolean; observe_catchall_hosts?: boolean } = {};
		cx.subdirectives(
			line.block,
			{
				per_host: (args, innerLine) => {
					if (cx.count(innerLine, args, 0, 0, 'per_host')) metricsSettings.per_host = true;
				},
				observe_catchall_hosts: (args, innerLine) => {
					if (cx.count(innerLine, args, 0, 0, 'observe_catchall_hosts')) metricsSettings.observe_catchall_hosts = true;
				},
				otlp: (_args, innerLine) =>
					cx.problem('error', 'option/unavailable', innerLine.words[0]!.span, unavailableMessage('otlp')),
			},
			'metrics',
		);
		settings.metrics = metricsSettings;
	},
	schema: {
		type: 'object',
		properties: {
			per_host: { type: 'boolean', default: false, description: 'Adds the label `host`.' },
			observe_catchall_hosts: {
				type: 'boolean',
				default: false,
				description: 'With `per_host`: distinguishes hosts that no site names, up to the first 1000 of a thread.',
			},
		},
		additionalProperties: false,
	},
	startup: true,
};

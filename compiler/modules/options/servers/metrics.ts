/** `metrics` inside `servers`: an obsolete way to write the global option `metrics`. */
import type { ServerOption } from '../../contract/server-option.ts';

/** Option inside `servers`; sets `settings.metrics` in the document. */
export const serverMetrics: ServerOption = {
	name: 'metrics',
	usage: 'metrics [{ per_host }]',
	summary: 'The same as the global option `metrics`, in its obsolete place.',
	lower: (line, args, { settings }, cx) => {
		cx.count(line, args, 0, 0, serverMetrics.usage);
		const metricsSettings: { per_host?: boolean } = {};
		cx.subdirectives(
			line.block,
			{
				per_host: (words, innerLine) => {
					if (cx.count(innerLine, words, 0, 0, 'per_host')) metricsSettings.per_host = true;
				},
			},
			'metrics',
		);
		settings.metrics = { ...(settings.metrics as object | undefined), ...metricsSettings };
	},
	schema: {},
};

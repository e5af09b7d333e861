/** `metrics`: serves the process metrics on a site. */
import type { Step } from '../../document/document.ts';
import { METRICS_TYPES, metricsFormat } from '../../exchange/metrics-format.ts';
import { handlerDirective } from '../contract/directive.ts';

interface ExposeMetricsStep extends Step {
	readonly handler: 'expose_metrics';
	/** True to send the Prometheus text format even to clients that accept OpenMetrics. */
	readonly disable_openmetrics?: true;
}

const USAGE = 'metrics [matcher] [{ disable_openmetrics }]';

/** Syntax: `metrics [matcher]`. */
export const metricsEndpoint = handlerDirective<ExposeMetricsStep>({
	kind: 'handler',
	id: 'expose_metrics',
	names: { configfile: ['metrics'], compatfile: ['metrics'] },
	usage: USAGE,
	summary: 'Serves the process metrics for Prometheus.',
	documentation: [
		'Serves the same as `/metrics` of the Admin API, for all threads, in the Prometheus text format (version 0.0.4), or as',
		'OpenMetrics 1.0.0 for clients whose `Accept` asks for it, unless `disable_openmetrics` is set. Per-request',
		'metrics are collected only with the global option `metrics`. Everybody who can reach the path can read the metrics.',
		'',
		'```',
		'metrics /metrics',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	answers: 'always',
	measuresBody: true,
	order: { rank: 330 },
	lower: ({ line, args }, cx) => {
		cx.count(line, args, 0, 0, USAGE);
		let isOpenMetricsDisabled = false as boolean;
		const subdirectives = {
			disable_openmetrics: (words: typeof args, innerLine: typeof line) => {
				if (cx.count(innerLine, words, 0, 0, 'disable_openmetrics')) isOpenMetricsDisabled = true;
			},
		};
		cx.subdirectives(line.block, subdirectives, 'metrics');
		return cx.origin<ExposeMetricsStep>(
			{ handler: 'expose_metrics', ...(isOpenMetricsDisabled ? { disable_openmetrics: true as const } : {}) },
			line.span,
		);
	},
	schema: {
		properties: {
			disable_openmetrics: { const: true, description: 'Never sends OpenMetrics, whatever the client asks for.' },
		},
	},
	compile: (step, cx) => {
		const metricsSource = cx.lease('metrics', {});
		const { stepNumber } = cx;
		return x => {
			x.markAnswered('expose_metrics', stepNumber);
			const format = step.disable_openmetrics ? 'prometheus' : metricsFormat(x.request.headers.get('accept'));
			return metricsSource.render(format).then(text => {
				const { response } = x;
				response.status = 200;
				response.headers.set('Content-Type', METRICS_TYPES[format]);
				if (!step.disable_openmetrics) response.headers.add('Vary', 'Accept');
				response.body = text;
			});
		};
	},
});

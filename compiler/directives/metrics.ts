/** `metrics`: the metrics of the process, as an answer of a site. */
import type { Step } from '../document/document.ts';
import { handlerDirective } from './directive.ts';

interface ExposeMetricsStep extends Step {
	readonly handler: 'expose_metrics';
}

const USAGE = 'metrics [matcher] [{ disable_openmetrics }]';

/** `metrics [matcher]`. */
export const metricsEndpoint = handlerDirective<ExposeMetricsStep>({
	kind: 'handler',
	id: 'expose_metrics',
	names: { configfile: ['metrics'], compatfile: ['metrics'] },
	usage: USAGE,
	summary: 'Answers with the metrics of the process, for Prometheus.',
	documentation: [
		'What `/metrics` of the Admin API shows, in the text format of Prometheus (version 0.0.4), of all threads. Figures of',
		'single requests are counted when the global option `metrics` is there. `disable_openmetrics` is accepted: there is no',
		'other format. Everybody who can reach the path can read it.',
		'',
		'```',
		'metrics /metrics',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	answers: true,
	lower: ({ line, args }, cx) => {
		cx.count(line, args, 0, 0, USAGE);
		const disable = {
			disable_openmetrics: (words: typeof args, at: typeof line) =>
				void cx.count(at, words, 0, 0, 'disable_openmetrics'),
		};
		cx.subdirectives(line.block, disable, 'metrics');
		return cx.origin<ExposeMetricsStep>({ handler: 'expose_metrics' }, line.span);
	},
	schema: { properties: {} },
	compile: (_step, cx) => {
		const source = cx.lease('metrics', {});
		return x => {
			x.answeredBy = 'expose_metrics';
			return source.render().then(text => {
				const { response } = x;
				response.status = 200;
				response.headers.set('Content-Type', 'text/plain; version=0.0.4; charset=utf-8');
				response.body = text;
			});
		};
	},
});

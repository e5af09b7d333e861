/**
 * `GET /metrics` → 200, text exposition of the whole process, of Prometheus or (by `Accept`) OpenMetrics; an empty body when
 * the configuration does not ask for metrics.
 */
import { METRICS_TYPES, metricsFormat } from '../compiler/exchange/metrics-format.ts';
import type { AdminEndpoint } from './endpoint.ts';

export const metrics: AdminEndpoint = {
	path: '/metrics',
	methods: {
		GET: {
			summary: 'Metrics of the whole process; an empty body when the configuration does not ask for them.',
			answer: {
				description: 'Text format of Prometheus 0.0.4, or OpenMetrics 1.0.0 when `Accept` asks for it.',
				type: 'text/plain',
				others: ['application/openmetrics-text'],
				schema: { type: 'string' },
			},
			run: async (x, { runtime }) => {
				const format = metricsFormat(x.request.headers.get('accept'));
				const { text, release } = await runtime.exposition(format);
				x.whenFinished ??= [];
				x.whenFinished.push(release);
				x.response.status = 200;
				// Nothing is no OpenMetrics: that has an end.
				x.response.headers.set('Content-Type', METRICS_TYPES[text.length === 0 ? 'prometheus' : format]);
				x.response.headers.add('Vary', 'Accept');
				x.response.body = text;
			},
		},
	},
};

/**
 * `GET /metrics` → 200, metrics of the whole process in the text format of Prometheus or (by `Accept`) OpenMetrics; the body
 * is empty if the configuration does not turn metrics on.
 */
import { METRICS_TYPES, metricsFormat } from '../compiler/exchange/metrics-format.ts';
import type { AdminEndpoint } from './endpoint.ts';

export const metrics: AdminEndpoint = {
	path: '/metrics',
	operationsByMethod: {
		GET: {
			summary:
				'Returns the metrics of the whole process; the body is empty if the configuration does not turn metrics on.',
			answer: {
				description: 'Prometheus text format 0.0.4, or OpenMetrics 1.0.0 if `Accept` asks for it.',
				type: 'text/plain',
				otherTypes: ['application/openmetrics-text'],
				schema: { type: 'string' },
			},
			run: async (x, { runtime }) => {
				const format = metricsFormat(x.request.headers.get('accept'));
				const { text, release } = await runtime.renderMetrics(format);
				x.finishListeners ??= [];
				x.finishListeners.push(release);
				x.response.status = 200;
				// An empty body is not valid OpenMetrics, which requires an end marker.
				x.response.headers.set('Content-Type', METRICS_TYPES[text.length === 0 ? 'prometheus' : format]);
				x.response.headers.add('Vary', 'Accept');
				x.response.body = text;
			},
		},
	},
};

/**
 * `GET /metrics` → 200, Prometheus text exposition (`text/plain; version=0.0.4`) of the whole process; an empty body when
 * the configuration does not ask for metrics.
 */
import type { AdminEndpoint } from './endpoint.ts';

/** `/metrics`. */
export const metrics: AdminEndpoint = {
	path: '/metrics',
	methods: {
		GET: {
			summary: 'Metrics of the whole process; an empty body when the configuration does not ask for them.',
			answer: { description: 'Prometheus text exposition.', type: 'text/plain', schema: { type: 'string' } },
			run: async (x, { runtime }) => {
				const text = await runtime.metrics();
				x.response.status = 200;
				x.response.headers.set('Content-Type', 'text/plain; version=0.0.4; charset=utf-8');
				x.response.body = text;
			},
		},
	},
};

/**
 * `GET /live` and `GET /ready`: for process managers and load balancers.
 *
 * - `GET /live` → 200 `{"live":true}` while the process runs, draining included.
 * - `GET /ready` → 200 `{"ready":true}` once every listener is bound, until a stop begins, and while every worker thread
 *   answers; otherwise 503, code `not_ready`, whose message names threads that do not answer.
 */
import { type AdminEndpoint, type AnswerSchema, answerJson } from './endpoint.ts';
import { AdminError } from './errors.ts';

/** An object with one member that is true. */
function flag(name: string): AnswerSchema {
	return { type: 'object', properties: { [name]: { const: true } }, required: [name], additionalProperties: false };
}

export const live: AdminEndpoint = {
	path: '/live',
	methods: {
		GET: {
			summary: 'Tells that the process runs, draining included.',
			answer: { description: 'It runs.', type: 'application/json', schema: flag('live') },
			run: x => answerJson(x, 200, '{"live":true}'),
		},
	},
};

export const ready: AdminEndpoint = {
	path: '/ready',
	methods: {
		GET: {
			summary: 'Tells whether every listener is bound, every thread answers and no stop has begun.',
			answer: { description: 'It is ready.', type: 'application/json', schema: flag('ready') },
			errors: ['not_ready'],
			run: (x, { runtime }) => {
				const { ready, unready = 'The server is not ready for requests.' } = runtime;
				if (!ready) throw new AdminError(503, 'not_ready', unready);
				answerJson(x, 200, '{"ready":true}');
			},
		},
	},
};

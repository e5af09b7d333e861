/**
 * `GET /live` and `GET /ready`: for process managers and load balancers.
 *
 * - `GET /live` → 200 `{"live":true}` while the process runs, even while it drains.
 * - `GET /ready` → 200 `{"ready":true}` once every listener is bound, until a stop begins, and while every worker thread
 *   responds; otherwise 503, code `not_ready`, with a message that names the threads that do not respond.
 */
import { LIVE_ANSWER, READY_ANSWER } from '../compiler/exchange/health-answers.ts';
import { type AdminEndpoint, answerJson, type JsonSchema } from './endpoint.ts';
import { AdminError } from './errors.ts';

/** Returns the schema of an object whose only member has this name and the value true. */
function flagSchema(name: string): JsonSchema {
	return { type: 'object', properties: { [name]: { const: true } }, required: [name], additionalProperties: false };
}

export const live: AdminEndpoint = {
	path: '/live',
	operationsByMethod: {
		GET: {
			summary: 'Reports that the process is running, even while it drains.',
			answer: { description: 'The process is running.', type: 'application/json', schema: flagSchema('live') },
			run: x => answerJson(x, 200, LIVE_ANSWER),
		},
	},
};

export const ready: AdminEndpoint = {
	path: '/ready',
	operationsByMethod: {
		GET: {
			summary: 'Reports whether every listener is bound, every thread responds and no stop has begun.',
			answer: { description: 'The server is ready.', type: 'application/json', schema: flagSchema('ready') },
			errors: ['not_ready'],
			run: (x, { runtime }) => {
				const { ready, unreadyReason = 'The server is not ready for requests.' } = runtime;
				if (!ready) throw new AdminError(503, 'not_ready', unreadyReason);
				answerJson(x, 200, READY_ANSWER);
			},
		},
	},
};

/**
 * `GET /live` and `GET /ready`: for process managers and load balancers.
 *
 * - `GET /live` → 200 `{"live":true}` while the process runs, draining included.
 * - `GET /ready` → 200 `{"ready":true}` once every listener is bound, until a stop begins; else 503, code `not_ready`.
 */
import { type AdminEndpoint, answerJson } from './endpoint.ts';
import { AdminError } from './errors.ts';

/** `/live`. */
export const live: AdminEndpoint = {
	path: '/live',
	methods: { GET: x => answerJson(x, 200, '{"live":true}') },
};

/** `/ready`. */
export const ready: AdminEndpoint = {
	path: '/ready',
	methods: {
		GET: (x, { runtime }) => {
			if (!runtime.ready) throw new AdminError(503, 'not_ready', 'The server is not ready for requests.');
			answerJson(x, 200, '{"ready":true}');
		},
	},
};

/**
 * `POST /load`: replaces the whole configuration.
 *
 * The body is JSON in the server's schema (`application/json`, any `+json`, or no Content-Type), a Compatfile
 * (`text/compatfile`) or a Configfile (`text/configfile`). Imports and relative paths of text resolve against the
 * working directory of the server.
 *
 * - 200 `{"generation":N,"diagnostics":[warnings]}`: every thread serves it, and no later request sees the older one.
 *   `"unchanged":true` when it is the configuration that was already serving.
 * - 400, code `invalid_config`, with all diagnostics: it does not compile; the old one goes on serving.
 * - 409, code `restart_required`, with `reasons` (`[{"code","subject","message"}]`): nothing was applied.
 * - 503, code `load_failed`: a thread died or a stop began meanwhile; nothing was applied.
 * - 413, 415: see the codes.
 */
import type { ConfigFormat } from '../compiler/dialects/dialect.ts';
import type { Exchange } from '../compiler/exchange/exchange.ts';
import { type AdminEndpoint, answerJson } from './endpoint.ts';
import { AdminError, refusalMessage } from './errors.ts';
import { mediaType, readText, unsupported } from './request-text.ts';

const TAKEN = ['application/json', 'text/compatfile', 'text/configfile'] as const;

/** The format that a request's media type names; `otherwise` when it names none. Throws AdminError 415. */
export function formatOf(x: Exchange, otherwise: ConfigFormat): ConfigFormat {
	const type = mediaType(x);
	if (type === undefined) return otherwise;
	if (type === 'text/compatfile') return 'compatfile';
	if (type === 'text/configfile') return 'configfile';
	if (type === 'application/json' || /^application\/[^/]+\+json$/.test(type)) return 'json';
	throw unsupported(type, TAKEN);
}

/** `/load`. */
export const load: AdminEndpoint = {
	path: '/load',
	methods: {
		POST: async (x, { runtime }) => {
			const format = formatOf(x, 'json');
			const outcome = await runtime.load({ format, text: await readText(x), name: '<request>' });
			switch (outcome.result) {
				case 'applied': {
					const { generation, unchanged, diagnostics } = outcome;
					answerJson(x, 200, JSON.stringify({ generation, ...(unchanged ? { unchanged } : {}), diagnostics }));
					return;
				}
				case 'refused': {
					const { diagnostics } = outcome;
					throw new AdminError(400, 'invalid_config', refusalMessage(diagnostics), { diagnostics });
				}
				case 'restart_required': {
					const { diagnostics, reasons } = outcome;
					const what = reasons.map(reason => reason.message).join(' ');
					throw new AdminError(409, 'restart_required', `A restart is needed. ${what}`.trim(), {
						diagnostics,
						reasons,
					});
				}
				case 'failed':
					throw new AdminError(503, 'load_failed', outcome.message);
			}
		},
	},
};

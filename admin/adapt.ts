/**
 * `POST /adapt`: converts a configuration to the JSON document without applying it.
 *
 * The body is a Configfile (`text/configfile`, or no Content-Type), a Caddyfile (`text/caddyfile` or `text/compatfile`) or
 * JSON, which is checked and returned in the current representation.
 *
 * - 200 `{"document":{…},"diagnostics":[warnings]}`. The document is unredacted: it contains secrets.
 * - 400, code `invalid_config`, with all diagnostics. They quote imported files under the same condition as those of `POST /load`
 * (load.ts).
 * - 413, 415: see `ADMIN_ERRORS` in errors.ts.
 */
import { type AdminEndpoint, answerJson } from './endpoint.ts';
import { AdminError, refusalMessage } from './errors.ts';
import { CONFIGURATION_TYPES, configurationFormatOf } from './load.ts';
import { DIAGNOSTICS_SCHEMA } from './outcome.ts';
import { readText } from './request-text.ts';

export const adapt: AdminEndpoint = {
	path: '/adapt',
	operationsByMethod: {
		POST: {
			summary: 'Converts a configuration to the JSON document without applying it.',
			body: CONFIGURATION_TYPES,
			answer: {
				description: 'The document, secrets included.',
				type: 'application/json',
				schema: {
					type: 'object',
					properties: { document: { type: 'object' }, diagnostics: DIAGNOSTICS_SCHEMA },
					required: ['document', 'diagnostics'],
					additionalProperties: false,
				},
			},
			errors: ['invalid_config', 'bad_request', 'body_too_large', 'unsupported_media_type'],
			run: async (x, { runtime }) => {
				const format = configurationFormatOf(x, 'configfile');
				const input = { format, text: await readText(x), name: '<request>', remote: true };
				const { document, diagnostics } = await runtime.adapt(input);
				if (document === undefined) {
					throw new AdminError(400, 'invalid_config', refusalMessage(diagnostics), { diagnostics });
				}
				answerJson(x, 200, `{"document":${document.trim()},"diagnostics":${JSON.stringify(diagnostics)}}`);
			},
		},
	},
};

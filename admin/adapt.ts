/**
 * `POST /adapt`: converts a configuration to the JSON document without applying it.
 *
 * The body is a Configfile (`text/configfile`, or no Content-Type), a Compatfile (`text/compatfile`) or JSON, which is
 * checked and given back in the current representation.
 *
 * - 200 `{"document":{…},"diagnostics":[warnings]}`. The document is the one that the text makes, secrets included.
 * - 400, code `invalid_config`, with all diagnostics.
 * - 413, 415: see the codes.
 */
import { type AdminEndpoint, answerJson } from './endpoint.ts';
import { AdminError, refusalMessage } from './errors.ts';
import { formatOf } from './load.ts';
import { readText } from './request-text.ts';

/** `/adapt`. */
export const adapt: AdminEndpoint = {
	path: '/adapt',
	methods: {
		POST: async (x, { runtime }) => {
			const format = formatOf(x, 'configfile');
			const { document, diagnostics } = await runtime.adapt({ format, text: await readText(x), name: '<request>' });
			if (document === undefined) {
				throw new AdminError(400, 'invalid_config', refusalMessage(diagnostics), { diagnostics });
			}
			answerJson(x, 200, `{"document":${document.trim()},"diagnostics":${JSON.stringify(diagnostics)}}`);
		},
	},
};

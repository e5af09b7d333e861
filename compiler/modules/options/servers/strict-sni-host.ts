/**
 * `strict_sni_host` and `0rtt` inside `servers`: whether the TLS server name and the requested host must be equal, and early data.
 */
import type { ServerOption } from '../../contract/server-option.ts';

/** Option inside `servers`; sets `settings.servers[].strict_sni_host` in the document. */
export const strictSniHost: ServerOption = {
	name: 'strict_sni_host',
	usage: 'strict_sni_host [on | insecure_off]',
	summary: "Answers 421 if a request's host differs from the server name of its TLS handshake.",
	documentation: ['It is on if a site requests client certificates, and can be turned off there with `insecure_off`.'],
	lower: (line, args, { server }, cx) => {
		cx.noBlock(line);
		if (!cx.count(line, args, 0, 1, strictSniHost.usage)) return;
		const word = args[0];
		if (!word || word.text === 'on') server.strict_sni_host = true;
		else if (word.text === 'insecure_off') server.strict_sni_host = false;
		else {
			const message = `strict_sni_host only supports 'on' or 'insecure_off', got '${word.text}'`;
			cx.problem('error', 'servers/strict-sni-host', word.span, message);
		}
	},
	schema: { strict_sni_host: { type: 'boolean', description: 'Answers 421 if host and server name differ.' } },
};

/** Option inside `servers`: accepts `0rtt off`, which has no effect, because this server never accepts early data. */
export const earlyData: ServerOption = {
	name: '0rtt',
	usage: '0rtt off',
	summary: 'Accepts no early data. Accepted for compatibility: this server never does.',
	lower: (line, args, _block, cx) => {
		cx.noBlock(line);
		if (!cx.count(line, args, 1, 1, earlyData.usage) || args[0]!.text === 'off') return;
		const message = `unsupported 0rtt argument '${args[0]!.text}' (only 'off' is supported)`;
		cx.problem('error', 'servers/early-data', args[0]!.span, message);
	},
	schema: {},
};

/** `strict_sni_host` and `0rtt` inside `servers`. */
import type { ServerOption } from './server-option.ts';

/** `settings.servers[].strict_sni_host`. */
export const strictSniHost: ServerOption = {
	name: 'strict_sni_host',
	usage: 'strict_sni_host [on | insecure_off]',
	summary: "Answers 421 where a request's host is not the server name of its TLS handshake.",
	documentation: [
		'It is on where a site asks for client certificates, and can be turned off there with `insecure_off`.',
	],
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
	schema: { strict_sni_host: { type: 'boolean', description: '421 where host and server name differ.' } },
};

/** `0rtt off`: early data is never taken here. */
export const earlyData: ServerOption = {
	name: '0rtt',
	usage: '0rtt off',
	summary: 'Takes no early data: always so here, accepted for files that say it.',
	lower: (line, args, _block, cx) => {
		cx.noBlock(line);
		if (!cx.count(line, args, 1, 1, earlyData.usage) || args[0]!.text === 'off') return;
		const message = `unsupported 0rtt argument '${args[0]!.text}' (only 'off' is supported)`;
		cx.problem('error', 'servers/early-data', args[0]!.span, message);
	},
	schema: {},
};

/** Global options `http_port` and `https_port`: the default ports of the schemes. */
import type { GlobalOption } from '../contract/option.ts';

/** Global option; sets `settings.http_port` in the document. */
export const httpPort: GlobalOption = portOption(
	'http_port',
	80,
	'Sets the port of `http://` addresses without one.',
	'Addresses such as `http://example.com` listen on it.',
);

/** Global option; sets `settings.https_port` in the document. */
export const httpsPort: GlobalOption = portOption(
	'https_port',
	443,
	'Sets the port of addresses with neither a port nor `http://`.',
	'Addresses such as `example.com` listen on it, with TLS.',
);

function portOption(id: string, defaultPort: number, summary: string, effect: string): GlobalOption {
	const usage = `${id} <port>`;
	return {
		id,
		names: { configfile: [id], compatfile: [id] },
		usage,
		summary,
		documentation: `${effect} The default is ${defaultPort}.\n\n\`\`\`\n{\n\t${id} ${8000 + defaultPort}\n}\n\`\`\``,
		lower: (line, settings, cx) => {
			const args = line.words.slice(1);
			cx.noBlock(line);
			if (!cx.count(line, args, 1, 1, usage)) return;
			const port = cx.integer(args[0]!, 1, 65_535);
			if (port !== undefined) settings[id] = port;
		},
		schema: { type: 'integer', minimum: 1, maximum: 65_535 },
		startup: false,
	};
}

/** Global options `http_port` and `https_port`: the ports that the schemes stand for. */
import type { GlobalOption } from './option.ts';

/** `settings.http_port`. */
export const httpPort: GlobalOption = portOption(
	'http_port',
	80,
	'Port of `http://` addresses that name none.',
	'Addresses such as `http://example.com` listen there.',
);

/** `settings.https_port`. */
export const httpsPort: GlobalOption = portOption(
	'https_port',
	443,
	'Port of addresses that name neither a port nor `http://`.',
	'Addresses such as `example.com` listen there, with TLS.',
);

function portOption(id: string, standard: number, summary: string, sentence: string): GlobalOption {
	const usage = `${id} <port>`;
	return {
		id,
		names: { configfile: [id], compatfile: [id] },
		usage,
		summary,
		documentation: `${sentence} ${standard} if left out.\n\n\`\`\`\n{\n\t${id} ${8000 + standard}\n}\n\`\`\``,
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

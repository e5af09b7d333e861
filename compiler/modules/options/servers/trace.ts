/** `trace` inside `servers`: a debug entry for every handler that a request runs. */
import type { ServerOption } from '../../contract/server-option.ts';

/** Option inside `servers`; sets `settings.servers[].trace` in the document. The entries have the logger `http.trace`. */
export const trace: ServerOption = {
	name: 'trace',
	usage: 'trace',
	summary:
		'Writes a debug entry for every handler that a request runs, to show its path through the configuration; costs time.',
	documentation: [
		'Entries of `trace` come from the logger `http.trace`, with handler, place in the document, site, method, host and path.',
		'They need a log of level DEBUG, as set by the global option `debug`. Without a running server, `svc explain` shows',
		'the same and more.',
	],
	lower: (line, args, block, cx) => {
		cx.noBlock(line);
		if (cx.count(line, args, 0, 0, trace.usage)) block.server.trace = true;
	},
	schema: {
		trace: { const: true, description: 'Writes a debug entry for every handler that a request runs.' },
	},
};

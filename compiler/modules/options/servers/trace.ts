/** `trace` inside `servers`: an entry for every handler that a request runs. */
import type { ServerOption } from './server-option.ts';

/** Tells in debug entries of `http.trace` which handlers ran. */
export const trace: ServerOption = {
	name: 'trace',
	usage: 'trace',
	summary: 'Writes a debug entry for every handler that a request runs, to see which way it takes; costs time.',
	documentation: [
		'Entries of `trace` come from the logger `http.trace`: handler, place in the document, site, method, host and path.',
		'They need a log of level DEBUG, such as the global option `debug` gives. Without a running server `svc explain` tells',
		'the same and more.',
	],
	lower: (line, args, block, cx) => {
		cx.noBlock(line);
		if (cx.count(line, args, 0, 0, trace.usage)) block.server.trace = true;
	},
	schema: {
		trace: { const: true, description: 'A debug entry is written for every handler that a request runs.' },
	},
};

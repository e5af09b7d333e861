/** `enable_full_duplex` inside `servers`: what this server always does. */
import type { ServerOption } from './server-option.ts';

/** Accepted for configurations that have it. */
export const enableFullDuplex: ServerOption = {
	name: 'enable_full_duplex',
	usage: 'enable_full_duplex',
	summary: 'Reads a request while its response is written: always so here, accepted for files that say it.',
	lower: (line, args, _block, cx) => {
		cx.noBlock(line);
		cx.count(line, args, 0, 0, enableFullDuplex.usage);
	},
	schema: {},
};

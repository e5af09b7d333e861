/** `enable_full_duplex` inside `servers`: accepted without effect, because this server is always full duplex. */
import type { ServerOption } from '../../contract/server-option.ts';

/** Option inside `servers`, accepted for compatibility. */
export const enableFullDuplex: ServerOption = {
	name: 'enable_full_duplex',
	usage: 'enable_full_duplex',
	summary: 'Reads a request while its response is written. Accepted for compatibility: this server always does.',
	lower: (line, args, _block, cx) => {
		cx.noBlock(line);
		cx.count(line, args, 0, 0, enableFullDuplex.usage);
	},
	schema: {},
};

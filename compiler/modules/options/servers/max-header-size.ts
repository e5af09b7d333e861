/** `max_header_size` inside `servers`: bytes of a request's head. */
import type { ServerOption } from './server-option.ts';

/** A head is text of one block in memory: more than this is no head. */
const LARGEST_HEADER_SIZE: number = 16 * 1024 * 1024;
/** Less than a request line and a Host cannot be served. */
const SMALLEST_HEADER_SIZE = 256;

/** `settings.servers[].max_header_size`. */
export const maxHeaderSize: ServerOption = {
	name: 'max_header_size',
	usage: 'max_header_size <size>',
	summary:
		'Bytes of request line and fields, 32KiB if left out; more is answered 431, a request line alone of more 414.',
	lower: (line, args, { server }, cx) => {
		cx.noBlock(line);
		const size = cx.count(line, args, 1, 1, maxHeaderSize.usage) ? cx.size(args[0]!) : undefined;
		if (size === undefined) return;
		const taken = Math.min(Math.max(size, SMALLEST_HEADER_SIZE), LARGEST_HEADER_SIZE);
		if (size === taken || cx.dialect === 'compatfile') server.max_header_size = taken;
		if (size === taken) return;
		if (cx.dialect === 'compatfile') {
			cx.problem('warning', 'value/out-of-range', args[0]!.span, `A head may have ${taken} bytes here, not ${size}.`, {
				hint: 'Write a size from 256 to 16MiB.',
			});
		} else {
			cx.problem('error', 'value/out-of-range', args[0]!.span, `A head of ${size} bytes is out of range.`, {
				hint: 'Write a size from 256 to 16MiB.',
			});
		}
	},
	schema: {
		max_header_size: {
			type: 'integer',
			minimum: SMALLEST_HEADER_SIZE,
			maximum: LARGEST_HEADER_SIZE,
			default: 32_768,
			description: 'Most bytes of request line and fields.',
		},
	},
};

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
		if (size >= SMALLEST_HEADER_SIZE && size <= LARGEST_HEADER_SIZE) server.max_header_size = size;
		else {
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

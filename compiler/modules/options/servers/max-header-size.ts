/** `max_header_size` inside `servers`: maximum bytes of a request head. */
import type { ServerOption } from '../../contract/server-option.ts';

/** Maximum of `max_header_size` in bytes. A request head is stored in one block of memory, and no real request head is larger. */
const MAX_HEADER_BYTES: number = 16 * 1024 * 1024;
/** Minimum of `max_header_size` in bytes. It leaves room for a request line and a `Host` field. */
const MIN_HEADER_BYTES = 256;

/** Option inside `servers`; sets `settings.servers[].max_header_size` in the document. */
export const maxHeaderSize: ServerOption = {
	name: 'max_header_size',
	usage: 'max_header_size <size>',
	summary:
		'Maximum bytes of request line and fields, default 32KiB; longer heads are answered with 431, longer request lines with 414.',
	lower: (line, args, { server }, cx) => {
		cx.noBlock(line);
		const size = cx.count(line, args, 1, 1, maxHeaderSize.usage) ? cx.size(args[0]!) : undefined;
		if (size === undefined) return;
		const clampedSize = Math.min(Math.max(size, MIN_HEADER_BYTES), MAX_HEADER_BYTES);
		if (size === clampedSize || cx.dialect === 'compatfile') server.max_header_size = clampedSize;
		if (size === clampedSize) return;
		if (cx.dialect === 'compatfile') {
			cx.problem(
				'warning',
				'value/out-of-range',
				args[0]!.span,
				`The size of a request head must be ${clampedSize} bytes here, not ${size}.`,
				{
					hint: 'Write a size from 256 to 16MiB.',
				},
			);
		} else {
			cx.problem(
				'error',
				'value/out-of-range',
				args[0]!.span,
				`The size of a request head, ${size} bytes, is out of range.`,
				{
					hint: 'Write a size from 256 to 16MiB.',
				},
			);
		}
	},
	schema: {
		max_header_size: {
			type: 'integer',
			minimum: MIN_HEADER_BYTES,
			maximum: MAX_HEADER_BYTES,
			default: 32_768,
			description: 'Maximum bytes of request line and fields.',
		},
	},
};

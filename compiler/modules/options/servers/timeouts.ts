/** `timeouts` inside `servers`: how long a client may take for what it does. */
import type { LowerContext } from '../../../lower/lower-context.ts';
import type { Word } from '../../../syntax/ast.ts';
import type { ServerOption } from './server-option.ts';

/** Longest time-out in milliseconds: ten years, which no clock of ours overflows at. */
const LONGEST = 10 * 365 * 86_400_000;

const time = (description: string) => ({ type: 'number', minimum: 0, maximum: LONGEST, description });
const rate = (description: string) => ({ type: 'integer', minimum: 0, description });

/** `settings.servers[].timeouts`. */
export const timeouts: ServerOption = {
	name: 'timeouts',
	usage:
		'timeouts { read_header <duration>; read_body <duration>; read_body_idle <duration> [<bytes/s>]; write <duration>; write_idle <duration> [<bytes/s>]; write_max_chunk <size>; idle <duration>; handshake <duration> }',
	summary: 'How long clients may take; 0 is without bound.',
	documentation: [
		'| Line | If left out | Meaning |',
		'| --- | --- | --- |',
		'| `read_header D` | 1m | from the first byte of a head to its end; then 408 |',
		'| `read_body D` | none | from the head to the end of the body; then 408 |',
		'| `read_body_idle D [RATE]` | 1m | without a byte of a body that is waited for; with RATE a body that is waited for must also come at so many bytes a second on average, the first D apart |',
		'| `write D` | none | from the head of the request to the end of the response; then the connection is cut |',
		'| `write_idle D [RATE]` | 1m | without a byte of a response taken; RATE as above |',
		'| `write_max_chunk SIZE` | 64KiB | bytes of a body that are given to a connection at once |',
		'| `idle D` | 5m | between two requests of a connection |',
		'| `handshake D` | 10s | from the beginning of a TLS connection to the end of its handshake |',
	],
	lower: (line, args, { server }, cx) => {
		if (!cx.count(line, args, 0, 0, timeouts.usage)) return;
		const fields: { [field: string]: number } = {};
		const one = (field: string) => (words: readonly Word[], at: typeof line) => {
			cx.noBlock(at);
			const value = cx.count(at, words, 1, 1, `${field} <duration>`) ? timeOf(words[0]!, cx) : undefined;
			if (value !== undefined) fields[field] = value;
		};
		const withRate = (field: string, rateField: string) => (words: readonly Word[], at: typeof line) => {
			cx.noBlock(at);
			if (!cx.count(at, words, 1, 2, `${field} <duration> [<bytes/s>]`)) return;
			const value = timeOf(words[0]!, cx);
			if (value !== undefined) fields[field] = value;
			const bytes = words[1] && cx.integer(words[1], 0);
			if (bytes !== undefined) fields[rateField] = bytes;
		};
		cx.subdirectives(
			line.block,
			{
				read_header: one('read_header'),
				read_body: one('read_body'),
				read_body_idle: withRate('read_body_idle', 'read_body_rate'),
				write: one('write'),
				write_idle: withRate('write_idle', 'write_rate'),
				write_max_chunk: (words, at) => {
					cx.noBlock(at);
					const size = cx.count(at, words, 1, 1, 'write_max_chunk <size>') ? chunkOf(words[0]!, cx) : undefined;
					if (size !== undefined) fields.write_max_chunk = size;
				},
				idle: one('idle'),
				handshake: one('handshake'),
			},
			'servers timeouts',
			{ compatible: name => `unrecognized timeouts option '${name}'` },
		);
		server.timeouts = cx.origin(fields, line.span);
	},
	schema: {
		timeouts: {
			type: 'object',
			description: 'Milliseconds and rates; 0 is without bound.',
			properties: {
				read_header: { ...time('From the first byte of a head to its end.'), default: 60_000 },
				read_body: time('From the head to the end of the body.'),
				read_body_idle: { ...time('Without a byte of a body that is waited for.'), default: 60_000 },
				read_body_rate: rate('Bytes a second that a body that is waited for must bring on average.'),
				write: time('From the head of the request to the end of the response.'),
				write_idle: { ...time('Without a byte of a response taken.'), default: 60_000 },
				write_rate: rate('Bytes a second that a client must take on average.'),
				write_max_chunk: {
					type: 'integer',
					minimum: 1024,
					maximum: 16_777_216,
					default: 65_536,
					description: 'Bytes of a body that are given to a connection at once.',
				},
				idle: { ...time('Between two requests of a connection.'), default: 300_000 },
				handshake: { ...time('From the beginning of a TLS connection to the end of its handshake.'), default: 10_000 },
				'@id': { type: 'string' },
			},
			additionalProperties: false,
		},
	},
};

/** Milliseconds that may bound something; a negative time is none. */
function timeOf(word: Word, cx: LowerContext): number | undefined {
	const value = cx.duration(word);
	if (value === undefined || (value >= 0 && value <= LONGEST)) return value;
	const message = value < 0 ? 'A time-out cannot be negative.' : 'A time-out of more than ten years bounds nothing.';
	cx.problem('error', 'value/out-of-range', word.span, message, { hint: 'Write 0 for no bound.' });
	return undefined;
}

function chunkOf(word: Word, cx: LowerContext): number | undefined {
	const value = cx.size(word);
	if (value === undefined || (value >= 1024 && value <= 16_777_216)) return value;
	cx.problem('error', 'value/out-of-range', word.span, `A chunk of ${value} bytes is out of range.`, {
		hint: 'Write a size from 1KiB to 16MiB.',
	});
	return undefined;
}

/** `timeouts` inside `servers`: time limits for clients. */

import type { Word } from '../../../syntax/ast.ts';
import type { LowerContext } from '../../contract/lower-context.ts';
import type { ServerOption } from '../../contract/server-option.ts';

/** Maximum timeout in milliseconds: ten years. Larger values could overflow a clock. */
const MAX_TIMEOUT_MS = 10 * 365 * 86_400_000;

const timeSchema = (description: string) => ({ type: 'number', minimum: 0, maximum: MAX_TIMEOUT_MS, description });
const rateSchema = (description: string) => ({ type: 'integer', minimum: 0, description });

/** Option inside `servers`; sets `settings.servers[].timeouts` in the document. */
export const timeouts: ServerOption = {
	name: 'timeouts',
	usage:
		'timeouts { read_header <duration>; read_body <duration>; read_body_idle <duration> [<bytes/s>]; write <duration>; write_idle <duration> [<bytes/s>]; write_max_chunk <size>; idle <duration>; handshake <duration> }',
	summary: 'Sets time limits for clients; 0 means no limit.',
	documentation: [
		'| Line | Default | Meaning |',
		'| --- | --- | --- |',
		'| `read_header D` | 1m | from the first byte of a request head to its end; then 408 |',
		'| `read_body D` | none | from the head to the end of the body; then 408 |',
		'| `read_body_idle D [RATE]` | 1m | without receiving a byte of an expected body; with RATE, an expected body must also average that many bytes per second, after the first D |',
		'| `write D` | none | from the request head to the end of the response; then the connection is closed |',
		'| `write_idle D [RATE]` | 1m | without the client accepting a byte of the response; RATE as above |',
		'| `write_max_chunk SIZE` | 64KiB | bytes of a body handed to a connection at a time |',
		'| `idle D` | 5m | between two requests of a connection |',
		'| `handshake D` | 10s | from the start of a TLS connection to the end of its handshake |',
	],
	lower: (line, args, { server }, cx) => {
		if (!cx.count(line, args, 0, 0, timeouts.usage)) return;
		const timeoutSettings: { [field: string]: number } = {};
		const timeHandler = (field: string) => (words: readonly Word[], innerLine: typeof line) => {
			cx.noBlock(innerLine);
			const timeMs = cx.count(innerLine, words, 1, 1, `${field} <duration>`) ? lowerTime(words[0]!, cx) : undefined;
			if (timeMs !== undefined) timeoutSettings[field] = timeMs;
		};
		const timeAndRateHandler =
			(field: string, rateField: string) => (words: readonly Word[], innerLine: typeof line) => {
				cx.noBlock(innerLine);
				if (!cx.count(innerLine, words, 1, 2, `${field} <duration> [<bytes/s>]`)) return;
				const timeMs = lowerTime(words[0]!, cx);
				if (timeMs !== undefined) timeoutSettings[field] = timeMs;
				const bytesPerSecond = words[1] && cx.integer(words[1], 0);
				if (bytesPerSecond !== undefined) timeoutSettings[rateField] = bytesPerSecond;
			};
		cx.subdirectives(
			line.block,
			{
				read_header: timeHandler('read_header'),
				read_body: timeHandler('read_body'),
				read_body_idle: timeAndRateHandler('read_body_idle', 'read_body_rate'),
				write: timeHandler('write'),
				write_idle: timeAndRateHandler('write_idle', 'write_rate'),
				write_max_chunk: (words, innerLine) => {
					cx.noBlock(innerLine);
					const chunkBytes = cx.count(innerLine, words, 1, 1, 'write_max_chunk <size>')
						? lowerChunkSize(words[0]!, cx)
						: undefined;
					if (chunkBytes !== undefined) timeoutSettings.write_max_chunk = chunkBytes;
				},
				idle: timeHandler('idle'),
				handshake: timeHandler('handshake'),
			},
			'servers timeouts',
			{ compatibleMessage: name => `unrecognized timeouts option '${name}'` },
		);
		server.timeouts = cx.origin(timeoutSettings, line.span);
	},
	schema: {
		timeouts: {
			type: 'object',
			description: 'Milliseconds and rates; 0 means no limit.',
			properties: {
				read_header: { ...timeSchema('From the first byte of a request head to its end.'), default: 60_000 },
				read_body: timeSchema('From the head to the end of the body.'),
				read_body_idle: { ...timeSchema('Without receiving a byte of an expected body.'), default: 60_000 },
				read_body_rate: rateSchema('Average bytes per second of an expected body.'),
				write: timeSchema('From the request head to the end of the response.'),
				write_idle: { ...timeSchema('Without the client accepting a byte of the response.'), default: 60_000 },
				write_rate: rateSchema('Average bytes per second that a client must accept.'),
				write_max_chunk: {
					type: 'integer',
					minimum: 1024,
					maximum: 16_777_216,
					default: 65_536,
					description: 'Bytes of a body handed to a connection at a time.',
				},
				idle: { ...timeSchema('Between two requests of a connection.'), default: 300_000 },
				handshake: {
					...timeSchema('From the start of a TLS connection to the end of its handshake.'),
					default: 10_000,
				},
				'@id': { type: 'string' },
			},
			additionalProperties: false,
		},
	},
};

/** Parses a time limit as milliseconds, from 0 to {@link MAX_TIMEOUT_MS}. */
function lowerTime(word: Word, cx: LowerContext): number | undefined {
	const timeMs = cx.duration(word);
	if (timeMs === undefined || (timeMs >= 0 && timeMs <= MAX_TIMEOUT_MS)) return timeMs;
	const message = timeMs < 0 ? 'A timeout cannot be negative.' : 'A timeout of more than ten years is not a limit.';
	cx.problem('error', 'value/out-of-range', word.span, message, { hint: 'Write 0 for no limit.' });
	return undefined;
}

function lowerChunkSize(word: Word, cx: LowerContext): number | undefined {
	const chunkBytes = cx.size(word);
	if (chunkBytes === undefined || (chunkBytes >= 1024 && chunkBytes <= 16_777_216)) return chunkBytes;
	cx.problem('error', 'value/out-of-range', word.span, `A chunk of ${chunkBytes} bytes is out of range.`, {
		hint: 'Write a size from 1KiB to 16MiB.',
	});
	return undefined;
}

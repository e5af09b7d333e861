/**
 * `timeouts`: limits how long the server waits for a client to send a request body or to read a response, in place of the
 * listener's settings.
 */
import type { Step } from '../../document/document.ts';
import type { TransferLimits } from '../../exchange/exchange.ts';
import type { Line, Word } from '../../syntax/ast.ts';
import { handlerDirective } from '../contract/directive.ts';
import type { LowerContext } from '../contract/lower-context.ts';

interface TransferTimesStep extends Step {
	readonly handler: 'transfer_times';
	readonly read_timeout?: number;
	readonly read_rate?: number;
	readonly write_timeout?: number;
	readonly write_rate?: number;
	readonly max_write_chunk?: number;
}

type TransferTimesFields = { -readonly [K in Exclude<keyof TransferTimesStep, 'handler' | 'when' | '@id'>]?: number };

const USAGE =
	'timeouts [matcher] { read_timeout <duration> [<bytes/s>]; write_timeout <duration> [<bytes/s>]; max_write_chunk <size> }';

/** Maximum of a timeout: ten years. */
const MAX_TIMEOUT_MS = 10 * 365 * 86_400_000;
const MIN_CHUNK_BYTES = 1024;
const MAX_CHUNK_BYTES = 16_777_216;

/** Syntax: `timeouts [matcher] { … }`. */
export const timeouts = handlerDirective<TransferTimesStep>({
	kind: 'handler',
	id: 'transfer_times',
	names: { configfile: ['timeouts'], compatfile: ['timeouts'] },
	usage: USAGE,
	summary: 'Limits how long clients may stall while a body is read or a response is written.',
	documentation: [
		'| Line | Meaning |',
		'| --- | --- |',
		'| `read_timeout D [RATE]` | maximum time without receiving a byte of an expected body: an error 408 |',
		'| `write_timeout D [RATE]` | maximum time without the client accepting a byte of the response: the connection is closed |',
		'| `max_write_chunk SIZE` | bytes of a body handed to a connection at a time |',
		'',
		'RATE is the average number of bytes per second that the transfer must reach while the server waits for the client, except during the first D.',
		'0 means no limit. Anything not set here is taken from `servers { timeouts }`.',
		'',
		'```',
		'timeouts /upload/* {',
		'	read_timeout 10s 1000',
		'	write_timeout 30s',
		'}',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	order: { rank: 120 },
	lower: ({ line, args }, cx) => {
		cx.count(line, args, 0, 0, USAGE);
		const fields: TransferTimesFields = {};
		const timeoutHandler = (direction: 'read' | 'write') => (words: readonly Word[], innerLine: Line) => {
			cx.noBlock(innerLine);
			if (!cx.count(innerLine, words, 1, 2, `${direction}_timeout <duration> [<bytes/s>]`)) return;
			const milliseconds = lowerTimeout(words[0]!, cx);
			if (milliseconds !== undefined) fields[`${direction}_timeout`] = milliseconds;
			const bytesPerSecond = words[1] && cx.integer(words[1], 0);
			if (bytesPerSecond !== undefined) fields[`${direction}_rate`] = bytesPerSecond;
		};
		cx.subdirectives(
			line.block,
			{
				read_timeout: timeoutHandler('read'),
				write_timeout: timeoutHandler('write'),
				max_write_chunk: (words, innerLine) => {
					cx.noBlock(innerLine);
					const size = cx.count(innerLine, words, 1, 1, 'max_write_chunk <size>') ? cx.size(words[0]!) : undefined;
					if (size === undefined) return;
					if (size >= MIN_CHUNK_BYTES && size <= MAX_CHUNK_BYTES) fields.max_write_chunk = size;
					else {
						cx.problem('error', 'value/out-of-range', words[0]!.span, `A chunk of ${size} bytes is out of range.`, {
							hint: 'Write a size from 1KiB to 16MiB.',
						});
					}
				},
			},
			'timeouts',
		);
		return { handler: 'transfer_times', ...fields };
	},
	schema: {
		properties: {
			read_timeout: {
				type: 'number',
				minimum: 0,
				maximum: MAX_TIMEOUT_MS,
				description: 'Milliseconds without receiving a byte of the body.',
			},
			read_rate: { type: 'integer', minimum: 0, description: 'Average bytes per second of the body.' },
			write_timeout: {
				type: 'number',
				minimum: 0,
				maximum: MAX_TIMEOUT_MS,
				description: 'Milliseconds without the client accepting a byte of the response.',
			},
			write_rate: { type: 'integer', minimum: 0, description: 'Average bytes per second of the response.' },
			max_write_chunk: {
				type: 'integer',
				minimum: MIN_CHUNK_BYTES,
				maximum: MAX_CHUNK_BYTES,
				description: 'Bytes of a body handed to a connection at a time.',
			},
		},
	},
	compile: (step, _cx, next) => {
		const { read_timeout, read_rate, write_timeout, write_rate, max_write_chunk } = step;
		const limits: TransferLimits = {
			...(read_timeout === undefined ? {} : { readTimeout: read_timeout }),
			...(read_rate === undefined ? {} : { readRate: read_rate }),
			...(write_timeout === undefined ? {} : { writeTimeout: write_timeout }),
			...(write_rate === undefined ? {} : { writeRate: write_rate }),
			...(max_write_chunk === undefined ? {} : { writeChunk: max_write_chunk }),
		};
		return x => {
			x.setLimits(limits);
			return next(x);
		};
	},
});

function lowerTimeout(word: Word, cx: LowerContext): number | undefined {
	const timeoutMs = cx.duration(word);
	if (timeoutMs === undefined || (timeoutMs >= 0 && timeoutMs <= MAX_TIMEOUT_MS)) return timeoutMs;
	const message = timeoutMs < 0 ? 'A timeout cannot be negative.' : 'A timeout of more than ten years is not a limit.';
	cx.problem('error', 'value/out-of-range', word.span, message, { hint: 'Write 0 for no limit.' });
	return undefined;
}

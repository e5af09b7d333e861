/** `limits` inside `servers`: limits on concurrent use by clients, and what happens when they are exceeded. */

import type { Line, Word } from '../../../syntax/ast.ts';
import type { LowerContext } from '../../contract/lower-context.ts';
import type { ServerOption } from '../../contract/server-option.ts';

/** Default maximum number of requests in the queue, if `requests` is set. */
export const DEFAULT_QUEUE_LENGTH = 1000;
/** Default maximum number of milliseconds that a request waits in the queue. */
export const DEFAULT_QUEUE_TIME_MS = 5000;

/** Default maximum number of TLS handshakes per second for each client. Clients on this machine are not limited by default. */
export const DEFAULT_HANDSHAKES_PER_CLIENT = 1000;

const MAX_CONFIGURED_COUNT = 1_000_000_000;
/** Maximum number of handshakes per second that may be configured. */
const MAX_CONFIGURED_HANDSHAKES = 1_000_000;
const countSchema = (description: string) => ({
	type: 'integer',
	minimum: 0,
	maximum: MAX_CONFIGURED_COUNT,
	description,
});

const COUNT_FIELDS = [
	'connections',
	'connections_per_client',
	'requests',
	'requests_per_client',
	'requests_per_connection',
] as const;

/** Option inside `servers`; sets `settings.servers[].limits` in the document. */
export const limits: ServerOption = {
	name: 'limits',
	usage:
		'limits { connections <n>; connections_per_client <n>; requests <n>; requests_per_client <n>; queue <n> [<duration>]; retry_after <duration>; requests_per_connection <n>; header_count <n>; unread_body <size>; chunk_extensions <size>; handshakes <n>; handshakes_per_client <n> }',
	summary: 'Limits what clients may use of a listener concurrently, all threads together; 0 means no limit.',
	documentation: [
		'| Line | Default | Meaning |',
		'| --- | --- | --- |',
		'| `connections N` | none | open connections; a further one replaces an idle one, or is answered with 503 and closed |',
		'| `connections_per_client N` | none | open connections of one address; IPv6 addresses count by their /64 |',
		'| `requests N` | none | requests in flight; more wait in the queue |',
		'| `requests_per_client N` | none | requests in flight of one address; further ones are answered with 503 |',
		'| `queue N [D]` | 1000 5s | waiting requests, and how long they may wait; beyond either, they are answered with 503 |',
		'| `retry_after D` | 1s | `Retry-After` of these 503 responses |',
		'| `requests_per_connection N` | none | requests after which a connection is closed; over HTTP/3, it is closed after 2,048 in any case |',
		'| `header_count N` | 100 | fields of a request head; more are answered with 431 |',
		'| `unread_body SIZE` | 256KiB | how much of a body that no handler read is still read to keep the connection |',
		'| `chunk_extensions SIZE` | 4KiB | bytes of chunk extensions in one body; more are answered with 400 |',
		'| `handshakes N` | none | TLS handshakes started per second; further connections are closed |',
		'| `handshakes_per_client N` | 1000 | TLS handshakes of one address per second; by default, addresses of this machine are not counted |',
		'',
		'Threads count together without locking: concurrent requests may all be admitted, so that a limit',
		'can be exceeded by the number of threads minus one.',
	],
	lower: (line, args, { server }, cx) => {
		if (!cx.count(line, args, 0, 0, limits.usage)) return;
		const limitValues: { [field: string]: number } = {};
		const handlers: { [word: string]: (words: readonly Word[], innerLine: Line) => void } = {};
		for (const field of COUNT_FIELDS)
			handlers[field] = (words, innerLine) => setField(limitValues, field, lowerCount(words, innerLine, cx, 0));
		handlers.queue = (words, innerLine) => {
			cx.noBlock(innerLine);
			if (!cx.count(innerLine, words, 1, 2, 'queue <n> [<duration>]')) return;
			setField(limitValues, 'queue', cx.integer(words[0]!, 0, MAX_CONFIGURED_COUNT));
			if (words[1]) setField(limitValues, 'queue_time', lowerTime(words[1], cx));
		};
		handlers.retry_after = (words, innerLine) => {
			cx.noBlock(innerLine);
			if (cx.count(innerLine, words, 1, 1, 'retry_after <duration>'))
				setField(limitValues, 'retry_after', lowerTime(words[0]!, cx));
		};
		handlers.header_count = (words, innerLine) =>
			setField(limitValues, 'header_count', lowerCount(words, innerLine, cx, 1, 10_000));
		for (const field of ['handshakes', 'handshakes_per_client']) {
			handlers[field] = (words, innerLine) =>
				setField(limitValues, field, lowerCount(words, innerLine, cx, 0, MAX_CONFIGURED_HANDSHAKES));
		}
		for (const field of ['unread_body', 'chunk_extensions']) {
			handlers[field] = (words, innerLine) => {
				cx.noBlock(innerLine);
				if (cx.count(innerLine, words, 1, 1, `${field} <size>`)) setField(limitValues, field, cx.size(words[0]!));
			};
		}
		cx.subdirectives(line.block, handlers, 'servers limits');
		server.limits = cx.origin(limitValues, line.span);
	},
	schema: {
		limits: {
			type: 'object',
			description: 'Limits of one listener, all threads together; 0 means no limit.',
			properties: {
				connections: countSchema('Open connections.'),
				connections_per_client: countSchema('Open connections of one address; IPv6 by /64.'),
				requests: countSchema('Requests in flight.'),
				requests_per_client: countSchema('Requests in flight of one address; IPv6 by /64.'),
				queue: { ...countSchema('Requests that may wait.'), default: DEFAULT_QUEUE_LENGTH },
				queue_time: {
					type: 'number',
					minimum: 0,
					maximum: 3_600_000,
					default: DEFAULT_QUEUE_TIME_MS,
					description: 'Maximum milliseconds of waiting.',
				},
				retry_after: {
					type: 'number',
					minimum: 0,
					maximum: 3_600_000,
					default: 1000,
					description: 'Milliseconds in `Retry-After`.',
				},
				requests_per_connection: countSchema('Requests after which a connection is closed.'),
				header_count: {
					type: 'integer',
					minimum: 1,
					maximum: 10_000,
					default: 100,
					description: 'Fields of a request head.',
				},
				unread_body: { type: 'integer', minimum: 0, default: 262_144, description: 'Bytes read to keep a connection.' },
				chunk_extensions: {
					type: 'integer',
					minimum: 0,
					default: 4096,
					description: 'Bytes of chunk extensions in one body.',
				},
				handshakes: { ...countSchema('TLS handshakes started per second.'), maximum: MAX_CONFIGURED_HANDSHAKES },
				handshakes_per_client: {
					...countSchema('Per second and address; IPv6 by /64. Default 1000, not counting addresses of this machine.'),
					maximum: MAX_CONFIGURED_HANDSHAKES,
				},
				'@id': { type: 'string' },
			},
			additionalProperties: false,
		},
	},
};

function setField(fields: { [field: string]: number }, field: string, value: number | undefined): void {
	if (value !== undefined) fields[field] = value;
}

function lowerCount(
	words: readonly Word[],
	line: Line,
	cx: LowerContext,
	min: number,
	max: number = MAX_CONFIGURED_COUNT,
): number | undefined {
	cx.noBlock(line);
	if (!cx.count(line, words, 1, 1, `${line.words[0]!.text} <n>`)) return undefined;
	return cx.integer(words[0]!, min, max);
}

function lowerTime(word: Word, cx: LowerContext): number | undefined {
	const timeMs = cx.duration(word);
	if (timeMs === undefined || (timeMs >= 0 && timeMs <= 3_600_000)) return timeMs;
	cx.problem('error', 'value/out-of-range', word.span, `\`${word.text}\` is out of range.`, {
		hint: 'Write a time from 0 to 1h.',
	});
	return undefined;
}

/** `mirror`: sends copies of requests to a second upstream, whose responses are discarded. */
import type { Matcher } from '../../../document/document.ts';
import { MATCHER_SCHEMA } from '../../../document/references.ts';
import type { Line, Word } from '../../../syntax/ast.ts';
import { handlerDirective } from '../../contract/directive.ts';
import type { LowerContext, SubdirectiveHandler } from '../../contract/lower-context.ts';
import { lowerShareKey, parsePercentage, type ShareMatcher } from '../../matchers/share.ts';
import { HEADER_EDITS_SCHEMA } from '../../words/header-edits.ts';
import { parseSingleDuration, parseSingleInteger, parseSingleWord } from '../../words/single-value.ts';
import type { ForwardingStep } from '../reverse-proxy/forwarding.ts';
import { lowerProxy } from '../reverse-proxy/lower-proxy.ts';
import { compileMirror, DEFAULT_MAX_BODY_BYTES, DEFAULT_MAX_IN_FLIGHT, DEFAULT_TIMEOUT_MS } from './mirror-handler.ts';

export interface MirrorStep extends ForwardingStep {
	readonly handler: 'mirror';
	/** Selects the requests to copy. Default: all requests. */
	readonly sample?: Matcher;
	/** False to send copies without their bodies. */
	readonly body?: false;
	/** Maximum size of a body in bytes. Requests with a larger body are not copied. */
	readonly max_body?: number;
	/** Milliseconds from sending a copy to the end of its response. */
	readonly timeout?: number;
	/** Maximum number of copies in flight on one thread. */
	readonly max_in_flight?: number;
}

/** Maximum of `max_body` in bytes. It is limited because the whole copied body is kept in memory. */
const MAX_BODY_LIMIT_BYTES = 64 * 1024 * 1024;
const MAX_TIMEOUT_MS = 3_600_000;
const MAX_IN_FLIGHT = 10_000;

const USAGE =
	'mirror [matcher] [<upstream>… | upstream://<name>] { sample <percentage>% [<key>]; body on|off|<size>; timeout <duration>; max_in_flight <number>; header_up …; rewrite <target>; … }';

/** The default key of a sample. It differs in every request, so requests are selected at random. */
const RANDOM_KEY = '{http.request.uuid}';

/** Subdirectives of `reverse_proxy` that are useless here, because they concern responses, retries or upgraded connections. */
const UNSUPPORTED_SUBDIRECTIVES: ReadonlySet<string> = new Set([
	...['header_down', 'response_buffers', 'flush_interval', 'verbose_logs', 'method', 'request_buffers', 'dynamic'],
	...['stream_buffer_size', 'stream_timeout', 'stream_close_delay'],
	...['lb_retries', 'lb_try_duration', 'lb_try_interval', 'lb_retry_match', 'lb_retry_budget'],
]);

/** Syntax: `mirror [matcher] <upstream>… { … }`. */
export const mirror = handlerDirective<MirrorStep>({
	kind: 'handler',
	id: 'mirror',
	names: { configfile: ['mirror'], compatfile: [] },
	usage: USAGE,
	summary: 'Sends copies of requests to a second upstream and discards its responses.',
	documentation: `Copies requests, for example to try a new version of an application with real traffic. The request itself continues
with the next directive: its response never waits for the mirror, and is the same whether the mirror answers, fails or hangs.

| Line | Meaning |
| --- | --- |
| \`sample PERCENT% [KEY]\` | copies only this share of requests: by chance, or always those with the same keys, as in \`share\` |
| \`body on\`, \`body off\`, \`body SIZE\` | whether copies have bodies, and the size up to which requests are copied; default \`1MiB\` |
| \`timeout DURATION\` | time from sending a copy to the end of its response; default \`30s\` |
| \`max_in_flight NUMBER\` | copies in flight on one thread; default 128 |
| \`header_up\`, \`rewrite\`, \`forwarded\`, \`trusted_proxies\` | change the copy, as in \`reverse_proxy\` |
| \`to\`, \`lb_policy\`, \`transport\`, \`health_uri\`, … | describe the upstream, as in \`reverse_proxy\` |

Of several addresses, each copy goes to one. Write \`mirror\` several times to send several copies.

A copy has the method, path, query, fields and body that the request has where \`mirror\` is written, so that earlier directives have
changed it and later ones have not. Hop-by-hop fields are not copied; \`Via\` and \`X-Forwarded-*\` are added as by
\`reverse_proxy\`. \`Cookie\` and \`Authorization\` are copied, too: remove them with \`header_up -Cookie\` if the mirror must not
have them. A mirror that writes to the database of the original does everything twice.

A body is copied while a later directive reads it, and the copy is sent when it is complete. A request whose body is larger than
the limit is not copied at all: without its end, a body would mean something else. Neither is one whose body is not read to its end, as when
a later directive refuses it. Trailer fields are not copied. With \`body off\`, every copy has an empty body.

The number of copies is bounded: with \`max_in_flight\` of them waiting for a slow mirror, or with 16 MiB of bodies (or one of the
largest allowed) in memory, no more are made. At most 8 MiB of a response are read. Each copy is sent once. Requests to upgrade to
another protocol, such as WebSocket, are not copied; nor are \`CONNECT\` and \`TRACE\`.

Copies have the field \`X-Mirrored: 1\`, and a request with it is not copied again, so two mirrors cannot send copies to each other
forever. Requests of a client that sends the field itself are served as usual, but not copied.

The metric \`svc_mirror_requests_total\` counts copies by \`outcome\`: \`answered\`, \`failed\`, \`timed_out\`. \`svc_mirror_dropped_total\`
counts requests that were not copied by \`reason\`: \`too_many\`, \`body_too_large\`, \`out_of_memory\`, \`body_unread\`, \`no_upstream\`,
\`upgrade\`, \`already_mirrored\`. Copies are also among the requests of their upstream in \`svc_upstream_*\`, but not in access logs. A reload
lets copies in flight finish; a shutdown does not wait for them.

\`\`\`
mirror /api/* 10.0.0.9:8080 {
	sample 10%
	body 64KiB
	timeout 5s
	header_up -Cookie
}
reverse_proxy 10.0.0.1:8080
\`\`\`

In a test, \`expect mirror 10.0.0.9:8080\` checks where a copy goes, and \`expect no_mirror\` that there is none.
`,
	matcherToken: 'optional',
	upstreamAddressesOf: ({ upstreams }) =>
		(upstreams?.to ?? []).map((text, index) => ({ text, pointer: `/upstreams/to/${index}` })),
	fieldEdits: { header_up: 'upstream_request' },
	lower: (directive, cx) => {
		const fields: { -readonly [K in keyof MirrorFields]: MirrorFields[K] } = {};
		const { line } = directive;
		const step = lowerProxy(
			directive,
			{
				directiveName: 'mirror',
				usage: USAGE,
				excludedSubdirectives: UNSUPPORTED_SUBDIRECTIVES,
				hasResponseRules: false,
				ownSubdirectives: () => createMirrorSubdirectives(fields, cx),
			},
			cx,
		);
		return [cx.origin<MirrorStep>({ ...step, handler: 'mirror', ...fields }, line.span)];
	},
	schema: {
		properties: {
			pool: { type: 'string', description: 'Name of a pool in `upstreams` of the document.' },
			upstreams: { $ref: '#/$defs/upstreams' },
			header_up: HEADER_EDITS_SCHEMA,
			rewrite: {
				type: 'string',
				secret: 'url',
				description: 'Target of the copy, as in `rewrite_target`’s `to`.',
			},
			trusted_proxies: {
				type: 'array',
				items: { type: 'string' },
				description: 'Addresses and ranges in CIDR form, in addition to `settings.trusted_proxies`.',
			},
			forwarded: {
				type: 'boolean',
				default: false,
				description: 'Adds `Forwarded` (RFC 7239) in addition to `X-Forwarded-*`.',
			},
			sample: { ...MATCHER_SCHEMA, description: 'Which requests are copied.' },
			body: { const: false, description: 'Sends copies without their bodies.' },
			max_body: {
				type: 'integer',
				minimum: 1,
				maximum: MAX_BODY_LIMIT_BYTES,
				default: DEFAULT_MAX_BODY_BYTES,
				description: 'Maximum bytes of a body; requests with a larger one are not copied.',
			},
			timeout: {
				type: 'number',
				exclusiveMinimum: 0,
				maximum: MAX_TIMEOUT_MS,
				default: DEFAULT_TIMEOUT_MS,
				description: 'Maximum milliseconds from sending a copy to the end of its response.',
			},
			max_in_flight: {
				type: 'integer',
				minimum: 1,
				maximum: MAX_IN_FLIGHT,
				default: DEFAULT_MAX_IN_FLIGHT,
				description: 'Maximum number of copies in flight on one thread.',
			},
		},
	},
	compile: compileMirror,
});

type MirrorFields = Pick<MirrorStep, 'sample' | 'body' | 'max_body' | 'timeout' | 'max_in_flight'>;

function createMirrorSubdirectives(
	fields: { -readonly [K in keyof MirrorFields]: MirrorFields[K] },
	cx: LowerContext,
): { [name: string]: SubdirectiveHandler } {
	return {
		sample: (args, line) => {
			const sample = lowerSample(args, line, cx);
			if (sample) fields.sample = cx.origin(sample, line.span);
		},
		body: (args, line) => {
			const word = parseSingleWord(args, line, cx, 'size');
			if (!word) return;
			delete fields.body;
			delete fields.max_body;
			if (word.text === 'on') return;
			if (word.text === 'off') {
				fields.body = false;
				return;
			}
			const size = cx.size(word);
			if (size === undefined) return;
			if (size >= 1 && size <= MAX_BODY_LIMIT_BYTES) fields.max_body = size;
			else reportOutOfRange(word, 'Write a size from 1B to 64MiB, `on` or `off`.', cx);
		},
		timeout: (args, line) => {
			const timeoutMs = parseSingleDuration(args, line, cx);
			if (timeoutMs === undefined) return;
			if (timeoutMs > 0 && timeoutMs <= MAX_TIMEOUT_MS) fields.timeout = timeoutMs;
			else reportOutOfRange(args[0]!, 'Write a duration from 1ms to 1h.', cx);
		},
		max_in_flight: (args, line) => {
			const maxInFlight = parseSingleInteger(args, line, cx, 1, MAX_IN_FLIGHT);
			if (maxInFlight !== undefined) fields.max_in_flight = maxInFlight;
		},
	};
}

function reportOutOfRange(word: Word, hint: string, cx: LowerContext): void {
	cx.problem('error', 'mirror/out-of-range', word.span, `\`${word.text}\` is out of range.`, { hint });
}

/** Lowers `sample 10% {client_ip}`. */
function lowerSample(args: readonly Word[], line: Line, cx: LowerContext): ShareMatcher | undefined {
	if (!cx.noBlock(line) || !cx.count(line, args, 1, 2, 'sample <percentage>% [<key>]')) return undefined;
	const [portionWord, keyWord] = args as [Word, Word?];
	const shareOfRequests = parsePercentage(portionWord.text);
	if (shareOfRequests === undefined) {
		cx.problem('error', 'mirror/invalid-sample', portionWord.span, `\`${portionWord.text}\` is not a percentage.`, {
			hint: 'Write one from 0% to 100%, with at most two decimals.',
		});
	}
	const key = keyWord === undefined ? RANDOM_KEY : lowerShareKey(keyWord, cx);
	return shareOfRequests === undefined || key === undefined ? undefined : { type: 'share', key, to: shareOfRequests };
}

/** `rate_limit`: limits how many requests a client, or whatever else the key names, may send in a period. */
import type { Line } from '../../../syntax/ast.ts';
import { handlerDirective } from '../../contract/directive.ts';
import type { SubdirectiveHandler } from '../../contract/lower-context.ts';
import {
	finishZone,
	isZoneName,
	lowerRequests,
	saysLimit,
	ZONE_SCHEMA,
	ZONE_USAGE,
	type ZoneDraft,
	zoneLines,
} from './lower-zone.ts';
import { CLIENT_KEY, compileRateLimit, type RateLimitStep, type RateLimitZone } from './rate-limit-handler.ts';

const USAGE = 'rate_limit [matcher] <zone> <requests> per <window> [{ … }]';

/** Syntax: `rate_limit [matcher] [<zone> <requests> per <window>] [{ … }]`. */
export const rateLimit = handlerDirective<RateLimitStep>({
	kind: 'handler',
	id: 'rate_limit',
	names: { configfile: ['rate_limit'], compatfile: ['rate_limit'] },
	usage: USAGE,
	summary: 'Limits how many requests a client may send in a period.',
	documentation: [
		'A zone counts requests by key, which is the client address unless `key` says otherwise. Each key may send `requests` in',
		'a `window`. A request beyond that causes an error 429 with `Retry-After`, which `handle_errors` can answer.',
		'',
		'Requests are counted by the generic cell rate algorithm: a key may use its whole `burst` at once and regains one',
		'request every `window` / `requests`. In any period, it gets at most `burst` plus one request per such interval.',
		'The counts are those of the whole process, survive reloads, and are kept for a zone of the same name with other limits.',
		'Directives that name the same zone share its counts, also across sites.',
		'',
		'| Line | Default | Meaning |',
		'| --- | --- | --- |',
		'| `requests N per WINDOW` | | the limit, if it is not in the first line; `events N` and `window D` mean the same |',
		'| `key TEXT` | `{client_ip}` | what is counted separately; a key that is empty is counted like any other |',
		'| `ipv6_prefix BITS` | 64 | IPv6 clients with the same prefix count as one, if the key is `{client_ip}` |',
		'| `burst N` | `requests` | how many requests may come at once |',
		'| `cost N` | 1 | how many requests this one counts as; may be a placeholder; 0 to count only by `status_cost` |',
		'| `status_cost STATUS… N` | | how many more it counts as when it is answered with this status or class, such as `401` or `5xx` |',
		'| `delay D` | 0 | a request that may run within D waits for it instead of being refused |',
		'| `match MATCHER` | all | the requests that the zone counts |',
		'| `allow RANGE…` | | client addresses that are not limited |',
		'| `max_keys N` | 65536 | the number of keys in memory, 18 bytes each |',
		'| `dry_run` | | counts and logs requests that exceed the limit, but lets them pass |',
		'| `announce refused\\|always\\|never` | `refused` | the responses with `RateLimit` and `RateLimit-Policy` fields |',
		'',
		'`zone NAME { … }` defines a zone in a block of its own. With several zones, a request must be within the limits of all',
		'of them; if one refuses it, the others do not count it.',
		'',
		'If there are more than `max_keys` keys, a new key takes the place of one that has used little, and begins with what',
		'that one has used, except that its first request is admitted. So an attacker cannot reset a limit by sending many keys.',
		'',
		'`{http.rate_limit.exceeded.name}` is the zone that has refused or delayed the request. The access log has it, and what',
		'was done, in the field `rate_limit`.',
		'',
		'```',
		'rate_limit /api/* api 100 per 1m {',
		'	burst 20',
		'}',
		'rate_limit /login logins 5 per 15m {',
		'	cost 0',
		'	status_cost 401 403 1',
		'}',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	answers: 'sometimes',
	limitsBy: ({ zones }) => zones.map(({ key }, index) => ({ text: key ?? CLIENT_KEY, pointer: `/zones/${index}/key` })),
	logFieldsOf: () => ['rate_limit'],
	order: { rank: 175 },
	lower: ({ line, args }, cx) => {
		const zones: RateLimitZone[] = [];
		const draft: ZoneDraft = {};
		const [nameWord, ...limit] = args;
		if (nameWord) {
			if (isZoneName(nameWord, cx)) draft.name = nameWord.text;
			if (limit.length > 0 && cx.count(line, args, 4, 4, USAGE)) lowerRequests(limit, draft, cx);
		}
		const names = new Set<string>();
		let surplus: Line | undefined;
		const own = zoneLines(draft, cx);
		const lines: { [name: string]: SubdirectiveHandler } = {
			zone: (words, at) => {
				if (!cx.count(at, words, 1, 1, ZONE_USAGE) || !isZoneName(words[0]!, cx)) return;
				const { text, span } = words[0]!;
				if (names.has(text))
					cx.problem('error', 'rate-limit/zone-twice', span, `The zone \`${text}\` is defined twice here.`);
				names.add(text);
				const inner: ZoneDraft = { name: text };
				cx.subdirectives(at.block, zoneLines(inner, cx), 'zone');
				const zone = finishZone(inner, at, saysLimit(at), cx);
				if (zone) zones.push(zone);
			},
		};
		for (const [name, lower] of Object.entries(own)) {
			lines[name] = (words, at) => {
				if (!nameWord) surplus ??= at;
				lower(words, at);
			};
		}
		cx.subdirectives(line.block, lines, 'rate_limit');
		if (nameWord) {
			const zone = finishZone(draft, line, limit.length > 0 || saysLimit(line), cx);
			if (zone) zones.unshift(zone);
		} else if (surplus) {
			cx.problem(
				'error',
				'rate-limit/no-zone',
				surplus.words[0]!.span,
				`\`${surplus.words[0]!.text}\` is outside of a zone.`,
				{
					hint: `Name a zone in the first line: ${USAGE}`,
				},
			);
		} else if (zones.length === 0 && names.size === 0) {
			cx.problem('error', 'rate-limit/no-zone', line.words[0]!.span, 'There is no limit.', { hint: `Usage: ${USAGE}` });
		}
		if (zones.length === 0) return undefined;
		return cx.origin<RateLimitStep>({ handler: 'rate_limit', zones }, line.span);
	},
	schema: {
		properties: {
			zones: {
				type: 'array',
				minItems: 1,
				description: 'The limits. A request must be within all of them.',
				items: ZONE_SCHEMA,
			},
		},
		required: ['zones'],
	},
	compile: compileRateLimit,
});

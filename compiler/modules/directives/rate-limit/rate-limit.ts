/** `rate_limit`: limits how many requests a client, or whatever else the key names, may send in a period. */
import { handlerDirective } from '../../contract/directive.ts';
import { CLIENT_KEY, lowerZones } from '../../words/limit-zone.ts';
import { RATE_LIMIT_ZONES, ZONE_SCHEMA } from './lower-zone.ts';
import { compileRateLimit, type RateLimitStep } from './rate-limit-handler.ts';

/** Syntax: `rate_limit [matcher] [<zone> <requests> per <window>] [{ … }]`. */
export const rateLimit = handlerDirective<RateLimitStep>({
	kind: 'handler',
	id: 'rate_limit',
	names: { configfile: ['rate_limit'], compatfile: ['rate_limit'] },
	usage: RATE_LIMIT_ZONES.usage,
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
	limitKeysOf: ({ zones }) =>
		zones.map(({ key }, index) => ({ text: key ?? CLIENT_KEY, pointer: `/zones/${index}/key` })),
	logFieldsOf: () => ['rate_limit'],
	order: { rank: 175 },
	lower: ({ line, args }, cx) => {
		const zones = lowerZones(line, args, RATE_LIMIT_ZONES, cx);
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

/** `limit_concurrent`: limits how many requests of a client, or of whatever else the key names, run at a time. */
import { handlerDirective } from '../../contract/directive.ts';
import { CLIENT_KEY_TEMPLATE, lowerZones } from '../../words/limit-zone.ts';
import { compileLimitConcurrent, type LimitConcurrentStep } from './limit-concurrent-handler.ts';
import { CONCURRENCY_ZONE_SCHEMA, CONCURRENCY_ZONES } from './lower-concurrency-zone.ts';

/** Syntax: `limit_concurrent [matcher] [<zone> <requests>] [{ … }]`. */
export const limitConcurrent = handlerDirective<LimitConcurrentStep>({
	kind: 'handler',
	id: 'limit_concurrent',
	names: { configfile: ['limit_concurrent'], compatfile: ['limit_concurrent'] },
	usage: CONCURRENCY_ZONES.usage,
	summary: 'Limits how many requests of a client run at a time.',
	documentation: [
		'A zone counts the requests that run, by key, which is the client address unless `key` says otherwise. A request runs from',
		'this directive until its response has been sent completely; one that has become a WebSocket, until that is closed. If',
		'`requests` of a key run already, a further one waits in the queue, and runs in the order of arrival as soon as another',
		'has ended. If the queue is full, or after `timeout`, it causes an error 503 with `Retry-After`, which `handle_errors` can',
		'answer. A client that disconnects leaves the queue.',
		'',
		'The counts are those of the whole process and survive reloads. Directives that name the same zone share its counts, also',
		'across sites, if it has the same `max_keys` in all of them; a request counts only once for a zone and key. Requests on one HTTP/2 or HTTP/3 connection count',
		'separately. During a handover, the old and the new process count the requests of each other, too. Each learns about 10 ms later what',
		'the other one does, so both can grant the last place at the same time.',
		'',
		'| Line | Default | Meaning |',
		'| --- | --- | --- |',
		'| `requests N` | | the limit, if it is not in the first line |',
		'| `key TEXT` | `{client_ip}` | what is counted separately; a key that is empty is counted like any other |',
		'| `ipv6_prefix BITS` | 64 | IPv6 clients with the same prefix count as one, if the key is `{client_ip}` |',
		'| `queue N` | 0 | how many requests of a key may wait |',
		'| `timeout D` | 5s | how long a request waits |',
		'| `status 503\\|429` | 503 | the status of refused requests |',
		'| `match MATCHER` | all | the requests that the zone counts |',
		'| `allow RANGE…` | | client addresses that are not limited |',
		'| `max_keys N` | 16384 | the number of keys that have requests at a time |',
		'| `dry_run` | | counts and logs requests that exceed the limit, but lets them pass |',
		'',
		'`zone NAME { … }` defines a zone in a block of its own. With several zones, a request needs a place of each of them, in',
		'the order of the lines. While it waits for one, it keeps the places that it has.',
		'',
		'A key needs memory only while it has requests, and nothing takes its place meanwhile. If there are more keys than',
		'`max_keys`, the requests of new ones are refused, and so are those beyond 32,768 running or 4,096 waiting ones of a zone',
		'on one thread.',
		'',
		'`{http.limit_concurrent.exceeded.name}` is the zone that has refused or queued the request. The access log has it, and',
		'what became of the request (`queued`, `refused`, `timed_out`, `left` or `would_refuse`), in the field `limit_concurrent`.',
		'In a test, `busy ZONE` assumes that no place of a zone is free.',
		'',
		'```',
		'limit_concurrent per_client 10',
		'limit_concurrent /reports/* reports 4 {',
		'	key static',
		'	queue 20',
		'	timeout 10s',
		'}',
		'```',
	].join('\n'),
	matcherToken: 'optional',
	answers: 'sometimes',
	limitKeysOf: ({ zones }) =>
		zones.map(({ key }, index) => ({ text: key ?? CLIENT_KEY_TEMPLATE, pointer: `/zones/${index}/key` })),
	logFieldsOf: () => ['limit_concurrent'],
	order: { rank: 176 },
	lower: ({ line, args }, cx) => {
		const zones = lowerZones(line, args, CONCURRENCY_ZONES, cx);
		if (zones.length === 0) return undefined;
		return cx.origin<LimitConcurrentStep>({ handler: 'limit_concurrent', zones }, line.span);
	},
	schema: {
		properties: {
			zones: {
				type: 'array',
				minItems: 1,
				description: 'The limits. A request needs a place of each of them.',
				items: CONCURRENCY_ZONE_SCHEMA,
			},
		},
		required: ['zones'],
	},
	compile: compileLimitConcurrent,
});

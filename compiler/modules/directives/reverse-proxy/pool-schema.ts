/** Schema of what a pool has beside its addresses and its transport: look-ups, health, circuits, retries. */
import type { Schema } from '../directive.ts';
import { RESOLVER } from './lower-dynamic.ts';
import { RETRY } from './retries/retry-predicate.ts';

const MILLISECONDS: Schema = { type: 'number', minimum: 0, maximum: 2_147_483_647 };
const COUNT: Schema = { type: 'integer', minimum: 1, maximum: 1_000_000 };
const STATUS: Schema = { type: 'string', pattern: '^[1-5](\\d\\d|xx)$' };
const NAME: Schema = { type: 'string', minLength: 1, maxLength: 4096 };

const RESOLVERS: Schema = {
	type: 'array',
	items: { type: 'string', pattern: RESOLVER.source },
	description: 'IP addresses of name servers, with a port if it is not 53; those of the system if left out.',
};

const LOOKUP = {
	refresh: {
		...MILLISECONDS,
		minimum: 1,
		default: 60_000,
		description: 'Milliseconds that what was found serves before it is looked up again; 60000 if left out.',
	},
	resolvers: RESOLVERS,
	dial_timeout: {
		...MILLISECONDS,
		default: 5000,
		description: 'Milliseconds for one question to one name server; 5000 if left out.',
	},
};

/** The kinds of dynamic sources. */
export const DYNAMIC_SOURCES: readonly {
	readonly id: string;
	readonly summary: string;
	readonly schema: { readonly properties: { readonly [name: string]: Schema }; readonly required?: readonly string[] };
}[] = [
	{
		id: 'a',
		summary: 'Addresses of a name, from A and AAAA records.',
		schema: {
			properties: {
				name: { ...NAME, description: 'Name to look up. Placeholders are resolved per request.' },
				port: {
					type: 'string',
					minLength: 1,
					default: '80',
					description: 'Port of each address, or a placeholder; 80 if left out.',
				},
				versions: {
					type: 'array',
					items: { enum: ['ipv4', 'ipv6'] },
					minItems: 1,
					description: 'Families of addresses; both if left out.',
				},
				...LOOKUP,
			},
			required: ['name'],
		},
	},
	{
		id: 'srv',
		summary: 'Hosts and ports of a service, from SRV records.',
		schema: {
			properties: {
				name: {
					...NAME,
					description:
						'Full name, `_http._tcp.example.com`; or the domain, with `service` and `proto`. Placeholders are resolved per request.',
				},
				service: { ...NAME, description: 'Service without its underscore: `http`.' },
				proto: { ...NAME, description: 'Protocol without its underscore: `tcp`.' },
				grace_period: {
					...MILLISECONDS,
					description: 'Milliseconds beyond their time that addresses serve while looking up fails.',
				},
				...LOOKUP,
			},
			required: ['name'],
		},
	},
	{
		id: 'multi',
		summary: 'What several sources have, together.',
		schema: {
			properties: {
				sources: {
					type: 'array',
					description: 'The sources, in the order in which their upstreams are listed.',
					items: { $ref: '#/$defs/dynamic' },
					minItems: 1,
				},
			},
			required: ['sources'],
		},
	},
];

const HEALTH: Schema = {
	type: 'object',
	description:
		'Active checks of static upstreams, made once for the process. An upstream counts as up until a check has failed; the first one begins at once.',
	properties: {
		uri: {
			type: 'string',
			pattern: '^[\\x21-\\x7e]+$',
			secret: 'url',
			default: '/',
			description: 'Path and query to ask for; `/` if left out.',
		},
		upstream: { type: 'string', minLength: 1, description: 'Address to check instead of each upstream’s own.' },
		port: { type: 'integer', minimum: 1, maximum: 65_535, description: 'Port to check instead of the upstream’s own.' },
		interval: {
			...MILLISECONDS,
			minimum: 1,
			default: 30_000,
			description: 'Milliseconds between checks, a tenth more or less by chance; 30000 if left out.',
		},
		timeout: {
			...MILLISECONDS,
			minimum: 1,
			default: 5000,
			description: 'Milliseconds for the whole answer; 5000 if left out.',
		},
		passes: {
			...COUNT,
			default: 1,
			description: 'Checks in a row that must pass before it counts as up; 1 if left out.',
		},
		fails: {
			...COUNT,
			default: 1,
			description: 'Checks in a row that must fail before it counts as down; 1 if left out.',
		},
		status: {
			...STATUS,
			default: '2xx',
			description: 'Status of an upstream that is well, or a class of them; `2xx` if left out.',
		},
		body: { type: 'string', description: 'Regular expression that the body must match.' },
		method: {
			type: 'string',
			pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
			default: 'GET',
			description: '`GET` if left out.',
		},
		request_body: { type: 'string', description: 'Body to send.' },
		follow_redirects: {
			type: 'boolean',
			default: false,
			description: 'Whether redirections are followed; else they fail the check.',
		},
		headers: {
			type: 'array',
			items: {
				type: 'object',
				properties: {
					name: { type: 'string', pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$", description: 'Name of the field.' },
					value: { type: 'string', secret: 'by-name', description: 'Its value.' },
				},
				required: ['name', 'value'],
				additionalProperties: false,
			},
			description: 'Fields to send; `Host` sets the host.',
		},
	},
	additionalProperties: false,
};

const RATIO: Schema = { type: 'number', exclusiveMinimum: 0, maximum: 1 };

const CIRCUIT: Schema = {
	type: 'object',
	description:
		'A circuit breaker for each upstream: open, nothing is sent to it; half-open, a few requests try it. Failures are `unhealthy_status`, else statuses of 500 and more, and attempts without a response.',
	properties: {
		error_ratio: {
			...RATIO,
			default: 0.5,
			description: 'Share of failed requests from which it opens; 0.5 if left out.',
		},
		slow_after: {
			...MILLISECONDS,
			default: 0,
			description: 'Milliseconds from which an answer is slow; 0 or left out: none is.',
		},
		slow_ratio: { ...RATIO, default: 0.5, description: 'Share of slow answers from which it opens; 0.5 if left out.' },
		min_requests: {
			...COUNT,
			default: 20,
			description: 'Requests in a window before anything is concluded; 20 if left out.',
		},
		window: {
			...MILLISECONDS,
			minimum: 10,
			default: 10_000,
			description: 'Milliseconds that are judged together; 10000 if left out.',
		},
		open_for: {
			...MILLISECONDS,
			minimum: 1,
			default: 10_000,
			description: 'Milliseconds that nothing is sent; 10000 if left out.',
		},
		probes: { ...COUNT, default: 3, description: 'Requests that must succeed to close it again; 3 if left out.' },
	},
	additionalProperties: false,
};

export const POOL_PROPERTIES: { readonly [name: string]: Schema } = {
	dynamic: {
		$ref: '#/$defs/dynamic',
		description: 'Where addresses are looked up; those of `to` then serve while nothing is found.',
	},
	retries: {
		type: 'integer',
		minimum: 0,
		maximum: 1000,
		description: 'Attempts after the first, at most; 0 if left out, or without bound with `retry_duration`.',
	},
	retry_duration: { ...MILLISECONDS, description: 'Milliseconds within which attempts are begun.' },
	retry_interval: {
		...MILLISECONDS,
		default: 250,
		description:
			'Milliseconds before another attempt when no other upstream is left; 250 if left out. Twice as long each time, to eight times.',
	},
	retry_match: {
		...RETRY,
		description:
			'Which failures and responses are tried again. Connections that cannot be made always are; without it, so are failures of GET and HEAD.',
	},
	retry_budget: {
		type: 'object',
		description: 'What retries may cost. Attempts that nothing was sent in are free.',
		properties: {
			ratio: {
				type: 'number',
				minimum: 0,
				maximum: 10,
				default: 1,
				description: 'Retries per request; 1 if left out.',
			},
			per_second: {
				type: 'integer',
				minimum: 0,
				maximum: 1_000_000,
				default: 10,
				description: 'Retries a second beside those; 10 if left out.',
			},
		},
		additionalProperties: false,
	},
	health: HEALTH,
	fail_duration: {
		...MILLISECONDS,
		default: 0,
		description: 'Milliseconds that a failure is remembered; 0 or left out: none is.',
	},
	max_fails: {
		type: 'integer',
		minimum: 1,
		maximum: 1000,
		default: 1,
		description: 'Remembered failures that make an upstream unavailable; 1 if left out.',
	},
	unhealthy_status: { type: 'array', items: STATUS, description: 'Statuses that are failures.' },
	unhealthy_latency: { ...MILLISECONDS, description: 'Milliseconds until an answer begins that are a failure.' },
	unhealthy_request_count: { ...COUNT, description: 'Requests in flight at which an upstream is full.' },
	circuit: CIRCUIT,
	slow_start: {
		...MILLISECONDS,
		description:
			'Milliseconds in which an upstream that comes back gets more and more of its share; at once if left out.',
	},
};

/** Schema of a pool's settings except its addresses and its transport: lookups, health, circuit breakers, retries. */
import type { Schema } from '../../../document/schema-type.ts';
import { RESOLVER_PATTERN } from './lower-dynamic.ts';
import { RETRY_PREDICATE_SCHEMA } from './retry-predicate.ts';
import { SHED_SCHEMA } from './shed-settings.ts';

const MILLISECONDS_SCHEMA: Schema = { type: 'number', minimum: 0, maximum: 2_147_483_647 };
const COUNT_SCHEMA: Schema = { type: 'integer', minimum: 1, maximum: 1_000_000 };
const STATUS_OR_CLASS_SCHEMA: Schema = { type: 'string', pattern: '^[1-5](\\d\\d|xx)$' };
const LOOKUP_NAME_SCHEMA: Schema = { type: 'string', minLength: 1, maxLength: 4096 };

const RESOLVERS_SCHEMA: Schema = {
	type: 'array',
	items: { type: 'string', pattern: RESOLVER_PATTERN.source },
	description: `IP addresses of name servers, with a port if it is not 53; default the system's.`,
};

const LOOKUP_PROPERTIES = {
	refresh: {
		...MILLISECONDS_SCHEMA,
		minimum: 1,
		default: 60_000,
		description: 'Milliseconds after which results are looked up again; default 60000.',
	},
	resolvers: RESOLVERS_SCHEMA,
	dial_timeout: {
		...MILLISECONDS_SCHEMA,
		default: 5000,
		description: 'Milliseconds for one query to one name server; default 5000.',
	},
};

/** The kinds of sources for `dynamic`, with the schema of each. */
export const DYNAMIC_SOURCES: readonly {
	readonly id: string;
	readonly summary: string;
	readonly schema: { readonly properties: { readonly [name: string]: Schema }; readonly required?: readonly string[] };
}[] = [
	{
		id: 'a',
		summary: 'Looks up the addresses of a name in A and AAAA records.',
		schema: {
			properties: {
				name: { ...LOOKUP_NAME_SCHEMA, description: 'Name to look up. Placeholders are resolved per request.' },
				port: {
					type: 'string',
					minLength: 1,
					default: '80',
					description: 'Port of each address, or a placeholder; default 80.',
				},
				versions: {
					type: 'array',
					items: { enum: ['ipv4', 'ipv6'] },
					minItems: 1,
					description: 'Address families; default both.',
				},
				...LOOKUP_PROPERTIES,
			},
			required: ['name'],
		},
	},
	{
		id: 'srv',
		summary: 'Looks up the hosts and ports of a service in SRV records.',
		schema: {
			properties: {
				name: {
					...LOOKUP_NAME_SCHEMA,
					description:
						'Full name, `_http._tcp.example.com`; or the domain, with `service` and `proto`. Placeholders are resolved per request.',
				},
				service: { ...LOOKUP_NAME_SCHEMA, description: 'Service without the underscore: `http`.' },
				proto: { ...LOOKUP_NAME_SCHEMA, description: 'Protocol without the underscore: `tcp`.' },
				grace_period: {
					...MILLISECONDS_SCHEMA,
					description: 'Milliseconds beyond their lifetime for which addresses are used while lookups fail.',
				},
				...LOOKUP_PROPERTIES,
			},
			required: ['name'],
		},
	},
	{
		id: 'multi',
		summary: 'Combines the results of several sources.',
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

const HEALTH_SCHEMA: Schema = {
	type: 'object',
	description:
		'Active checks of static upstreams, made once for the process. An upstream counts as up until a check has failed; the first check starts immediately.',
	properties: {
		uri: {
			type: 'string',
			pattern: '^[\\x21-\\x7e]+$',
			secret: 'url',
			default: '/',
			description: 'Path and query to request; default `/`.',
		},
		upstream: { type: 'string', minLength: 1, description: 'Address to check instead of each upstream’s own.' },
		port: { type: 'integer', minimum: 1, maximum: 65_535, description: 'Port to check instead of the upstream’s own.' },
		interval: {
			...MILLISECONDS_SCHEMA,
			minimum: 1,
			default: 30_000,
			description: 'Milliseconds between checks, varied randomly by up to a tenth; default 30000.',
		},
		timeout: {
			...MILLISECONDS_SCHEMA,
			minimum: 1,
			default: 5000,
			description: 'Milliseconds for the whole response; default 5000.',
		},
		passes: {
			...COUNT_SCHEMA,
			default: 1,
			description: 'Consecutive checks that must pass before the upstream counts as up; default 1.',
		},
		fails: {
			...COUNT_SCHEMA,
			default: 1,
			description: 'Consecutive checks that must fail before the upstream counts as down; default 1.',
		},
		status: {
			...STATUS_OR_CLASS_SCHEMA,
			default: '2xx',
			description: 'Status of a healthy upstream, or a class of statuses; default `2xx`.',
		},
		body: { type: 'string', description: 'Regular expression that the body must match.' },
		method: {
			type: 'string',
			pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$",
			default: 'GET',
			description: 'Default `GET`.',
		},
		request_body: { type: 'string', description: 'Body to send.' },
		follow_redirects: {
			type: 'boolean',
			default: false,
			description: 'Whether redirects are followed; by default they fail the check.',
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

const RATIO_SCHEMA: Schema = { type: 'number', exclusiveMinimum: 0, maximum: 1 };

const CIRCUIT_SCHEMA: Schema = {
	type: 'object',
	description:
		'A circuit breaker per upstream: while open, nothing is sent to it; while half-open, a few requests probe it. Failures are `unhealthy_status`, or by default statuses of 500 and above, and attempts without a response.',
	properties: {
		error_ratio: {
			...RATIO_SCHEMA,
			default: 0.5,
			description: 'Share of failed requests at which it opens; default 0.5.',
		},
		slow_after: {
			...MILLISECONDS_SCHEMA,
			default: 0,
			description: 'Milliseconds from which a response counts as slow; default 0, which disables it.',
		},
		slow_ratio: {
			...RATIO_SCHEMA,
			default: 0.5,
			description: 'Share of slow responses at which it opens; default 0.5.',
		},
		min_requests: {
			...COUNT_SCHEMA,
			default: 20,
			description: 'Minimum requests in a window before it may open; default 20.',
		},
		window: {
			...MILLISECONDS_SCHEMA,
			minimum: 10,
			default: 10_000,
			description: 'Milliseconds of a window; default 10000.',
		},
		open_for: {
			...MILLISECONDS_SCHEMA,
			minimum: 1,
			default: 10_000,
			description: 'Milliseconds for which it stays open; default 10000.',
		},
		probes: { ...COUNT_SCHEMA, default: 3, description: 'Requests that must succeed to close it; default 3.' },
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
		description: 'Maximum retries; default 0, or unlimited with `retry_duration`.',
	},
	retry_duration: { ...MILLISECONDS_SCHEMA, description: 'Milliseconds within which attempts may start.' },
	retry_interval: {
		...MILLISECONDS_SCHEMA,
		default: 250,
		description:
			'Milliseconds before a retry if no other upstream is left; default 250. Doubles each time, up to eightfold.',
	},
	retry_match: {
		...RETRY_PREDICATE_SCHEMA,
		description:
			'Which failures and responses are retried. Failed connections always are; by default, so are failures of GET and HEAD.',
	},
	retry_budget: {
		type: 'object',
		description: 'Limits the cost of retries. Attempts in which nothing was sent are free.',
		properties: {
			ratio: {
				type: 'number',
				minimum: 0,
				maximum: 10,
				default: 1,
				description: 'Retries per request; default 1.',
			},
			per_second: {
				type: 'integer',
				minimum: 0,
				maximum: 1_000_000,
				default: 10,
				description: 'Additional retries per second; default 10.',
			},
		},
		additionalProperties: false,
	},
	health: HEALTH_SCHEMA,
	fail_duration: {
		...MILLISECONDS_SCHEMA,
		default: 0,
		description: 'Milliseconds for which a failure is remembered; default 0, which disables it.',
	},
	max_fails: {
		type: 'integer',
		minimum: 1,
		maximum: 1000,
		default: 1,
		description: 'Remembered failures that make an upstream unavailable; default 1.',
	},
	unhealthy_status: { type: 'array', items: STATUS_OR_CLASS_SCHEMA, description: 'Statuses that count as failures.' },
	unhealthy_latency: {
		...MILLISECONDS_SCHEMA,
		description: 'Milliseconds until a response begins that count as a failure.',
	},
	unhealthy_request_count: { ...COUNT_SCHEMA, description: 'Concurrent requests at which an upstream is full.' },
	circuit: CIRCUIT_SCHEMA,
	shed: SHED_SCHEMA,
	slow_start: {
		...MILLISECONDS_SCHEMA,
		description: 'Milliseconds over which a recovering upstream returns to its full share; default immediately.',
	},
};

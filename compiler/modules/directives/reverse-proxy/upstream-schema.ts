/** Schema of a pool of upstreams in the document, for `upstreams.<name>` and for the pool in a `proxy` step. */
import type { Schema } from '../../../document/schema-type.ts';
import { POOL_PROPERTIES } from './pool-schema.ts';
import { transportSchema } from './transports/transport-schema.ts';

const MILLISECONDS_SCHEMA: Schema = { type: 'number', minimum: 0, maximum: 2_147_483_647 };

/** Schema of a pool: {@link UpstreamSettings} without its name. */
export const upstreamSchema: Schema = {
	type: 'object',
	description: 'A pool of upstreams.',
	properties: {
		'@id': { type: 'string', minLength: 1 },
		to: {
			type: 'array',
			items: { type: 'string', minLength: 1, secret: 'url' },
			description:
				'Addresses: `host:port`, `[v6]:port`, `host:8001-8005`, `unix//path`, prefixed by `https://` or `h2c://` for such a transport; one with placeholders is resolved per request.',
		},
		backup: {
			type: 'array',
			items: { type: 'string', minLength: 1, secret: 'url' },
			description: 'Those addresses of `to` that are used only while none of the others is available.',
		},
		balance: {
			$ref: '#/$defs/balance',
			default: { policy: 'random' },
			description: 'How an upstream is chosen; default `random`.',
		},
		connect_timeout: {
			...MILLISECONDS_SCHEMA,
			default: 3000,
			description: 'Milliseconds to connect; default 3000, 0 for no limit.',
		},
		response_header_timeout: {
			...MILLISECONDS_SCHEMA,
			default: 0,
			description: 'Milliseconds from the end of the request to the end of the response head; default 0 for no limit.',
		},
		max_response_header: {
			type: 'integer',
			minimum: 1024,
			default: 10_485_760,
			description: 'Maximum bytes of a response head; default 10485760.',
		},
		keepalive: {
			...MILLISECONDS_SCHEMA,
			description: 'Milliseconds for which an idle connection stays open; default 120000, 0 disables keep-alive.',
		},
		keepalive_idle_conns: {
			type: 'integer',
			minimum: 0,
			default: 32,
			description: 'Maximum idle connections of one thread to one upstream; default 32.',
		},
		transport: transportSchema,
		...POOL_PROPERTIES,
	},
	required: ['to'],
	additionalProperties: false,
};

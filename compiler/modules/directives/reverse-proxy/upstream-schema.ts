/** Schema of a pool of upstreams in the document: of `upstreams.<name>` and of `proxy`'s own. */
import type { Schema } from '../directive.ts';
import { POOL_PROPERTIES } from './pool-schema.ts';
import { transportSchema } from './transports/transport-schema.ts';

const MILLISECONDS: Schema = { type: 'number', minimum: 0, maximum: 2_147_483_647 };

/** A pool: {@link UpstreamSettings} without its name. */
export const upstreamSchema: Schema = {
	type: 'object',
	description: 'A pool of upstreams.',
	properties: {
		'@id': { type: 'string', minLength: 1 },
		to: {
			type: 'array',
			items: { type: 'string', minLength: 1, secret: 'url' },
			description:
				'Addresses: `host:port`, `[v6]:port`, `host:8001-8005`, `unix//path`, with `https://` or `h2c://` before it for such a transport, or one with placeholders that is resolved per request.',
		},
		balance: {
			$ref: '#/$defs/balance',
			default: { policy: 'random' },
			description: 'How an upstream is chosen; `random` if left out.',
		},
		connect_timeout: {
			...MILLISECONDS,
			default: 3000,
			description: 'Milliseconds to connect; 3000 if left out, 0 for no bound.',
		},
		response_header_timeout: {
			...MILLISECONDS,
			default: 0,
			description:
				'Milliseconds from the end of the request to the end of the response’s head; no bound if left out or 0.',
		},
		max_response_header: {
			type: 'integer',
			minimum: 1024,
			default: 10_485_760,
			description: 'Bytes of a response’s head; 10485760 if left out.',
		},
		keepalive: {
			...MILLISECONDS,
			description: 'Milliseconds that an idle connection is kept; 120000 if left out, 0 keeps none.',
		},
		keepalive_idle_conns: {
			type: 'integer',
			minimum: 0,
			default: 32,
			description: 'Idle connections that one thread keeps to one upstream; 32 if left out.',
		},
		transport: transportSchema,
		...POOL_PROPERTIES,
	},
	required: ['to'],
	additionalProperties: false,
};

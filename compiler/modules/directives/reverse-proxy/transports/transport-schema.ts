/** Schema of a pool's transport in the document. */

import type { Schema } from '../../../../document/schema-type.ts';
import { TRUST_POOL_SCHEMA } from '../../../providers/trust-pools/trust-pool.ts';
import { TLS_CURVES } from './lower-client-tls.ts';
import { MAX_READ_BUFFER_BYTES, MIN_READ_BUFFER_BYTES } from './transport-settings.ts';

/** Matches an IP address, with an optional port. */
const NAME_SERVER_PATTERN =
	'^(?:\\d{1,3}(?:\\.\\d{1,3}){3}(?::\\d{1,5})?|[0-9a-fA-F:]*:[0-9a-fA-F:.]+|\\[[0-9a-fA-F:.]+\\](?::\\d{1,5})?)$';

const MILLISECONDS_SCHEMA: Schema = { type: 'number', minimum: 0, maximum: 2_147_483_647 };

const CLIENT_TLS_SCHEMA: Schema = {
	type: 'object',
	description: 'TLS to the upstreams; default plain text.',
	properties: {
		server_name: {
			type: 'string',
			description: 'Name for SNI and verification; default the upstream’s host. Placeholders are resolved per request.',
		},
		insecure_skip_verify: { type: 'boolean', default: false, description: 'True to accept any certificate.' },
		trust: {
			...TRUST_POOL_SCHEMA,
			description: 'Authorities for verifying upstream certificates; default the system’s.',
		},
		client_certificate: {
			description: 'Certificate for upstreams that request one.',
			anyOf: [
				{
					type: 'object',
					properties: {
						certificate: {
							type: 'string',
							minLength: 1,
							description: 'Absolute path of a PEM file: the certificate, then its chain.',
						},
						key: { type: 'string', minLength: 1, description: 'Absolute path of its private key.' },
					},
					required: ['certificate', 'key'],
					additionalProperties: false,
				},
				{
					type: 'object',
					properties: {
						managed: { type: 'string', minLength: 1, description: 'Name of a certificate that this server manages.' },
					},
					required: ['managed'],
					additionalProperties: false,
				},
			],
		},
		curves: { type: 'array', items: { enum: TLS_CURVES }, description: 'Key exchange groups, in order of preference.' },
		renegotiation: {
			enum: ['never', 'freely'],
			default: 'never',
			description: 'Renegotiation started by upstreams; default `never`.',
		},
		except_ports: {
			type: 'array',
			items: { type: 'integer', minimum: 1, maximum: 65535 },
			description: 'Ports to which connections are made without TLS.',
		},
		handshake_timeout: {
			...MILLISECONDS_SCHEMA,
			default: 10_000,
			description: 'Milliseconds for the handshake; default 10000, 0 for no limit.',
		},
	},
	additionalProperties: false,
};

const READ_TIMEOUT_SCHEMA: Schema = {
	...MILLISECONDS_SCHEMA,
	default: 0,
	description: 'Maximum milliseconds between two reads of a response; default 0 for no limit.',
};
const WRITE_TIMEOUT_SCHEMA: Schema = {
	...MILLISECONDS_SCHEMA,
	default: 0,
	description: 'Maximum milliseconds for a write of a request; default 0 for no limit.',
};

const HTTP_TRANSPORT_SCHEMA: Schema = {
	type: 'object',
	description: 'HTTP over TCP or Unix sockets.',
	properties: {
		type: { const: 'http' },
		versions: {
			type: 'array',
			items: { enum: ['1.1', '2', 'h2c'] },
			minItems: 1,
			description:
				'HTTP versions; default `1.1` and `2`. `2` needs TLS; `h2c` is version 2 in plain text and cannot be combined with others.',
		},
		tls: CLIENT_TLS_SCHEMA,
		compression: {
			type: 'boolean',
			default: true,
			description: 'Whether to request gzip if the client requested no coding, and decode it; default true.',
		},
		proxy_protocol: {
			enum: ['v1', 'v2'],
			description: 'Version of the PROXY protocol header with the client’s address.',
		},
		forward_proxy: {
			description: '`none`, or the proxy to connect through; default the environment’s.',
			oneOf: [
				{ const: 'none' },
				{
					type: 'object',
					properties: {
						url: {
							type: 'string',
							pattern: '^(https?|socks5)://[^/@?#]+:[0-9]+$',
							description: '`http://host:port`, `https://host:port` or `socks5://host:port`.',
						},
						username: { type: 'string', description: 'User of the proxy.' },
						password: { type: 'string', description: 'Password of the proxy.', secret: true },
					},
					required: ['url'],
					additionalProperties: false,
				},
			],
		},
		resolvers: {
			type: 'array',
			items: { type: 'string', pattern: NAME_SERVER_PATTERN },
			description: 'DNS servers, `ip` or `ip:port`; default the system’s.',
		},
		local_address: { type: 'string', description: 'IP address to connect from.' },
		dial_fallback_delay: {
			type: 'number',
			minimum: -1,
			maximum: 2_147_483_647,
			default: 300,
			description: 'Milliseconds after which the next address of a host is tried; default 300, -1 waits for each.',
		},
		expect_continue_timeout: {
			...MILLISECONDS_SCHEMA,
			default: 1000,
			description: 'Milliseconds for which a body waits for 100 (Continue) if the client expects it; default 1000.',
		},
		read_buffer: {
			type: 'integer',
			minimum: MIN_READ_BUFFER_BYTES,
			maximum: MAX_READ_BUFFER_BYTES,
			description: 'Maximum bytes of one read of a connection; default 65536.',
		},
		read_timeout: READ_TIMEOUT_SCHEMA,
		write_timeout: WRITE_TIMEOUT_SCHEMA,
		max_conns_per_host: {
			type: 'integer',
			minimum: 1,
			description:
				'Maximum connections of the process to one upstream, divided among its threads; further requests wait for one or, with HTTP/2, for a free stream.',
		},
		keepalive_interval: {
			...MILLISECONDS_SCHEMA,
			default: 30_000,
			description: 'Milliseconds of silence after which TCP probes a connection; default 30000.',
		},
		keepalive_idle_conns_total: {
			type: 'integer',
			minimum: 0,
			description: 'Maximum idle connections of one thread to all upstreams of the pool.',
		},
	},
	required: ['type'],
	additionalProperties: false,
};

const FASTCGI_TRANSPORT_SCHEMA: Schema = {
	type: 'object',
	description: 'FastCGI.',
	properties: {
		type: { const: 'fastcgi' },
		root: {
			type: 'string',
			description: 'Folder of the scripts; default the site’s `root`. Placeholders are resolved.',
		},
		split: {
			type: 'array',
			items: { type: 'string', minLength: 1 },
			description: 'Extensions: the path up to the first of them is the script, the rest is PATH_INFO.',
		},
		env: {
			type: 'array',
			description: 'Additional variables; placeholders are resolved.',
			items: {
				type: 'object',
				properties: {
					name: { type: 'string', minLength: 1, description: 'Name of the variable.' },
					value: { type: 'string', secret: 'by-variable', description: 'Its value.' },
				},
				required: ['name', 'value'],
				additionalProperties: false,
			},
		},
		resolve_root_symlink: {
			type: 'boolean',
			default: false,
			description: 'True to resolve symbolic links in `root`.',
		},
		read_timeout: READ_TIMEOUT_SCHEMA,
		write_timeout: WRITE_TIMEOUT_SCHEMA,
		capture_stderr: {
			type: 'boolean',
			default: false,
			description:
				'True to log what scripts write to standard error: as a warning, or as an error with status 4xx and 5xx.',
		},
	},
	required: ['type'],
	additionalProperties: false,
};

export const transportSchema: Schema = {
	type: 'object',
	description: 'How requests reach the upstreams; default HTTP/1.1 in plain text.',
	discriminator: { propertyName: 'type' },
	required: ['type'],
	oneOf: [HTTP_TRANSPORT_SCHEMA, FASTCGI_TRANSPORT_SCHEMA],
};

/** Schema of a pool's transport in the document. */
import { TRUST_POOL } from '../../../providers/trust-pools/trust-pool.ts';
import type { Schema } from '../../directive.ts';
import { TLS_CURVES } from './lower-client-tls.ts';
import { LEAST_READ, MOST_READ } from './transport-settings.ts';

/** An IP address, with a port or without. */
const NAME_SERVER =
	'^(?:\\d{1,3}(?:\\.\\d{1,3}){3}(?::\\d{1,5})?|[0-9a-fA-F:]*:[0-9a-fA-F:.]+|\\[[0-9a-fA-F:.]+\\](?::\\d{1,5})?)$';

const MILLISECONDS: Schema = { type: 'number', minimum: 0, maximum: 2_147_483_647 };

const TLS: Schema = {
	type: 'object',
	description: 'TLS to the upstreams; plain text if left out.',
	properties: {
		server_name: {
			type: 'string',
			description:
				'Name for SNI and verification; the upstream’s host if left out. Placeholders are resolved per request.',
		},
		insecure_skip_verify: { type: 'boolean', default: false, description: 'True: any certificate is taken.' },
		trust: {
			...TRUST_POOL,
			description: 'What certificates of upstreams are verified with; the system’s authorities if left out.',
		},
		client_certificate: {
			description: 'Shown to upstreams that ask.',
			anyOf: [
				{
					type: 'object',
					properties: {
						certificate: {
							type: 'string',
							minLength: 1,
							description: 'Absolute path of a PEM file: certificates, the own one first.',
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
		curves: { type: 'array', items: { enum: TLS_CURVES }, description: 'Groups for key exchange, in order.' },
		renegotiation: {
			enum: ['never', 'freely'],
			default: 'never',
			description: 'Renegotiations that upstreams begin; `never` if left out.',
		},
		except_ports: {
			type: 'array',
			items: { type: 'integer', minimum: 1, maximum: 65535 },
			description: 'Ports that are spoken to without TLS.',
		},
		handshake_timeout: {
			...MILLISECONDS,
			default: 10_000,
			description: 'Milliseconds of the handshake; 10000 if left out, 0 for no bound.',
		},
	},
	additionalProperties: false,
};

const READ_TIMEOUT: Schema = {
	...MILLISECONDS,
	default: 0,
	description: 'Milliseconds between two reads of a response; no bound if left out or 0.',
};
const WRITE_TIMEOUT: Schema = {
	...MILLISECONDS,
	default: 0,
	description: 'Milliseconds that a write of a request may take; no bound if left out or 0.',
};

const HTTP: Schema = {
	type: 'object',
	description: 'HTTP, over TCP or unix sockets.',
	properties: {
		type: { const: 'http' },
		versions: {
			type: 'array',
			items: { enum: ['1.1', '2', 'h2c'] },
			minItems: 1,
			description:
				'Versions of HTTP: `1.1` and `2` if left out. `2` needs TLS; `h2c` is 2 in plain text, and then no other is spoken.',
		},
		tls: TLS,
		compression: {
			type: 'boolean',
			default: true,
			description: 'Whether gzip is asked for where the client asked for nothing, and decoded; true if left out.',
		},
		proxy_protocol: {
			enum: ['v1', 'v2'],
			description: 'The PROXY protocol’s header is sent with the client’s address.',
		},
		forward_proxy: {
			description: '`none`, or the proxy that connections are made through; those of the environment if left out.',
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
			items: { type: 'string', pattern: NAME_SERVER },
			description: 'DNS servers, `ip` or `ip:port`; those of the system if left out.',
		},
		local_address: { type: 'string', description: 'IP address that connections are made from.' },
		dial_fallback_delay: {
			type: 'number',
			minimum: -1,
			maximum: 2_147_483_647,
			default: 300,
			description: 'Milliseconds after which the next address of a host is tried; 300 if left out, -1 waits for each.',
		},
		expect_continue_timeout: {
			...MILLISECONDS,
			default: 1000,
			description: 'Milliseconds that a body waits for 100 (Continue) where the client expects it; 1000 if left out.',
		},
		read_buffer: {
			type: 'integer',
			minimum: LEAST_READ,
			maximum: MOST_READ,
			description: 'Bytes that one read of a connection gives at most; 65536 if left out.',
		},
		read_timeout: READ_TIMEOUT,
		write_timeout: WRITE_TIMEOUT,
		max_conns_per_host: {
			type: 'integer',
			minimum: 1,
			description:
				'Connections of the process to one upstream, divided among its threads; requests wait for one, or with HTTP/2 for room on one.',
		},
		keepalive_interval: {
			...MILLISECONDS,
			default: 30_000,
			description: 'Milliseconds of silence after which TCP probes a connection; 30000 if left out.',
		},
		keepalive_idle_conns_total: {
			type: 'integer',
			minimum: 0,
			description: 'Idle connections that one thread keeps to all upstreams of the pool.',
		},
	},
	required: ['type'],
	additionalProperties: false,
};

const FASTCGI: Schema = {
	type: 'object',
	description: 'FastCGI.',
	properties: {
		type: { const: 'fastcgi' },
		root: {
			type: 'string',
			description: 'Folder of the scripts; the site’s `root` if left out. Placeholders are resolved.',
		},
		split: {
			type: 'array',
			items: { type: 'string', minLength: 1 },
			description: 'Extensions: the path up to the first of them is the script, the rest is PATH_INFO.',
		},
		env: {
			type: 'array',
			description: 'Further variables; placeholders are resolved.',
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
			description: 'True: symbolic links in `root` are resolved.',
		},
		read_timeout: READ_TIMEOUT,
		write_timeout: WRITE_TIMEOUT,
		capture_stderr: {
			type: 'boolean',
			default: false,
			description:
				'True: what scripts write to standard error is logged as a warning, and as an error with status 4xx and 5xx.',
		},
	},
	required: ['type'],
	additionalProperties: false,
};

/** `transport` of a pool. */
export const transportSchema: Schema = {
	type: 'object',
	description: 'How requests reach the upstreams; HTTP/1.1 in plain text if left out.',
	discriminator: { propertyName: 'type' },
	required: ['type'],
	oneOf: [HTTP, FASTCGI],
};

/** Schema of `tls` of a site. */
import type { Schema } from '../directive.ts';
import { CLIENT_AUTH } from './client-auth.ts';
import { CIPHERS, CURVES, KEY_TYPES, TLS_VERSIONS } from './handshake-words.ts';

const TEXTS: Schema = { type: 'array', items: { type: 'string' } };

/** The field `tls` of a site. */
export const SITE_TLS: Schema = {
	type: 'object',
	description: 'TLS of the site: its certificates, how they are obtained, and how connections are made.',
	properties: {
		certificates: {
			type: 'array',
			description: 'Certificates of files, with their keys. Of those that cover a name the first is served.',
			items: {
				type: 'object',
				properties: {
					certificate: { type: 'string', minLength: 1, description: 'PEM file: the certificate, then its chain.' },
					key: { type: 'string', minLength: 1, description: 'PEM file.' },
				},
				required: ['certificate', 'key'],
				additionalProperties: false,
			},
		},
		load: {
			...TEXTS,
			description: 'Folders with PEM files that hold a certificate and its key, those below included.',
		},
		min_version: { enum: TLS_VERSIONS, description: '`tls1.2` if left out.' },
		max_version: { enum: TLS_VERSIONS, description: '`tls1.3` if left out.' },
		ciphers: { type: 'array', items: { enum: Object.keys(CIPHERS) }, description: 'For TLS 1.2, the preferred first.' },
		curves: { type: 'array', items: { enum: Object.keys(CURVES) }, description: 'The preferred first.' },
		alpn: { ...TEXTS, description: 'Protocols, the preferred first; `h2` and `http/1.1` if left out.' },
		key_type: { enum: KEY_TYPES, description: 'Of keys that are made; `p256` if left out.' },
		issuers: { type: 'array', items: { $ref: '#/$defs/issuer' }, description: 'The preferred first.' },
		acme: { $ref: '#/$defs/acme', description: 'Changes to the default issuers, where `issuers` names none.' },
		managers: {
			type: 'array',
			description: 'Asked for a certificate at handshake time before any issuer is.',
			items: {
				type: 'object',
				properties: {
					manager: { const: 'http' },
					url: {
						type: 'string',
						minLength: 1,
						secret: 'url',
						description: 'Asked with GET; 200 with PEM gives one, 204 has none.',
					},
				},
				required: ['manager', 'url'],
				additionalProperties: false,
			},
		},
		on_demand: { type: 'boolean', description: 'Certificates are obtained when a client first asks for the name.' },
		force_automate: { type: 'boolean', description: 'A certificate of its own even where a wildcard covers the name.' },
		reuse_private_keys: { type: 'boolean', description: 'A renewed certificate keeps its key.' },
		renewal_window_ratio: {
			type: 'number',
			exclusiveMinimum: 0,
			exclusiveMaximum: 1,
			description: 'Part of the life of a certificate that is left when it is renewed; a third if left out.',
		},
		client_auth: CLIENT_AUTH,
		insecure_secrets_log: {
			type: 'string',
			minLength: 1,
			description: 'File that takes the secrets of every connection, for looking into traffic.',
		},
		'@id': { type: 'string' },
	},
	additionalProperties: false,
};

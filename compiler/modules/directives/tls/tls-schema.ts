/** Schema of a site's `tls`. */
import type { Schema } from '../../../document/schema-type.ts';
import { CLIENT_AUTH_SCHEMA } from './client-auth.ts';
import { KEY_TYPES, TLS_CURVE_NAMES, TLS_VERSIONS, TLS12_CIPHERS } from './handshake-words.ts';

const TEXT_LIST_SCHEMA: Schema = { type: 'array', items: { type: 'string' } };

export const SITE_TLS_SCHEMA: Schema = {
	type: 'object',
	description: 'TLS of the site: its certificates, how they are obtained, and how connections are made.',
	properties: {
		certificates: {
			type: 'array',
			description: 'Certificates from files, with their keys. The first one that covers a name is served.',
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
			...TEXT_LIST_SCHEMA,
			description: 'Folders of PEM files that contain a certificate and its key, including subfolders.',
		},
		min_version: { enum: TLS_VERSIONS, description: 'Default `tls1.2`.' },
		max_version: { enum: TLS_VERSIONS, description: 'Default `tls1.3`.' },
		ciphers: {
			type: 'array',
			items: { enum: Object.keys(TLS12_CIPHERS) },
			description: 'For TLS 1.2, most preferred first.',
		},
		curves: { type: 'array', items: { enum: Object.keys(TLS_CURVE_NAMES) }, description: 'Most preferred first.' },
		alpn: { ...TEXT_LIST_SCHEMA, description: 'Protocols, most preferred first; default `h2` and `http/1.1`.' },
		key_type: { enum: KEY_TYPES, description: 'Type of generated keys; default `p256`.' },
		issuers: { type: 'array', items: { $ref: '#/$defs/issuer' }, description: 'Most preferred first.' },
		acme: { $ref: '#/$defs/acme', description: 'Changes to the default issuers, if `issuers` names none.' },
		managers: {
			type: 'array',
			description: 'Sources queried for a certificate during the handshake, before any issuer.',
			items: {
				type: 'object',
				properties: {
					manager: { const: 'http' },
					url: {
						type: 'string',
						minLength: 1,
						secret: 'url',
						description: 'URL queried with GET; 200 returns a certificate as PEM, 204 means there is none.',
					},
				},
				required: ['manager', 'url'],
				additionalProperties: false,
			},
		},
		on_demand: { type: 'boolean', description: 'Obtains certificates when a client first requests the name.' },
		force_automate: {
			type: 'boolean',
			description: 'Obtains a separate certificate even if a wildcard covers the name.',
		},
		reuse_private_keys: { type: 'boolean', description: 'Keeps the key of a renewed certificate.' },
		renewal_window_ratio: {
			type: 'number',
			exclusiveMinimum: 0,
			exclusiveMaximum: 1,
			description: `Remaining share of a certificate's lifetime at which it is renewed; default a third.`,
		},
		client_auth: CLIENT_AUTH_SCHEMA,
		insecure_secrets_log: {
			type: 'string',
			minLength: 1,
			description: 'File to which the secrets of every connection are written, for inspecting traffic.',
		},
		'@id': { type: 'string' },
	},
	additionalProperties: false,
};

/** The document's JSON Schema, built from the registries of directives, matchers and options. */

import type { Schema } from '../directives/directive.ts';
import { directives } from '../directives/index.ts';
import { upstreamSchema } from '../directives/reverse-proxy/upstream-schema.ts';
import { matchers } from '../matchers/index.ts';
import { options } from '../options/index.ts';
import { LOG_FORMAT } from '../providers/log-formats/log-format.ts';
import { MATCHER, PIPELINE } from './references.ts';

const ID: Schema = {
	type: 'string',
	minLength: 1,
	description: 'A name by which `/id/<name>` of the Admin API addresses this object. Unique in the document.',
};

/**
 * Builds the schema: draft-07 with ajv's `discriminator` on `handler` and `type`, and two marks of ours. `secret: true`
 * is redacted when read; `startup: true` cannot be changed by a load.
 */
export function documentSchema(): Schema {
	return {
		$schema: 'http://json-schema.org/draft-07/schema#',
		title: 'Configuration of svc',
		type: 'object',
		properties: {
			'@id': ID,
			settings: settingsSchema(),
			upstreams: {
				type: 'object',
				description: 'Named pools of upstreams, for the handler `proxy`.',
				additionalProperties: { $ref: '#/$defs/upstreams' },
			},
			routes: { type: 'object', additionalProperties: PIPELINE },
			sites: { type: 'array', items: { $ref: '#/$defs/site' } },
		},
		additionalProperties: false,
		$defs: {
			site: siteSchema(),
			pipeline: {
				type: 'array',
				description: 'Steps, run in this order. Before 0.2.0 a site had them under `handle`, which is still read.',
				items: { $ref: '#/$defs/step' },
			},
			step: stepSchema(),
			matcher: matcherSchema(),
			upstreams: upstreamSchema,
			log_format: LOG_FORMAT,
		},
	};
}

function settingsSchema(): Schema {
	const properties: { [id: string]: Schema } = { '@id': ID };
	for (const { id, schema, startup, summary } of options) {
		properties[id] = { description: summary, ...schema, ...(startup ? { startup: true } : {}) };
	}
	return { type: 'object', properties, additionalProperties: false };
}

function siteSchema(): Schema {
	const properties: { [id: string]: Schema } = {
		'@id': ID,
		addresses: {
			type: 'array',
			items: { type: 'string' },
			minItems: 1,
			description: '`[scheme://][host][:port]`.',
		},
		pipeline: PIPELINE,
	};
	for (const directive of directives) if (directive.kind === 'site') properties[directive.id] = directive.schema;
	return { type: 'object', properties, required: ['addresses', 'pipeline'], additionalProperties: false };
}

function stepSchema(): Schema {
	const variants: Schema[] = [];
	for (const directive of directives) {
		if (directive.kind !== 'handler' || directive.id === '' || !directive.compile) continue;
		variants.push({
			type: 'object',
			description: directive.summary,
			properties: {
				handler: { const: directive.id },
				when: MATCHER,
				exclusive: {
					type: 'string',
					description: 'Of the steps of one pipeline with this name only the first that matches runs.',
				},
				'@id': ID,
				...directive.schema.properties,
			},
			required: ['handler', ...(directive.schema.required ?? [])],
			additionalProperties: false,
		});
	}
	return union('handler', variants);
}

function matcherSchema(): Schema {
	const variants = matchers.map(({ id, summary, schema }) => ({
		type: 'object',
		description: summary,
		properties: { type: { const: id }, '@id': ID, ...schema.properties },
		required: ['type', ...(schema.required ?? [])],
		additionalProperties: false,
	}));
	return union('type', variants);
}

function union(tag: string, variants: readonly Schema[]): Schema {
	return { type: 'object', discriminator: { propertyName: tag }, oneOf: variants };
}

/** The document's JSON Schema, built from the registries of directives, matchers and options. */

import { MATCHER_SCHEMA, PIPELINE_SCHEMA } from '../document/references.ts';
import type { Schema } from '../document/schema-type.ts';
import { DYNAMIC_SOURCES } from '../modules/directives/reverse-proxy/pool-schema.ts';
import { RETRY_PREDICATE_KINDS } from '../modules/directives/reverse-proxy/retry-predicate.ts';
import { upstreamSchema } from '../modules/directives/reverse-proxy/upstream-schema.ts';
import { balancers } from '../modules/providers/balancers/index.ts';
import { acme } from '../modules/providers/issuers/acme.ts';
import { ISSUER_SCHEMA } from '../modules/providers/issuers/index.ts';
import { LOG_FORMAT_SCHEMA } from '../modules/providers/log-formats/log-format.ts';
import { directives } from '../modules/registry/directives.ts';
import { matchers } from '../modules/registry/matchers.ts';
import { options } from '../modules/registry/options.ts';

const ID_SCHEMA: Schema = {
	type: 'string',
	minLength: 1,
	description: 'A name by which `/id/<name>` of the Admin API addresses this object. Unique in the document.',
};

/**
 * Builds the schema: draft-07 with ajv's `discriminator` on `handler` and `type`, and two custom keywords. `secret: true` marks
 * values that are redacted when read, and `startup: true` marks values that need a restart to change.
 */
export function documentSchema(): Schema {
	const stepUnion = taggedUnion('handler', stepVariants());
	const matcherUnion = taggedUnion('type', matcherVariants());
	const balancerUnion = taggedUnion('policy', taggedVariants('policy', balancers));
	const sourceUnion = taggedUnion('source', taggedVariants('source', DYNAMIC_SOURCES));
	return {
		$schema: 'http://json-schema.org/draft-07/schema#',
		title: 'Configuration of svc',
		type: 'object',
		properties: {
			$schema: { type: 'string', description: 'The schema of this document, for editors. Has no effect.' },
			'@id': ID_SCHEMA,
			settings: settingsSchema(),
			upstreams: {
				type: 'object',
				description: 'Named pools of upstreams, for the handler `proxy`.',
				additionalProperties: { $ref: '#/$defs/upstreams' },
			},
			routes: { type: 'object', description: 'Named routes, for `run_route`.', additionalProperties: PIPELINE_SCHEMA },
			sites: { type: 'array', description: 'The sites to serve.', items: { $ref: '#/$defs/site' } },
		},
		additionalProperties: false,
		$defs: {
			site: siteSchema(),
			pipeline: {
				type: 'array',
				description: 'Steps, run in order. Before 0.2.0, sites had them under `handle`, which is still accepted.',
				items: { $ref: '#/$defs/step' },
			},
			step: stepUnion.schema,
			matcher: matcherUnion.schema,
			upstreams: upstreamSchema,
			balance: balancerUnion.schema,
			dynamic: sourceUnion.schema,
			retry: retrySchema(),
			log_format: LOG_FORMAT_SCHEMA,
			issuer: ISSUER_SCHEMA,
			acme: { type: 'object', properties: acme.schema.properties, additionalProperties: false },
			...stepUnion.definitions,
			...matcherUnion.definitions,
			...balancerUnion.definitions,
			...sourceUnion.definitions,
			...retryDefinitions(),
		},
	};
}

function settingsSchema(): Schema {
	const properties: { [id: string]: Schema } = { '@id': ID_SCHEMA };
	for (const { id, schema, startup, summary } of options) {
		properties[id] = { description: summary, ...schema, ...(startup ? { startup: true } : {}) };
	}
	const description = 'Settings of the whole process.';
	return { type: 'object', description, properties, additionalProperties: false };
}

function siteSchema(): Schema {
	const properties: { [id: string]: Schema } = {
		'@id': ID_SCHEMA,
		addresses: {
			type: 'array',
			items: { type: 'string' },
			minItems: 1,
			description: '`[scheme://][host][:port]`.',
		},
	};
	for (const directive of directives) if (directive.kind === 'site') properties[directive.id] = directive.schema;
	const { errors } = properties;
	delete properties.errors;
	// The properties are in the order in which a request passes through them.
	Object.assign(properties, { pipeline: PIPELINE_SCHEMA, errors });
	return { type: 'object', properties, required: ['addresses', 'pipeline'], additionalProperties: false };
}

function stepVariants(): Variant[] {
	const variants: Variant[] = [];
	for (const directive of directives) {
		if (directive.kind !== 'handler' || directive.id === '' || !directive.compile) continue;
		const schema: Schema = {
			type: 'object',
			description: directive.summary,
			properties: {
				handler: { const: directive.id },
				when: MATCHER_SCHEMA,
				exclusive: {
					type: 'string',
					description: 'Of the steps of one pipeline with this name, only the first that matches runs.',
				},
				'@id': ID_SCHEMA,
				...directive.schema.properties,
			},
			required: ['handler', ...(directive.schema.required ?? [])],
			additionalProperties: false,
		};
		variants.push({ id: directive.id, schema });
	}
	return variants;
}

function matcherVariants(): Variant[] {
	return taggedVariants('type', matchers);
}

/**
 * Returns the schema of retry predicates: their own kinds, and the request matchers whose names do not collide with these kinds.
 */
function retrySchema(): Schema {
	const retryKinds = RETRY_PREDICATE_KINDS.map(({ id }) => ({ $ref: `#/$defs/retry.${id}` }));
	const retryIds = new Set(RETRY_PREDICATE_KINDS.map(({ id }) => id));
	const matcherKinds = matchers.filter(({ id }) => !retryIds.has(id)).map(({ id }) => ({ $ref: `#/$defs/type.${id}` }));
	return { type: 'object', discriminator: { propertyName: 'type' }, oneOf: [...retryKinds, ...matcherKinds] };
}

function retryDefinitions(): { [name: string]: Schema } {
	return Object.fromEntries(
		taggedVariants('type', RETRY_PREDICATE_KINDS).map(({ id, schema }) => [`retry.${id}`, schema]),
	);
}

/** Returns the variants of a union, one for each module of a kind. The property that `tag` names distinguishes them. */
function taggedVariants(
	tag: string,
	modules: readonly {
		readonly id: string;
		readonly summary: string;
		readonly schema: {
			readonly properties: { readonly [name: string]: Schema };
			readonly required?: readonly string[];
		};
	}[],
): Variant[] {
	return modules.map(({ id, summary, schema }) => ({
		id,
		schema: {
			type: 'object',
			description: summary,
			properties: { [tag]: { const: id }, '@id': ID_SCHEMA, ...schema.properties },
			required: [tag, ...(schema.required ?? [])],
			additionalProperties: false,
		},
	}));
}

/** One variant of a union: the schema of the values with the tag `id`. */
interface Variant {
	readonly id: string;
	readonly schema: Schema;
}

/**
 * Returns a union distinguished by a tag. Each variant is a separate definition, because ajv turns each definition into a
 * function. If one function held the variables of all variants, a deeply nested document would overflow the stack.
 */
function taggedUnion(
	tag: string,
	variants: readonly Variant[],
): { schema: Schema; definitions: { [name: string]: Schema } } {
	const oneOf = variants.map(({ id }) => ({ $ref: `#/$defs/${tag}.${id}` }));
	const definitions = Object.fromEntries(variants.map(({ id, schema }) => [`${tag}.${id}`, schema]));
	return { schema: { type: 'object', discriminator: { propertyName: tag }, oneOf }, definitions };
}

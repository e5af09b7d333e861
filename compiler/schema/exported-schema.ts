/** The schema in the form in which it is exported, for editors and for programs that generate documents. */

import type { Schema } from '../document/schema-type.ts';
import { documentSchema } from './schema.ts';
import { withIds } from './with-ids.ts';

/** Keywords whose value is a map of schemas, a list of schemas, or a schema. */
const SCHEMA_MAP_KEYWORDS: readonly string[] = ['properties', '$defs', 'patternProperties'];
const SCHEMA_LIST_KEYWORDS: readonly string[] = ['oneOf', 'anyOf', 'allOf'];
const SCHEMA_KEYWORDS: readonly string[] = ['items', 'additionalProperties', 'not'];

/**
 * Returns the JSON Schema of documents, with every field described. `secret` marks values that are redacted when a document is
 * read, `startup` marks values that need a restart. Documents from before 0.2.0 are accepted but not described: `svc adapt`
 * prints their current form.
 */
export function exportedSchema(): Schema {
	return {
		...(withIdDescriptions(withIds(documentSchema())) as { [word: string]: unknown }),
		description:
			'A configuration of svc as printed by `svc adapt`. Documents from before 0.2.0 are accepted too: a pipeline under `handle`, matchers without `type`, retries as separate fields.',
	};
}

function withIdDescriptions(schema: unknown): unknown {
	if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return schema;
	const describedSchema: { [word: string]: unknown } = {};
	for (const [word, value] of Object.entries(schema)) {
		if (SCHEMA_MAP_KEYWORDS.includes(word)) {
			const entries = Object.entries(value as { [name: string]: unknown });
			describedSchema[word] = Object.fromEntries(
				entries.map(([name, property]) => [name, describeId(name, withIdDescriptions(property))]),
			);
		} else if (SCHEMA_LIST_KEYWORDS.includes(word))
			describedSchema[word] = (value as unknown[]).map(withIdDescriptions);
		else describedSchema[word] = SCHEMA_KEYWORDS.includes(word) ? withIdDescriptions(value) : value;
	}
	return describedSchema;
}

/** Returns a property's schema, with a description if the property is `@id`. Modules need not describe it themselves. */
function describeId(name: string, schema: unknown): unknown {
	if (name !== '@id') return schema;
	const description = 'A name by which `/id/<name>` of the Admin API addresses this object. Unique in the document.';
	return { minLength: 1, description, ...(schema as object) };
}

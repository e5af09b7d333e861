/** Adds `@id` to the schema, because every object of a document may have one. */
import type { Schema } from '../document/schema-type.ts';

const ID_SCHEMA: Schema = {
	type: 'string',
	minLength: 1,
	description: 'A name by which `/id/<name>` of the Admin API addresses this object. Unique in the document.',
};

/** Keywords whose value is a map of schemas, a list of schemas, or a schema. */
const SCHEMA_MAP_KEYWORDS: ReadonlySet<string> = new Set(['properties', '$defs', 'patternProperties']);
const SCHEMA_LIST_KEYWORDS: ReadonlySet<string> = new Set(['oneOf', 'anyOf', 'allOf']);
const SCHEMA_KEYWORDS: ReadonlySet<string> = new Set(['items', 'additionalProperties']);

/**
 * Returns a schema with `@id` added to every object that has a fixed set of keys, so that modules need not declare it. Maps with
 * names from the user are not changed. {@link QuickChecks} handles `@id` itself, because copying the schema would take most of
 * the time that it needs.
 */
export function withIds(schema: Schema): Schema {
	const schemaWithIds: { [keyword: string]: unknown } = {};
	for (const [keyword, value] of Object.entries(schema)) {
		if (SCHEMA_MAP_KEYWORDS.has(keyword)) {
			const entries = Object.entries(value as { [name: string]: Schema }).map(([name, property]) => [
				name,
				withIds(property),
			]);
			schemaWithIds[keyword] = Object.fromEntries(entries);
		} else if (SCHEMA_LIST_KEYWORDS.has(keyword)) {
			schemaWithIds[keyword] = (value as Schema[]).map(withIds);
		} else {
			const isSchema = SCHEMA_KEYWORDS.has(keyword) && typeof value === 'object';
			schemaWithIds[keyword] = isSchema ? withIds(value as Schema) : value;
		}
	}
	if (canHaveId(schema)) schemaWithIds.properties = { '@id': ID_SCHEMA, ...(schemaWithIds.properties as object) };
	return schemaWithIds;
}

/** Reports whether the values of a schema are objects with a fixed set of keys. */
export function canHaveId({ properties, additionalProperties }: Schema): boolean {
	return properties !== undefined && additionalProperties === false;
}

/** Reports whether a value can be an `@id`. */
export function isObjectId(value: unknown): boolean {
	return typeof value === 'string' && value !== '';
}

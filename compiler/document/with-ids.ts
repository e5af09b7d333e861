/** Every object of a document may carry an `@id`: the schema that says so at each of them. */
import type { Schema } from '../modules/directives/directive.ts';

const ID: Schema = {
	type: 'string',
	minLength: 1,
	description: 'A name by which `/id/<name>` of the Admin API addresses this object. Unique in the document.',
};

/** Keywords that hold schemas by name, in a list, or one. */
const MAPS: ReadonlySet<string> = new Set(['properties', '$defs', 'patternProperties']);
const LISTS: ReadonlySet<string> = new Set(['oneOf', 'anyOf', 'allOf']);
const ONES: ReadonlySet<string> = new Set(['items', 'additionalProperties']);

/**
 * The schema with `@id` among the keys of every object whose keys it knows; modules need not say so. The names in a map
 * are the user's, and stay so. {@link QuickChecks} does the same by itself: copying the schema would be most of its work.
 */
export function withIds(schema: Schema): Schema {
	const result: { [keyword: string]: unknown } = {};
	for (const [keyword, value] of Object.entries(schema)) {
		if (MAPS.has(keyword)) {
			const named = Object.entries(value as { [name: string]: Schema }).map(([name, one]) => [name, withIds(one)]);
			result[keyword] = Object.fromEntries(named);
		} else if (LISTS.has(keyword)) {
			result[keyword] = (value as Schema[]).map(withIds);
		} else {
			const isSchema = ONES.has(keyword) && typeof value === 'object';
			result[keyword] = isSchema ? withIds(value as Schema) : value;
		}
	}
	if (takesId(schema)) result.properties = { '@id': ID, ...(result.properties as object) };
	return result;
}

/** Whether values of a schema are objects with keys of ours. */
export function takesId({ properties, additionalProperties }: Schema): boolean {
	return properties !== undefined && additionalProperties === false;
}

/** Whether a value can be an `@id`. */
export function isId(value: unknown): boolean {
	return typeof value === 'string' && value !== '';
}

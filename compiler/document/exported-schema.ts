/** The schema as it is given out: for editors, and for programs that make documents. */
import type { Schema } from '../modules/directives/directive.ts';
import { documentSchema } from './schema.ts';
import { withIds } from './with-ids.ts';

/** Words of the schema that hold other schemas, by name or as one. */
const MAPS: readonly string[] = ['properties', '$defs', 'patternProperties'];
const LISTS: readonly string[] = ['oneOf', 'anyOf', 'allOf'];
const ONES: readonly string[] = ['items', 'additionalProperties', 'not'];

/**
 * The JSON Schema of documents, every field described. `secret` marks what is hidden when a document is read, `startup`
 * what a load cannot change. Documents of before 0.2.0 are read too, and not described: `svc adapt` prints what they are
 * today.
 */
export function exportedSchema(): Schema {
	return {
		...(described(withIds(documentSchema())) as { [word: string]: unknown }),
		description:
			'A configuration of svc as `svc adapt` prints it. Documents of before 0.2.0 are read too: a pipeline under `handle`, matchers without `type`, retries as separate fields.',
	};
}

function described(schema: unknown): unknown {
	if (typeof schema !== 'object' || schema === null || Array.isArray(schema)) return schema;
	const result: { [word: string]: unknown } = {};
	for (const [word, value] of Object.entries(schema)) {
		if (MAPS.includes(word)) {
			const inner = Object.entries(value as { [name: string]: unknown });
			result[word] = Object.fromEntries(inner.map(([name, one]) => [name, withId(name, described(one))]));
		} else if (LISTS.includes(word)) result[word] = (value as unknown[]).map(described);
		else result[word] = ONES.includes(word) ? described(value) : value;
	}
	return result;
}

/** `@id` is the same everywhere; modules need not say so. */
function withId(name: string, schema: unknown): unknown {
	if (name !== '@id') return schema;
	const description = 'A name by which `/id/<name>` of the Admin API addresses this object. Unique in the document.';
	return { minLength: 1, description, ...(schema as object) };
}

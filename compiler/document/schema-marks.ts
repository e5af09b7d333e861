/** Finds the values of a document that the schema marks with a custom keyword. */
import type { Schema } from './schema-type.ts';

/**
 * Receives a value whose schema has the keyword. `mark` is the keyword's value, `parent` the object or array with the value, and
 * `path` the keys that lead from the document to the value. The array `path` is reused.
 */
export type MarkVisitor = (mark: unknown, parent: object, path: readonly string[]) => void;

type SchemaMap = { readonly [name: string]: Schema };

/**
 * A schema that is prepared for finding the values marked by one keyword. References and tags are indexed, and parts without the
 * keyword are skipped.
 */
export class SchemaMarks {
	readonly #root: Schema;
	readonly #keyword: string;
	readonly #definitions: SchemaMap;
	readonly #variantsBySchema = new Map<Schema, ReadonlyMap<string, Schema>>();
	/** Schemas that have the keyword themselves or in a subschema. */
	readonly #marked = new Set<Schema>();

	constructor(root: Schema, keyword: string) {
		this.#root = root;
		this.#keyword = keyword;
		this.#definitions = (root.$defs ?? {}) as SchemaMap;
		const subschemas = new Map<Schema, readonly Schema[]>();
		this.#collect(root, subschemas);
		// Schemas refer to each other in cycles, so this repeats until nothing changes.
		for (let sizeBefore = -1; sizeBefore !== this.#marked.size; ) {
			sizeBefore = this.#marked.size;
			for (const [schema, parts] of subschemas) {
				if (parts.some(part => this.#marked.has(part))) this.#marked.add(schema);
			}
		}
	}

	/** Calls `visit` for every marked value. */
	find(document: unknown, visit: MarkVisitor): void {
		this.#walk(this.#root, document, undefined, [], visit);
	}

	#walk(schema: Schema, value: unknown, parent: object | undefined, path: string[], visit: MarkVisitor): void {
		const resolved = this.#resolve(schema, value);
		if (!resolved || !this.#marked.has(resolved)) return;
		const mark = resolved[this.#keyword];
		if (mark !== undefined && parent) visit(mark, parent, path);
		for (const part of untaggedAlternatives(resolved)) this.#walk(part, value, parent, path, visit);
		if (typeof value !== 'object' || value === null) return;
		if (Array.isArray(value)) {
			const items = resolved.items as Schema | undefined;
			if (!items || !this.#marked.has(items)) return;
			for (let at = 0; at < value.length; at++) {
				if (value[at] === undefined) continue;
				path.push(String(at));
				this.#walk(items, value[at], value, path, visit);
				path.pop();
			}
			return;
		}
		const properties = (resolved.properties ?? {}) as SchemaMap;
		const additional = resolved.additionalProperties as Schema | boolean | undefined;
		for (const name of Object.keys(value)) {
			const memberSchema = Object.hasOwn(properties, name) ? properties[name] : additional;
			if (typeof memberSchema !== 'object' || !this.#marked.has(memberSchema)) continue;
			path.push(name);
			this.#walk(memberSchema, (value as { [name: string]: unknown })[name], value, path, visit);
			path.pop();
		}
	}

	#resolve(schema: Schema, value: unknown): Schema | undefined {
		const resolved = this.#dereferenced(schema);
		const tag = (resolved?.discriminator as { propertyName: string } | undefined)?.propertyName;
		if (!resolved || tag === undefined) return resolved;
		const tagValue = (value as { [name: string]: unknown } | null | undefined)?.[tag];
		return typeof tagValue === 'string' ? this.#variantsOf(resolved, tag).get(tagValue) : undefined;
	}

	#dereferenced(schema: Schema): Schema | undefined {
		let resolved: Schema | undefined = schema;
		while (resolved && typeof resolved.$ref === 'string') resolved = this.#definition(resolved.$ref);
		return resolved;
	}

	#definition(reference: string): Schema | undefined {
		return this.#definitions[reference.slice('#/$defs/'.length)];
	}

	#variantsOf(schema: Schema, tag: string): ReadonlyMap<string, Schema> {
		let variants = this.#variantsBySchema.get(schema);
		if (!variants) {
			const variantSchemas = (schema.oneOf as readonly Schema[]).map(variant => this.#dereferenced(variant)!);
			const tagOf = (variant: Schema): string =>
				(variant.properties as { [name: string]: { const: string } })[tag]!.const;
			variants = new Map(variantSchemas.map(variant => [tagOf(variant), variant]));
			this.#variantsBySchema.set(schema, variants);
		}
		return variants;
	}

	/**
	 * Collects every reachable schema with its direct subschemas, and marks the schemas that have the keyword. Inner schemas come
	 * first.
	 */
	#collect(schema: Schema, subschemas: Map<Schema, readonly Schema[]>, visited = new Set<Schema>()): void {
		if (visited.has(schema)) return;
		visited.add(schema);
		const parts = this.#partsOf(schema);
		for (const part of parts) this.#collect(part, subschemas, visited);
		subschemas.set(schema, parts);
		if (schema[this.#keyword] !== undefined) this.#marked.add(schema);
	}

	#partsOf(schema: Schema): readonly Schema[] {
		const parts: Schema[] = [
			...Object.values((schema.properties ?? {}) as SchemaMap),
			...((schema.oneOf ?? []) as readonly Schema[]),
			...((schema.anyOf ?? []) as readonly Schema[]),
			...((schema.allOf ?? []) as readonly Schema[]),
		];
		for (const key of ['items', 'additionalProperties'] as const) {
			const child = schema[key];
			if (typeof child === 'object' && child !== null) parts.push(child as Schema);
		}
		const definition = typeof schema.$ref === 'string' ? this.#definition(schema.$ref) : undefined;
		if (definition) parts.push(definition);
		return parts;
	}
}

/**
 * Returns the alternatives of a schema that has no tag. The marks of all of them are used, because it is not known which
 * alternative applies.
 */
function untaggedAlternatives({ oneOf, anyOf, allOf, discriminator }: Schema): readonly Schema[] {
	return [discriminator === undefined ? oneOf : undefined, anyOf, allOf].flatMap(list => (list ?? []) as Schema[]);
}

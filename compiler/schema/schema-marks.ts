/** Finds the values of a document that the schema marks with a custom keyword. */
import type { Schema } from '../document/schema-type.ts';

/**
 * Receives a value whose schema has the keyword. `mark` is the keyword's value, `parent` the object or array with the value, and
 * `path` the keys that lead from the document to the value. The array `path` is reused, so the visitor must not keep it.
 */
export type MarkVisitor = (mark: unknown, parent: object, path: readonly string[]) => void;

type SchemasByName = { readonly [name: string]: Schema };

/**
 * A schema that is prepared for finding the values marked by one keyword. References and tags are indexed, and parts without the
 * keyword are skipped.
 */
export class SchemaMarks {
	readonly #root: Schema;
	readonly #keyword: string;
	readonly #definitions: SchemasByName;
	readonly #variantsBySchema = new Map<Schema, ReadonlyMap<string, Schema>>();
	/** For each schema that has been looked at, whether it has the keyword itself or in a schema that it leads to. */
	readonly #leadsToMark = new Map<Schema, boolean>();

	constructor(root: Schema, keyword: string) {
		this.#root = root;
		this.#keyword = keyword;
		this.#definitions = (root.$defs ?? {}) as SchemasByName;
	}

	/** Calls `visit` for every marked value. */
	visitMarkedValues(document: unknown, visit: MarkVisitor): void {
		this.#visitValue(this.#root, document, undefined, [], visit);
	}

	#visitValue(schema: Schema, value: unknown, parent: object | undefined, path: string[], visit: MarkVisitor): void {
		const resolvedSchema = this.#resolve(schema, value);
		if (!resolvedSchema || !this.#isMarked(resolvedSchema)) return;
		const mark = resolvedSchema[this.#keyword];
		if (mark !== undefined && parent) visit(mark, parent, path);
		for (const part of untaggedAlternatives(resolvedSchema)) this.#visitValue(part, value, parent, path, visit);
		if (typeof value !== 'object' || value === null) return;
		if (Array.isArray(value)) {
			const itemSchema = resolvedSchema.items as Schema | undefined;
			if (!itemSchema || !this.#isMarked(itemSchema)) return;
			for (let at = 0; at < value.length; at++) {
				if (value[at] === undefined) continue;
				path.push(String(at));
				this.#visitValue(itemSchema, value[at], value, path, visit);
				path.pop();
			}
			return;
		}
		const properties = (resolvedSchema.properties ?? {}) as SchemasByName;
		const additionalSchema = resolvedSchema.additionalProperties as Schema | boolean | undefined;
		for (const name of Object.keys(value)) {
			const memberSchema = Object.hasOwn(properties, name) ? properties[name] : additionalSchema;
			if (typeof memberSchema !== 'object' || !this.#isMarked(memberSchema)) continue;
			path.push(name);
			this.#visitValue(memberSchema, (value as { [name: string]: unknown })[name], value, path, visit);
			path.pop();
		}
	}

	#resolve(schema: Schema, value: unknown): Schema | undefined {
		const resolvedSchema = this.#dereference(schema);
		const tagName = (resolvedSchema?.discriminator as { propertyName: string } | undefined)?.propertyName;
		if (!resolvedSchema || tagName === undefined) return resolvedSchema;
		const tagValue = (value as { [name: string]: unknown } | null | undefined)?.[tagName];
		return typeof tagValue === 'string' ? this.#variantsOf(resolvedSchema, tagName).get(tagValue) : undefined;
	}

	#dereference(schema: Schema): Schema | undefined {
		let resolvedSchema: Schema | undefined = schema;
		while (resolvedSchema && typeof resolvedSchema.$ref === 'string')
			resolvedSchema = this.#definitionOf(resolvedSchema.$ref);
		return resolvedSchema;
	}

	#definitionOf(reference: string): Schema | undefined {
		return this.#definitions[reference.slice('#/$defs/'.length)];
	}

	#variantsOf(schema: Schema, tagName: string): ReadonlyMap<string, Schema> {
		let variants = this.#variantsBySchema.get(schema);
		if (!variants) {
			const variantSchemas = (schema.oneOf as readonly Schema[]).map(variant => this.#dereference(variant)!);
			const tagOf = (variant: Schema): string =>
				(variant.properties as { [name: string]: { const: string } })[tagName]!.const;
			variants = new Map(variantSchemas.map(variant => [tagOf(variant), variant]));
			this.#variantsBySchema.set(schema, variants);
		}
		return variants;
	}

	/**
	 * Reports whether a schema has the keyword itself or in a schema that it leads to. Only the schemas that documents use are
	 * searched, because a search of all of them takes milliseconds.
	 */
	#isMarked(schema: Schema): boolean {
		const knownResult = this.#leadsToMark.get(schema);
		if (knownResult !== undefined) return knownResult;
		const searchedSchemas = new Set<Schema>();
		const isMarked = this.#searchMark(schema, searchedSchemas);
		if (isMarked) this.#leadsToMark.set(schema, true);
		// The search has visited every schema to which these schemas lead and found no mark, so none of them leads to a mark.
		else for (const searchedSchema of searchedSchemas) this.#leadsToMark.set(searchedSchema, false);
		return isMarked;
	}

	#searchMark(schema: Schema, searchedSchemas: Set<Schema>): boolean {
		const knownResult = this.#leadsToMark.get(schema);
		if (knownResult !== undefined) return knownResult;
		if (searchedSchemas.has(schema)) return false;
		searchedSchemas.add(schema);
		return (
			schema[this.#keyword] !== undefined || this.#partsOf(schema).some(part => this.#searchMark(part, searchedSchemas))
		);
	}

	#partsOf(schema: Schema): readonly Schema[] {
		const parts: Schema[] = [
			...Object.values((schema.properties ?? {}) as SchemasByName),
			...((schema.oneOf ?? []) as readonly Schema[]),
			...((schema.anyOf ?? []) as readonly Schema[]),
			...((schema.allOf ?? []) as readonly Schema[]),
		];
		for (const key of ['items', 'additionalProperties'] as const) {
			const child = schema[key];
			if (typeof child === 'object' && child !== null) parts.push(child as Schema);
		}
		const definition = typeof schema.$ref === 'string' ? this.#definitionOf(schema.$ref) : undefined;
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

/** Finds the values of a document that its schema marks with a keyword of ours. */
import type { Schema } from '../directives/directive.ts';

/** Called for a value whose schema carries the keyword; `path` are the keys that lead to it from `document` and is reused. */
export type MarkVisitor = (mark: unknown, parent: object, path: readonly string[]) => void;

type SchemaMap = { readonly [name: string]: Schema };

/** A schema prepared for finding one keyword: references and tags by lookup, branches without the keyword never entered. */
export class SchemaMarks {
	readonly #root: Schema;
	readonly #keyword: string;
	readonly #definitions: SchemaMap;
	readonly #variants = new Map<Schema, ReadonlyMap<string, Schema>>();
	/** Whether a schema, or anything below it, carries the keyword. */
	readonly #marked = new Map<Schema, boolean>();

	constructor(root: Schema, keyword: string) {
		this.#root = root;
		this.#keyword = keyword;
		this.#definitions = (root.$defs ?? {}) as SchemaMap;
		// A schema that refers to itself is not known to be marked while it is looked at: ask until nothing changes.
		for (let before = -1; before !== this.#count(); ) {
			before = this.#count();
			this.#look(root, new Set());
		}
	}

	/** Visits every marked value. */
	find(document: unknown, visit: MarkVisitor): void {
		this.#walk(this.#root, document, undefined, [], visit);
	}

	#walk(schema: Schema, value: unknown, parent: object | undefined, path: string[], visit: MarkVisitor): void {
		const resolved = this.#resolve(schema, value);
		if (!resolved || this.#marked.get(resolved) !== true) return;
		const mark = resolved[this.#keyword];
		if (mark !== undefined && parent) visit(mark, parent, path);
		for (const part of alternatives(resolved)) this.#walk(part, value, parent, path, visit);
		if (typeof value !== 'object' || value === null) return;
		if (Array.isArray(value)) {
			const items = resolved.items as Schema | undefined;
			if (!items || this.#marked.get(items) !== true) return;
			for (let at = 0; at < value.length; at++) {
				path.push(String(at));
				this.#walk(items, value[at], value, path, visit);
				path.pop();
			}
			return;
		}
		const properties = (resolved.properties ?? {}) as SchemaMap;
		const additional = resolved.additionalProperties as Schema | boolean | undefined;
		for (const name of Object.keys(value)) {
			const inner = Object.hasOwn(properties, name) ? properties[name] : additional;
			if (typeof inner !== 'object' || this.#marked.get(inner) !== true) continue;
			path.push(name);
			this.#walk(inner, (value as { [name: string]: unknown })[name], value, path, visit);
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
		let variants = this.#variants.get(schema);
		if (!variants) {
			const list = (schema.oneOf as readonly Schema[]).map(variant => this.#dereferenced(variant)!);
			const tagOf = (variant: Schema): string =>
				(variant.properties as { [name: string]: { const: string } })[tag]!.const;
			variants = new Map(list.map(variant => [tagOf(variant), variant]));
			this.#variants.set(schema, variants);
		}
		return variants;
	}

	#count(): number {
		let count = 0;
		for (const marked of this.#marked.values()) if (marked) count++;
		return count;
	}

	/** Whether the keyword can be reached, as far as is known now. */
	#look(schema: Schema, open: Set<Schema>): boolean {
		if (this.#marked.get(schema) === true) return true;
		if (open.has(schema)) return false;
		open.add(schema);
		const inner: Schema[] = [
			...Object.values((schema.properties ?? {}) as SchemaMap),
			...((schema.oneOf ?? []) as readonly Schema[]),
			...((schema.anyOf ?? []) as readonly Schema[]),
			...((schema.allOf ?? []) as readonly Schema[]),
		];
		for (const key of ['items', 'additionalProperties'] as const) {
			const child = schema[key];
			if (typeof child === 'object' && child !== null) inner.push(child as Schema);
		}
		if (typeof schema.$ref === 'string') {
			const definition = this.#definition(schema.$ref);
			if (definition) inner.push(definition);
		}
		let marked = schema[this.#keyword] !== undefined;
		for (const child of inner) if (this.#look(child, open)) marked = true;
		open.delete(schema);
		this.#marked.set(schema, marked);
		return marked;
	}
}

/** Schemas of which one or more hold for a value, and no tag tells which: what any of them marks is marked. */
function alternatives({ oneOf, anyOf, allOf, discriminator }: Schema): readonly Schema[] {
	return [discriminator === undefined ? oneOf : undefined, anyOf, allOf].flatMap(list => (list ?? []) as Schema[]);
}

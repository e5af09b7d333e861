/** Walks a document together with its schema, so that what the schema marks can be found in the document. */
import type { Schema } from '../directives/directive.ts';
import { escapePointer } from './validate.ts';

/** Called for every value with the schema that holds for it. `parent` and `key` allow it to be replaced. */
export type SchemaVisitor = (
	schema: Schema,
	value: unknown,
	pointer: string,
	parent: object | undefined,
	key: string,
) => void;

type SchemaMap = { readonly [name: string]: Schema };

/** A schema prepared for walking: references and tags resolved by lookup. */
export class SchemaWalker {
	readonly #root: Schema;
	readonly #definitions: SchemaMap;
	readonly #variants = new Map<Schema, Map<string, Schema>>();

	constructor(root: Schema) {
		this.#root = root;
		this.#definitions = (root.$defs ?? {}) as SchemaMap;
	}

	/** Visits every part of a document that the schema knows, the whole document first. */
	walk(document: unknown, visit: SchemaVisitor): void {
		this.#walk(this.#root, document, '', undefined, '', visit);
	}

	#walk(
		schema: Schema,
		value: unknown,
		pointer: string,
		parent: object | undefined,
		key: string,
		visit: SchemaVisitor,
	): void {
		const resolved = this.#resolve(schema, value);
		if (!resolved) return;
		visit(resolved, value, pointer, parent, key);
		if (typeof value !== 'object' || value === null) return;
		if (Array.isArray(value)) {
			const items = resolved.items as Schema | undefined;
			if (!items) return;
			for (let at = 0; at < value.length; at++) {
				this.#walk(items, value[at], `${pointer}/${at}`, value, String(at), visit);
			}
			return;
		}
		const properties = (resolved.properties ?? {}) as SchemaMap;
		const additional = resolved.additionalProperties;
		for (const [name, child] of Object.entries(value)) {
			const inner = Object.hasOwn(properties, name) ? properties[name] : additional;
			if (typeof inner === 'object' && inner !== null) {
				this.#walk(inner as Schema, child, `${pointer}/${escapePointer(name)}`, value, name, visit);
			}
		}
	}

	#resolve(schema: Schema, value: unknown): Schema | undefined {
		let resolved: Schema | undefined = schema;
		while (resolved && typeof resolved.$ref === 'string') {
			resolved = this.#definitions[resolved.$ref.slice('#/$defs/'.length)];
		}
		const discriminator = resolved?.discriminator as { propertyName: string } | undefined;
		if (!resolved || !discriminator) return resolved;
		const tag = discriminator.propertyName;
		let variants = this.#variants.get(resolved);
		if (!variants) {
			variants = new Map();
			for (const variant of resolved.oneOf as readonly { properties: { [name: string]: { const: string } } }[]) {
				variants.set(variant.properties[tag]!.const, variant as unknown as Schema);
			}
			this.#variants.set(resolved, variants);
		}
		const tagValue = (value as { [name: string]: unknown } | null | undefined)?.[tag];
		return typeof tagValue === 'string' ? variants.get(tagValue) : undefined;
	}
}

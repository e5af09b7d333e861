/** The printed form of a document: keys in schema order, whatever their order in the source, and without default values. */

import type { Document } from '../document/document.ts';
import type { Schema } from '../document/schema-type.ts';
import { documentSchema } from './schema.ts';

type Fields = { readonly [key: string]: unknown };

/** The properties of a schema that printing needs: the order of its keys, their defaults, and the variants of a union by tag. */
interface Order {
	readonly places: ReadonlyMap<string, number>;
	/** The default of each key, as JSON. */
	readonly defaults: ReadonlyMap<string, string>;
	readonly properties: { readonly [key: string]: Schema };
	readonly others: Schema | undefined;
	readonly items: Schema | undefined;
	readonly tag: string | undefined;
	readonly variants: ReadonlyMap<string, Schema>;
}

/**
 * Returns the document with its keys in schema order and without default values. Objects that already have this form are shared
 * with the original. User-defined names keep their order. Idempotent.
 */
export function printedForm(document: Document): Document {
	const root = documentSchema();
	return new Printed((root as { $defs: { [name: string]: Schema } }).$defs).of(document, root) as Document;
}

class Printed {
	readonly #definitions: { readonly [name: string]: Schema };
	readonly #known = new Map<Schema, Order>();

	constructor(definitions: { readonly [name: string]: Schema }) {
		this.#definitions = definitions;
	}

	/** Returns the value in its printed form. */
	of(value: unknown, schema: Schema | undefined): unknown {
		if (typeof value !== 'object' || value === null || !schema) return value;
		const order = this.#orderFor(schema, value as Fields);
		if (Array.isArray(value)) return this.#list(value, order.items);
		return this.#object(value as Fields, order);
	}

	#list(list: readonly unknown[], items: Schema | undefined): readonly unknown[] {
		if (!items) return list;
		let copy: unknown[] | undefined;
		for (let index = 0; index < list.length; index++) {
			const item = this.of(list[index], items);
			if (item !== list[index]) {
				copy ??= [...list];
				copy[index] = item;
			}
		}
		return copy ?? list;
	}

	#object(value: Fields, { places, properties, others, defaults }: Order): Fields {
		const keys: string[] = [];
		const placeOf = (key: string): number => places.get(key) ?? places.size;
		let changed = false;
		const inner: { [key: string]: unknown } = {};
		for (const key of Object.keys(value)) {
			const one = this.of(value[key], Object.hasOwn(properties, key) ? properties[key] : others);
			if (one !== value[key]) changed = true;
			const usual = defaults.get(key);
			if (usual !== undefined && JSON.stringify(one) === usual) {
				changed = true;
				continue;
			}
			inner[key] = one;
			keys.push(key);
		}
		if (keys.every((key, index) => index === 0 || placeOf(keys[index - 1]!) <= placeOf(key))) {
			return changed ? inner : value;
		}
		const sorted = keys.sort((one, other) => placeOf(one) - placeOf(other));
		return Object.fromEntries(sorted.map(key => [key, inner[key]]));
	}

	/** Returns the order for a value. Follows references and, in a union, the variant that the value's tag names. */
	#orderFor(schema: Schema, value: Fields): Order {
		const order = this.#read(schema);
		if (order.tag === undefined) return order;
		const variant = order.variants.get(String(value[order.tag]));
		return variant ? this.#read(variant) : order;
	}

	#read(schema: Schema): Order {
		const known = this.#known.get(schema);
		if (known) return known;
		const target = this.#target(schema);
		const properties = (target.properties ?? {}) as { readonly [key: string]: Schema };
		const { additionalProperties: others, items, discriminator, oneOf } = target;
		const tag = (discriminator as { propertyName?: string } | undefined)?.propertyName;
		const variants = new Map<string, Schema>();
		for (const one of tag === undefined ? [] : ((oneOf ?? []) as readonly Schema[])) {
			const { properties: own } = this.#target(one) as { properties?: { [key: string]: { const?: string } } };
			if (own?.[tag!]?.const !== undefined) variants.set(own[tag!]!.const!, one);
		}
		const order: Order = {
			places: new Map(Object.keys(properties).map((key, index) => [key, index])),
			defaults: new Map(
				Object.entries(properties).flatMap(([key, { default: usual }]) =>
					usual === undefined ? [] : [[key, JSON.stringify(usual)]],
				),
			),
			properties,
			others: typeof others === 'object' ? (others as Schema) : undefined,
			items: typeof items === 'object' ? (items as Schema) : undefined,
			tag,
			variants,
		};
		this.#known.set(schema, order);
		return order;
	}

	/** Follows a reference. Of untagged alternatives, follows the one that is an object. */
	#target(schema: Schema): Schema {
		const target =
			typeof schema.$ref === 'string' ? (this.#definitions[schema.$ref.slice('#/$defs/'.length)] ?? schema) : schema;
		return (target.anyOf as readonly Schema[] | undefined)?.find(({ properties }) => properties) ?? target;
	}
}

/** The printed form of a document: keys in schema order, whatever their order in the source, and without default values. */

import type { Document } from '../document/document.ts';
import type { Schema } from '../document/schema-type.ts';
import { documentSchema } from './schema.ts';

type Fields = { readonly [key: string]: unknown };

/**
 * What printing needs to know about a schema: the order of its keys, the defaults of the keys, and the variants of a union by tag.
 */
interface PrintRules {
	readonly positions: ReadonlyMap<string, number>;
	/** The default of each key, as JSON. */
	readonly defaults: ReadonlyMap<string, string>;
	readonly properties: { readonly [key: string]: Schema };
	readonly additionalSchema: Schema | undefined;
	readonly itemSchema: Schema | undefined;
	readonly tagName: string | undefined;
	readonly variants: ReadonlyMap<string, Schema>;
}

/**
 * Returns the document with its keys in schema order and without default values. Objects that already have this form are shared
 * with the original. User-defined names keep their order. Idempotent.
 */
export function printedForm(document: Document): Document {
	const root = documentSchema();
	return new Printer((root as { $defs: { [name: string]: Schema } }).$defs).printValue(document, root) as Document;
}

class Printer {
	readonly #definitions: { readonly [name: string]: Schema };
	readonly #rulesBySchema = new Map<Schema, PrintRules>();

	constructor(definitions: { readonly [name: string]: Schema }) {
		this.#definitions = definitions;
	}

	printValue(value: unknown, schema: Schema | undefined): unknown {
		if (typeof value !== 'object' || value === null || !schema) return value;
		const rules = this.#rulesForValue(schema, value as Fields);
		if (Array.isArray(value)) return this.#printList(value, rules.itemSchema);
		return this.#printObject(value as Fields, rules);
	}

	#printList(list: readonly unknown[], itemSchema: Schema | undefined): readonly unknown[] {
		if (!itemSchema) return list;
		let copy: unknown[] | undefined;
		for (let index = 0; index < list.length; index++) {
			const item = this.printValue(list[index], itemSchema);
			if (item !== list[index]) {
				copy ??= [...list];
				copy[index] = item;
			}
		}
		return copy ?? list;
	}

	#printObject(value: Fields, { positions, properties, additionalSchema, defaults }: PrintRules): Fields {
		const keys: string[] = [];
		const positionOf = (key: string): number => positions.get(key) ?? positions.size;
		let isChanged = false;
		const printedFields: { [key: string]: unknown } = {};
		for (const key of Object.keys(value)) {
			const printedValue = this.printValue(
				value[key],
				Object.hasOwn(properties, key) ? properties[key] : additionalSchema,
			);
			if (printedValue !== value[key]) isChanged = true;
			const defaultJson = defaults.get(key);
			if (defaultJson !== undefined && JSON.stringify(printedValue) === defaultJson) {
				isChanged = true;
				continue;
			}
			printedFields[key] = printedValue;
			keys.push(key);
		}
		if (keys.every((key, index) => index === 0 || positionOf(keys[index - 1]!) <= positionOf(key))) {
			return isChanged ? printedFields : value;
		}
		const sorted = keys.sort((one, other) => positionOf(one) - positionOf(other));
		return Object.fromEntries(sorted.map(key => [key, printedFields[key]]));
	}

	/** Returns the rules for a value. Follows references and, in a union, uses the variant that the value's tag names. */
	#rulesForValue(schema: Schema, value: Fields): PrintRules {
		const rules = this.#rulesOfSchema(schema);
		if (rules.tagName === undefined) return rules;
		const variant = rules.variants.get(String(value[rules.tagName]));
		return variant ? this.#rulesOfSchema(variant) : rules;
	}

	#rulesOfSchema(schema: Schema): PrintRules {
		const cachedRules = this.#rulesBySchema.get(schema);
		if (cachedRules) return cachedRules;
		const resolvedSchema = this.#resolve(schema);
		const properties = (resolvedSchema.properties ?? {}) as { readonly [key: string]: Schema };
		const { additionalProperties: additionalSchema, items, discriminator, oneOf } = resolvedSchema;
		const tagName = (discriminator as { propertyName?: string } | undefined)?.propertyName;
		const variants = new Map<string, Schema>();
		for (const variant of tagName === undefined ? [] : ((oneOf ?? []) as readonly Schema[])) {
			const { properties: variantProperties } = this.#resolve(variant) as {
				properties?: { [key: string]: { const?: string } };
			};
			if (variantProperties?.[tagName!]?.const !== undefined)
				variants.set(variantProperties[tagName!]!.const!, variant);
		}
		const rules: PrintRules = {
			positions: new Map(Object.keys(properties).map((key, index) => [key, index])),
			defaults: new Map(
				Object.entries(properties).flatMap(([key, { default: defaultValue }]) =>
					defaultValue === undefined ? [] : [[key, JSON.stringify(defaultValue)]],
				),
			),
			properties,
			additionalSchema: typeof additionalSchema === 'object' ? (additionalSchema as Schema) : undefined,
			itemSchema: typeof items === 'object' ? (items as Schema) : undefined,
			tagName,
			variants,
		};
		this.#rulesBySchema.set(schema, rules);
		return rules;
	}

	/** Resolves a reference. If a schema has untagged alternatives, returns the one that describes an object. */
	#resolve(schema: Schema): Schema {
		const target =
			typeof schema.$ref === 'string' ? (this.#definitions[schema.$ref.slice('#/$defs/'.length)] ?? schema) : schema;
		return (target.anyOf as readonly Schema[] | undefined)?.find(({ properties }) => properties) ?? target;
	}
}

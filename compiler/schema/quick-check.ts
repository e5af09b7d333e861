/**
 * Compiles a schema to a closure that only reports whether a value is valid. The closure returns false wherever it cannot decide;
 * the full checker (ajv) then decides. It exists to reduce start-up time: it is created in 1 ms, whereas ajv needs 100 ms to
 * generate code for this schema, and standalone validators generated at build time are 1.6 MB of code, which costs 45 to 75 ms per
 * start.
 */

import type { Schema } from '../document/schema-type.ts';
import { canHaveId, isObjectId } from './with-ids.ts';

/** Returns true only if a value is certain to be valid. */
export type QuickCheck = (value: unknown) => boolean;

type Fields = { readonly [name: string]: unknown };

/** Keywords that only describe values and do not restrict them. */
const ANNOTATION_KEYWORDS: ReadonlySet<string> = new Set([
	'$schema',
	'$defs',
	'title',
	'description',
	'default',
	'startup',
	'secret',
]);

/** The checks of a schema, its definitions, properties and variants, each created on first use. */
export class QuickChecks {
	/** Checks a whole document against the schema. */
	readonly rootCheck: QuickCheck;
	readonly #definitions: { readonly [name: string]: Schema };
	readonly #definitionChecks = new Map<string, QuickCheck>();

	/** All references in the schema must have the form `#/$defs/<name>`. */
	constructor(rootSchema: Schema) {
		this.#definitions = (rootSchema.$defs ?? {}) as { readonly [name: string]: Schema };
		this.rootCheck = this.#createCheck(rootSchema);
	}

	/** Returns the check of a definition in `$defs`. */
	definitionCheck(name: string): QuickCheck {
		return this.#createReferenceCheck(`#/$defs/${name}`);
	}

	#createCheck(schema: Schema): QuickCheck {
		const checks: QuickCheck[] = [];
		for (const [keyword, value] of Object.entries(schema)) {
			switch (keyword) {
				case 'type':
					checks.unshift(createTypeCheck(value as string | readonly string[]));
					break;
				case 'enum':
					checks.push(createEnumCheck(value as readonly unknown[]));
					break;
				case 'const':
					checks.push(createEnumCheck([value]));
					break;
				case '$ref':
					checks.push(this.#createReferenceCheck(value as string));
					break;
				case 'properties':
				case 'required':
				case 'additionalProperties':
				case 'patternProperties':
				case 'minLength':
				case 'maxLength':
				case 'pattern':
					break;
				case 'propertyNames': {
					const check = this.#createCheck(value as Schema);
					checks.push(fields => !isFields(fields) || Object.keys(fields).every(check));
					break;
				}
				case 'uniqueItems':
					// This check decides only about lists without objects; the full checker decides about other lists.
					checks.push(
						list =>
							!Array.isArray(list) ||
							(new Set(list).size === list.length && list.every(item => typeof item !== 'object' || item === null)),
					);
					break;
				case 'items':
					checks.push(this.#createItemsCheck(value as Schema));
					break;
				case 'minItems':
					checks.push(list => !Array.isArray(list) || list.length >= (value as number));
					break;
				case 'maxItems':
					checks.push(list => !Array.isArray(list) || list.length <= (value as number));
					break;
				case 'minimum':
					checks.push(number => typeof number !== 'number' || number >= (value as number));
					break;
				case 'maximum':
					checks.push(number => typeof number !== 'number' || number <= (value as number));
					break;
				case 'exclusiveMinimum':
					checks.push(number => typeof number !== 'number' || number > (value as number));
					break;
				case 'exclusiveMaximum':
					checks.push(number => typeof number !== 'number' || number < (value as number));
					break;
				case 'anyOf': {
					const alternatives = (value as readonly Schema[]).map(part => this.#createCheck(part));
					checks.push(item => alternatives.some(check => check(item)));
					break;
				}
				case 'allOf':
					for (const part of value as readonly Schema[]) checks.push(this.#createCheck(part));
					break;
				case 'oneOf':
					checks.push(this.#createUnionCheck(schema));
					break;
				case 'discriminator':
					break;
				default:
					if (!ANNOTATION_KEYWORDS.has(keyword)) return () => false;
			}
		}
		const { minLength, maxLength, pattern } = schema;
		if (minLength !== undefined || maxLength !== undefined || pattern !== undefined)
			checks.push(createTextCheck(schema));
		const { properties, required, additionalProperties, patternProperties } = schema;
		if (properties || required || patternProperties || additionalProperties !== undefined) {
			checks.push(this.#createFieldsCheck(schema));
		}
		return combineChecks(checks);
	}

	/** Returns the check of a referenced schema. It is created on first use, because schemas are recursive. */
	#createReferenceCheck(reference: string): QuickCheck {
		const name = reference.slice('#/$defs/'.length);
		return value => {
			let check = this.#definitionChecks.get(name);
			if (!check) {
				const schema = this.#definitions[name];
				check = schema && reference.startsWith('#/$defs/') ? this.#createCheck(schema) : () => false;
				this.#definitionChecks.set(name, check);
			}
			return check(value);
		};
	}

	#createItemsCheck(schema: Schema): QuickCheck {
		const check = this.#createCheck(schema);
		return list => {
			if (!Array.isArray(list)) return true;
			for (let at = 0; at < list.length; at++) if (!check(list[at])) return false;
			return true;
		};
	}

	#createFieldsCheck(schema: Schema): QuickCheck {
		const { properties = {}, required = [], patternProperties = {}, additionalProperties: additional } = schema;
		const propertySchemas = properties as { readonly [name: string]: Schema };
		/** The checks of the properties that documents have had so far. Most documents have few of them. */
		const propertyChecks = new Map<string, QuickCheck>();
		if (canHaveId(schema)) propertyChecks.set('@id', isObjectId);
		const propertyCheck = (name: string): QuickCheck | undefined => {
			let check = propertyChecks.get(name);
			if (check === undefined && Object.hasOwn(propertySchemas, name)) {
				check = this.#createCheck(propertySchemas[name]!);
				propertyChecks.set(name, check);
			}
			return check;
		};
		const patternChecks = Object.entries(patternProperties as { [pattern: string]: Schema }).map(
			([pattern, schema]) => ({
				pattern: new RegExp(pattern, 'u'),
				check: this.#createCheck(schema),
			}),
		);
		const requiredNames = required as readonly string[];
		const additionalCheck = typeof additional === 'object' ? this.#createCheck(additional as Schema) : undefined;
		return value => {
			if (typeof value !== 'object' || value === null || Array.isArray(value)) return true;
			for (let at = 0; at < requiredNames.length; at++)
				if ((value as Fields)[requiredNames[at]!] === undefined) return false;
			for (const name in value) {
				const check = propertyCheck(name);
				const field = (value as Fields)[name];
				const matchingPatterns =
					patternChecks.length === 0 ? patternChecks : patternChecks.filter(({ pattern }) => pattern.test(name));
				if (matchingPatterns.some(({ check: patternCheck }) => !patternCheck(field))) return false;
				if (check) {
					if (field !== undefined && !check(field)) return false;
				} else if (matchingPatterns.length > 0) continue;
				else if (additional === false || (additionalCheck && !additionalCheck(field))) return false;
			}
			return true;
		};
	}

	#createUnionCheck({ oneOf, discriminator }: Schema): QuickCheck {
		const schemas = oneOf as readonly Schema[];
		const tagName = (discriminator as { readonly propertyName: string } | undefined)?.propertyName;
		// Exactly one variant must be valid. A check that returns false does not prove that its variant is invalid, so variants
		// without a tag are told apart by type.
		if (tagName === undefined) {
			return createUntaggedCheck(schemas.map(schema => ({ schema, check: this.#createCheck(schema) })));
		}
		const schemasByTag = new Map(schemas.map(schema => [this.#tagOf(schema, tagName), schema]));
		const checksByTag = new Map<unknown, QuickCheck>();
		return value => {
			if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
			const tag = (value as Fields)[tagName];
			let check = checksByTag.get(tag);
			if (check === undefined) {
				const schema = schemasByTag.get(tag);
				if (schema === undefined) return false;
				check = this.#createCheck(schema);
				checksByTag.set(tag, check);
			}
			return check(value);
		};
	}

	#tagOf(schema: Schema, tagName: string): unknown {
		const variant = typeof schema.$ref === 'string' ? this.#definitions[schema.$ref.slice('#/$defs/'.length)] : schema;
		return (variant?.properties as { readonly [name: string]: Schema } | undefined)?.[tagName]?.const;
	}
}

/** Returns the check for a union of variants with different types, of which at most one can be valid. */
function createUntaggedCheck(variants: readonly { readonly schema: Schema; readonly check: QuickCheck }[]): QuickCheck {
	const checksByType = new Map(variants.map(({ schema, check }) => [schema.type ?? typeof schema.const, check]));
	const typeNames = ['object', 'array', 'string', 'number', 'boolean'];
	if (
		checksByType.size < variants.length ||
		[...checksByType.keys()].some(kind => !typeNames.includes(kind as string))
	) {
		return () => false;
	}
	return value =>
		checksByType.get(Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value)?.(value) ?? false;
}

function isFields(value: unknown): value is Fields {
	return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function combineChecks(checks: readonly QuickCheck[]): QuickCheck {
	const [firstCheck, secondCheck] = checks;
	if (!firstCheck) return () => true;
	if (!secondCheck) return firstCheck;
	if (checks.length === 2) return value => firstCheck(value) && secondCheck(value);
	return value => {
		for (let at = 0; at < checks.length; at++) if (!checks[at]!(value)) return false;
		return true;
	};
}

function createTextCheck({ minLength = 0, maxLength = Number.POSITIVE_INFINITY, pattern }: Schema): QuickCheck {
	const textPattern = typeof pattern === 'string' ? new RegExp(pattern, 'u') : undefined;
	return text => {
		if (typeof text !== 'string') return true;
		// The schema counts the length of a string in code points, JavaScript in UTF-16 units. If the difference could matter, the
		// full checker decides.
		if (minLength === 1 ? text === '' : text.length < 2 * (minLength as number)) return false;
		return text.length <= (maxLength as number) && (textPattern?.test(text) ?? true);
	};
}

function createTypeCheck(type: string | readonly string[]): QuickCheck {
	if (typeof type !== 'string') {
		const typeChecks = type.map(createTypeCheck);
		return value => typeChecks.some(check => check(value));
	}
	switch (type) {
		case 'object':
			return value => typeof value === 'object' && value !== null && !Array.isArray(value);
		case 'array':
			return value => Array.isArray(value);
		case 'integer':
			return value => Number.isInteger(value);
		case 'number':
			return value => Number.isFinite(value);
		case 'null':
			return value => value === null;
		default:
			return value => typeof value === type;
	}
}

function createEnumCheck(values: readonly unknown[]): QuickCheck {
	if (values.some(value => typeof value === 'object' && value !== null)) return () => false;
	if (values.length === 1) return value => value === values[0];
	const allowedValues = new Set(values);
	return value => allowedValues.has(value);
}

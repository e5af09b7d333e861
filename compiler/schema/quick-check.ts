/**
 * Compiles a schema to a closure that reports only whether a value is valid. It returns false wherever it cannot decide, and the
 * full checker (ajv) then decides. It exists to reduce start-up time: creating it takes 1 ms, and a start with it takes 9 ms. ajv
 * needs 100 ms to generate code for this schema. Standalone validators generated at build time are 1.6 MB of code, which costs 45
 * to 75 ms per start.
 */

import type { Schema } from '../document/schema-type.ts';
import { canHaveId, isObjectId } from '../document/with-ids.ts';

/** Returns true only if a value is certain to be valid. */
export type QuickCheck = (value: unknown) => boolean;

type Fields = { readonly [name: string]: unknown };

/** Keywords that do not restrict values. */
const SILENT: ReadonlySet<string> = new Set([
	'$schema',
	'$defs',
	'title',
	'description',
	'default',
	'startup',
	'secret',
]);

/** The checks of a schema and its definitions, each created on first use. */
export class QuickChecks {
	/** Checks a value against the schema. */
	readonly root: QuickCheck;
	readonly #definitions: { readonly [name: string]: Schema };
	readonly #made = new Map<string, QuickCheck>();

	/** All references in the schema must have the form `#/$defs/<name>`. */
	constructor(root: Schema) {
		this.#definitions = (root.$defs ?? {}) as { readonly [name: string]: Schema };
		this.root = this.#of(root);
	}

	/** Returns the check of a definition in `$defs`. */
	definition(name: string): QuickCheck {
		return this.#reference(`#/$defs/${name}`);
	}

	#of(schema: Schema): QuickCheck {
		const checks: QuickCheck[] = [];
		for (const [keyword, value] of Object.entries(schema)) {
			switch (keyword) {
				case 'type':
					checks.unshift(ofType(value as string | readonly string[]));
					break;
				case 'enum':
					checks.push(oneOfValues(value as readonly unknown[]));
					break;
				case 'const':
					checks.push(oneOfValues([value]));
					break;
				case '$ref':
					checks.push(this.#reference(value as string));
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
					const check = this.#of(value as Schema);
					checks.push(fields => !isFields(fields) || Object.keys(fields).every(check));
					break;
				}
				case 'uniqueItems':
					// Lists of objects are left to the full checker.
					checks.push(
						list =>
							!Array.isArray(list) ||
							(new Set(list).size === list.length && list.every(item => typeof item !== 'object' || item === null)),
					);
					break;
				case 'items':
					checks.push(this.#items(value as Schema));
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
					const any = (value as readonly Schema[]).map(part => this.#of(part));
					checks.push(item => any.some(check => check(item)));
					break;
				}
				case 'allOf':
					for (const part of value as readonly Schema[]) checks.push(this.#of(part));
					break;
				case 'oneOf':
					checks.push(this.#oneOf(schema));
					break;
				case 'discriminator':
					break;
				default:
					if (!SILENT.has(keyword)) return () => false;
			}
		}
		const { minLength, maxLength, pattern } = schema;
		if (minLength !== undefined || maxLength !== undefined || pattern !== undefined) checks.push(ofText(schema));
		const { properties, required, additionalProperties, patternProperties } = schema;
		if (properties || required || patternProperties || additionalProperties !== undefined) {
			checks.push(this.#fields(schema));
		}
		return all(checks);
	}

	/** Returns the check of a referenced schema. It is created on first use, because schemas are recursive. */
	#reference(reference: string): QuickCheck {
		const name = reference.slice('#/$defs/'.length);
		return value => {
			let check = this.#made.get(name);
			if (!check) {
				const schema = this.#definitions[name];
				check = schema && reference.startsWith('#/$defs/') ? this.#of(schema) : () => false;
				this.#made.set(name, check);
			}
			return check(value);
		};
	}

	#items(schema: Schema): QuickCheck {
		const check = this.#of(schema);
		return list => {
			if (!Array.isArray(list)) return true;
			for (let at = 0; at < list.length; at++) if (!check(list[at])) return false;
			return true;
		};
	}

	#fields(schema: Schema): QuickCheck {
		const { properties = {}, required = [], patternProperties = {}, additionalProperties: additional } = schema;
		const known = new Map(Object.entries(properties as { [name: string]: Schema }).map(([k, s]) => [k, this.#of(s)]));
		if (canHaveId(schema)) known.set('@id', isObjectId);
		const byPattern = Object.entries(patternProperties as { [pattern: string]: Schema }).map(([pattern, schema]) => ({
			pattern: new RegExp(pattern, 'u'),
			check: this.#of(schema),
		}));
		const needed = required as readonly string[];
		const other = typeof additional === 'object' ? this.#of(additional as Schema) : undefined;
		return value => {
			if (typeof value !== 'object' || value === null || Array.isArray(value)) return true;
			for (let at = 0; at < needed.length; at++) if ((value as Fields)[needed[at]!] === undefined) return false;
			for (const name in value) {
				const check = known.get(name);
				const field = (value as Fields)[name];
				const matching = byPattern.length === 0 ? byPattern : byPattern.filter(({ pattern }) => pattern.test(name));
				if (matching.some(({ check: fits }) => !fits(field))) return false;
				if (check) {
					if (field !== undefined && !check(field)) return false;
				} else if (matching.length > 0) continue;
				else if (additional === false || (other && !other(field))) return false;
			}
			return true;
		};
	}

	#oneOf({ oneOf, discriminator }: Schema): QuickCheck {
		const variants = (oneOf as readonly Schema[]).map(variant => ({ schema: variant, check: this.#of(variant) }));
		const tag = (discriminator as { readonly propertyName: string } | undefined)?.propertyName;
		// Exactly one variant must be valid, but a check that returns false has not proven its variant invalid.
		if (tag === undefined) return byKind(variants);
		const byTag = new Map(variants.map(({ schema, check }) => [this.#tagOf(schema, tag), check]));
		return value => {
			if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
			return byTag.get((value as Fields)[tag])?.(value) ?? false;
		};
	}

	#tagOf(schema: Schema, tag: string): unknown {
		const named = typeof schema.$ref === 'string' ? this.#definitions[schema.$ref.slice('#/$defs/'.length)] : schema;
		return (named?.properties as { readonly [name: string]: Schema } | undefined)?.[tag]?.const;
	}
}

/** Returns the check for a union of variants with different types, of which at most one can be valid. */
function byKind(variants: readonly { readonly schema: Schema; readonly check: QuickCheck }[]): QuickCheck {
	const checks = new Map(variants.map(({ schema, check }) => [schema.type ?? typeof schema.const, check]));
	const kinds = ['object', 'array', 'string', 'number', 'boolean'];
	if (checks.size < variants.length || [...checks.keys()].some(kind => !kinds.includes(kind as string))) {
		return () => false;
	}
	return value => checks.get(Array.isArray(value) ? 'array' : value === null ? 'null' : typeof value)?.(value) ?? false;
}

function isFields(value: unknown): value is Fields {
	return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function all(checks: readonly QuickCheck[]): QuickCheck {
	const [first, second] = checks;
	if (!first) return () => true;
	if (!second) return first;
	if (checks.length === 2) return value => first(value) && second(value);
	return value => {
		for (let at = 0; at < checks.length; at++) if (!checks[at]!(value)) return false;
		return true;
	};
}

function ofText({ minLength = 0, maxLength = Number.POSITIVE_INFINITY, pattern }: Schema): QuickCheck {
	const expression = typeof pattern === 'string' ? new RegExp(pattern, 'u') : undefined;
	return text => {
		if (typeof text !== 'string') return true;
		// Lengths count code points. Where that could make a difference, the full checker decides.
		if (minLength === 1 ? text === '' : text.length < 2 * (minLength as number)) return false;
		return text.length <= (maxLength as number) && (expression?.test(text) ?? true);
	};
}

function ofType(type: string | readonly string[]): QuickCheck {
	if (typeof type !== 'string') {
		const any = type.map(ofType);
		return value => any.some(check => check(value));
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

function oneOfValues(values: readonly unknown[]): QuickCheck {
	if (values.some(value => typeof value === 'object' && value !== null)) return () => false;
	if (values.length === 1) return value => value === values[0];
	const known = new Set(values);
	return value => known.has(value);
}

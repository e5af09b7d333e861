/** Validates a document against its schema, and turns the errors of the validator ajv into diagnostics. */
import { createRequire } from 'node:module';
import type { ErrorObject, ValidateFunction } from 'ajv';
import type { Diagnostic, Report } from '../diagnostics/diagnostic.ts';
import { didYouMeanLabel, nearestNames } from '../diagnostics/suggest.ts';
import type { Document, Site } from '../document/document.ts';
import { escapePointer, valueAt } from '../document/json-pointer.ts';
import { redactUrlSecrets } from '../document/secret-parts.ts';
import { lazily } from '../exchange/lazily.ts';
import { type QuickCheck, QuickChecks } from './quick-check.ts';
import { documentSchema } from './schema.ts';
import { withIds } from './with-ids.ts';

/** Maximum number of names that a hint lists; if there are more, it lists the most similar ones. */
const MAX_HINT_NAMES = 8;

/**
 * Maximum number of ajv's errors to process. It is above the number of errors that are shown; the time to select
 * the errors to show grows with the square of their number.
 */
const MAX_AJV_ERRORS = 4000;

/**
 * Reports every schema violation of a value; returns true if there are none. The schema is compiled on first use and cached,
 * because it depends only on this build's modules. `validSites` holds the sites known to be valid, and receives the sites that are
 * found to be valid.
 */
export function checkDocument(document: unknown, report: Report, validSites?: WeakSet<object>): boolean {
	if (typeof document === 'object' && document !== null && Object.hasOwn(document, 'apps')) {
		report(otherSchemaMistake());
		return false;
	}
	if (validSites ? isValid(document, validSites) : quickValidator()(document)) return true;
	const validate = thoroughValidator();
	if (validate(document)) return true;
	const reportedKeys = new Set<string>();
	for (const error of withoutUnionRepeats((validate.errors ?? []).slice(0, MAX_AJV_ERRORS))) {
		const diagnostic = describeError(error, document);
		const reportKey = `${diagnostic.code} ${diagnostic.pointer} ${diagnostic.message}`;
		if (reportedKeys.has(reportKey)) continue;
		reportedKeys.add(reportKey);
		report(diagnostic);
	}
	return false;
}

/** Tells whether a document is valid, but not why. This makes the usual case, a valid document, fast. */
const quickValidator: () => QuickCheck = lazily(() => quickChecks().rootCheck);

/** Like {@link quickValidator}, for one site. */
const quickSiteValidator: () => QuickCheck = lazily(() => quickChecks().definitionCheck('site'));

const quickChecks: () => QuickChecks = lazily(() => new QuickChecks(documentSchema()));

/** Finds every mistake in a document, and what is needed to describe it. Slow to create, because it needs ajv. */
const thoroughValidator: () => ValidateFunction = lazily(compileSchema);

function isValid(document: unknown, validSites: WeakSet<object>): boolean {
	const { sites, ...otherFields } = (document ?? {}) as Document;
	const check = quickSiteValidator();
	if (!Array.isArray(sites) || Array.isArray(document) || !quickValidator()(otherFields)) return false;
	for (const site of sites as readonly Site[]) {
		if (validSites.has(site)) continue;
		if (!check(site)) return false;
		validSites.add(site);
	}
	return true;
}

/**
 * Loads ajv. Called only for invalid documents, because loading it takes as long as everything else that is done for a small
 * document.
 */
function loadAjv(): typeof import('ajv') {
	// The bundle contains ajv, so no module needs to be found, and the bundle's own `require` returns it.
	return typeof require === 'function' ? require('ajv') : createRequire(import.meta.url)('ajv');
}

function compileSchema(): ValidateFunction {
	const { Ajv } = loadAjv();
	const ajv = new Ajv({
		allErrors: true,
		verbose: true,
		discriminator: true,
		strict: false,
		// `1e999` parses as infinity, which is rejected because JSON cannot represent it.
		strictNumbers: true,
		validateSchema: false,
		messages: false,
		meta: false,
		inlineRefs: false,
		// Optimizing the generated code takes longer than it saves on one document.
		code: { optimize: false },
	});
	ajv.addKeyword('secret');
	ajv.addKeyword('startup');
	return ajv.compile(withIds(documentSchema()));
}

/**
 * Reduces the errors about a union to one. If a value matches none of several schemas, ajv reports why it does not match each
 * one, and that it matches none. This function keeps the most specific error: why a value of a possible type does not match or,
 * if no type fits, which types are possible.
 */
function withoutUnionRepeats(errors: readonly ErrorObject[]): ErrorObject[] {
	const keptErrors = new Set(errors);
	for (const unionError of errors) {
		if (unionError.keyword !== 'anyOf') continue;
		const variantErrors = errors.filter(
			error => error.schemaPath.startsWith(`${unionError.schemaPath}/`) && isWithin(error, unionError),
		);
		const typeErrors = variantErrors.filter(
			error => error.keyword === 'type' && error.instancePath === unionError.instancePath,
		);
		if (variantErrors.length === 0) continue;
		keptErrors.delete(unionError);
		for (const type of typeErrors) keptErrors.delete(type);
		if (typeErrors.length < variantErrors.length) continue;
		const type = typeErrors.flatMap(error => error.params.type as string | string[]).join(',');
		keptErrors.add({ ...typeErrors[0]!, params: { type } });
	}
	return [...keptErrors];
}

function isWithin(inner: ErrorObject, outer: ErrorObject): boolean {
	return inner.instancePath === outer.instancePath || inner.instancePath.startsWith(`${outer.instancePath}/`);
}

function describeError(error: ErrorObject, document: unknown): Diagnostic {
	const pointer = error.instancePath;
	const params = error.params as { [name: string]: unknown };
	const commonFields = { severity: 'error' as const, pointer };
	switch (error.keyword) {
		case 'additionalProperties': {
			const key = String(params.additionalProperty);
			const knownKeys = Object.keys((error.parentSchema?.properties ?? {}) as object);
			// `@id` is accepted by every object and `$schema` is for editors, so neither would help the reader of the hint.
			const listedKeys = knownKeys.filter(one => one !== '@id' && one !== '$schema');
			return {
				...commonFields,
				code: 'document/unknown-key',
				pointer: `${pointer}/${escapePointer(key)}`,
				message: `\`${key}\` is not a key of ${describePlace(pointer, document)}.`,
				label: didYouMeanLabel(key, knownKeys),
				hint: listedKeys.length > 0 ? knownNamesHint('keys', key, listedKeys) : undefined,
			};
		}
		case 'required': {
			const key = String(params.missingProperty);
			return {
				...commonFields,
				code: 'document/missing-key',
				message: `\`${key}\` is missing in ${describePlace(pointer, document)}.`,
			};
		}
		case 'discriminator':
			return describeTag(error, commonFields);
		case 'type':
			return {
				...commonFields,
				code: 'document/wrong-type',
				message: `${quoteInvalidValue(error)} is not ${describeTypes(String(params.type))}.`,
			};
		case 'enum': {
			const allowed = params.allowedValues as readonly unknown[];
			return {
				...commonFields,
				code: 'document/unknown-value',
				message: `${quoteInvalidValue(error)} is not allowed here.`,
				label: typeof error.data === 'string' ? didYouMeanLabel(error.data, allowed.map(String)) : undefined,
				hint: `Write one of ${allowed.map(value => JSON.stringify(value)).join(', ')}.`,
			};
		}
		case 'const':
			return {
				...commonFields,
				code: 'document/unknown-value',
				message: `${quoteInvalidValue(error)} is not allowed here.`,
				hint: `Write ${JSON.stringify(params.allowedValue)}.`,
			};
		case 'minimum':
		case 'maximum':
		case 'exclusiveMinimum':
		case 'exclusiveMaximum':
			return {
				...commonFields,
				code: 'document/out-of-range',
				message: `${quoteInvalidValue(error)} is out of range: it must be ${String(params.comparison)} ${String(params.limit)}.`,
			};
		case 'minItems':
			return {
				...commonFields,
				code: 'document/too-few',
				message: `This list needs at least ${String(params.limit)} item${params.limit === 1 ? '' : 's'}.`,
			};
		case 'minLength':
			return { ...commonFields, code: 'document/empty', message: 'This text cannot be empty.' };
		case 'pattern':
			return {
				...commonFields,
				code: 'document/malformed',
				message: `${quoteInvalidValue(error)} does not have the required form.`,
				hint: `It must match ${String(params.pattern)}.`,
			};
		case 'minProperties':
			return { ...commonFields, code: 'document/empty', message: 'This object cannot be empty.' };
		default:
			return {
				...commonFields,
				code: 'document/invalid',
				message: `${quoteInvalidValue(error)} violates the schema here (${error.keyword}).`,
			};
	}
}

/** A variant of a union: a definition named for its tag, or the schema itself. */
type TaggedSchema =
	| { readonly $ref: string }
	| { readonly properties: { readonly [tag: string]: { readonly const: string } } };

function describeTag(error: ErrorObject, commonFields: { severity: 'error'; pointer: string }): Diagnostic {
	const { tag, tagValue } = error.params as { tag: string; tagValue: unknown };
	const variants = ((error.parentSchema?.oneOf ?? []) as readonly TaggedSchema[]).map(variant =>
		'$ref' in variant ? variant.$ref.slice(`#/$defs/${tag}.`.length) : variant.properties[tag]!.const,
	);
	const { noun, plural, holder, code } = TAG_DESCRIPTIONS[tag] ?? {
		noun: tag,
		plural: `values of \`${tag}\``,
		holder: 'object',
		code: 'document/unknown-value',
	};
	if (typeof tagValue !== 'string') {
		const hint = knownNamesHint(`values of \`${tag}\``, '', variants);
		return { ...commonFields, code: 'document/missing-key', message: `\`${tag}\` is missing in this ${holder}.`, hint };
	}
	return {
		...commonFields,
		pointer: `${commonFields.pointer}/${tag}`,
		code,
		message: `\`${tagValue}\` is not a ${noun} of this server.`,
		label: didYouMeanLabel(tagValue, variants),
		hint: knownNamesHint(plural, tagValue, variants),
	};
}

const TAG_DESCRIPTIONS: {
	readonly [tag: string]: {
		readonly noun: string;
		readonly plural: string;
		readonly holder: string;
		readonly code: string;
	};
} = {
	handler: { noun: 'handler', plural: 'handlers', holder: 'step', code: 'document/unknown-handler' },
	type: { noun: 'matcher type', plural: 'matcher types', holder: 'matcher', code: 'document/unknown-matcher' },
	policy: { noun: 'balancing policy', plural: 'policies', holder: 'policy', code: 'document/unknown-policy' },
};

/** Returns a hint that lists the known names or, if there are too many, the names most similar to the written one. */
function knownNamesHint(nouns: string, writtenName: string, knownNames: readonly string[]): string {
	const quoteNames = (names: readonly string[]) => names.map(name => `\`${name}\``).join(', ');
	if (knownNames.length <= MAX_HINT_NAMES) return `The ${nouns} are ${quoteNames(knownNames)}.`;
	const listAdvice = `\`svc adapt --schema\` lists all ${knownNames.length}`;
	return writtenName === ''
		? `${listAdvice} ${nouns}.`
		: `The nearest ${nouns} are ${quoteNames(nearestNames(writtenName, knownNames, 5))}; ${listAdvice}.`;
}

/**
 * Returns the diagnostic for a document that follows the JSON schema of Caddy. It replaces a long list of unknown
 * keys.
 */
function otherSchemaMistake(): Diagnostic {
	return {
		code: 'document/other-schema',
		severity: 'error',
		pointer: '/apps',
		message:
			"This document has the key `apps`, which belongs to another server's schema. svc expects the keys `settings`, `upstreams`, `routes` and `sites`.",
		hint: 'Convert the Caddyfile with `svc adapt`, or load it directly as `text/caddyfile`.',
	};
}

function describePlace(pointer: string, document: unknown): string {
	if (pointer === '') return 'the document';
	const value = valueAt(document, pointer) as { handler?: unknown; type?: unknown } | undefined;
	if (typeof value?.handler === 'string') return `the handler \`${value.handler}\``;
	if (typeof value?.type === 'string') return `the matcher \`${value.type}\``;
	const segments = pointer.split('/');
	const lastSegment = segments[segments.length - 1]!;
	return /^\d+$/.test(lastSegment) ? `an item of \`${segments[segments.length - 2]}\`` : `\`${lastSegment}\``;
}

/**
 * Quotes the invalid value, or returns `This secret` if the schema marks it as a secret. A mark in {@link PARTLY_SECRET_MARKS} is
 * ignored for a value that is not a string.
 */
function quoteInvalidValue({ data, parentSchema }: ErrorObject): string {
	const secretMark = parentSchema?.secret;
	if (secretMark === undefined) return quote(data);
	if (secretMark === 'url' && typeof data === 'string') return quote(redactUrlSecrets(data));
	return PARTLY_SECRET_MARKS.has(secretMark) && typeof data !== 'string' ? quote(data) : 'This secret';
}

/** The values of `secret` for strings of which usually only a part is secret. */
const PARTLY_SECRET_MARKS: ReadonlySet<unknown> = new Set([
	'url',
	'argument',
	'expression',
	'by-key',
	'by-destination',
]);

function quote(value: unknown): string {
	const text = JSON.stringify(value) ?? 'nothing';
	return `\`${text.length > 60 ? `${text.slice(0, 57)}…` : text}\``;
}

function describeTypes(type: string): string {
	const names: { [type: string]: string } = {
		object: 'an object',
		array: 'a list',
		integer: 'a whole number',
		string: 'a text',
		number: 'a number',
		boolean: 'true or false',
	};
	return type
		.split(',')
		.map(name => names[name] ?? name)
		.join(' or ');
}

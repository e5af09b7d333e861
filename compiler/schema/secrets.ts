/**
 * The secrets in a document. They are found by marks in the schema, redacted when the document is read, and rejected if they are
 * written back redacted.
 *
 * `secret: true` marks a value; other marks say what makes a value, or a part of it, a secret:
 *
 * | Mark | A secret is |
 * | --- | --- |
 * | `by-name` | a value next to the `name` of a credential, as in a header edit |
 * | `by-variable` | the same, for names of variables and parameters |
 * | `by-key` | the value of a property that is named like a credential |
 * | `by-field`, `by-source` | a value compared with the `field`, `variable` or `source` of a credential |
 * | `by-destination` | an output for a placeholder that is named like a credential |
 * | `expression` | a CEL literal that is compared with a credential |
 * | `argument` | a command argument, or a part of it |
 * | `url` | a password or token in a URL; this rule also applies to all other values |
 */
import type { Report } from '../diagnostics/diagnostic.ts';
import { escapePointer, valueAt } from '../document/json-pointer.ts';
import { isSecretHeader, isSecretVariable, refersToSecret } from '../document/secret-names.ts';
import {
	findArgumentSecrets,
	findExpressionSecrets,
	findUrlSecrets,
	REDACTED,
	redactParts,
	type TextPart,
} from '../document/secret-parts.ts';
import { lazily } from '../exchange/lazily.ts';
import { documentSchema } from './schema.ts';
import { SchemaMarks } from './schema-marks.ts';

/** A string in a document that is, or contains, a secret. */
export interface Secret {
	/** The keys that lead from the document to the string. */
	readonly path: readonly string[];
	/** The parts of the string that are secrets. One part may be the whole string. */
	readonly parts: readonly TextPart[];
	/** The string with its secrets replaced by a placeholder. */
	readonly redactedText: string;
	readonly schemaMark: unknown;
}

/** The `secret` marks in the schema. They are collected once, because they depend only on the modules in this build. */
const secretMarks: () => SchemaMarks = lazily(() => new SchemaMarks(documentSchema(), 'secret'));

/** Returns every non-empty string in a document that is a secret or contains one. */
export function findSecrets(document: unknown): Secret[] {
	const secrets: Secret[] = [];
	const addSecrets = (schemaMark: unknown, path: readonly string[], value: unknown, parent: object): void => {
		if (Array.isArray(value)) {
			for (let at = 0; at < value.length; at++) addSecrets(schemaMark, [...path, String(at)], value[at], value);
			return;
		}
		if (typeof value !== 'string' || value === '') return;
		const parts = secretPartsOf(schemaMark, path, value, parent, document);
		if (parts.length > 0) secrets.push({ path: [...path], parts, redactedText: redactParts(value, parts), schemaMark });
	};
	secretMarks().visitMarkedValues(document, (schemaMark, parent, path) => {
		addSecrets(schemaMark, path, (parent as { [key: string]: unknown })[path[path.length - 1]!], parent);
	});
	return secrets;
}

function secretPartsOf(
	schemaMark: unknown,
	path: readonly string[],
	value: string,
	parent: object,
	document: unknown,
): readonly TextPart[] {
	if (schemaMark === 'expression') return findExpressionSecrets(value);
	if (schemaMark === 'argument') return findArgumentSecrets(parent as readonly unknown[], Number(path.at(-1)));
	const isWholeSecret = schemaMark === true || isSecretInContext(schemaMark, path, document);
	return isWholeSecret ? [{ start: 0, end: value.length }] : findUrlSecrets(value);
}

/** Reports whether a value is a secret because of its mark and the values around it. */
function isSecretInContext(schemaMark: unknown, path: readonly string[], document: unknown): boolean {
	// The mark of a list applies to each of its elements.
	const valuePath = /^\d+$/.test(path.at(-1)!) ? path.slice(0, -1) : path;
	const ancestorAt = (levels: number): { readonly [key: string]: unknown } =>
		valueAtPath(document, valuePath.slice(0, valuePath.length - levels)) as { [key: string]: unknown };
	const isSecretName = (name: unknown, isSecret: (name: string) => boolean): boolean =>
		typeof name === 'string' && isSecret(name);
	switch (schemaMark) {
		case 'by-name':
			return isSecretName(ancestorAt(1).name, isSecretHeader);
		case 'by-variable':
			return isSecretName(ancestorAt(1).name, isSecretVariable);
		case 'by-key':
			return isSecretKey(valuePath.at(-1)!);
		case 'by-field':
			return isSecretName(ancestorAt(1).field, isSecretHeader) || isSecretName(ancestorAt(1).variable, isSecretKey);
		case 'by-source':
			return isSecretName(ancestorAt(3).source, refersToSecret);
		case 'by-destination': {
			const { destinations } = ancestorAt(valuePath.at(-1) === 'defaults' ? 1 : 3);
			return Array.isArray(destinations) && isSecretName(destinations[Number(path.at(-1))], isSecretVariable);
		}
		default:
			return false;
	}
}

/**
 * Reports whether a key is likely to be the name of a credential. The key is the name of a variable, or a placeholder in braces.
 */
function isSecretKey(name: string): boolean {
	return name.startsWith('{') ? refersToSecret(name) : isSecretVariable(name);
}

function valueAtPath(document: unknown, path: readonly string[]): unknown {
	return valueAt(document, jsonPointer(path));
}

export function jsonPointer(path: readonly string[]): string {
	return path.map(key => `/${escapePointer(key)}`).join('');
}

/**
 * Returns the document with every secret redacted. Parts without secrets are shared with the original.
 * @param replacementFor Returns what to write in place of a string that contains secrets.
 */
export function redactSecrets<T>(
	document: T,
	replacementFor: (secret: Secret, text: string) => string = secret => secret.redactedText,
): T {
	const copies = new Set<object>();
	const wrapper: { document: T } = { document };
	for (const secret of findSecrets(document)) {
		let container = wrapper as { [key: string]: unknown };
		let key = 'document';
		for (const segment of secret.path) {
			container = copyOnce(container, key, copies);
			key = segment;
		}
		container[key] = replacementFor(secret, container[key] as string);
	}
	return wrapper.document;
}

/** Returns the object or array under a key, after replacing it by a copy unless it is already one of `copies`. */
function copyOnce(container: { [key: string]: unknown }, key: string, copies: Set<object>): { [key: string]: unknown } {
	const value = container[key] as { [key: string]: unknown };
	if (copies.has(value)) return value;
	const copy = (Array.isArray(value) ? [...value] : { ...value }) as { [key: string]: unknown };
	copies.add(copy);
	container[key] = copy;
	return copy;
}

/**
 * Returns the document with the redacted strings at or below a path replaced by the secrets at the same places in the stored
 * document. A client can thus read a value, change a part and write it back without knowing its secrets. A redacted string that
 * differs from the redacted form of the stored one is kept, and is rejected later.
 */
export function restoreSecrets<T>(document: T, storedDocument: unknown, parentPath: readonly string[]): T {
	const secretsBelow = findSecrets(document).filter(({ path }) =>
		parentPath.every((segment, at) => path[at] === segment),
	);
	const copies = new Set<object>();
	const wrapper: { document: T } = { document };
	const redactedByPointer = new Map(
		findSecrets(storedDocument).map(({ path, redactedText: redacted }) => [jsonPointer(path), redacted]),
	);
	for (const { path } of secretsBelow) {
		const pointer = jsonPointer(path);
		const value = valueAt(document, pointer);
		if (!String(value).includes(REDACTED) || redactedByPointer.get(pointer) !== value) continue;
		let container = wrapper as { [key: string]: unknown };
		let key = 'document';
		for (const segment of path) {
			container = copyOnce(container, key, copies);
			key = segment;
		}
		container[key] = valueAt(storedDocument, pointer);
	}
	return wrapper.document;
}

/** Reports an error for every secret that is redacted, as in a document that was read from the Admin API and is loaded again. */
export function rejectRedactedSecrets(document: unknown, report: Report): void {
	for (const { path, parts } of findSecrets(document)) {
		const pointer = jsonPointer(path);
		const value = String(valueAt(document, pointer));
		if (!parts.some(({ start, end }) => value.slice(start, end).includes(REDACTED))) continue;
		report({
			code: 'document/redacted-secret',
			severity: 'error',
			pointer,
			message: `\`${REDACTED}\` is not a valid secret.`,
			hint: 'The Admin API redacts the secrets of documents; insert the real one here.',
		});
	}
}

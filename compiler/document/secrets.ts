/**
 * Secrets in a document: found by the marks of the schema, hidden when read, refused when they come back hidden.
 *
 * `secret: true` marks a value. `secret: 'by-name'` marks a value that is one when the `name` beside it is that of a
 * credential, as in an edit of a header field.
 */
import type { Report } from '../diagnostics/diagnostic.ts';
import { documentSchema } from './schema.ts';
import { type SchemaVisitor, SchemaWalker } from './schema-walk.ts';

/** What stands in place of a secret. */
export const REDACTED = '[redacted]';

const SECRET_HEADERS: ReadonlySet<string> = new Set(['authorization', 'proxy-authorization', 'cookie', 'set-cookie']);
const SECRET_PARTS = ['api-key', 'token', 'secret', 'password'];

/** True for a header whose value is a credential by its name. Letter case does not count. */
export function isSecretHeader(name: string): boolean {
	const lower = name.toLowerCase();
	return SECRET_HEADERS.has(lower) || SECRET_PARTS.some(part => lower.includes(part));
}

/** A place in a document that holds a secret. */
export interface SecretPlace {
	readonly pointer: string;
	readonly holder: { [key: string]: unknown };
	readonly key: string;
}

/** Every non-empty secret text of a document. */
export function findSecrets(document: unknown): SecretPlace[] {
	const places: SecretPlace[] = [];
	const add = (pointer: string, holder: object, key: string): void => {
		const value = (holder as { [key: string]: unknown })[key];
		if (typeof value === 'string' && value !== '') {
			places.push({ pointer, holder: holder as { [key: string]: unknown }, key });
		} else if (Array.isArray(value)) {
			for (let at = 0; at < value.length; at++) add(`${pointer}/${at}`, value, String(at));
		}
	};
	const visit: SchemaVisitor = (schema, _value, pointer, parent, key) => {
		if (!parent || schema.secret === undefined) return;
		const { name } = parent as { name?: unknown };
		if (schema.secret === true || (typeof name === 'string' && isSecretHeader(name))) add(pointer, parent, key);
	};
	new SchemaWalker(documentSchema()).walk(document, visit);
	return places;
}

/** A copy of the document with every secret hidden. The document itself stays as it is. */
export function redact<T>(document: T): T {
	const copy = structuredClone(document);
	for (const { holder, key } of findSecrets(copy)) holder[key] = REDACTED;
	return copy;
}

/** Reports every secret that is only the sign of one: a document that was read and would be loaded again. */
export function refuseRedacted(document: unknown, report: Report): void {
	for (const { pointer, holder, key } of findSecrets(document)) {
		if (!String(holder[key]).includes(REDACTED)) continue;
		report({
			code: 'document/redacted-secret',
			severity: 'error',
			pointer,
			message: `\`${REDACTED}\` stands where a secret must be.`,
			hint: 'A document that was read from the Admin API hides its secrets; put the real one here.',
		});
	}
}

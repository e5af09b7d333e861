/**
 * Secrets in a document: found by the marks of the schema, hidden when read, refused when they come back hidden.
 *
 * `secret: true` marks a value. `secret: 'by-name'` marks a value that is one when the `name` beside it is that of a
 * credential, as in an edit of a header field; `secret: 'by-variable'` the same for variables of an environment.
 */
import type { Report } from '../diagnostics/diagnostic.ts';
import { documentSchema } from './schema.ts';
import { SchemaMarks } from './schema-marks.ts';
import { escapePointer, valueAt } from './validate.ts';

/** What stands in place of a secret. */
export const REDACTED = '[redacted]';

const SECRET_HEADERS: ReadonlySet<string> = new Set(['authorization', 'proxy-authorization', 'cookie', 'set-cookie']);
const SECRET_PARTS = ['api-key', 'token', 'secret', 'password'];

/** True for a header, or a variable, whose value is a credential by its name. Letter case does not count, nor `_` for `-`. */
export function isSecretHeader(name: string): boolean {
	const lower = name.toLowerCase().replaceAll('_', '-');
	return SECRET_HEADERS.has(lower) || SECRET_PARTS.some(part => lower.includes(part));
}

/** Words of a variable's name that make it a credential beside those of headers: `DB_PASS`, `APP_KEY`, `AWS_ACCESS_KEY_ID`. */
const SECRET_WORDS =
	/(?:^|[^a-z0-9])(?:pass|passwd|passphrase|pwd|pw|key|apikey|auth|authorization|credentials?|creds|cookie|jwt|dsn)(?:$|[^a-z0-9])/;

/** True for a variable of an environment whose value is a credential by its name. */
export function isSecretVariable(name: string): boolean {
	return isSecretHeader(name) || SECRET_WORDS.test(name.toLowerCase());
}

/** A place in a document that holds a secret: the keys that lead to it. */
export type SecretPath = readonly string[];

/** Where the schema marks secrets: it depends on nothing but this build's modules, so it is prepared once. */
const secretMarks: () => SchemaMarks = preparedOnce(() => new SchemaMarks(documentSchema(), 'secret'));

function preparedOnce<T extends object>(prepare: () => T): () => T {
	let prepared: T | undefined;
	return () => {
		prepared ??= prepare();
		return prepared;
	};
}

/** The place of every non-empty secret text of a document. */
export function findSecrets(document: unknown): SecretPath[] {
	const paths: SecretPath[] = [];
	const add = (path: readonly string[], value: unknown): void => {
		if (typeof value === 'string') {
			if (value !== '') paths.push([...path]);
		} else if (Array.isArray(value)) {
			for (let at = 0; at < value.length; at++) add([...path, String(at)], value[at]);
		}
	};
	secretMarks().find(document, (mark, parent, path) => {
		const { name } = parent as { name?: unknown };
		const isSecret = mark === 'by-variable' ? isSecretVariable : isSecretHeader;
		if (mark !== true && !(typeof name === 'string' && isSecret(name))) return;
		add(path, (parent as { [key: string]: unknown })[path[path.length - 1]!]);
	});
	return paths;
}

/** The document with every secret hidden. What holds no secret is shared with the document, which stays as it is. */
export function redact<T>(document: T): T {
	const copies = new Set<object>();
	const holder: { document: T } = { document };
	for (const path of findSecrets(document)) {
		let at = holder as { [key: string]: unknown };
		let key = 'document';
		for (const next of path) {
			at = ownCopy(at, key, copies);
			key = next;
		}
		at[key] = REDACTED;
	}
	return holder.document;
}

/** The object or array under a key, replaced by a copy unless it is one already. */
function ownCopy(holder: { [key: string]: unknown }, key: string, copies: Set<object>): { [key: string]: unknown } {
	const value = holder[key] as { [key: string]: unknown };
	if (copies.has(value)) return value;
	const copy = (Array.isArray(value) ? [...value] : { ...value }) as { [key: string]: unknown };
	copies.add(copy);
	holder[key] = copy;
	return copy;
}

/**
 * The document with the sign of a secret, at or below a path, replaced by the secret that stands at the same place of the
 * stored document: whoever reads a value, changes a part of it and writes it back need not know what was hidden. Where
 * the stored document has no secret, the sign stays, and is refused.
 */
export function restoreSecrets<T>(document: T, stored: unknown, below: readonly string[]): T {
	const hidden = findSecrets(document).filter(path => below.every((segment, at) => path[at] === segment));
	const copies = new Set<object>();
	const holder: { document: T } = { document };
	const known = new Set(findSecrets(stored).map(path => JSON.stringify(path)));
	for (const path of hidden) {
		const pointer = path.map(key => `/${escapePointer(key)}`).join('');
		if (valueAt(document, pointer) !== REDACTED || !known.has(JSON.stringify(path))) continue;
		let at = holder as { [key: string]: unknown };
		let key = 'document';
		for (const next of path) {
			at = ownCopy(at, key, copies);
			key = next;
		}
		at[key] = valueAt(stored, pointer);
	}
	return holder.document;
}

/** Reports every secret that is only the sign of one: a document that was read and would be loaded again. */
export function refuseRedacted(document: unknown, report: Report): void {
	for (const path of findSecrets(document)) {
		const pointer = path.map(key => `/${escapePointer(key)}`).join('');
		if (!String(valueAt(document, pointer)).includes(REDACTED)) continue;
		report({
			code: 'document/redacted-secret',
			severity: 'error',
			pointer,
			message: `\`${REDACTED}\` stands where a secret must be.`,
			hint: 'A document that was read from the Admin API hides its secrets; put the real one here.',
		});
	}
}

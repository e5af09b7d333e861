/** Applies an Admin API change to the running document. Returns the candidate's source text, or why the change is refused. */
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import { editDocument, isArrayIndex } from '../../compiler/schema/edit-document.ts';
import { objectIds } from '../../compiler/schema/object-ids.ts';
import { restoreSecrets } from '../../compiler/schema/secrets.ts';
import type { ConfigEdit, EditRefused } from './load-results.ts';

/** Returns the value at a path of member names and array indices, or undefined. */
export function valueAtPath(root: unknown, path: readonly string[]): unknown {
	let value = root;
	for (const segment of path) {
		if (Array.isArray(value)) value = isArrayIndex(segment) ? value[Number(segment)] : undefined;
		else if (value !== null && typeof value === 'object' && Object.hasOwn(value, segment)) {
			value = (value as Record<string, unknown>)[segment];
		} else return undefined;
	}
	return value;
}

/** Returns the path of the object whose `@id` is `id`; undefined if there is none. */
export function pathOfId(document: unknown, id: string): readonly string[] | undefined {
	const pointer = objectIds(document, () => {}).get(id);
	if (pointer === undefined) return undefined;
	const segments = pointer.split('/').slice(1);
	return segments.map(segment => segment.replaceAll('~1', '/').replaceAll('~0', '~'));
}

/** Applies an edit. `etagOf` returns the current Etag of a path. */
export function editedDocument(
	document: unknown,
	edit: ConfigEdit,
	etagOf: (path: readonly string[]) => string,
): ConfigInput | EditRefused {
	const basePath = edit.id === undefined ? [] : pathOfId(document, edit.id);
	if (basePath === undefined) return editRefused('missing', `No object has the \`@id\` \`${edit.id}\`.`, '');
	const path = [...basePath, ...edit.path];
	if (edit.ifMatch !== undefined && !etagMatches(edit.ifMatch, document, path, etagOf)) {
		return editRefused('changed', 'The configuration has changed since it was read; read it again.', '');
	}
	let value: unknown;
	if (edit.method !== 'DELETE') {
		try {
			value = JSON.parse(edit.text);
		} catch (error) {
			return editRefused('value', `The body is not JSON: ${(error as Error).message}.`, '');
		}
	}
	const editResult = editDocument(document, { method: edit.method, path, value });
	if ('refusal' in editResult) return { result: 'edit_refused', ...editResult.refusal };
	const newDocument = editResult.replaces ? restoreSecrets(editResult.document, document, path) : editResult.document;
	return { format: 'json', text: JSON.stringify(newDocument), name: '<request>' };
}

/** Evaluates If-Match, which compares strongly (RFC 9110 §13.1.1). `*` matches any existing value. */
function etagMatches(
	etagList: string,
	document: unknown,
	path: readonly string[],
	etagOf: (path: readonly string[]) => string,
): boolean {
	const pathToRead = path.at(-1) === '...' ? path.slice(0, -1) : path;
	if (etagList.trim() === '*') return valueAtPath(document, pathToRead) !== undefined;
	const etag = etagOf(pathToRead);
	// Etags of the Admin API may contain commas, so the list is searched for whole Etags rather than split at commas.
	return (etagList.match(/(?:W\/)?"[^"]*"/g) ?? []).some(tag => tag === etag);
}

function editRefused(reason: EditRefused['reason'], message: string, nearest: string): EditRefused {
	return { result: 'edit_refused', reason, message, nearest };
}

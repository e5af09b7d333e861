/** Edits a document at a path, for POST, PUT, PATCH and DELETE of the Admin API. */

import { escapePointer } from '../document/json-pointer.ts';

export type EditMethod = 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** An edit at a path of member names and array indices. */
export interface DocumentEdit {
	readonly method: EditMethod;
	readonly path: readonly string[];
	/** The new value; ignored for DELETE. */
	readonly value?: unknown;
}

/** The reason why an edit is rejected. */
export interface EditRefusal {
	/**
	 * `missing`: there is nothing to change; `exists`: PUT to a value that exists; `value`: the value cannot be set at the path.
	 */
	readonly reason: 'missing' | 'exists' | 'value';
	readonly message: string;
	/** JSON pointer of the nearest existing object or array above the path; '' for the document. */
	readonly nearest: string;
}

export type EditResult =
	/**
	 * `replaces` is true if the edit replaced an existing value. Where the new value is redacted, the secrets of the old one can
	 * then be restored.
	 */
	{ readonly document: unknown; readonly replaces: boolean } | { readonly refusal: EditRefusal };

/** Last segment of a path that appends several values: `POST /config/sites/...`. */
const APPEND_SEVERAL_SEGMENT = '...';

type Container = { [key: string]: unknown } | unknown[];

/**
 * Edits a copy, which shares unchanged parts with the original document.
 *
 * | | at an array | at a missing member | at an existing member or element |
 * | --- | --- | --- | --- |
 * | POST | appends the value; with `...` after the path, each element of an array | creates it | in an object: replaces it; in an array: appends to the array |
 * | PUT | | creates it | in an object: rejected; in an array: inserts before it |
 * | PATCH | replaces it | rejected | replaces it |
 * | DELETE | removes it | rejected | removes it |
 *
 * Parents are never created: a path without an existing parent is rejected, and the error names the nearest existing one.
 */
export function editDocument(document: unknown, { method, path, value }: DocumentEdit): EditResult {
	const appendsSeveral = path.at(-1) === APPEND_SEVERAL_SEGMENT;
	const segments = appendsSeveral ? path.slice(0, -1) : path;
	if (appendsSeveral && method !== 'POST')
		return refuse('value', '`...` at the end of a path is only allowed for POST.', '');
	if (appendsSeveral && !Array.isArray(value))
		return refuse('value', 'A path that ends in `...` needs an array of values.', '');
	const newValues = appendsSeveral ? (value as unknown[]) : [value];
	if (segments.length === 0) return editRoot(document, method, appendsSeveral, value);
	const wrapper = { document };
	let parent: Container = wrapper;
	let key = 'document';
	// The containers on the path are copied. The copies are discarded if the edit is rejected.
	for (const [depth, segment] of segments.entries()) {
		const child: unknown = readMember(parent, key);
		if (typeof child !== 'object' || child === null) return missingMember(segments, depth);
		if (Array.isArray(child) && !isArrayIndex(segment)) {
			return refuse(
				'missing',
				`${pointerOf(segments, depth)} is an array, and \`${segment}\` is not an index.`,
				pointerOf(segments, depth),
			);
		}
		const copy: Container = Array.isArray(child) ? [...child] : { ...child };
		setMember(parent, key, copy);
		parent = copy;
		key = segment;
		if (depth < segments.length - 1 && !hasMember(parent, key)) return missingMember(segments, depth);
	}
	const exists = hasMember(parent, key);
	const existingValue = exists ? readMember(parent, key) : undefined;
	const pointer = pointerOf(segments, segments.length);
	const parentPointer = pointerOf(segments, segments.length - 1);
	let replaces = false;
	switch (method) {
		case 'POST':
			if (Array.isArray(existingValue)) setMember(parent, key, [...existingValue, ...newValues]);
			else if (appendsSeveral) {
				if (exists) return refuse('value', `${pointer} is not an array.`, parentPointer);
				return refuse('missing', `There is no array at ${pointer}.`, parentPointer);
			} else if (Array.isArray(parent)) {
				if (!exists) return outOfBounds(parent, key, parentPointer);
				parent.push(...newValues);
			} else {
				setMember(parent, key, value);
				replaces = exists;
			}
			break;
		case 'PUT':
			if (Array.isArray(parent)) {
				if (Number(key) > parent.length) return outOfBounds(parent, key, parentPointer);
				parent.splice(Number(key), 0, value);
			} else if (exists) return refuse('exists', `${pointer} already exists; use PATCH to replace it.`, parentPointer);
			else setMember(parent, key, value);
			break;
		case 'PATCH':
			if (!exists)
				return Array.isArray(parent)
					? outOfBounds(parent, key, parentPointer)
					: missingMember(segments, segments.length - 1, key);
			setMember(parent, key, value);
			replaces = true;
			break;
		case 'DELETE':
			if (!exists)
				return Array.isArray(parent)
					? outOfBounds(parent, key, parentPointer)
					: missingMember(segments, segments.length - 1, key);
			if (Array.isArray(parent)) parent.splice(Number(key), 1);
			else delete parent[key];
	}
	return { document: wrapper.document, replaces };
}

/** Edits the document as a whole, which always exists. */
function editRoot(document: unknown, method: EditMethod, appendsSeveral: boolean, value: unknown): EditResult {
	if (appendsSeveral) return refuse('value', 'The document is not an array.', '');
	if (method === 'DELETE') return { document: {}, replaces: false };
	if (method === 'PUT' && Object.keys(document as object).length > 0) {
		return refuse('exists', 'There already is a configuration; use PATCH to replace it.', '');
	}
	// Unlike PATCH, POST sets a new document, which must include its secrets.
	return { document: value, replaces: method === 'PATCH' };
}

/** Returns the result for an edit whose path exists only up to its first `depth` segments. */
function missingMember(
	segments: readonly string[],
	depth: number,
	missingName: string | undefined = segments[depth],
): EditResult {
	const nearestPointer = pointerOf(segments, depth);
	const parent = nearestPointer === '' ? 'the document' : nearestPointer;
	return refuse(
		'missing',
		`There is no \`${missingName}\` in ${parent}, the nearest parent that exists.`,
		nearestPointer,
	);
}

function outOfBounds(array: readonly unknown[], key: string, nearestPointer: string): EditResult {
	const count = array.length === 1 ? '1 element' : `${array.length} elements`;
	return refuse(
		'missing',
		`${nearestPointer}, the nearest parent that exists, has ${count}: there is no index ${key}.`,
		nearestPointer,
	);
}

function refuse(reason: EditRefusal['reason'], message: string, nearest: string): EditResult {
	return { refusal: { reason, message, nearest } };
}

function pointerOf(segments: readonly string[], depth: number): string {
	return segments
		.slice(0, depth)
		.map(segment => `/${escapePointer(segment)}`)
		.join('');
}

/** Reports whether a segment of a JSON pointer is an array index (RFC 6901 §4). */
export function isArrayIndex(segment: string): boolean {
	return /^(?:0|[1-9]\d{0,8})$/.test(segment);
}

function hasMember(parent: Container, key: string): boolean {
	return Array.isArray(parent) ? isArrayIndex(key) && Number(key) < parent.length : Object.hasOwn(parent, key);
}

function readMember(parent: Container, key: string): unknown {
	if (Array.isArray(parent)) return parent[Number(key)];
	return Object.hasOwn(parent, key) ? parent[key] : undefined;
}

/** Sets a member. `__proto__` is like any other name. */
function setMember(parent: Container, key: string, value: unknown): void {
	if (Array.isArray(parent)) parent[Number(key)] = value;
	else Object.defineProperty(parent, key, { value, writable: true, enumerable: true, configurable: true });
}

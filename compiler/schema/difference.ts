/** Computes the differences between two documents. */

import { escapePointer } from './validate.ts';

/** A difference, similar to a JSON Patch operation (RFC 6902 §4). */
export interface DocumentChange {
	readonly op: 'add' | 'remove' | 'replace';
	/** JSON pointer: into the new document for `add` and `replace`, into the old one for `remove`. */
	readonly path: string;
	/** The old value; absent for `add`. */
	readonly from?: unknown;
	/** The new value; absent for `remove`. */
	readonly to?: unknown;
}

/** Maximum number of listed changes. If there are more, comparing the documents themselves is easier. */
const MAX_CHANGES = 1000;

/**
 * Returns the changes from `before` to `after`, in document order, at most MAX_CHANGES. Equal elements at the beginning and end
 * of arrays are skipped, and those in between are compared one by one. The returned values come from `shownBefore` and
 * `shownAfter`, which are the same documents with secrets redacted.
 */
export function documentDifference(
	before: unknown,
	after: unknown,
	shownBefore: unknown,
	shownAfter: unknown,
): DocumentChange[] {
	const changes: DocumentChange[] = [];
	compare({ value: before, shown: shownBefore }, { value: after, shown: shownAfter }, '', '', changes);
	return changes.slice(0, MAX_CHANGES);
}

interface Part {
	readonly value: unknown;
	readonly shown: unknown;
}

function compare(before: Part, after: Part, oldPath: string, newPath: string, changes: DocumentChange[]): void {
	if (changes.length > MAX_CHANGES || before.value === after.value) return;
	if (Array.isArray(before.value) && Array.isArray(after.value)) {
		compareArrays(before, after, oldPath, newPath, changes);
	} else if (isObject(before.value) && isObject(after.value)) {
		for (const key of Object.keys(before.value)) {
			const below = `/${escapePointer(key)}`;
			if (Object.hasOwn(after.value, key)) {
				compare(part(before, key), part(after, key), oldPath + below, newPath + below, changes);
			} else changes.push({ op: 'remove', path: oldPath + below, from: part(before, key).shown });
		}
		for (const key of Object.keys(after.value)) {
			if (Object.hasOwn(before.value, key)) continue;
			changes.push({ op: 'add', path: `${newPath}/${escapePointer(key)}`, to: part(after, key).shown });
		}
	} else changes.push({ op: 'replace', path: newPath, from: before.shown, to: after.shown });
}

function compareArrays(before: Part, after: Part, oldPath: string, newPath: string, changes: DocumentChange[]): void {
	const old = (before.value as readonly unknown[]).map(text);
	const next = (after.value as readonly unknown[]).map(text);
	let start = 0;
	while (start < old.length && start < next.length && old[start] === next[start]) start++;
	let end = 0;
	const shorter = Math.min(old.length, next.length) - start;
	while (end < shorter && old[old.length - 1 - end] === next[next.length - 1 - end]) end++;
	const pairs = Math.min(old.length, next.length) - start - end;
	for (let at = start; at < start + pairs; at++) {
		compare(part(before, at), part(after, at), `${oldPath}/${at}`, `${newPath}/${at}`, changes);
	}
	for (let at = start + pairs; at < old.length - end; at++) {
		changes.push({ op: 'remove', path: `${oldPath}/${at}`, from: part(before, at).shown });
	}
	for (let at = start + pairs; at < next.length - end; at++) {
		changes.push({ op: 'add', path: `${newPath}/${at}`, to: part(after, at).shown });
	}
}

/** Returns a member together with its redacted form, which is at the same place in the redacted document. */
function part({ value, shown }: Part, key: string | number): Part {
	const of = (container: unknown): unknown => (container as { [key: string | number]: unknown } | undefined)?.[key];
	return { value: of(value), shown: isObject(shown) || Array.isArray(shown) ? of(shown) : shown };
}

function text(value: unknown): string {
	return JSON.stringify(value) ?? '';
}

function isObject(value: unknown): value is { [key: string]: unknown } {
	return typeof value === 'object' && value !== null && !Array.isArray(value);
}

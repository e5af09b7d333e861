/** Computes the differences between two documents. */

import { escapePointer } from '../document/json-pointer.ts';

/** A difference between two documents, similar to an operation of JSON Patch (RFC 6902 §4). */
export interface DocumentChange {
	readonly op: 'add' | 'remove' | 'replace';
	/** JSON pointer into the new document for `add` and `replace`, and into the old document for `remove`. */
	readonly path: string;
	/** The old value; absent for `add`. */
	readonly from?: unknown;
	/** The new value; absent for `remove`. */
	readonly to?: unknown;
}

/** Maximum number of changes that are listed. Beyond that, it is easier to compare the documents themselves. */
const MAX_CHANGES = 1000;

/**
 * Returns the changes from `before` to `after`, in document order, at most {@link MAX_CHANGES}. Equal elements at the beginning and
 * the end of arrays are skipped, and the elements in between are compared one by one. The values in the changes come from
 * `shownBefore` and `shownAfter`, which are the same documents with secrets redacted.
 */
export function documentDifference(
	before: unknown,
	after: unknown,
	shownBefore: unknown,
	shownAfter: unknown,
): DocumentChange[] {
	const changes: DocumentChange[] = [];
	compareParts({ value: before, redacted: shownBefore }, { value: after, redacted: shownAfter }, '', '', changes);
	return changes.slice(0, MAX_CHANGES);
}

interface ComparedPart {
	readonly value: unknown;
	readonly redacted: unknown;
}

function compareParts(
	before: ComparedPart,
	after: ComparedPart,
	oldPath: string,
	newPath: string,
	changes: DocumentChange[],
): void {
	if (changes.length > MAX_CHANGES || before.value === after.value) return;
	if (Array.isArray(before.value) && Array.isArray(after.value)) {
		compareArrays(before, after, oldPath, newPath, changes);
	} else if (isObject(before.value) && isObject(after.value)) {
		for (const key of Object.keys(before.value)) {
			const memberPath = `/${escapePointer(key)}`;
			if (Object.hasOwn(after.value, key)) {
				compareParts(memberOf(before, key), memberOf(after, key), oldPath + memberPath, newPath + memberPath, changes);
			} else changes.push({ op: 'remove', path: oldPath + memberPath, from: memberOf(before, key).redacted });
		}
		for (const key of Object.keys(after.value)) {
			if (Object.hasOwn(before.value, key)) continue;
			changes.push({ op: 'add', path: `${newPath}/${escapePointer(key)}`, to: memberOf(after, key).redacted });
		}
	} else changes.push({ op: 'replace', path: newPath, from: before.redacted, to: after.redacted });
}

function compareArrays(
	before: ComparedPart,
	after: ComparedPart,
	oldPath: string,
	newPath: string,
	changes: DocumentChange[],
): void {
	const oldTexts = (before.value as readonly unknown[]).map(jsonText);
	const newTexts = (after.value as readonly unknown[]).map(jsonText);
	let commonStart = 0;
	while (
		commonStart < oldTexts.length &&
		commonStart < newTexts.length &&
		oldTexts[commonStart] === newTexts[commonStart]
	)
		commonStart++;
	let commonTailLength = 0;
	const maxTailLength = Math.min(oldTexts.length, newTexts.length) - commonStart;
	while (
		commonTailLength < maxTailLength &&
		oldTexts[oldTexts.length - 1 - commonTailLength] === newTexts[newTexts.length - 1 - commonTailLength]
	)
		commonTailLength++;
	const pairCount = Math.min(oldTexts.length, newTexts.length) - commonStart - commonTailLength;
	for (let index = commonStart; index < commonStart + pairCount; index++) {
		compareParts(
			memberOf(before, index),
			memberOf(after, index),
			`${oldPath}/${index}`,
			`${newPath}/${index}`,
			changes,
		);
	}
	for (let index = commonStart + pairCount; index < oldTexts.length - commonTailLength; index++) {
		changes.push({ op: 'remove', path: `${oldPath}/${index}`, from: memberOf(before, index).redacted });
	}
	for (let index = commonStart + pairCount; index < newTexts.length - commonTailLength; index++) {
		changes.push({ op: 'add', path: `${newPath}/${index}`, to: memberOf(after, index).redacted });
	}
}

/** Returns a member of a value, and the same member of the redacted value. */
function memberOf({ value, redacted }: ComparedPart, key: string | number): ComparedPart {
	const memberIn = (container: unknown): unknown =>
		(container as { [key: string | number]: unknown } | undefined)?.[key];
	return {
		value: memberIn(value),
		redacted: isObject(redacted) || Array.isArray(redacted) ? memberIn(redacted) : redacted,
	};
}

function jsonText(value: unknown): string {
	return JSON.stringify(value) ?? '';
}

function isObject(value: unknown): value is { [key: string]: unknown } {
	return typeof value === 'object' && value !== null && !Array.isArray(value);
}

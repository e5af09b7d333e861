/**
 * The stable sort with which Caddy orders routes. Its comparison of routes is not transitive, so the result depends on which
 * pairs are compared; the algorithm is therefore part of the language.
 */

/** Number of items in a block. Blocks are sorted by insertion and then merged. */
const BLOCK_LENGTH = 20;

/** Reports whether item `a` must come before item `b`. Need not be transitive or antisymmetric. */
type SortsBefore<T> = (a: T, b: T) => boolean;

/**
 * Returns the items in the order that Go's `sort.SliceStable` gives them: insertion sort in blocks of 20 items, and then SymMerge
 * (Kim and Kutzner, "Stable Minimum Storage Merging by Symmetric Comparisons", 2004) of neighboring blocks of doubling size.
 */
export function stableSort<T>(items: readonly T[], sortsBefore: SortsBefore<T>): T[] {
	const sortedItems = [...items];
	const { length } = sortedItems;
	for (let start = 0; start < length; start += BLOCK_LENGTH) {
		sortByInsertion(sortedItems, start, Math.min(start + BLOCK_LENGTH, length), sortsBefore);
	}
	for (let size = BLOCK_LENGTH; size < length; size *= 2) {
		for (let start = 0; start + size < length; start += 2 * size) {
			mergeRanges(sortedItems, start, start + size, Math.min(start + 2 * size, length), sortsBefore);
		}
	}
	return sortedItems;
}

function sortByInsertion<T>(items: T[], start: number, end: number, sortsBefore: SortsBefore<T>): void {
	for (let next = start + 1; next < end; next++) {
		const item = items[next]!;
		let position = next;
		for (; position > start && sortsBefore(item, items[position - 1]!); position--)
			items[position] = items[position - 1]!;
		items[position] = item;
	}
}

/** Merges two adjacent sorted ranges, from `start` to `middle` and from `middle` to `end`. Both must have items. */
function mergeRanges<T>(items: T[], start: number, middle: number, end: number, sortsBefore: SortsBefore<T>): void {
	if (middle - start === 1) {
		const first = items[start]!;
		rotate(
			items,
			start,
			middle,
			firstFailingIndex(middle, end, at => sortsBefore(items[at]!, first)),
		);
		return;
	}
	if (end - middle === 1) {
		const last = items[middle]!;
		rotate(
			items,
			firstFailingIndex(start, middle, at => !sortsBefore(last, items[at]!)),
			middle,
			end,
		);
		return;
	}
	// The pairs to compare are symmetric around the midpoint of the combined range.
	const half = Math.floor((start + end) / 2);
	const sum = half + middle;
	const startsRightOfHalf = middle > half;
	const low = firstFailingIndex(
		startsRightOfHalf ? sum - end : start,
		startsRightOfHalf ? half : middle,
		at => !sortsBefore(items[sum - 1 - at]!, items[at]!),
	);
	const high = sum - low;
	if (low < middle && middle < high) rotate(items, low, middle, high);
	if (start < low && low < half) mergeRanges(items, start, low, half, sortsBefore);
	if (half < high && high < end) mergeRanges(items, half, high, end, sortsBefore);
}

/** Returns the first index from `start` on at which `test` fails; `end` if it never fails. Uses binary search. */
function firstFailingIndex(start: number, end: number, test: (index: number) => boolean): number {
	let low = start;
	let high = end;
	while (low < high) {
		const middle = Math.floor((low + high) / 2);
		if (test(middle)) low = middle + 1;
		else high = middle;
	}
	return low;
}

/** Swaps two adjacent ranges, from `start` to `middle` and from `middle` to `end`. */
function rotate<T>(items: T[], start: number, middle: number, end: number): void {
	const firstRange = items.slice(start, middle);
	items.copyWithin(start, middle, end);
	for (let i = 0; i < firstRange.length; i++) items[end - firstRange.length + i] = firstRange[i]!;
}

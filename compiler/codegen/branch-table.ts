/**
 * Selects among many conditional branches by the first segment of the request path. With twenty `handle /x/*`, for example, only
 * the conditions that can hold for the path's first segment are evaluated. The result is the same as if all conditions were
 * evaluated in order.
 */
import type { Matcher } from '../document/document.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { Handler } from '../exchange/handler.ts';
import { loweredPath } from '../exchange/request-path.ts';
import { TextTable } from '../exchange/text-table.ts';
import type { HandlerBranch } from '../modules/contract/compile-context.ts';
import { firstSegmentOf } from '../modules/matchers/path-pattern.ts';
import { pathsOf } from '../modules/registry/matchers.ts';

/**
 * Minimum number of branches that depend on the first path segment. With fewer, evaluating them in order is faster than a lookup.
 */
const MIN_TABLE_BRANCHES = 4;

/**
 * Reports whether a table can select among these branches. The condition of the first branch must depend on the path. A malformed
 * path causes an error when it is first read. The table reads it at once, so it must not replace a first branch that would answer
 * without reading it.
 */
export function canUseBranchTable(branches: readonly HandlerBranch[]): boolean {
	if (branches.length < MIN_TABLE_BRANCHES || firstSegmentsOf(branches[0]!.when) === undefined) return false;
	return branches.filter(({ when }) => firstSegmentsOf(when)).length >= MIN_TABLE_BRANCHES;
}

/**
 * Lookup tables by the JSON of their path prefixes. Sites with the same routes share one table, which stays in the processor's
 * cache, while a thousand copies would not.
 */
export type SharedBranchTables = Map<string, TextTable<number>>;

/**
 * Returns a handler that runs the first branch whose condition holds, or `fallbackHandler` if none does. `sharedTables` holds the
 * lookup tables of all sites that are compiled together.
 */
export function compileBranchTable(
	branches: readonly HandlerBranch[],
	fallbackHandler: Handler,
	sharedTables: SharedBranchTables = new Map(),
): Handler {
	const keyedBranches = branches.map(branch => ({ branch, keys: prefixesOf(branch) }));
	const indexesByKey = new Map<string, number[]>();
	const unkeyedIndexes: number[] = [];
	keyedBranches.forEach(({ keys }, index) => {
		if (!keys) unkeyedIndexes.push(index);
		for (const key of keys?.keys() ?? []) {
			const indexes = indexesByKey.get(key);
			if (indexes) indexes.push(index);
			else indexesByKey.set(key, [index]);
		}
	});
	const handlers: Handler[] = [];
	for (const [key, keyIndexes] of indexesByKey) {
		// Only the branches that can hold for this key are examined. With ten thousand branches, examining all of them for each key
		// would take too long.
		const candidateBranches = mergeAscending(keyIndexes, unkeyedIndexes).map(index => keyedBranches[index]!);
		handlers.push(compileCandidates(key, candidateBranches, fallbackHandler));
	}
	const unkeyedHandler = compileCandidates(
		undefined,
		unkeyedIndexes.map(index => keyedBranches[index]!),
		fallbackHandler,
	);
	const prefixTable = sharedTable([...indexesByKey.keys()], sharedTables);
	return x => {
		const path = loweredPath(x.request);
		// The key is the path up to and including its second slash, or the whole path if there is none.
		const secondSlash = path.indexOf('/', 1);
		const handlerIndex = prefixTable.get(path, secondSlash === -1 ? path.length : secondSlash + 1);
		return (handlerIndex === undefined ? unkeyedHandler : handlers[handlerIndex]!)(x);
	};
}

/**
 * Returns the lookup table for a list of path prefixes. It yields the index of a prefix, and is shared with other sites if
 * possible.
 */
function sharedTable(prefixes: readonly string[], sharedTables: SharedBranchTables): TextTable<number> {
	const tableKey = JSON.stringify(prefixes);
	const cachedTable = sharedTables.get(tableKey);
	if (cachedTable) return cachedTable;
	const table = new TextTable(new Map(prefixes.map((text, index) => [text, index])));
	sharedTables.set(tableKey, table);
	return table;
}

interface KeyedBranch {
	readonly branch: HandlerBranch;
	/**
	 * The path prefixes for which the condition can hold; undefined if it can hold for any path. The value is true if the condition
	 * holds for every path with that prefix.
	 */
	readonly keys: ReadonlyMap<string, boolean> | undefined;
}

/** Merges two ascending lists. */
function mergeAscending(left: readonly number[], right: readonly number[]): readonly number[] {
	if (right.length === 0) return left;
	const merged: number[] = [];
	for (let a = 0, b = 0; a < left.length || b < right.length; ) {
		if (b === right.length || (a < left.length && left[a]! < right[b]!)) merged.push(left[a++]!);
		else merged.push(right[b++]!);
	}
	return merged;
}

/** Returns the handler for paths with the prefix `key` or, if `key` is undefined, for paths with no prefix of any branch. */
function compileCandidates(
	key: string | undefined,
	keyedBranches: readonly KeyedBranch[],
	fallbackHandler: Handler,
): Handler {
	const possibleBranches: HandlerBranch[] = [];
	for (const { branch, keys } of keyedBranches) {
		const alwaysHolds = keys && (key === undefined ? undefined : keys.get(key));
		if (keys && alwaysHolds === undefined) continue;
		if (alwaysHolds || !branch.predicate) {
			// This branch holds for all of these paths, so the branches after it are unreachable.
			if (possibleBranches.length === 0) return branch.handler;
			possibleBranches.push({ ...branch, predicate: undefined });
			break;
		}
		possibleBranches.push(branch);
	}
	if (possibleBranches.length === 0) return fallbackHandler;
	return x => (firstMatchingBranch(possibleBranches, x)?.handler ?? fallbackHandler)(x);
}

/** Returns the first branch whose condition holds; undefined if there is none. Conditions after it are not evaluated. */
export function firstMatchingBranch(candidates: readonly HandlerBranch[], x: Exchange): HandlerBranch | undefined {
	for (let i = 0; i < candidates.length; i++) {
		const { predicate } = candidates[i]!;
		if (!predicate || predicate(x)) return candidates[i];
	}
	return undefined;
}

function prefixesOf({ when }: HandlerBranch): Map<string, boolean> | undefined {
	const firstSegments = firstSegmentsOf(when);
	if (!firstSegments) return undefined;
	const holdsByPrefix = new Map<string, boolean>();
	for (const segment of firstSegments) holdsByPrefix.set(segment, false).set(`${segment}/`, false);
	for (const pattern of (pathsOf(when!)?.values ?? []).map(text => text.toLowerCase())) {
		if (holdsByPrefix.has(pattern) && !pattern.endsWith('/')) holdsByPrefix.set(pattern, true);
		else if (pattern.endsWith('/*') && holdsByPrefix.has(pattern.slice(0, -1)))
			holdsByPrefix.set(pattern.slice(0, -1), true);
	}
	return holdsByPrefix;
}

/** Returns the first path segments of the paths for which a condition can hold; undefined if it can hold for any path. */
function firstSegmentsOf(when: Matcher | undefined): Set<string> | undefined {
	if (!when) return undefined;
	if (when.type === 'all') {
		// Only the first operand is used. Skipping the branch because of a later operand would also skip the captures that the
		// operands before it store.
		const [firstOperand] = when.of as readonly Matcher[];
		return firstSegmentsOf(firstOperand);
	}
	const pathPatterns = pathsOf(when);
	if (!pathPatterns) return undefined;
	const firstSegments = new Set<string>();
	for (const pattern of pathPatterns.values) {
		const segment = firstSegmentOf(pattern);
		if (segment === undefined) return undefined;
		firstSegments.add(segment);
	}
	return firstSegments;
}

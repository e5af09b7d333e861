/**
 * Many conditions in a row, tried by the first segment of the path: of twenty `handle /x/*` only those are asked whose
 * segment is the request's. The answer is that of asking one after another.
 */
import type { Matcher } from '../document/document.ts';
import type { Exchange } from '../exchange/exchange.ts';
import type { Handler, Predicate } from '../exchange/handler.ts';
import { loweredPath } from '../exchange/request-path.ts';
import { firstSegmentOf } from '../matchers/path-pattern.ts';

/** A condition, and what runs when it is the first that holds. */
export interface Branch {
	readonly when: Matcher | undefined;
	/** Undefined holds always. */
	readonly predicate: Predicate | undefined;
	readonly handler: Handler;
}

/** From this many branches with a segment of their own on, one look-up costs less than asking each. */
const TABLE_FROM = 4;

/**
 * Whether a table serves these branches. The first one has to look at the path: a malformed path is an error
 * from the first look on, and whether another condition answers before must not change.
 */
export function fitsTable(branches: readonly Branch[]): boolean {
	if (branches.length < TABLE_FROM || segmentsOf(branches[0]!.when) === undefined) return false;
	return branches.filter(({ when }) => segmentsOf(when)).length >= TABLE_FROM;
}

/** The first branch that holds runs; `otherwise` when none does. */
export function compileBranchTable(branches: readonly Branch[], otherwise: Handler): Handler {
	const anywhere: Branch[] = [];
	const bySegment = new Map<string, Branch[]>();
	for (const branch of branches) {
		const segments = segmentsOf(branch.when);
		if (segments) {
			// A branch keeps its place among those that are asked for any path.
			for (const segment of segments) if (!bySegment.has(segment)) bySegment.set(segment, [...anywhere]);
			for (const segment of segments) bySegment.get(segment)!.push(branch);
		} else {
			anywhere.push(branch);
			for (const list of bySegment.values()) list.push(branch);
		}
	}
	return x => {
		const candidates = bySegment.get(firstSegment(loweredPath(x.request))) ?? anywhere;
		return (firstThatHolds(candidates, x)?.handler ?? otherwise)(x);
	};
}

/** The branch that runs, asking one after another. */
export function firstThatHolds(candidates: readonly Branch[], x: Exchange): Branch | undefined {
	for (let i = 0; i < candidates.length; i++) {
		const { predicate } = candidates[i]!;
		if (!predicate || predicate(x)) return candidates[i];
	}
	return undefined;
}

/** The text of a path up to its second slash. */
function firstSegment(path: string): string {
	const end = path.indexOf('/', 1);
	return end === -1 ? path : path.slice(0, end);
}

/** First segments without which a condition cannot hold; undefined when it may hold for any path. */
function segmentsOf(when: Matcher | undefined): Set<string> | undefined {
	if (!when) return undefined;
	if (when.type === 'all') {
		// Only what is asked first may be skipped: a later condition can leave captures behind.
		const [first] = when.of as readonly Matcher[];
		return segmentsOf(first);
	}
	if (when.type !== 'path') return undefined;
	const segments = new Set<string>();
	for (const pattern of when.patterns as readonly string[]) {
		const segment = firstSegmentOf(pattern);
		if (segment === undefined) return undefined;
		segments.add(segment);
	}
	return segments;
}

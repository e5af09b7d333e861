/** The order in which a Compatfile's directives run, regardless of their order in the file. */
import type { Matcher } from '../document/document.ts';
import type { HandlerDirective } from '../modules/contract/directive.ts';
import { directives } from '../modules/registry/directives.ts';
import { pathsOf } from '../modules/registry/matchers.ts';
import { stableSort } from './stable-sort.ts';

/** Directives in default order. Obsolete names come directly before the current one. */
export const DEFAULT_ORDER: readonly string[] = ordered().flatMap(({ names }) => names.compatfile.toReversed());

/** Words that have the same position as another: `handle_path` has that of `handle`. */
const SHARED_POSITIONS: readonly (readonly [word: string, of: string])[] = ordered().flatMap(
	({ names, alternativeTo }) =>
		alternativeTo === undefined ? [] : names.compatfile.map(name => [name, alternativeTo] as const),
);

/** Returns the directives that have a position even without the option `order`. */
function ordered(): readonly HandlerDirective[] {
	const found = directives.filter(one => one.kind === 'handler' && one.order !== undefined) as HandlerDirective[];
	return found.sort((a, b) => a.order!.rank - b.order!.rank);
}

/** One `order` option: moves a directive. */
export interface OrderMove {
	readonly directive: string;
	readonly to: 'first' | 'last' | 'before' | 'after';
	/** The directive before or after which this one is placed, for `before` and `after`. */
	readonly other?: string;
}

/** Returns the order after one move; undefined if `other` has no position. */
export function moveDirective(order: readonly string[], move: OrderMove): readonly string[] | undefined {
	const rest = order.filter(name => name !== move.directive);
	if (move.to === 'first') return [move.directive, ...rest];
	if (move.to === 'last') return [...rest, move.directive];
	const other = rest.indexOf(move.other ?? '');
	if (other === -1) return undefined;
	return rest.toSpliced(move.to === 'before' ? other : other + 1, 0, move.directive);
}

/** What sorting needs to know about a directive. */
export interface SortedDirective {
	/** The directive's name as written. Deprecated names have their own positions. */
	readonly directive: string;
	readonly module: Pick<HandlerDirective, 'order'>;
	readonly when: Matcher | undefined;
	/** Number of routes that the compatible server generates for it. They stay together, but each takes part in the sort. */
	readonly routes: number;
}

/**
 * Sorts directives as the compatible server sorts the routes of a block: by position, then by how specific their matchers are.
 */
export function sortDirectives<T extends SortedDirective>(
	items: readonly T[],
	positions: ReadonlyMap<string, number>,
): T[] {
	if (items.length < 2) return [...items];
	const keys = items.flatMap(item => {
		const key: SortKey<T> = {
			item,
			position: positions.get(item.directive) ?? 0,
			path: onlyPath(item.when),
			conditional: item.when !== undefined || item.module.order?.conditional === true,
		};
		return new Array<SortKey<T>>(item.routes).fill(key);
	});
	return [...new Set(stableSort(keys, goesBefore).map(({ item }) => item))];
}

interface SortKey<T extends SortedDirective> {
	readonly item: T;
	readonly position: number;
	/** The path pattern, if the matcher has exactly one. */
	readonly path: string | undefined;
	readonly conditional: boolean;
}

/**
 * Compares as the compatible server does. The comparison is not transitive if some matchers have a single path and others do not.
 */
function goesBefore<T extends SortedDirective>(a: SortKey<T>, b: SortKey<T>): boolean {
	if (a.position !== b.position) return a.position < b.position;
	const { order } = a.item.module;
	if (order?.unsorted && !(a.conditional && b.conditional)) return false;
	const specific = isMoreSpecific(a, b);
	// Each of two equal directives then sorts before the other, which reverses their order.
	return order?.reversed ? !specific : specific;
}

/** Returns the position of each word in the given order. */
export function directivePositions(order: readonly string[]): ReadonlyMap<string, number> {
	const positions = new Map(order.map((name, at) => [name, at]));
	for (const [word, of] of SHARED_POSITIONS) {
		const position = positions.get(of);
		if (position !== undefined) positions.set(word, position);
	}
	return positions;
}

function isMoreSpecific<T extends SortedDirective>(a: SortKey<T>, b: SortKey<T>): boolean {
	if (!a.path || !b.path) return a.conditional && !b.conditional;
	const aText = a.path.endsWith('*') ? a.path.slice(0, -1) : a.path;
	const bText = b.path.endsWith('*') ? b.path.slice(0, -1) : b.path;
	if (aText === bText) return a.path.length < b.path.length;
	const aBytes = Buffer.from(aText);
	const bBytes = Buffer.from(bText);
	if (aBytes.length !== bBytes.length) return aBytes.length > bBytes.length;
	return Buffer.compare(aBytes, bBytes) < 0;
}

/** Returns the only path pattern of a matcher, whatever other conditions it combines. */
function onlyPath(when: Matcher | undefined): string | undefined {
	if (!when) return undefined;
	const paths = pathsOf(when);
	if (paths) return paths.values.length === 1 ? paths.values[0] : undefined;
	if (when.type !== 'all') return undefined;
	const path = (when.of as readonly Matcher[]).find(pathsOf);
	return path && onlyPath(path);
}

/** The order in which the directives of a Compatfile run, regardless of their order in the file. */
import type { Matcher } from '../document/document.ts';
import type { HandlerDirective } from '../modules/contract/directive.ts';
import { directives } from '../modules/registry/directives.ts';
import { pathsOf } from '../modules/registry/matchers.ts';
import { stableSort } from './stable-sort.ts';

/** The names of directives in the default order. Obsolete names of a directive come directly before its current name. */
export const DEFAULT_ORDER: readonly string[] = orderedDirectives().flatMap(({ names }) =>
	names.compatfile.toReversed(),
);

/** Names that have the position of another directive, such as `handle_path`, which has the position of `handle`. */
const SHARED_POSITIONS: readonly (readonly [word: string, of: string])[] = orderedDirectives().flatMap(
	({ names, alternativeTo }) =>
		alternativeTo === undefined ? [] : names.compatfile.map(name => [name, alternativeTo] as const),
);

/** Returns the directives that have a position by default, without the option `order`, in order of position. */
function orderedDirectives(): readonly HandlerDirective[] {
	const orderedHandlers = directives.filter(
		one => one.kind === 'handler' && one.order !== undefined,
	) as HandlerDirective[];
	return orderedHandlers.sort((a, b) => a.order!.rank - b.order!.rank);
}

/** An `order` option, which gives a directive another position. */
export interface OrderMove {
	readonly directive: string;
	readonly to: 'first' | 'last' | 'before' | 'after';
	/** For `before` and `after`: the directive before or after which the moved directive is placed. */
	readonly other?: string;
}

/** Returns the order after a move; undefined if `move.other` has no position. */
export function moveDirective(order: readonly string[], move: OrderMove): readonly string[] | undefined {
	const otherDirectives = order.filter(name => name !== move.directive);
	if (move.to === 'first') return [move.directive, ...otherDirectives];
	if (move.to === 'last') return [...otherDirectives, move.directive];
	const otherIndex = otherDirectives.indexOf(move.other ?? '');
	if (otherIndex === -1) return undefined;
	return otherDirectives.toSpliced(move.to === 'before' ? otherIndex : otherIndex + 1, 0, move.directive);
}

/** The properties of a directive that determine its position. */
export interface SortedDirective {
	/** The directive's name as written. Deprecated names have their own positions. */
	readonly directive: string;
	readonly module: Pick<HandlerDirective, 'order'>;
	readonly when: Matcher | undefined;
	/**
	 * Number of routes that Caddy generates for the directive. The routes stay together, but their number affects
	 * the result of sorting.
	 */
	readonly routeCount: number;
}

/**
 * Sorts directives as Caddy sorts the routes of a block: by position and, for equal positions, by how specific
 * their matchers are.
 */
export function sortDirectives<T extends SortedDirective>(
	items: readonly T[],
	positions: ReadonlyMap<string, number>,
): T[] {
	if (items.length < 2) return [...items];
	const sortKeys = items.flatMap(item => {
		const key: SortKey<T> = {
			item,
			position: positions.get(item.directive) ?? 0,
			path: singlePath(item.when),
			isConditional: item.when !== undefined || item.module.order?.sortsAsConditional === true,
		};
		return new Array<SortKey<T>>(item.routeCount).fill(key);
	});
	return [...new Set(stableSort(sortKeys, sortsBefore).map(({ item }) => item))];
}

interface SortKey<T extends SortedDirective> {
	readonly item: T;
	readonly position: number;
	/** The path pattern of the matcher; undefined unless there is exactly one. */
	readonly path: string | undefined;
	readonly isConditional: boolean;
}

/**
 * Reports whether one route sorts before another, as Caddy does. The comparison is not transitive if only some of
 * the matchers have a single path.
 */
function sortsBefore<T extends SortedDirective>(a: SortKey<T>, b: SortKey<T>): boolean {
	if (a.position !== b.position) return a.position < b.position;
	const { order } = a.item.module;
	if (order?.keepsPlaces && !(a.isConditional && b.isConditional)) return false;
	const isSpecific = isMoreSpecific(a, b);
	// With `lastRunsFirst`, each of two equal directives sorts before the other, which reverses their order.
	return order?.lastRunsFirst ? !isSpecific : isSpecific;
}

/** Returns the position of each directive name in an order. */
export function directivePositions(order: readonly string[]): ReadonlyMap<string, number> {
	const positions = new Map(order.map((name, at) => [name, at]));
	for (const [word, otherName] of SHARED_POSITIONS) {
		const position = positions.get(otherName);
		if (position !== undefined) positions.set(word, position);
	}
	return positions;
}

function isMoreSpecific<T extends SortedDirective>(a: SortKey<T>, b: SortKey<T>): boolean {
	if (!a.path || !b.path) return a.isConditional && !b.isConditional;
	const aText = a.path.endsWith('*') ? a.path.slice(0, -1) : a.path;
	const bText = b.path.endsWith('*') ? b.path.slice(0, -1) : b.path;
	if (aText === bText) return a.path.length < b.path.length;
	const aBytes = Buffer.from(aText);
	const bBytes = Buffer.from(bText);
	if (aBytes.length !== bBytes.length) return aBytes.length > bBytes.length;
	return Buffer.compare(aBytes, bBytes) < 0;
}

/** Returns the path pattern of a matcher if there is exactly one, whatever other conditions the matcher combines it with. */
function singlePath(when: Matcher | undefined): string | undefined {
	if (!when) return undefined;
	const paths = pathsOf(when);
	if (paths) return paths.values.length === 1 ? paths.values[0] : undefined;
	if (when.type !== 'all') return undefined;
	const path = (when.of as readonly Matcher[]).find(pathsOf);
	return path && singlePath(path);
}

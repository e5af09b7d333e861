/** The order in which Compatfile runs directives, whatever the order in the file. */
import type { Matcher } from '../document/document.ts';
import type { HandlerDirective } from '../modules/directives/directive.ts';
import { directives } from '../modules/directives/index.ts';
import { pathsOf } from '../modules/matchers/index.ts';
import { stableSort } from './stable-sort.ts';

/** Words of directives in their default order, by the rank of each. Old names come directly before today's. */
export const DEFAULT_ORDER: readonly string[] = ordered().flatMap(({ names }) => names.compatfile.toReversed());

/** Words that have the position of another, with that one: `handle_path` that of `handle`. */
const SHARED_POSITIONS: readonly (readonly [word: string, of: string])[] = ordered().flatMap(
	({ names, alternativeTo }) =>
		alternativeTo === undefined ? [] : names.compatfile.map(name => [name, alternativeTo] as const),
);

/** The directives that have a position without the option `order`. */
function ordered(): readonly HandlerDirective[] {
	const found = directives.filter(one => one.kind === 'handler' && one.order !== undefined) as HandlerDirective[];
	return found.sort((a, b) => a.order!.rank - b.order!.rank);
}

/** One `order` option: where to move a directive. */
export interface OrderMove {
	readonly directive: string;
	readonly to: 'first' | 'last' | 'before' | 'after';
	/** The directive that `before` and `after` mean. */
	readonly other?: string;
}

/** The order after one move; undefined when `other` has no position. */
export function moveDirective(order: readonly string[], move: OrderMove): readonly string[] | undefined {
	const rest = order.filter(name => name !== move.directive);
	if (move.to === 'first') return [move.directive, ...rest];
	if (move.to === 'last') return [...rest, move.directive];
	const other = rest.indexOf(move.other ?? '');
	if (other === -1) return undefined;
	return rest.toSpliced(move.to === 'before' ? other : other + 1, 0, move.directive);
}

/** What sorting looks at. */
export interface SortedDirective {
	/** The word that was written: deprecated names have positions of their own. */
	readonly directive: string;
	readonly module: Pick<HandlerDirective, 'order'>;
	readonly when: Matcher | undefined;
	/** Number of routes that the compatible server makes of it. They stay together but count in the sort. */
	readonly routes: number;
}

/** Sorts as the compatible server sorts the routes of a block: by position, then by how specific their matchers are. */
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
	/** The path if its matcher has exactly one. */
	readonly path: string | undefined;
	readonly conditional: boolean;
}

/** The reference's comparison. It is not transitive where matchers with one path stand among other matchers. */
function goesBefore<T extends SortedDirective>(a: SortKey<T>, b: SortKey<T>): boolean {
	if (a.position !== b.position) return a.position < b.position;
	const { order } = a.item.module;
	if (order?.unsorted && !(a.conditional && b.conditional)) return false;
	const specific = isMoreSpecific(a, b);
	// Lines that are equal go before each other, which reverses them.
	return order?.reversed ? !specific : specific;
}

/** Returns the position of each word in an order. */
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

/** The single path pattern of a matcher, whatever else is in its set. */
function onlyPath(when: Matcher | undefined): string | undefined {
	if (!when) return undefined;
	const paths = pathsOf(when);
	if (paths) return paths.values.length === 1 ? paths.values[0] : undefined;
	if (when.type !== 'all') return undefined;
	const path = (when.of as readonly Matcher[]).find(pathsOf);
	return path && onlyPath(path);
}

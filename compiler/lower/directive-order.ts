/** The order in which Compatfile runs directives, whatever the order in the file. */
import type { Matcher } from '../document/document.ts';
import { stableSort } from './stable-sort.ts';

/** Directives in their default order. `handle_path` takes the position of `handle`. */
export const DEFAULT_ORDER: readonly string[] = [
	...['tracing', 'map', 'vars', 'fs', 'root', 'log_append', 'skip_log', 'log_skip', 'log_name'],
	...['header', 'copy_response_headers', 'request_body', 'timeouts'],
	'redir',
	...['method', 'rewrite', 'uri', 'try_files'],
	...['basicauth', 'basic_auth', 'forward_auth', 'request_header', 'cache', 'encode', 'push', 'intercept', 'templates'],
	...['invoke', 'handle', 'handle_path', 'route'],
	...['abort', 'error', 'copy_response', 'respond', 'metrics', 'reverse_proxy', 'php_fastcgi', 'file_server'],
	'acme_server',
];

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
			// Whatever its form in the document, it asks which files exist.
			conditional: item.when !== undefined || item.directive === 'try_files',
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
	// Without a matcher it is a list of routes, which is never compared.
	if (a.item.directive === 'php_fastcgi' && !(a.conditional && b.conditional)) return false;
	const specific = isMoreSpecific(a, b);
	// Of variables the last assignment wins. Equal ones go before each other, which reverses them.
	return a.item.directive === 'vars' ? !specific : specific;
}

/** Positions of an order; `handle_path` stands where `handle` does. */
export function directivePositions(order: readonly string[]): ReadonlyMap<string, number> {
	const positions = new Map(order.map((name, at) => [name, at]));
	const handle = positions.get('handle');
	if (handle !== undefined) positions.set('handle_path', handle);
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
	if (when.type === 'path') {
		const patterns = when.patterns as readonly string[];
		return patterns.length === 1 ? patterns[0] : undefined;
	}
	if (when.type !== 'all') return undefined;
	const path = (when.of as readonly Matcher[]).find(part => part.type === 'path');
	return path && onlyPath(path);
}

/** The order in which Compatfile runs directives, whatever the order in the file. */
import type { Matcher } from '../document/document.ts';

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
	readonly directive: string;
	readonly when: Matcher | undefined;
}

/** Sorts by position, then the more specific path first; equal ones keep their order in the file. */
export function sortDirectives<T extends SortedDirective>(
	items: readonly T[],
	positions: ReadonlyMap<string, number>,
): T[] {
	if (items.length < 2) return [...items];
	const keyed = items.map(item => ({
		item,
		position: positions.get(item.directive) ?? 0,
		path: onlyPath(item.when),
		// Whatever its form in the document, it asks which files there are.
		conditional: item.when !== undefined || item.directive === 'try_files',
	}));
	keyed.sort((a, b) => {
		if (a.position !== b.position) return a.position - b.position;
		const order = bySpecificity(a.conditional, a.path, b.conditional, b.path);
		return a.item.directive === 'vars' && b.item.directive === 'vars' ? -order : order;
	});
	return keyed.map(({ item }) => item);
}

/** Positions of an order; `handle_path` stands where `handle` does. */
export function directivePositions(order: readonly string[]): ReadonlyMap<string, number> {
	const positions = new Map(order.map((name, at) => [name, at]));
	const handle = positions.get('handle');
	if (handle !== undefined) positions.set('handle_path', handle);
	return positions;
}

function bySpecificity(a: boolean, aPath: string | undefined, b: boolean, bPath: string | undefined) {
	if (aPath !== undefined && bPath !== undefined) {
		const aText = aPath.endsWith('*') ? aPath.slice(0, -1) : aPath;
		const bText = bPath.endsWith('*') ? bPath.slice(0, -1) : bPath;
		if (aText === bText) return aPath.length - bPath.length;
		if (aText.length !== bText.length) return bText.length - aText.length;
		return aText < bText ? -1 : 1;
	}
	return (a ? 0 : 1) - (b ? 0 : 1);
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

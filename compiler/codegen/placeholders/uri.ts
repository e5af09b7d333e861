/** Placeholders of the request URI, current and original. */
import type { Exchange } from '../../exchange/exchange.ts';
import { decodePercent } from '../../exchange/request-path.ts';
import { escapeQueryText, parseQueryLeniently } from '../../exchange/uri-escape.ts';
import { definePlaceholder, definePlaceholderFamily, type Placeholder } from './placeholder.ts';

/** Reads the escaped path. */
type PathOf = (x: Exchange) => string;

const currentPath: PathOf = x => x.request.path;
const originalPath: PathOf = x => x.received.path;

function uri(path: string, query: string | undefined): string {
	return query === undefined ? path : `${path}?${query}`;
}

/** Decodes if possible: a placeholder should not reject a request. */
function decoded(path: string): string {
	return decodePercent(path) ?? path;
}

function directory(path: string): string {
	return path.slice(0, path.lastIndexOf('/') + 1);
}

function file(path: string): string {
	return path.slice(path.lastIndexOf('/') + 1);
}

/** Strips slashes from the end of a path. */
function withoutSlashes(path: string): string {
	let end = path.length;
	while (end > 0 && path[end - 1] === '/') end -= 1;
	return path.slice(0, end);
}

function extension(name: string): string {
	const dot = name.lastIndexOf('.');
	return dot === -1 ? '' : name.slice(dot);
}

function segment(pathOf: PathOf) {
	return (index: string) => {
		if (!/^\d{1,3}$/.test(index)) return undefined;
		const at = Number(index);
		return (x: Exchange) => {
			const path = decoded(pathOf(x));
			return path.slice(path.startsWith('/') ? 1 : 0).split('/')[at] ?? '';
		};
	};
}

function prefixed(query: string | undefined): string {
	return query ? `?${query}` : '';
}

/** `http.request.uri*` and `http.request.orig_*`. */
export const URI_PLACEHOLDERS: readonly Placeholder[] = [
	definePlaceholder('http.request.uri', 'Path and query, escaped.', x => uri(x.request.path, x.request.query)),
	definePlaceholder('http.request.uri_escaped', 'Path and query, encoded for use in a query.', x =>
		escapeQueryText(uri(x.request.path, x.request.query)),
	),
	definePlaceholder('http.request.uri.path', 'Path, decoded.', x => decoded(x.request.path)),
	definePlaceholder('http.request.uri.path_escaped', 'Path, encoded for use in a query.', x =>
		escapeQueryText(decoded(x.request.path)),
	),
	definePlaceholderFamily('http.request.uri.path.*', 'A segment of the path, counted from 0.', segment(currentPath)),
	definePlaceholder('http.request.uri.path.dir', 'Directory of the path, with its last slash.', x =>
		directory(decoded(x.request.path)),
	),
	definePlaceholder('http.request.uri.path.file', 'Last segment of the path.', x => file(decoded(x.request.path))),
	definePlaceholder(
		'http.request.uri.path.file.base',
		`Last name of the path, including a folder's, without the extension.`,
		x => {
			const path = decoded(x.request.path);
			const name = file(path);
			// The folder `/a.d/` has no extension.
			if (name === '') return file(withoutSlashes(path)) || '/';
			return name.slice(0, name.length - extension(name).length);
		},
	),
	definePlaceholder('http.request.uri.path.file.ext', 'Extension of the last segment, with its dot.', x =>
		extension(file(decoded(x.request.path))),
	),
	definePlaceholder('http.request.uri.query', 'Query, verbatim.', x => x.request.query ?? ''),
	definePlaceholder('http.request.uri.query_escaped', 'Query, encoded for use in a query.', x =>
		escapeQueryText(x.request.query ?? ''),
	),
	definePlaceholder('http.request.uri.prefixed_query', 'Query with its `?`, empty if there is no query.', x =>
		prefixed(x.request.query),
	),
	definePlaceholderFamily(
		'http.request.uri.query.*',
		'A parameter of the query, decoded; several are joined by commas.',
		name => {
			return x => (x.request.query ? (parseQueryLeniently(x.request.query).get(name)?.join(',') ?? '') : '');
		},
	),
	definePlaceholder('http.request.orig_method', 'Original method.', x => x.received.method),
	definePlaceholder('http.request.orig_uri', 'Original path and query.', x => uri(x.received.path, x.received.query)),
	definePlaceholder('http.request.orig_uri.path', 'Original path, decoded.', x => decoded(x.received.path)),
	definePlaceholderFamily(
		'http.request.orig_uri.path.*',
		'A segment of the original path, counted from 0.',
		segment(originalPath),
	),
	definePlaceholder('http.request.orig_uri.path.dir', 'Directory of the original path.', x =>
		directory(decoded(x.received.path)),
	),
	definePlaceholder('http.request.orig_uri.path.file', 'Last segment of the original path.', x =>
		file(decoded(x.received.path)),
	),
	definePlaceholder('http.request.orig_uri.query', 'Original query.', x => x.received.query ?? ''),
	definePlaceholder('http.request.orig_uri.prefixed_query', 'Original query, with its `?`.', x =>
		prefixed(x.received.query),
	),
];

/** Placeholders of the request's URI, both as rewritten by handlers and as received. */
import type { Exchange } from '../../exchange/exchange.ts';
import { decodePercent } from '../../exchange/request-path.ts';
import { escapeQueryText, readQueryParameter } from '../../exchange/uri-escape.ts';
import { definePlaceholder, definePlaceholderFamily, type Placeholder } from './placeholder.ts';

/** Reads the escaped path of a request, either the current or the original one. */
type PathReader = (x: Exchange) => string;

const readCurrentPath: PathReader = x => x.request.path;
const readOriginalPath: PathReader = x => x.received.path;

function uriText(path: string, query: string | undefined): string {
	return query === undefined ? path : `${path}?${query}`;
}

/** Decodes a path. A malformed path is returned unchanged, because a placeholder must not reject a request. */
function decodePath(path: string): string {
	return decodePercent(path) ?? path;
}

function directoryOf(path: string): string {
	return path.slice(0, path.lastIndexOf('/') + 1);
}

function fileNameOf(path: string): string {
	return path.slice(path.lastIndexOf('/') + 1);
}

/** Returns a path without the slashes at its end. */
function stripTrailingSlashes(path: string): string {
	let end = path.length;
	while (end > 0 && path[end - 1] === '/') end -= 1;
	return path.slice(0, end);
}

function extensionOf(name: string): string {
	const dot = name.lastIndexOf('.');
	return dot === -1 ? '' : name.slice(dot);
}

function compileSegmentPlaceholder(readPath: PathReader) {
	return (index: string) => {
		if (!/^\d{1,3}$/.test(index)) return undefined;
		const segmentIndex = Number(index);
		return (x: Exchange) => {
			const path = decodePath(readPath(x));
			return path.slice(path.startsWith('/') ? 1 : 0).split('/')[segmentIndex] ?? '';
		};
	};
}

function prefixedQuery(query: string | undefined): string {
	return query ? `?${query}` : '';
}

/** The placeholders `http.request.uri*` and `http.request.orig_*`. */
export const URI_PLACEHOLDERS: readonly Placeholder[] = [
	definePlaceholder('http.request.uri', 'Path and query, escaped.', x => uriText(x.request.path, x.request.query)),
	definePlaceholder('http.request.uri_escaped', 'Path and query, encoded for use in a query.', x =>
		escapeQueryText(uriText(x.request.path, x.request.query)),
	),
	definePlaceholder('http.request.uri.path', 'Path, decoded.', x => decodePath(x.request.path)),
	definePlaceholder('http.request.uri.path_escaped', 'Path, encoded for use in a query.', x =>
		escapeQueryText(decodePath(x.request.path)),
	),
	definePlaceholderFamily(
		'http.request.uri.path.*',
		'A segment of the path, counted from 0.',
		compileSegmentPlaceholder(readCurrentPath),
	),
	definePlaceholder('http.request.uri.path.dir', 'Directory of the path, with its last slash.', x =>
		directoryOf(decodePath(x.request.path)),
	),
	definePlaceholder('http.request.uri.path.file', 'Last segment of the path.', x =>
		fileNameOf(decodePath(x.request.path)),
	),
	definePlaceholder(
		'http.request.uri.path.file.base',
		`Last name of the path, including a folder's, without the extension.`,
		x => {
			const path = decodePath(x.request.path);
			const name = fileNameOf(path);
			// The dot in the name of a folder, as in `/a.d/`, does not begin an extension.
			if (name === '') return fileNameOf(stripTrailingSlashes(path)) || '/';
			return name.slice(0, name.length - extensionOf(name).length);
		},
	),
	definePlaceholder('http.request.uri.path.file.ext', 'Extension of the last segment, with its dot.', x =>
		extensionOf(fileNameOf(decodePath(x.request.path))),
	),
	definePlaceholder('http.request.uri.query', 'Query, verbatim.', x => x.request.query ?? ''),
	definePlaceholder('http.request.uri.query_escaped', 'Query, encoded for use in a query.', x =>
		escapeQueryText(x.request.query ?? ''),
	),
	definePlaceholder('http.request.uri.prefixed_query', 'Query with its `?`, empty if there is no query.', x =>
		prefixedQuery(x.request.query),
	),
	definePlaceholderFamily(
		'http.request.uri.query.*',
		'A parameter of the query, decoded; several are joined by commas.',
		name => {
			return x => (x.request.query ? readQueryParameter(x.request.query, name) : '');
		},
	),
	definePlaceholder('http.request.orig_method', 'Original method.', x => x.received.method),
	definePlaceholder('http.request.orig_uri', 'Original path and query.', x =>
		uriText(x.received.path, x.received.query),
	),
	definePlaceholder('http.request.orig_uri.path', 'Original path, decoded.', x => decodePath(x.received.path)),
	definePlaceholderFamily(
		'http.request.orig_uri.path.*',
		'A segment of the original path, counted from 0.',
		compileSegmentPlaceholder(readOriginalPath),
	),
	definePlaceholder('http.request.orig_uri.path.dir', 'Directory of the original path.', x =>
		directoryOf(decodePath(x.received.path)),
	),
	definePlaceholder('http.request.orig_uri.path.file', 'Last segment of the original path.', x =>
		fileNameOf(decodePath(x.received.path)),
	),
	definePlaceholder('http.request.orig_uri.query', 'Original query.', x => x.received.query ?? ''),
	definePlaceholder('http.request.orig_uri.prefixed_query', 'Original query, with its `?`.', x =>
		prefixedQuery(x.received.query),
	),
];

/** Compiles the target of a rewrite: a string whose path and query replace the request's. */

import type { Exchange } from '../../exchange/exchange.ts';
import {
	escapePathText,
	escapePathWhereNeeded,
	escapeQueryText,
	escapeQueryWhereNeeded,
} from '../../exchange/uri-escape.ts';
import type { CompileContext, Template } from '../contract/compile-context.ts';

const URI_PATH_PLACEHOLDER = 'http.request.uri.path';
const URI_QUERY_PLACEHOLDER = 'http.request.uri.query';

/**
 * Reports whether the value of a placeholder is a decoded part of a path, in which `%` and `?` are literal. Other values (`{uri}`,
 * request fields) are URI text, which may contain escapes and a query. Query parameters are treated separately, by {@link
 * escapeBeforeQuery}.
 */
function isDecodedPath(name: string): boolean {
	return (
		name.startsWith('http.request.uri.path.') ||
		name.startsWith('http.request.orig_uri.path') ||
		name.startsWith('http.regexp.') ||
		name.startsWith('http.matchers.file.')
	);
}

/** Changes the path and query of a request. */
export type UriEdit = (x: Exchange) => void;

/**
 * Compiles a target. The part before `?` replaces the path and the part after `?` replaces the query; a part that is absent leaves
 * the request's as it is. `?` alone clears the query, and a fragment is dropped. All placeholders read the original request. In the
 * query, `{query}` is inserted verbatim and other values are encoded; a parameter that turns out empty is omitted with its `&`. If
 * a value such as `{uri}` inserts a `?` into the path, that `?` begins the query, unless the target contains a `?` itself.
 */
export function compileRewriteTo(targetText: string, cx: CompileContext): UriEdit {
	const targetParts = splitTarget(targetText);
	const renderPath = targetParts.path === undefined ? undefined : compilePath(targetParts.path, cx);
	const renderQuery = targetParts.query === undefined ? undefined : compileQuery(targetParts.query, cx);
	return x => {
		const { request } = x;
		let newPath = renderPath?.(x);
		let newQuery = renderQuery?.(x);
		if (newPath !== undefined) {
			const queryStart = newPath.indexOf('?');
			if (queryStart !== -1) {
				if (!newQuery) newQuery = escapeQueryWhereNeeded(newPath.slice(queryStart + 1));
				newPath = newPath.slice(0, queryStart);
			}
			newPath = escapePathWhereNeeded(newPath);
			request.path = newPath.startsWith('/') ? newPath : `/${newPath}`;
		}
		if (newQuery !== undefined) request.query = newQuery === '' ? undefined : newQuery;
	};
}

/**
 * Splits the text of a target into path and query. A `?` inside a placeholder is not a separator; `{?query}` has already been
 * expanded.
 */
function splitTarget(targetText: string): { path: string | undefined; query: string | undefined } {
	const withoutFragment = targetText.split(/#(?![^{}]*\})/, 1)[0]!;
	const queryStart = withoutFragment.search(/\?(?![^{}]*\})/);
	const path = queryStart === -1 ? withoutFragment : withoutFragment.slice(0, queryStart);
	return {
		path: path === '' ? undefined : path,
		query: queryStart === -1 ? undefined : withoutFragment.slice(queryStart + 1),
	};
}

function compilePath(pathText: string, cx: CompileContext): (x: Exchange) => string {
	// `{http.request.uri.path}` inserts the current path without changing its escapes.
	const pieceTemplates = pathText
		.split(`{${URI_PATH_PLACEHOLDER}}`)
		.map(piece => cx.template(piece, 'empty', pathEncoderFor));
	if (pieceTemplates.length === 1) return pieceTemplates[0]!.render;
	return x => {
		let path = pieceTemplates[0]!.render(x);
		for (let i = 1; i < pieceTemplates.length; i++) path += x.request.path + pieceTemplates[i]!.render(x);
		return path;
	};
}

function pathEncoderFor(name: string): ((value: string) => string) | undefined {
	if (name.startsWith('http.request.uri.query.')) return escapeBeforeQuery;
	return isDecodedPath(name) ? escapePathText : undefined;
}

/**
 * Escapes the value of a query parameter that is inserted into the path. The value may contain a query of its own: from `?` on, it
 * belongs to the query.
 */
function escapeBeforeQuery(value: string): string {
	const queryStart = value.indexOf('?');
	return queryStart === -1
		? escapePathText(value)
		: escapePathText(value.slice(0, queryStart)) + value.slice(queryStart).replaceAll('%', '%25');
}

function queryEncoderFor(name: string): ((value: string) => string) | undefined {
	return name === URI_QUERY_PLACEHOLDER ? undefined : escapeQueryText;
}

/** A piece of a query's text: a parameter's name, its value, or the separator `&`. `isValue` is true for values. */
interface QueryPiece {
	readonly template: Template;
	readonly isValue: boolean;
}

function compileQuery(queryText: string, cx: CompileContext): (x: Exchange) => string {
	const queryPieces: QueryPiece[] = [];
	let isValue = false;
	for (const piece of queryText.match(/(?:\{[^{}]*\}|[^=&{]|\{)+|[=&]/g) ?? []) {
		if (piece === '=' && !isValue) isValue = true;
		else if (piece === '&') {
			queryPieces.push({ template: cx.template('&', 'empty'), isValue: false });
			isValue = false;
		} else {
			// Within a value, `{query}` is data and encoded. Elsewhere, it stands for whole parameters and is inserted verbatim.
			const encoder = isValue ? () => escapeQueryText : queryEncoderFor;
			queryPieces.push({ template: cx.template(piece, 'empty', encoder), isValue });
		}
	}
	return x => {
		let query = '';
		let parameter = '';
		for (const queryPiece of queryPieces) {
			const renderedText = queryPiece.template.render(x);
			if (queryPiece.template.constant === '&') {
				query = appendParameter(query, parameter);
				parameter = '';
			} else parameter += queryPiece.isValue ? `=${renderedText}` : renderedText;
		}
		return escapeQueryWhereNeeded(appendParameter(query, parameter));
	};
}

function appendParameter(query: string, parameter: string): string {
	if (parameter === '') return query;
	return query === '' ? parameter : `${query}&${parameter}`;
}

/** Single edits of the request's path and query: prefixes, replacements, parameters. */

import { compilePatternReplacement, compileSearch } from '../../codegen/context/replacement.ts';
import { stripPathPrefix, stripPathSuffix } from '../../exchange/escaped-affix.ts';
import type { Request } from '../../exchange/exchange.ts';
import { escapedCleanPath } from '../../exchange/request-path.ts';
import {
	escapePathWhereNeeded,
	escapeQueryWhereNeeded,
	formatQuery,
	parseQueryLeniently,
} from '../../exchange/uri-escape.ts';
import type { CompileContext } from '../contract/compile-context.ts';
import type { UriEdit } from './rewrite-to.ts';

/** A replacement of literal text. */
export interface UriReplace {
	readonly find: string;
	readonly replace: string;
	/** Maximum number of replacements; 0 or absent means no limit. */
	readonly limit?: number;
}

/** A replacement by regular expression. */
export interface UriRegexpReplace {
	readonly find: string;
	readonly replace: string;
}

/** Edits of query parameters, made in the order rename, set, add, replace, delete. */
export interface QueryEdits {
	readonly rename?: readonly { readonly from: string; readonly to: string }[];
	readonly set?: readonly { readonly name: string; readonly value: string }[];
	readonly add?: readonly { readonly name: string; readonly value: string }[];
	/** Replacements in values; the name `*` means every parameter. */
	readonly replace?: readonly { readonly name: string; readonly find: string; readonly replace: string }[];
	readonly delete?: readonly string[];
}

function changePath(request: Request, path: string): void {
	if (path === request.path) return;
	const escaped = escapePathWhereNeeded(path);
	request.path = escaped.startsWith('/') ? escaped : `/${escaped}`;
}

/** Compiles an edit that cleans the path and strips a prefix from it, if present. */
export function compileStripPrefix(text: string, cx: CompileContext): UriEdit {
	const template = cx.template(text, 'empty');
	return x => {
		const given = template.constant ?? template.render(x);
		const prefix = given.startsWith('/') ? given : `/${given}`;
		const path = escapedCleanPath(x.request.path, !prefix.includes('//'));
		changePath(x.request, stripPathPrefix(path, prefix) ?? path);
	};
}

/** Compiles an edit that cleans the path and strips a suffix from it, if present. */
export function compileStripSuffix(text: string, cx: CompileContext): UriEdit {
	const template = cx.template(text, 'empty');
	return x => {
		const suffix = template.constant ?? template.render(x);
		const path = escapedCleanPath(x.request.path, !suffix.includes('//'));
		changePath(x.request, stripPathSuffix(path, suffix) ?? path);
	};
}

/** Compiles an edit that cleans the path, and replaces text in the escaped path and in the query. */
export function compileUriReplace(edit: UriReplace, cx: CompileContext): UriEdit {
	const find = cx.template(edit.find, 'empty');
	const replace = cx.template(edit.replace, 'empty');
	const limit = edit.limit && edit.limit > 0 ? edit.limit : Number.POSITIVE_INFINITY;
	return x => {
		const wanted = find.render(x);
		if (wanted === '') return;
		const text = replace.render(x);
		const { request } = x;
		const path = escapedCleanPath(request.path, !edit.find.includes('//'));
		changePath(request, path.includes(wanted) ? replaced(path, wanted, text, limit) : path);
		if (request.query?.includes(wanted)) {
			const query = escapeQueryWhereNeeded(replaced(request.query, wanted, text, limit));
			request.query = query === '' ? undefined : query;
		}
	};
}

function replaced(subject: string, find: string, text: string, limit: number): string {
	if (limit === Number.POSITIVE_INFINITY) return subject.replaceAll(find, () => text);
	const pieces = subject.split(find);
	const count = Math.min(limit, pieces.length - 1);
	return (
		pieces.slice(0, count + 1).join(text) +
		pieces
			.slice(count + 1)
			.map(piece => find + piece)
			.join('')
	);
}

/** Compiles an edit that replaces matches of a regular expression in the escaped path. */
export function compilePathRegexpReplace(edit: UriRegexpReplace, cx: CompileContext): UriEdit {
	const regexp = cx.regexp(edit.find, 'g');
	const replace = compilePatternReplacement(edit.replace, cx, 'empty');
	return x => {
		changePath(x.request, replace(x.request.path, regexp, x));
	};
}

/** Compiles edits of query parameters. The query is rebuilt from the result, with its names sorted. */
export function compileQueryEdits(edits: QueryEdits, cx: CompileContext): UriEdit {
	const text = (value: string) => cx.template(value, 'empty');
	const rename = (edits.rename ?? []).map(({ from, to }) => ({ from: text(from), to: text(to) }));
	const set = (edits.set ?? []).map(({ name, value }) => ({ name: text(name), value: text(value) }));
	const add = (edits.add ?? []).map(({ name, value }) => ({ name: text(name), value: text(value) }));
	const replace = (edits.replace ?? []).map(({ name, find, replace: by }) => ({
		name: text(name),
		search: compileSearch(find, cx),
		apply: compilePatternReplacement(by, cx, 'keep'),
	}));
	const remove = (edits.delete ?? []).map(text);
	return x => {
		const parameters = parseQueryLeniently(x.request.query);
		for (const { from, to } of rename) {
			const values = parameters.get(from.render(x));
			if (!values) continue;
			parameters.delete(from.render(x));
			parameters.set(to.render(x), values);
		}
		for (const { name, value } of set) parameters.set(name.render(x), [value.render(x)]);
		for (const { name, value } of add) {
			const key = name.render(x);
			parameters.set(key, [...(parameters.get(key) ?? []), value.render(x)]);
		}
		for (const { name, search, apply } of replace) {
			const regexp = search(x);
			if (!regexp) continue;
			const key = name.render(x);
			for (const [candidate, values] of parameters) {
				if (key === '*' || candidate === key)
					parameters.set(
						candidate,
						values.map(value => apply(value, regexp, x)),
					);
			}
		}
		for (const name of remove) parameters.delete(name.render(x));
		const query = formatQuery(parameters);
		x.request.query = query === '' ? undefined : query;
	};
}

/** Compiles edits of the request's path and query: prefixes and suffixes, replacements, parameters. */

import { compilePatternReplacement, compileSearch } from '../../codegen/context/replacement.ts';
import type { Request } from '../../exchange/exchange.ts';
import { escapedCleanPath } from '../../exchange/request-path.ts';
import {
	escapePathWhereNeeded,
	escapeQueryWhereNeeded,
	formatQuery,
	parseQueryLeniently,
} from '../../exchange/uri-escape.ts';
import type { CompileContext } from '../contract/compile-context.ts';
import { stripPathPrefix, stripPathSuffix } from './escaped-affix.ts';
import type { UriEdit } from './rewrite-to.ts';

/** A replacement of literal text. */
export interface UriReplace {
	readonly find: string;
	readonly replace: string;
	/** Maximum number of replacements; 0 or absent means no limit. */
	readonly limit?: number;
}

/** A replacement of the matches of a regular expression. */
export interface UriRegexpReplace {
	readonly find: string;
	readonly replace: string;
}

/** Edits of query parameters. They are made in the order rename, set, add, replace, delete. */
export interface QueryEdits {
	readonly rename?: readonly { readonly from: string; readonly to: string }[];
	readonly set?: readonly { readonly name: string; readonly value: string }[];
	readonly add?: readonly { readonly name: string; readonly value: string }[];
	/** Replacements in the values of parameters. The name `*` means every parameter. */
	readonly replace?: readonly { readonly name: string; readonly find: string; readonly replace: string }[];
	readonly delete?: readonly string[];
}

function setPath(request: Request, path: string): void {
	if (path === request.path) return;
	const escapedPath = escapePathWhereNeeded(path);
	request.path = escapedPath.startsWith('/') ? escapedPath : `/${escapedPath}`;
}

/** Compiles an edit that normalizes the path and removes a prefix from it, if the path has the prefix. */
export function compileStripPrefix(text: string, cx: CompileContext): UriEdit {
	const template = cx.template(text, 'empty');
	return x => {
		const prefixText = template.constant ?? template.render(x);
		const prefix = prefixText.startsWith('/') ? prefixText : `/${prefixText}`;
		const path = escapedCleanPath(x.request.path, !prefix.includes('//'));
		setPath(x.request, stripPathPrefix(path, prefix) ?? path);
	};
}

/** Compiles an edit that normalizes the path and removes a suffix from it, if the path has the suffix. */
export function compileStripSuffix(text: string, cx: CompileContext): UriEdit {
	const template = cx.template(text, 'empty');
	return x => {
		const suffix = template.constant ?? template.render(x);
		const path = escapedCleanPath(x.request.path, !suffix.includes('//'));
		setPath(x.request, stripPathSuffix(path, suffix) ?? path);
	};
}

/** Compiles an edit that normalizes the path, and replaces text in the escaped path and in the query. */
export function compileUriReplace(edit: UriReplace, cx: CompileContext): UriEdit {
	const findTemplate = cx.template(edit.find, 'empty');
	const replacementTemplate = cx.template(edit.replace, 'empty');
	const maxReplacements = edit.limit && edit.limit > 0 ? edit.limit : Number.POSITIVE_INFINITY;
	return x => {
		const searchText = findTemplate.render(x);
		if (searchText === '') return;
		const replacement = replacementTemplate.render(x);
		const { request } = x;
		const path = escapedCleanPath(request.path, !edit.find.includes('//'));
		setPath(request, path.includes(searchText) ? replaceText(path, searchText, replacement, maxReplacements) : path);
		if (request.query?.includes(searchText)) {
			const query = escapeQueryWhereNeeded(replaceText(request.query, searchText, replacement, maxReplacements));
			request.query = query === '' ? undefined : query;
		}
	};
}

function replaceText(subject: string, find: string, replacement: string, maxReplacements: number): string {
	if (maxReplacements === Number.POSITIVE_INFINITY) return subject.replaceAll(find, () => replacement);
	const pieces = subject.split(find);
	const replacementCount = Math.min(maxReplacements, pieces.length - 1);
	return (
		pieces.slice(0, replacementCount + 1).join(replacement) +
		pieces
			.slice(replacementCount + 1)
			.map(piece => find + piece)
			.join('')
	);
}

/** Compiles an edit that replaces matches of a regular expression in the escaped path. */
export function compilePathRegexpReplace(edit: UriRegexpReplace, cx: CompileContext): UriEdit {
	const regexp = cx.regexpFor(edit.find, 'g');
	const replaceMatches = compilePatternReplacement(edit.replace, cx, 'empty');
	return x => {
		setPath(x.request, replaceMatches(x.request.path, regexp, x));
	};
}

/** Compiles edits of query parameters. The query is rebuilt with its parameters sorted by name. */
export function compileQueryEdits(edits: QueryEdits, cx: CompileContext): UriEdit {
	const compileText = (value: string) => cx.template(value, 'empty');
	const renames = (edits.rename ?? []).map(({ from: oldName, to: newName }) => ({
		from: compileText(oldName),
		to: compileText(newName),
	}));
	const assignments = (edits.set ?? []).map(({ name, value }) => ({
		name: compileText(name),
		value: compileText(value),
	}));
	const additions = (edits.add ?? []).map(({ name, value }) => ({
		name: compileText(name),
		value: compileText(value),
	}));
	const replacements = (edits.replace ?? []).map(({ name, find, replace: replacement }) => ({
		name: compileText(name),
		search: compileSearch(find, cx),
		apply: compilePatternReplacement(replacement, cx, 'keep'),
	}));
	const removals = (edits.delete ?? []).map(compileText);
	return x => {
		const parameters = parseQueryLeniently(x.request.query);
		for (const { from: oldName, to: newName } of renames) {
			const values = parameters.get(oldName.render(x));
			if (!values) continue;
			parameters.delete(oldName.render(x));
			parameters.set(newName.render(x), values);
		}
		for (const { name, value } of assignments) parameters.set(name.render(x), [value.render(x)]);
		for (const { name, value } of additions) {
			const key = name.render(x);
			parameters.set(key, [...(parameters.get(key) ?? []), value.render(x)]);
		}
		for (const { name, search, apply } of replacements) {
			const regexp = search(x);
			if (!regexp) continue;
			const key = name.render(x);
			for (const [parameterName, values] of parameters) {
				if (key === '*' || parameterName === key)
					parameters.set(
						parameterName,
						values.map(value => apply(value, regexp, x)),
					);
			}
		}
		for (const name of removals) parameters.delete(name.render(x));
		const query = formatQuery(parameters);
		x.request.query = query === '' ? undefined : query;
	};
}

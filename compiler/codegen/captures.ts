/** Where the captures of regular expressions are kept: `RegExpExecArray`s among the variables of an exchange. */
import type { Exchange } from '../exchange/exchange.ts';

/** Variable of the last match of any expression: `{http.regexp.1}`. */
export const LAST_CAPTURES = 'http.regexp';
/** Before the name of an expression: `{http.regexp.NAME.1}`. */
export const NAMED_CAPTURES = 'http.regexp.';

/** Variable of the groups of the last URL pattern that matched: {@link UrlPatternGroups}. */
export const URL_PATTERN_GROUPS = 'http.url_pattern';

/** The groups of a URL pattern that matched. */
export class UrlPatternGroups {
	readonly #components = new Map<string, { readonly names: readonly string[]; readonly match: readonly string[] }>();

	/** Adds a component: the names of its groups in order, and its match. */
	add(component: string, names: readonly string[], match: readonly string[]): void {
		this.#components.set(component, { names, match });
	}

	/** Returns the text of a group, which is empty if the group took no part. */
	get(component: string, name: string): string {
		const found = this.#components.get(component);
		const at = found?.names.indexOf(name) ?? -1;
		return at === -1 ? '' : (found?.match[at + 1] ?? '');
	}
}

/** Variable of what the last `file` matcher found: `{http.matchers.file.relative}`. */
export const FILE_MATCH = 'http.matchers.file';

/** What a `file` matcher found. */
export interface FileMatch {
	/** Path below the root, with its slash. */
	readonly relative: string;
	readonly absolute: string;
	readonly type: 'file' | 'directory';
	/** What `split_path` cut off. */
	readonly remainder: string;
}

/** Keeps a match; `key` is NAMED_CAPTURES and the name, or '' for an expression without a name. */
export function keepCaptures(x: Exchange, key: string, match: RegExpExecArray): void {
	x.variables.set(LAST_CAPTURES, match);
	if (key !== '') x.variables.set(key, match);
}

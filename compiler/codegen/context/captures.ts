/** Stores the captures of regular expressions, as `RegExpExecArray`s among the variables of an exchange. */
import type { Exchange } from '../../exchange/exchange.ts';

/** Variable with the last match of any regular expression, for `{http.regexp.1}`. */
export const LAST_CAPTURES_VARIABLE = 'http.regexp';
/** Prefix of the variables with the last match of a named expression, for `{http.regexp.NAME.1}`. */
export const NAMED_CAPTURES_PREFIX = 'http.regexp.';

/** Variable with the {@link UrlPatternGroups} of the last URL pattern that matched. */
export const URL_PATTERN_VARIABLE = 'http.url_pattern';

/** The texts that the groups of a URL pattern matched, by component of the URL. */
export class UrlPatternGroups {
	readonly #matchesByComponent = new Map<
		string,
		{ readonly names: readonly string[]; readonly match: readonly string[] }
	>();

	/** Adds a component of the URL, such as `pathname`. `names` are the names of its groups in order. */
	add(component: string, names: readonly string[], match: readonly string[]): void {
		this.#matchesByComponent.set(component, { names, match });
	}

	/** Returns the text that a group of a component matched; empty if the group took no part in the match. */
	get(component: string, name: string): string {
		const componentMatch = this.#matchesByComponent.get(component);
		const groupIndex = componentMatch?.names.indexOf(name) ?? -1;
		return groupIndex === -1 ? '' : (componentMatch?.match[groupIndex + 1] ?? '');
	}
}

/** Variable with the {@link FileMatch} of the last `file` matcher, for `{http.matchers.file.relative}`. */
export const FILE_MATCH_VARIABLE = 'http.matchers.file';

/** The result of a `file` matcher. */
export interface FileMatch {
	/** Path below the root, with a leading slash. */
	readonly relative: string;
	readonly absolute: string;
	readonly type: 'file' | 'directory';
	/** The part of the path that `split_path` cuts off. */
	readonly remainder: string;
}

/**
 * Stores a match for the capture placeholders. `key` is NAMED_CAPTURES_PREFIX followed by the expression's name, or '' for an
 * unnamed expression.
 */
export function storeCaptures(x: Exchange, key: string, match: RegExpExecArray): void {
	x.variables.set(LAST_CAPTURES_VARIABLE, match);
	if (key !== '') x.variables.set(key, match);
}

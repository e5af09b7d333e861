/** Reads usage lines such as `redir [matcher] <to> [<status> | temporary | permanent | html]`. */

/** What may be written in one place of a line. */
export interface UsageArgument {
	/** The text of this part, as it appears in the usage line. */
	readonly text: string;
	/** Where it is in the usage line. */
	readonly start: number;
	readonly end: number;
	/** Words that may be written here as they are. */
	readonly words: readonly string[];
	/** Names of values that may be written here: `status` for `<status>`. */
	readonly values: readonly string[];
	/** True if it may be repeated. */
	readonly repeats: boolean;
}

/** Returns the arguments of a usage line, without the name, `[matcher]` and the block. */
export function usageArguments(usage: string): readonly UsageArgument[] {
	const found: UsageArgument[] = [];
	const block = usage.search(/\s\[?\{ ?/);
	const end = block === -1 ? usage.length : block;
	let at = usage.indexOf(' ');
	while (at !== -1 && at < end) {
		while (usage[at] === ' ') at++;
		const start = at;
		at = endOfArgument(usage, start, end);
		// Alternatives without brackets: the next word may be in the same place.
		while (usage.startsWith(' | ', at) && at < end) at = endOfArgument(usage, at + 3, end);
		const text = usage.slice(start, at);
		if (text !== '' && text !== '[matcher]') found.push(argument(text, start));
		if (at >= end) break;
	}
	return found;
}

function endOfArgument(usage: string, start: number, limit: number): number {
	let depth = 0;
	for (let at = start; at < limit; at++) {
		const character = usage[at]!;
		if ('[<('.includes(character)) depth++;
		else if (']>)'.includes(character)) depth--;
		else if (character === ' ' && depth <= 0) return at;
	}
	return limit;
}

function argument(text: string, start: number): UsageArgument {
	const values = [...text.matchAll(/<([^<>]+)>/g)].map(([, name]) => name!);
	const rest = text.replace(/[\w-]*<[^<>]*>\S*/g, ' ');
	const words = [...rest.matchAll(/[A-Za-z0-9_][\w.-]*/g)].map(([word]) => word).filter(word => word !== 'matcher');
	return { text, start, end: start + text.length, words, values, repeats: text.includes('…') };
}

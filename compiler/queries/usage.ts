/** Parses usage lines such as `redir [matcher] <to> [<status> | temporary | permanent | html]`. */

/** An argument of a usage line. */
export interface UsageArgument {
	/** The text of this part, as it appears in the usage line. */
	readonly text: string;
	/** The offset of the argument in the usage line. */
	readonly start: number;
	readonly end: number;
	/** Words that are allowed literally as the argument. */
	readonly words: readonly string[];
	/** Names of the values that are allowed as the argument: `status` for `<status>`. */
	readonly valueNames: readonly string[];
	/** True if the argument may be repeated. */
	readonly isRepeatable: boolean;
}

/** Returns the arguments of a usage line, without the name, `[matcher]` and the block. */
export function usageArguments(usage: string): readonly UsageArgument[] {
	const usageParts: UsageArgument[] = [];
	const block = usage.search(/\s\[?\{ ?/);
	const end = block === -1 ? usage.length : block;
	let offset = usage.indexOf(' ');
	while (offset !== -1 && offset < end) {
		while (usage[offset] === ' ') offset++;
		const start = offset;
		offset = endOfArgument(usage, start, end);
		// An alternative may be written without brackets. In that case, the word after ` | ` belongs to the same argument.
		while (usage.startsWith(' | ', offset) && offset < end) offset = endOfArgument(usage, offset + 3, end);
		const text = usage.slice(start, offset);
		if (text !== '' && text !== '[matcher]') usageParts.push(parseArgument(text, start));
		if (offset >= end) break;
	}
	return usageParts;
}

function endOfArgument(usage: string, start: number, end: number): number {
	let depth = 0;
	for (let at = start; at < end; at++) {
		const character = usage[at]!;
		if ('[<('.includes(character)) depth++;
		else if (']>)'.includes(character)) depth--;
		else if (character === ' ' && depth <= 0) return at;
	}
	return end;
}

function parseArgument(text: string, start: number): UsageArgument {
	const values = [...text.matchAll(/<([^<>]+)>/g)].map(([, name]) => name!);
	const literals = text.replace(/[\w-]*<[^<>]*>\S*/g, ' ');
	const words = [...literals.matchAll(/[A-Za-z0-9_][\w.-]*/g)].map(([word]) => word).filter(word => word !== 'matcher');
	return { text, start, end: start + text.length, words, valueNames: values, isRepeatable: text.includes('…') };
}

/** Parses usage lines, such as `redir [matcher] <to> [<status> | temporary | permanent | html]`. */

/** An argument in a usage line. */
export interface UsageArgument {
	/** The text of the argument, as it appears in the usage line. */
	readonly text: string;
	/** The offsets of the argument's start and end in the usage line. */
	readonly start: number;
	readonly end: number;
	/** Literal words, one of which may be the argument. */
	readonly words: readonly string[];
	/** Names of the values that the argument may be, such as `status` for `<status>`. */
	readonly valueNames: readonly string[];
	/** True if the argument may occur repeatedly. */
	readonly isRepeatable: boolean;
}

/** Returns the arguments in a usage line, without the directive's name, `[matcher]` and the block. */
export function usageArguments(usage: string): readonly UsageArgument[] {
	const usageParts: UsageArgument[] = [];
	const blockStart = usage.search(/\s\[?\{ ?/);
	const argumentsEnd = blockStart === -1 ? usage.length : blockStart;
	let offset = usage.indexOf(' ');
	while (offset !== -1 && offset < argumentsEnd) {
		while (usage[offset] === ' ') offset++;
		const start = offset;
		offset = endOfArgument(usage, start, argumentsEnd);
		// Alternatives may be written without brackets, so the word after ` | ` belongs to the same argument.
		while (usage.startsWith(' | ', offset) && offset < argumentsEnd)
			offset = endOfArgument(usage, offset + 3, argumentsEnd);
		const text = usage.slice(start, offset);
		if (text !== '' && text !== '[matcher]') usageParts.push(parseArgument(text, start));
		if (offset >= argumentsEnd) break;
	}
	return usageParts;
}

function endOfArgument(usage: string, start: number, end: number): number {
	let depth = 0;
	for (let index = start; index < end; index++) {
		const character = usage[index]!;
		if ('[<('.includes(character)) depth++;
		else if (']>)'.includes(character)) depth--;
		else if (character === ' ' && depth <= 0) return index;
	}
	return end;
}

function parseArgument(text: string, start: number): UsageArgument {
	const values = [...text.matchAll(/<([^<>]+)>/g)].map(([, name]) => name!);
	const literals = text.replace(/[\w-]*<[^<>]*>\S*/g, ' ');
	const words = [...literals.matchAll(/[A-Za-z0-9_][\w.-]*/g)].map(([word]) => word).filter(word => word !== 'matcher');
	return { text, start, end: start + text.length, words, valueNames: values, isRepeatable: text.includes('…') };
}

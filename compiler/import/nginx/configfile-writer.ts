/** Collects what an import writes: the lines of the Configfile, its tests, and the directives that have no counterpart. */
import type { NginxDirective } from './nginx-parser.ts';
import { Untranslatable } from './untranslatable.ts';

/** A directive that is written as a comment, with the reason why it is not translated. */
export interface KeptDirective {
	readonly directive: string;
	readonly file: string;
	readonly line: number;
	readonly reason: string;
}

/** A line with the number of blocks around it, or a slot for lines that are written later. */
type Piece = { readonly depth: number; readonly text: string } | { readonly depth: number; readonly slot: Slot };

/** Lines that were captured instead of written. {@link ConfigfileWriter.append} adds them to the text. */
export type CapturedLines = readonly Piece[];

/** A slot in the text, for lines that are known only after the lines below it have been written. */
export class Slot {
	readonly lines: string[] = [];

	/** Adds a line, unless the slot has it already. */
	addLine(text: string): void {
		if (!this.lines.includes(text)) this.lines.push(text);
	}
}

export class ConfigfileWriter {
	readonly keptDirectives: KeptDirective[] = [];
	translatedCount = 0;
	#pieces: Piece[] = [];
	#depth = 0;
	readonly #testLines: string[] = [];
	readonly #testNames = new Set<string>();
	readonly #countedDirectives = new Set<NginxDirective>();
	readonly #nameCountsByKind = new Map<string, number>();

	/** Writes a line at the current depth. */
	writeLine(text: string): void {
		this.#pieces.push({ depth: text === '' ? 0 : this.#depth, text });
	}

	writeBlock(head: string, content: () => void): void {
		this.writeLine(head === '' ? '{' : `${head} {`);
		this.#depth++;
		try {
			content();
		} finally {
			this.#depth--;
			this.writeLine('}');
		}
	}

	/**
	 * Writes one branch of a chain: the first as a `when` block, each later one as an `else` of the block written last. `condition` is
	 * undefined for a branch that always applies. If that is the first branch, there are no others, so its content is written without
	 * a block.
	 */
	writeBranch(condition: string | undefined, isFirst: boolean, content: () => void): void {
		if (isFirst && condition === undefined) {
			content();
			return;
		}
		const prefix = condition === undefined ? '' : `when ${condition} `;
		if (isFirst) this.writeLine(`${prefix}{`);
		else {
			const lastPiece = this.#pieces.pop();
			if (!lastPiece || !('text' in lastPiece) || lastPiece.text !== '}')
				throw new Error('No block is above this `else`.');
			this.writeLine(`} else ${prefix}{`);
		}
		this.#depth++;
		try {
			content();
		} finally {
			this.#depth--;
			this.writeLine('}');
		}
	}

	/** Writes lines as the `else` of the block that was written last. */
	writeElse(lines: CapturedLines): void {
		this.writeBranch(undefined, false, () => this.append(lines));
	}

	/** Inserts a slot at the current position. Lines can be added to it later. */
	slot(slot: Slot = new Slot()): Slot {
		this.#pieces.push({ depth: this.#depth, slot });
		return slot;
	}

	/** Returns what `content` writes, without adding it to the text. */
	capture(content: () => void): CapturedLines {
		const [outerLines, outerDepth] = [this.#pieces, this.#depth];
		const captured: Piece[] = [];
		this.#pieces = captured;
		this.#depth = 0;
		try {
			content();
		} finally {
			this.#pieces = outerLines;
			this.#depth = outerDepth;
		}
		return captured;
	}

	append(lines: CapturedLines): void {
		for (const piece of lines) this.#pieces.push({ ...piece, depth: piece.depth + this.#depth });
	}

	/** Returns an unused name with a prefix: `rewrite1`, `rewrite2` and so on. */
	unusedName(namePrefix: string): string {
		const count = (this.#nameCountsByKind.get(namePrefix) ?? 0) + 1;
		this.#nameCountsByKind.set(namePrefix, count);
		return `${namePrefix}${count}`;
	}

	/** Counts a directive as translated. A directive that several servers or locations inherit counts once. */
	countTranslated(directive: NginxDirective): void {
		if (this.#countedDirectives.has(directive)) return;
		this.#countedDirectives.add(directive);
		this.translatedCount++;
	}

	/** Reports whether a directive has been counted as translated or kept. */
	hasCounted(directive: NginxDirective): boolean {
		return this.#countedDirectives.has(directive);
	}

	/**
	 * Writes a directive and everything in its block as a comment, with the reason why it is not translated. Does nothing if the
	 * directive has already been counted.
	 */
	keepAsComment(directive: NginxDirective, reason: string): void {
		if (this.#countedDirectives.has(directive)) return;
		const text = directive.block ? `${directive.text} { … }` : `${directive.text};`;
		this.writeLine(commentLine(`nginx: ${text} -- ${reason}`));
		this.#recordKept(directive, reason);
		const keepInner = (directive: NginxDirective): void => {
			if (this.#countedDirectives.has(directive)) return;
			this.writeLine(commentLine(`  ${directive.text}${directive.block ? ' { … }' : ';'}`));
			this.#recordKept(directive, reason);
			for (const inner of directive.block ?? []) keepInner(inner);
		};
		for (const inner of directive.block ?? []) keepInner(inner);
	}

	/** Writes a comment about a directive that was counted as translated, and counts it as kept instead. */
	keepInstead(directive: NginxDirective, reason: string): void {
		if (this.#countedDirectives.delete(directive)) this.translatedCount--;
		this.keepAsComment(directive, reason);
	}

	/**
	 * Writes, as a comment, each directive that has not been counted, so that none is dropped silently. `reasonOf` returns why
	 * directives of a name are not translated; undefined if there is no particular reason.
	 */
	keepUnused(directives: readonly NginxDirective[], reasonOf: (name: string) => string | undefined): void {
		for (const directive of directives) {
			if (!this.#countedDirectives.has(directive)) {
				const sourcePlace = `line ${lineOf(directive)} of ${directive.span.source.name}`;
				this.keepAsComment(
					directive,
					`${sourcePlace}: ${reasonOf(directive.name) ?? 'nothing that is translated uses it'}`,
				);
			} else if (directive.block) this.keepUnused(directive.block, reasonOf);
		}
	}

	#recordKept(directive: NginxDirective, reason: string): void {
		this.#countedDirectives.add(directive);
		const { name: file } = directive.span.source;
		this.keptDirectives.push({ directive: directive.text, file, line: lineOf(directive), reason });
	}

	/** Adds a test of one request. Does nothing if a test of the same name exists. */
	addTest(name: string, lines: readonly string[]): void {
		if (this.#testNames.has(name)) return;
		this.#testNames.add(name);
		this.#testLines.push(`test ${word(name)} {`, ...lines.map(text => `\t${text}`), '}', '');
	}

	/** Returns the text of the Configfile, with its tests at the end. */
	renderText(): string {
		const lines = this.#pieces.flatMap(piece =>
			('slot' in piece ? piece.slot.lines : [piece.text]).map(text =>
				text === '' ? '' : '\t'.repeat(piece.depth) + text,
			),
		);
		return `${[...lines, ...(this.#testLines.length > 0 ? ['', ...this.#testLines] : [])]
			.join('\n')
			.replace(/\n{3,}/g, '\n\n')
			.trim()}\n`;
	}
}

/** Returns a comment of one line. Control characters are replaced, because a line break would end the comment. */
function commentLine(text: string): string {
	return `# ${text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')}`;
}

function lineOf({ span }: NginxDirective): number {
	return span.source.position(span.start).line;
}

/**
 * Returns a text as one word of a Configfile, with quotation marks if necessary. Braces in the text must belong to placeholders or
 * be escaped. Throws Untranslatable.
 */
export function word(text: string): string {
	const isPlain = /^[^\s"`#<]+$/.test(text) && !/^(?:[{}()]|and|or|not)$|[\\{]$/.test(text);
	return isPlain ? text : quoteText(text);
}

/** Returns a text as one quoted word, which cannot be mistaken for a matcher, a number or an operator. Throws Untranslatable. */
export function quoteText(text: string): string {
	if (!text.includes('`')) return /["\\]/.test(text) ? `\`${text}\`` : `"${text}"`;
	if (/\\(?:"|$)/.test(text))
		throw new Untranslatable('the text has a backquote and a backslash, which no quotation marks can hold');
	return `"${text.replaceAll('"', '\\"')}"`;
}

/**
 * The formatter: brings white space and line breaks of a configuration into canonical form, working on characters, not on the tree.
 * Its output equals that of Caddy's formatter, except where Caddy's formatter loses text, changes the meaning, or changes its own
 * output when run again:
 *
 * - a `{` at the end of the file is kept;
 * - white space after an escaped character (`\{ x`) is kept, and a `\` at the beginning of a line stays at the beginning of a line;
 * - quotes, heredocs and comments that begin after an escaped space (`a\ "b  c"`), after a closing quote (`"a""b  c"`) or after a `\`
 *   that begins a word (`\"b  c"`) keep their text, because they are quotes, heredocs and comments to the lexer;
 * - `{}` directly after a `{` or a continued line is kept;
 * - an empty line between a comment that ends with a `\` and a `}` is kept, because the lexer would otherwise join their lines;
 * - a quote that the formatter moves to the beginning of a line is treated as a quote, because the next run will treat it as one;
 * - a `}` in a word (`a}`, `{2}`) is text, unless the file lacks closing braces, and carriage returns inside words are removed;
 * - a `}` that closes a block also closes any `{` that is part of a word in the block (`{b`);
 * - quotes and heredocs that begin after a `#` inside a word, which is not a comment to the lexer, keep their text;
 * - an `import` and a `{` on a line of its own below it are never joined, even if an empty line is between or after them;
 * - a `<<E` that is an ordinary word only because white space or the end of the file follows it is escaped with a `\`, because
 *   formatting removes that white space;
 * - a `{$NAME:default}` that spans lines, or contains a `{`, a carriage return, a quote or a `#`, stays unchanged, and so does each
 *   one in quotes or after a `\`;
 * - in a Configfile, `} else` stays on its line, a `{` below a `let` line stays on its own, and the value of `name="a  b"` is quoted text.
 */
import { isWhiteSpace } from './characters.ts';
import { FormatMachine } from './format-machine.ts';

/**
 * Returns the text with canonical indentation (one tab per level), spacing, blank lines and placement of braces, ending in one
 * newline. Never fails and never changes the order; accepts unbalanced braces. Text in quotes, backticks, heredocs and comments is
 * not changed, and neither is a text in which an environment variable that spans lines contains a quote or follows a `#` or a `<<`.
 * Formatting a formatted text changes nothing.
 */
export function formatText(text: string): string {
	const trimmedText = trimWhiteSpace(text);
	if (hasMisleadingVariable(trimmedText)) return `${trimmedText}\n`;
	const machine = new FormatMachine(trimmedText, true);
	let formatted = machine.run();
	if (machine.closedInWord) {
		const strictMachine = new FormatMachine(trimmedText, false);
		const strictResult = strictMachine.run();
		if (!strictMachine.hasOpenBlock) formatted = strictResult;
	}
	return `${trimWhiteSpace(formatted)}\n`;
}

/** Matches the end of a line that contains only a `}`, which most often closes a block of the top level. */
const closingLine = /\n\}\r?\n/g;

/**
 * Formats one text again and again while it is edited. Formats only the sections of the text that have changed since the last time:
 * a section ends after a block of the top level, where nothing that came before has an effect on what follows.
 */
export class FormatMemory {
	/** The formatted sections of the last text, except the first. The keys are parts of that text and keep it in memory. */
	#formattedSections: ReadonlyMap<string, string> = new Map();

	/** Returns the same as {@link formatText}. */
	format(text: string): string {
		const trimmedText = trimWhiteSpace(text);
		if (hasMisleadingVariable(trimmedText)) return formatText(text);
		const previousSections = this.#formattedSections;
		const currentSections = new Map<string, string>();
		this.#formattedSections = currentSections;
		const results: string[] = [];
		let sectionStart = 0;
		let machine: FormatMachine | undefined;
		closingLine.lastIndex = 0;
		while (closingLine.test(trimmedText)) {
			const end = closingLine.lastIndex;
			const section = trimmedText.slice(sectionStart, end);
			let formattedSection = sectionStart === 0 ? undefined : previousSections.get(section);
			if (formattedSection !== undefined) machine = undefined;
			else {
				machine ??= new FormatMachine(trimmedText, true, sectionStart);
				machine.readUntil(end);
				if (machine.closedInWord) return formatText(text);
				// This `}` does not close a top-level block: it is quoted text, or closes a nested block that is not indented.
				if (!machine.isAfterBlock) continue;
				formattedSection = machine.takeOutput();
			}
			results.push(formattedSection);
			if (sectionStart > 0) currentSections.set(section, formattedSection);
			sectionStart = end;
		}
		machine ??= new FormatMachine(trimmedText, true, sectionStart);
		results.push(machine.run());
		return machine.closedInWord ? formatText(text) : `${trimWhiteSpace(results.join(''))}\n`;
	}
}

/**
 * Reports whether an environment variable, `{$…}`, spans lines and contains a quote, or follows a `#` or a `<<` on its line. Variables
 * are replaced before words are recognized, so the quote neither opens nor closes anything, the comment may go on after the variable,
 * and the lines after it may not mean what they seem to mean.
 */
function hasMisleadingVariable(text: string): boolean {
	for (let start = text.indexOf('{$'); start !== -1; ) {
		const end = text.indexOf('}', start);
		if (end === -1) return false;
		const variableText = text.slice(start, end);
		if (variableText.includes('\n')) {
			const lineStart = text.lastIndexOf('\n', start) + 1;
			if (/["`]/.test(variableText) || /#|<</.test(text.slice(lineStart, start))) return true;
		}
		start = text.indexOf('{$', end);
	}
	return false;
}

function trimWhiteSpace(text: string): string {
	let start = 0;
	let end = text.length;
	while (start < end && isWhiteSpace(text.charCodeAt(start))) start++;
	while (end > start && isWhiteSpace(text.charCodeAt(end - 1))) end--;
	return text.slice(start, end);
}

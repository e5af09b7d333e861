/** Manual pages in roff's `man` macros: renders text, Markdown and lists as lines that groff and mandoc accept without warnings. */

/** A manual page before rendering. */
export interface ManualPage {
	/** The name of the page, such as `svc-run` for the file `svc-run.1`. */
	readonly name: string;
	readonly section: 1 | 5 | 7;
	/** The summary of the page in one sentence, without its period. */
	readonly summary: string;
	/** The page after its section "NAME", as lines of roff. */
	readonly body: readonly string[];
}

/** Renders a page as the contents of its file, with `version` in the footer. The output is reproducible byte for byte. */
export function renderPage(page: ManualPage, version: string): string {
	return [
		`.TH ${quoteArgument(page.name.toUpperCase())} ${page.section} "" ${quoteArgument(`svc ${version}`)}`,
		...sectionHeading('Name'),
		`${escapeLiteral(page.name)} \\- ${escapeProse(page.summary)}`,
		...page.body,
		'',
	].join('\n');
}

/** Returns a section heading, shown in capitals. */
export function sectionHeading(title: string): string[] {
	return [`.SH ${quoteArgument(title.toUpperCase())}`];
}

export function subsectionHeading(title: string): string[] {
	return [`.SS ${quoteArgument(title)}`];
}

/** Returns a paragraph of text with `boldCode`, **strong** and *emphasized* words. */
export function paragraph(text: string): string[] {
	return ['.PP', escapeLine(renderInline(text))];
}

/** Returns a list entry: a term and its meaning. Both may contain the markup that {@link paragraph} renders. */
export function listEntry(term: string, meaning: string): string[] {
	return ['.TP', escapeLine(renderInline(term)), escapeLine(renderInline(meaning))];
}

/** Returns lines of code, indented. */
export function codeBlock(lines: readonly string[]): string[] {
	return [
		'.PP',
		'.RS 4',
		'.EX',
		...lines.map(codeLine => escapeLine(escapeLiteral(codeLine.replaceAll('\t', '    ')))),
		'.EE',
		'.RE',
	];
}

/** Returns code to be typed: bold, every character literal, without hyphenation. */
export function boldCode(text: string): string {
	return `\\fB${text
		.split(' ')
		.map(word => `\\%${escapeLiteral(word)}`)
		.join(' ')}\\fR`;
}

/** Returns a paragraph that consists of code. */
export function codeParagraph(text: string): string[] {
	return ['.PP', boldCode(text)];
}

/**
 * Renders the Markdown of documentation: paragraphs, fenced code, lists with `- ` and tables. In a table, each row becomes a list
 * entry: the first cell is its term, and the other cells its meaning.
 */
export function renderMarkdown(text: string): string[] {
	const outputLines: string[] = [];
	const lines = text.trim().split('\n');
	for (let lineIndex = 0; lineIndex < lines.length; ) {
		const firstLine = lines[lineIndex]!;
		if (firstLine.trim() === '') {
			lineIndex++;
		} else if (firstLine.startsWith('```')) {
			const fenceEnd = lines.indexOf('```', lineIndex + 1);
			const blockEnd = fenceEnd === -1 ? lines.length : fenceEnd;
			outputLines.push(...codeBlock(lines.slice(lineIndex + 1, blockEnd)));
			lineIndex = blockEnd + 1;
		} else if (firstLine.startsWith('|')) {
			const blockEnd = endOfBlock(lines, lineIndex, codeLine => codeLine.startsWith('|'));
			// The header row and the line below it are omitted, because terms and descriptions need no titles.
			for (const row of lines.slice(lineIndex + 2, blockEnd)) {
				const [term = '', ...otherCells] = splitRow(row);
				outputLines.push(...listEntry(term, otherCells.filter(cell => cell !== '').join('; ')));
			}
			lineIndex = blockEnd;
		} else if (firstLine.startsWith('- ')) {
			const blockEnd = endOfBlock(lines, lineIndex, codeLine => codeLine.startsWith('  '));
			const item = [firstLine.slice(2), ...lines.slice(lineIndex + 1, blockEnd).map(codeLine => codeLine.trim())].join(
				' ',
			);
			outputLines.push('.IP \\(bu 3', escapeLine(renderInline(item)));
			lineIndex = blockEnd;
		} else {
			const blockEnd = endOfBlock(
				lines,
				lineIndex,
				codeLine => codeLine.trim() !== '' && !/^(```|\||- )/.test(codeLine),
			);
			outputLines.push(...paragraph(lines.slice(lineIndex, blockEnd).join(' ')));
			lineIndex = blockEnd;
		}
	}
	return outputLines;
}

/** Returns the index of the first line after the block that begins at `at`. */
function endOfBlock(lines: readonly string[], at: number, isContinuation: (line: string) => boolean): number {
	let blockEnd = at + 1;
	while (blockEnd < lines.length && isContinuation(lines[blockEnd]!)) blockEnd++;
	return blockEnd;
}

/** Splits a table row into cells; `\|` is a literal bar. */
function splitRow(row: string): string[] {
	return row
		.split(/(?<!\\)\|/)
		.slice(1, -1)
		.map(cell => cell.trim().replaceAll('\\|', '|'));
}

function renderInline(text: string): string {
	let output = '';
	let proseStart = 0;
	for (const match of text.matchAll(/(`+)(.+?)\1(?!`)|\*\*(\S(?:.*?\S)?)\*\*|\*([\w](?:[^*]*\w)?)\*/g)) {
		output += escapeProse(text.slice(proseStart, match.index));
		proseStart = match.index + match[0].length;
		// In the code span `` ` ``, the space on either side of the backquote is not part of the code.
		if (match[2] !== undefined) output += boldCode(match[2].replace(/^ (.*) $/, '$1'));
		else if (match[3] !== undefined) output += `\\fB${escapeProse(match[3])}\\fR`;
		else output += `\\fI${escapeProse(match[4]!)}\\fR`;
	}
	return output + escapeProse(text.slice(proseStart));
}

const ROFF_ESCAPES: { readonly [character: string]: string } = {
	'\\': '\\e',
	// roff may set a hyphen as a dash and curl quotes; code must be copied as it is.
	'-': '\\-',
	"'": '\\(aq',
	'`': '\\(ga',
	'^': '\\(ha',
	'~': '\\(ti',
	'"': '\\(dq',
	'…': '...',
	// Part of a bar chart. groff cannot show this character on an ASCII terminal.
	'█': '#',
};

/** Escapes text in which every character is literal. */
function escapeLiteral(text: string): string {
	return escapeNonAscii(text.replace(/[\\\-'`^~"…█]/g, character => ROFF_ESCAPES[character]!));
}

/** Escapes prose, in which hyphens and apostrophes may be typeset. */
function escapeProse(text: string): string {
	// An ASCII terminal cannot show a section sign.
	const prose = text.replaceAll('§', 'section ');
	return escapeNonAscii(prose.replace(/[\\`^~"…]|(?<=^|[\s(])-/g, character => ROFF_ESCAPES[character]!));
}

/** Replaces each non-ASCII character with an escape that contains its number, because the page may be formatted in any locale. */
function escapeNonAscii(text: string): string {
	return text.replace(/[^\x20-\x7e]/gu, character => {
		const codePoint = character.codePointAt(0)!;
		return codePoint < 0x20 || codePoint === 0x7f
			? ' '
			: `\\[u${codePoint.toString(16).toUpperCase().padStart(4, '0')}]`;
	});
}

/** Escapes a line that would otherwise begin like a roff request. */
function escapeLine(text: string): string {
	return /^[.']/.test(text) ? `\\&${text}` : text;
}

/** Quotes an argument of a roff macro. */
function quoteArgument(text: string): string {
	return `"${escapeLiteral(text)}"`;
}

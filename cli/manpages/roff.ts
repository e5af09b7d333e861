/** Manual pages in roff's `man` macros: renders text, Markdown and lists as lines that groff and mandoc accept without warnings. */

/** A page to render. */
export interface ManualPage {
	/** `svc-run`: the file is named `svc-run.1`. */
	readonly name: string;
	readonly section: 1 | 5 | 7;
	/** One sentence, without its period. */
	readonly summary: string;
	/** Everything after the section NAME, as lines of roff. */
	readonly body: readonly string[];
}

/** Renders a page as its file holds it, with `version` in the footer. The output is reproducible byte for byte. */
export function renderPage(page: ManualPage, version: string): string {
	return [
		`.TH ${argument(page.name.toUpperCase())} ${page.section} "" ${argument(`svc ${version}`)}`,
		...section('Name'),
		`${literal(page.name)} \\- ${prose(page.summary)}`,
		...page.body,
		'',
	].join('\n');
}

/** Returns a section heading, shown in capitals. */
export function section(title: string): string[] {
	return [`.SH ${argument(title.toUpperCase())}`];
}

/** Returns the heading of a subsection. */
export function subsection(title: string): string[] {
	return [`.SS ${argument(title)}`];
}

/** Returns a paragraph of text with `boldCode`, **strong** and *emphasized* words. */
export function paragraph(text: string): string[] {
	return ['.PP', line(inline(text))];
}

/** Returns a list entry: a term and its meaning, both text as in {@link paragraph}. */
export function listEntry(term: string, meaning: string): string[] {
	return ['.TP', line(inline(term)), line(inline(meaning))];
}

/** Returns lines of code, indented. */
export function example(lines: readonly string[]): string[] {
	return ['.PP', '.RS 4', '.EX', ...lines.map(one => line(literal(one.replaceAll('\t', '    ')))), '.EE', '.RE'];
}

/** Returns code to be typed: bold, every character literal, without hyphenation. */
export function boldCode(text: string): string {
	return `\\fB${text
		.split(' ')
		.map(word => `\\%${literal(word)}`)
		.join(' ')}\\fR`;
}

/** Returns a paragraph that consists of code. */
export function codeParagraph(text: string): string[] {
	return ['.PP', boldCode(text)];
}

/**
 * Renders the Markdown of documentation: paragraphs, fenced code, lists with `- ` and tables. The first column of a table becomes
 * terms, and the other columns their descriptions.
 */
export function renderMarkdown(text: string): string[] {
	const out: string[] = [];
	const lines = text.trim().split('\n');
	for (let at = 0; at < lines.length; ) {
		const first = lines[at]!;
		if (first.trim() === '') {
			at++;
		} else if (first.startsWith('```')) {
			const end = lines.indexOf('```', at + 1);
			const stop = end === -1 ? lines.length : end;
			out.push(...example(lines.slice(at + 1, stop)));
			at = stop + 1;
		} else if (first.startsWith('|')) {
			const stop = endOf(lines, at, one => one.startsWith('|'));
			// The header row and the line below it are omitted, because terms and descriptions need no titles.
			for (const row of lines.slice(at + 2, stop)) {
				const [term = '', ...rest] = cells(row);
				out.push(...listEntry(term, rest.filter(cell => cell !== '').join('; ')));
			}
			at = stop;
		} else if (first.startsWith('- ')) {
			const stop = endOf(lines, at, one => one.startsWith('  '));
			const item = [first.slice(2), ...lines.slice(at + 1, stop).map(one => one.trim())].join(' ');
			out.push('.IP \\(bu 3', line(inline(item)));
			at = stop;
		} else {
			const stop = endOf(lines, at, one => one.trim() !== '' && !/^(```|\||- )/.test(one));
			out.push(...paragraph(lines.slice(at, stop).join(' ')));
			at = stop;
		}
	}
	return out;
}

/** Returns the index of the first line that no longer belongs to the block beginning at `at`. */
function endOf(lines: readonly string[], at: number, goesOn: (line: string) => boolean): number {
	let stop = at + 1;
	while (stop < lines.length && goesOn(lines[stop]!)) stop++;
	return stop;
}

/** Splits a table row into cells; `\|` is a literal bar. */
function cells(row: string): string[] {
	return row
		.split(/(?<!\\)\|/)
		.slice(1, -1)
		.map(cell => cell.trim().replaceAll('\\|', '|'));
}

function inline(text: string): string {
	let out = '';
	let from = 0;
	for (const match of text.matchAll(/(`+)(.+?)\1(?!`)|\*\*(\S(?:.*?\S)?)\*\*|\*([\w](?:[^*]*\w)?)\*/g)) {
		out += prose(text.slice(from, match.index));
		from = match.index + match[0].length;
		// `` ` `` is a code span with a backquote: the space on either side is not part of it.
		if (match[2] !== undefined) out += boldCode(match[2].replace(/^ (.*) $/, '$1'));
		else if (match[3] !== undefined) out += `\\fB${prose(match[3])}\\fR`;
		else out += `\\fI${prose(match[4]!)}\\fR`;
	}
	return out + prose(text.slice(from));
}

const SPECIAL: { readonly [character: string]: string } = {
	'\\': '\\e',
	// roff may set a hyphen as a dash and curl quotes; code must be copied as it is.
	'-': '\\-',
	"'": '\\(aq',
	'`': '\\(ga',
	'^': '\\(ha',
	'~': '\\(ti',
	'"': '\\(dq',
	'…': '...',
};

/** Escapes text in which every character is literal. */
function literal(text: string): string {
	return ascii(text.replace(/[\\\-'`^~"…]/g, character => SPECIAL[character]!));
}

/** Escapes prose, in which hyphens and apostrophes may be typeset. */
function prose(text: string): string {
	// An ASCII terminal cannot show a section sign.
	const words = text.replaceAll('§', 'section ');
	return ascii(words.replace(/[\\`^~"…]|(?<=^|[\s(])-/g, character => SPECIAL[character]!));
}

/** Escapes characters beyond ASCII by number, regardless of the locale in which the page is formatted. */
function ascii(text: string): string {
	return text.replace(/[^\x20-\x7e]/gu, character => {
		const number = character.codePointAt(0)!;
		return number < 0x20 || number === 0x7f ? ' ' : `\\[u${number.toString(16).toUpperCase().padStart(4, '0')}]`;
	});
}

/** Escapes a line that would otherwise begin like a roff request. */
function line(text: string): string {
	return /^[.']/.test(text) ? `\\&${text}` : text;
}

/** Quotes a macro argument. */
function argument(text: string): string {
	return `"${literal(text)}"`;
}

/** Manual pages in roff's `man` macros: text, Markdown and lists to lines that groff and mandoc read without a warning. */

/** What a manual page is. */
export interface ManualPage {
	/** `svc-run`: the file is named `svc-run.1`. */
	readonly name: string;
	readonly section: 1 | 5;
	/** One sentence, without its full stop. */
	readonly summary: string;
	/** Everything behind the section NAME, as lines of roff. */
	readonly body: readonly string[];
}

/** The page as a file holds it. `version` stands at its foot. The pages of two runs of one version are equal byte for byte. */
export function renderPage(page: ManualPage, version: string): string {
	return [
		`.TH ${argument(page.name.toUpperCase())} ${page.section} "" ${argument(`svc ${version}`)}`,
		...section('Name'),
		`${literal(page.name)} \\- ${prose(page.summary)}`,
		...page.body,
		'',
	].join('\n');
}

/** The heading of a section, shown in capitals. */
export function section(title: string): string[] {
	return [`.SH ${argument(title.toUpperCase())}`];
}

/** A heading within a section. */
export function subsection(title: string): string[] {
	return [`.SS ${argument(title)}`];
}

/** A paragraph of text with `code`, **strong** and *emphasized* words. */
export function paragraph(text: string): string[] {
	return ['.PP', line(inline(text))];
}

/** An entry of a list: a term, and what it means. Both are text as in {@link paragraph}. */
export function entry(term: string, meaning: string): string[] {
	return ['.TP', line(inline(term)), line(inline(meaning))];
}

/** Lines of code, indented. */
export function example(lines: readonly string[]): string[] {
	return ['.PP', '.RS 4', '.EX', ...lines.map(one => line(literal(one.replaceAll('\t', '    ')))), '.EE', '.RE'];
}

/** Code as it is typed: bold, every character meant literally, and no word divided at the end of a line. */
export function code(text: string): string {
	return `\\fB${text
		.split(' ')
		.map(word => `\\%${literal(word)}`)
		.join(' ')}\\fR`;
}

/** A paragraph that is code as a whole. */
export function codeParagraph(text: string): string[] {
	return ['.PP', code(text)];
}

/**
 * The Markdown of documentation: paragraphs, fenced code, lists with `- ` and tables. Of a table the first column
 * becomes the term and the rest its meaning.
 */
export function markdown(text: string): string[] {
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
			// The head and the line below it say what the columns are; terms and meanings show it.
			for (const row of lines.slice(at + 2, stop)) {
				const [term = '', ...rest] = cells(row);
				out.push(...entry(term, rest.filter(cell => cell !== '').join('; ')));
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

/** The first line behind `at` that does not go on with what begins there. */
function endOf(lines: readonly string[], at: number, goesOn: (line: string) => boolean): number {
	let stop = at + 1;
	while (stop < lines.length && goesOn(lines[stop]!)) stop++;
	return stop;
}

/** Cells of a table's row; `\|` is a bar within one. */
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
		// `` ` `` holds a backquote: one blank on either side is no part of it.
		if (match[2] !== undefined) out += code(match[2].replace(/^ (.*) $/, '$1'));
		else if (match[3] !== undefined) out += `\\fB${prose(match[3])}\\fR`;
		else out += `\\fI${prose(match[4]!)}\\fR`;
	}
	return out + prose(text.slice(from));
}

const SPECIAL: { readonly [character: string]: string } = {
	'\\': '\\e',
	// In text a hyphen may be set as a dash and quotes curled; what is typed must be copied as it is.
	'-': '\\-',
	"'": '\\(aq',
	'`': '\\(ga',
	'^': '\\(ha',
	'~': '\\(ti',
	'"': '\\(dq',
	'…': '...',
};

/** Text in which every character is meant as it stands there. */
function literal(text: string): string {
	return ascii(text.replace(/[\\\-'`^~"…]/g, character => SPECIAL[character]!));
}

/** Text of sentences: hyphens and apostrophes are set as such. */
function prose(text: string): string {
	// A terminal of ASCII has no paragraph sign.
	const words = text.replaceAll('§', 'section ');
	return ascii(words.replace(/[\\`^~"…]|(?<=^|[\s(])-/g, character => SPECIAL[character]!));
}

/** Characters beyond ASCII by their numbers, whatever the locale of who formats the page. */
function ascii(text: string): string {
	return text.replace(/[^\x20-\x7e]/gu, character => {
		const number = character.codePointAt(0)!;
		return number < 0x20 || number === 0x7f ? ' ' : `\\[u${number.toString(16).toUpperCase().padStart(4, '0')}]`;
	});
}

/** A line of text; one that begins as a request does is kept from being one. */
function line(text: string): string {
	return /^[.']/.test(text) ? `\\&${text}` : text;
}

/** An argument of a macro. */
function argument(text: string): string {
	return `"${literal(text)}"`;
}

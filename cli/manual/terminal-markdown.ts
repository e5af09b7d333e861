/** Renders the Markdown of guides for a terminal: headings, paragraphs, fenced code, lists with `- ` and tables. */
import { wrapText } from '../command/help.ts';

export interface TerminalOptions {
	/** Maximum width of text in columns. Code is never wrapped. */
	readonly width: number;
	/** False for plain text without escape sequences. */
	readonly styled: boolean;
}

/** Escape sequences: the start and the end of each style. */
const STYLES = { heading: ['\x1b[1m', '\x1b[22m'], code: ['\x1b[36m', '\x1b[39m'] } as const;

/** Two characters of a private area, which stand for the backquotes around code until its line has been wrapped. */
const CODE_BEGIN = '\ue000';
const CODE_END = '\ue001';
/** A third one: a blank inside code, where a line must not be wrapped. */
const CODE_BLANK = '\ue002';

/** Returns the text, which ends with a line break. */
export function renderForTerminal(markdown: string, { width, styled }: TerminalOptions): string {
	const style = (kind: keyof typeof STYLES, text: string): string =>
		styled ? `${STYLES[kind][0]}${text}${STYLES[kind][1]}` : text;
	const finished = (line: string): string =>
		line
			.replaceAll(CODE_BLANK, ' ')
			.replaceAll(CODE_BEGIN, styled ? STYLES.code[0] : '`')
			.replaceAll(CODE_END, styled ? STYLES.code[1] : '`');
	const out: string[] = [];
	const lines = markdown.trim().split('\n');
	for (let at = 0; at < lines.length; ) {
		const first = lines[at]!;
		let stop = at + 1;
		if (first.trim() === '') {
			out.push('');
		} else if (first.startsWith('```')) {
			while (stop < lines.length && lines[stop] !== '```') stop++;
			const file = /^```\S* (\S+)/.exec(first)?.[1];
			if (file !== undefined) out.push(`    ${style('heading', `${file}:`)}`);
			for (const code of lines.slice(at + 1, stop)) {
				out.push(code === '' ? '' : `    ${style('code', code.replaceAll('\t', '    '))}`);
			}
			stop++;
		} else if (first.startsWith('#')) {
			out.push(style('heading', inline(first.replace(/^#+ /, ''), false)));
		} else if (first.startsWith('|')) {
			while (stop < lines.length && lines[stop]!.startsWith('|')) stop++;
			out.push(...table(lines.slice(at, stop), width).map(finished));
		} else if (/^(?:- |\d+\. )/.test(first)) {
			while (stop < lines.length && lines[stop]!.startsWith('  ')) stop++;
			const [, bullet, text] = /^(- |\d+\. )(.*)$/.exec(first)!;
			const whole = [text!, ...lines.slice(at + 1, stop).map(line => line.trim())].join(' ');
			const [begin = '', ...rest] = wrapText(inline(whole), ' '.repeat(bullet!.length), width);
			out.push(finished(bullet + begin.trimStart()), ...rest.map(finished));
		} else {
			while (stop < lines.length && !/^(?:```|#|\||- |\d+\. |$)/.test(lines[stop]!)) stop++;
			out.push(...wrapText(inline(lines.slice(at, stop).join(' ')), '', width).map(finished));
		}
		at = stop;
	}
	return `${out.join('\n')}\n`;
}

/** Replaces Markdown inside a line: code keeps its blanks together, emphasis loses its asterisks, links show their address. */
function inline(text: string, marked: boolean = true): string {
	return text
		.split(/(`[^`]+`)/)
		.map(part => {
			if (!part.startsWith('`')) {
				return part
					.replace(/\*\*(.+?)\*\*/g, '$1')
					.replace(/\*(\w[^*]*)\*/g, '$1')
					.replace(/\[([^\]]+)\]\((https?:[^)]+)\)/g, '$1 ($2)')
					.replace(/\[([^\]]+)\]\([^)]+\)/g, '$1');
			}
			const code = part.slice(1, -1);
			return marked ? CODE_BEGIN + code.replaceAll(' ', CODE_BLANK) + CODE_END : code;
		})
		.join('');
}

/** Lays out a table in columns, separated by two blanks. Its last column is wrapped, and so are others if they are wide. */
function table(rows: readonly string[], width: number): string[] {
	// The second line separates the header from the rest.
	const cells = rows
		.filter((_, index) => index !== 1)
		.map(row =>
			row
				.split(/(?<!\\)\|/)
				.slice(1, -1)
				.map(cell => inline(cell.trim().replaceAll('\\|', '|'))),
		);
	const count = Math.max(...cells.map(row => row.length));
	const widest = Math.floor((width - 2 * (count - 1)) / count);
	const widths = Array.from({ length: count }, (_, column) => Math.max(...cells.map(row => row[column]?.length ?? 0)));
	// What narrow columns do not need is shared by the wide ones.
	const wide = widths.filter(one => one > widest).length;
	const spare = widths.reduce((sum, one) => sum + Math.max(0, widest - one), 0);
	const limits = widths.map(one => (one > widest ? widest + Math.floor(spare / wide) : one));
	return cells.flatMap((row, index) => {
		const wrapped = limits.map((limit, column) => wrapText(row[column] ?? '', '', limit));
		const height = Math.max(...wrapped.map(lines => lines.length));
		const lines = Array.from({ length: height }, (_, line) =>
			wrapped
				.map((texts, column) => (texts[line] ?? '').padEnd(limits[column]!))
				.join('  ')
				.trimEnd(),
		);
		return index === 0 ? [...lines, limits.map(limit => '-'.repeat(limit)).join('  ')] : lines;
	});
}

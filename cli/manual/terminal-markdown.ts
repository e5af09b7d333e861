/** Renders the Markdown of guides for a terminal: headings, paragraphs, fenced code, lists with `- ` and tables. */
import { wrapText } from '../command/help.ts';

export interface TerminalOptions {
	/** Maximum width of text in columns. Code is never wrapped. */
	readonly width: number;
	/** True to use escape sequences; false for plain text. */
	readonly usesStyles: boolean;
}

/** The escape sequences that start and end each style. */
const STYLES = { heading: ['\x1b[1m', '\x1b[22m'], code: ['\x1b[36m', '\x1b[39m'] } as const;

/** Two private-use characters, which stand for the backquotes around code until its line has been wrapped. */
const CODE_BEGIN = '\ue000';
const CODE_END = '\ue001';
/** A private-use character that stands for a blank inside code, at which a line must not be wrapped. */
const CODE_BLANK = '\ue002';

/** Returns the rendered text, which ends with a line break. */
export function renderForTerminal(markdown: string, { width, usesStyles }: TerminalOptions): string {
	const applyStyle = (kind: keyof typeof STYLES, text: string): string =>
		usesStyles ? `${STYLES[kind][0]}${text}${STYLES[kind][1]}` : text;
	const restoreCode = (line: string): string =>
		line
			.replaceAll(CODE_BLANK, ' ')
			.replaceAll(CODE_BEGIN, usesStyles ? STYLES.code[0] : '`')
			.replaceAll(CODE_END, usesStyles ? STYLES.code[1] : '`');
	const outputLines: string[] = [];
	const lines = markdown.trim().split('\n');
	for (let lineIndex = 0; lineIndex < lines.length; ) {
		const firstLine = lines[lineIndex]!;
		let blockEnd = lineIndex + 1;
		if (firstLine.trim() === '') {
			outputLines.push('');
		} else if (firstLine.startsWith('```')) {
			while (blockEnd < lines.length && lines[blockEnd] !== '```') blockEnd++;
			const fileName = /^```\S* (\S+)/.exec(firstLine)?.[1];
			if (fileName !== undefined) outputLines.push(`    ${applyStyle('heading', `${fileName}:`)}`);
			for (const code of lines.slice(lineIndex + 1, blockEnd)) {
				outputLines.push(code === '' ? '' : `    ${applyStyle('code', code.replaceAll('\t', '    '))}`);
			}
			blockEnd++;
		} else if (firstLine.startsWith('#')) {
			outputLines.push(applyStyle('heading', renderInline(firstLine.replace(/^#+ /, ''), false)));
		} else if (firstLine.startsWith('|')) {
			while (blockEnd < lines.length && lines[blockEnd]!.startsWith('|')) blockEnd++;
			outputLines.push(...renderTable(lines.slice(lineIndex, blockEnd), width).map(restoreCode));
		} else if (/^(?:- |\d+\. )/.test(firstLine)) {
			while (blockEnd < lines.length && lines[blockEnd]!.startsWith('  ')) blockEnd++;
			const [, bullet, text] = /^(- |\d+\. )(.*)$/.exec(firstLine)!;
			const itemText = [text!, ...lines.slice(lineIndex + 1, blockEnd).map(line => line.trim())].join(' ');
			const [firstItemLine = '', ...continuationLines] = wrapText(
				renderInline(itemText),
				' '.repeat(bullet!.length),
				width,
			);
			outputLines.push(restoreCode(bullet + firstItemLine.trimStart()), ...continuationLines.map(restoreCode));
		} else {
			while (blockEnd < lines.length && !/^(?:```|#|\||- |\d+\. |$)/.test(lines[blockEnd]!)) blockEnd++;
			outputLines.push(
				...wrapText(renderInline(lines.slice(lineIndex, blockEnd).join(' ')), '', width).map(restoreCode),
			);
		}
		lineIndex = blockEnd;
	}
	return `${outputLines.join('\n')}\n`;
}

/**
 * Renders the Markdown inside a line: marks code and keeps its blanks together, removes the asterisks of emphasis, and shows the
 * addresses of links. `marksCode` is false in headings.
 */
function renderInline(text: string, marksCode: boolean = true): string {
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
			return marksCode ? CODE_BEGIN + code.replaceAll(' ', CODE_BLANK) + CODE_END : code;
		})
		.join('');
}

/** Lays out a table in columns, separated by two blanks. Columns that are too wide are wrapped. */
function renderTable(rows: readonly string[], width: number): string[] {
	// The second line of a table only separates the header from the other rows.
	const rowCells = rows
		.filter((_, index) => index !== 1)
		.map(row =>
			row
				.split(/(?<!\\)\|/)
				.slice(1, -1)
				.map(cell => renderInline(cell.trim().replaceAll('\\|', '|'))),
		);
	const columnCount = Math.max(...rowCells.map(row => row.length));
	const evenWidth = Math.floor((width - 2 * (columnCount - 1)) / columnCount);
	const widths = Array.from({ length: columnCount }, (_, column) =>
		Math.max(...rowCells.map(row => row[column]?.length ?? 0)),
	);
	// Columns narrower than an even share leave width unused, which the wider columns share.
	const wideCount = widths.filter(columnWidth => columnWidth > evenWidth).length;
	const spareWidth = widths.reduce((sum, columnWidth) => sum + Math.max(0, evenWidth - columnWidth), 0);
	const columnWidths = widths.map(columnWidth =>
		columnWidth > evenWidth ? evenWidth + Math.floor(spareWidth / wideCount) : columnWidth,
	);
	return rowCells.flatMap((row, index) => {
		const wrappedCells = columnWidths.map((columnWidth, column) => wrapText(row[column] ?? '', '', columnWidth));
		const height = Math.max(...wrappedCells.map(lines => lines.length));
		const lines = Array.from({ length: height }, (_, line) =>
			wrappedCells
				.map((cellLines, column) => (cellLines[line] ?? '').padEnd(columnWidths[column]!))
				.join('  ')
				.trimEnd(),
		);
		return index === 0 ? [...lines, columnWidths.map(columnWidth => '-'.repeat(columnWidth)).join('  ')] : lines;
	});
}

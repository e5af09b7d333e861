/** Tables of cases: a test with a block `cases` is run once for each of its rows. */
import { didYouMean } from '../diagnostics/suggest.ts';
import { formatNameList, spanOfWords } from '../lower/context/sentences.ts';
import type { SourceSpan } from '../source/source.ts';
import type { Line, NamedBlock, Word } from '../syntax/ast.ts';
import type { TestProblem } from './test-problem.ts';

/** Maximum number of rows of one table. */
const MAX_ROWS = 1000;
/** Maximum characters of a row that are shown in the name of its test. */
const MAX_NAME_CHARS = 80;
const CASE_PLACEHOLDER = /\{case\.([^{}]*)\}/g;

/** A test for one row: the block with `{case.NAME}` replaced by the row's values. */
export interface TestRow {
	readonly block: NamedBlock;
	/** The span of the row; for a test without a table, the span of its name. */
	readonly span: SourceSpan;
}

/** Returns the tests of a block: one for each row of its table, or the block itself if it has no table. */
export function testRows(block: NamedBlock, reportProblem: TestProblem): TestRow[] {
	const { name, lines } = block;
	const tables = lines.filter(({ words: [word] }) => word?.text === 'cases' && word.quote === 'none');
	const [table, secondTable] = tables;
	const stepLines = lines.filter(line => !tables.includes(line));
	if (!table) {
		checkColumns(stepLines, [], reportProblem);
		return [{ block, span: name.span }];
	}
	if (secondTable) {
		reportProblem('test/given-twice', secondTable.words[0]!.span, '`cases` is given more than once for one test.', {
			related: [{ span: table.words[0]!.span, message: 'first given here' }],
		});
	}
	const [headerLine, ...rowLines] = table.block?.lines ?? [];
	if (!headerLine || rowLines.length === 0 || table.words.length > 1) {
		reportProblem(
			'test/bad-table',
			table.words[0]!.span,
			'`cases` needs a line of column names and at least one row.',
			{
				hint: 'Write `cases {`, then a line such as `path status`, and a line such as `/ 200` for each case.',
			},
		);
		return [];
	}
	const columns = readColumns(headerLine, reportProblem);
	if (columns === undefined) return [];
	const usedColumns = checkColumns(stepLines, columns, reportProblem);
	for (const { text, span } of headerLine.words) {
		if (usedColumns.has(text)) continue;
		const message = `The column \`${text}\` is not used.`;
		reportProblem('test/unused-column', span, message, {
			severity: 'warning',
			hint: `Write \`{case.${text}}\` in the test.`,
		});
	}
	if (rowLines.length > MAX_ROWS) {
		const message = `A table has at most ${MAX_ROWS} rows.`;
		reportProblem('test/bad-table', rowLines[MAX_ROWS]!.span, message);
		return [];
	}
	return rowLines.flatMap(row => {
		if (!checkRow(row, columns, reportProblem)) return [];
		const valueByColumn = new Map(row.words.map(({ text }, at) => [columns[at]!, text]));
		const rowText = columns.map(column => `${column}=${valueByColumn.get(column)}`).join(' ');
		const testName = `${name.text} (${rowText.length > MAX_NAME_CHARS ? `${rowText.slice(0, MAX_NAME_CHARS - 1)}…` : rowText})`;
		const filledLines = stepLines.map(line => fillLine(line, valueByColumn));
		return [
			{ block: { ...block, name: { ...name, text: testName }, lines: filledLines }, span: spanOfWords(row.words) },
		];
	});
}

function readColumns(headerLine: Line, reportProblem: TestProblem): string[] | undefined {
	const columns: string[] = [];
	for (const { text, span } of headerLine.words) {
		const isRepeated = columns.includes(text);
		if (!isRepeated && /^[A-Za-z_]\w*$/.test(text)) {
			columns.push(text);
			continue;
		}
		const message = isRepeated ? `There are two columns \`${text}\`.` : `\`${text}\` is not a name of a column.`;
		reportProblem('test/bad-table', span, message, {
			hint: 'The first line of a table has names of letters, digits and `_`.',
		});
		return undefined;
	}
	return columns;
}

function checkRow(row: Line, columns: readonly string[], reportProblem: TestProblem): boolean {
	if (row.block || row.alternative) {
		reportProblem('directive/unexpected-block', row.span, 'A row of a table has no block.');
		return false;
	}
	if (row.words.length === columns.length) return true;
	const message = `This row has ${row.words.length} values for ${columns.length} columns.`;
	reportProblem('test/bad-table', spanOfWords(row.words), message, {
		hint: 'Write `""` for an empty value, and quote values with spaces.',
	});
	return false;
}

/** Reports `{case.NAME}` placeholders for which the table has no column. Returns the columns that are used. */
function checkColumns(lines: readonly Line[], columns: readonly string[], reportProblem: TestProblem): Set<string> {
	const usedColumns = new Set<string>();
	for (const word of lines.flatMap(allWords)) {
		for (const [placeholder, column] of word.text.matchAll(CASE_PLACEHOLDER)) {
			usedColumns.add(column!);
			if (columns.includes(column!)) continue;
			reportProblem('test/unknown-column', word.span, `There is no column for \`${placeholder}\`.`, {
				...didYouMean({ ...word, text: column! }, columns),
				hint:
					columns.length === 0
						? 'The test has no table; write one with `cases { … }`.'
						: `The columns are ${formatNameList(columns)}.`,
			});
		}
	}
	return usedColumns;
}

function allWords({ words, block, alternative }: Line): Word[] {
	const innerLines = [...(block?.lines ?? []), ...(alternative ? [alternative] : [])];
	return [...words, ...innerLines.flatMap(allWords)];
}

function fillLine(line: Line, valueByColumn: ReadonlyMap<string, string>): Line {
	const { words, block, alternative } = line;
	return {
		...line,
		words: words.map(word => ({
			...word,
			text: word.text.replace(
				CASE_PLACEHOLDER,
				(placeholder, column: string) => valueByColumn.get(column) ?? placeholder,
			),
		})),
		block: block && { ...block, lines: block.lines.map(inner => fillLine(inner, valueByColumn)) },
		alternative: alternative && fillLine(alternative, valueByColumn),
	};
}

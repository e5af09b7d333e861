/** Tables of cases: a test with a block `cases` is run once for each of its rows. */
import { didYouMean } from '../diagnostics/suggest.ts';
import { formatNameList, spanOfWords } from '../lower/context/sentences.ts';
import type { SourceSpan } from '../source/source.ts';
import type { Line, NamedBlock, Word } from '../syntax/ast.ts';
import type { TestProblem } from './test-problem.ts';

/** Maximum number of rows of one table. */
const MAX_ROWS = 1000;
/** Maximum characters of a row in the name of its test. */
const MAX_NAME = 80;
const PLACEHOLDER = /\{case\.([^{}]*)\}/g;

/** A test for one row: the block with the row's values in place of `{case.NAME}`. */
export interface TestRow {
	readonly block: NamedBlock;
	/** The span of the row; that of the test's name if it has no table. */
	readonly span: SourceSpan;
}

/** Returns the tests that a block stands for: one for each row of its table, or the block itself. */
export function testRows(block: NamedBlock, problem: TestProblem): TestRow[] {
	const { name, lines } = block;
	const tables = lines.filter(({ words: [word] }) => word?.text === 'cases' && word.quote === 'none');
	const [table, second] = tables;
	const rest = lines.filter(line => !tables.includes(line));
	if (!table) {
		checkColumns(rest, [], problem);
		return [{ block, span: name.span }];
	}
	if (second) {
		problem('test/given-twice', second.words[0]!.span, '`cases` is given more than once for one test.', {
			related: [{ span: table.words[0]!.span, message: 'first given here' }],
		});
	}
	const [header, ...rows] = table.block?.lines ?? [];
	if (!header || rows.length === 0 || table.words.length > 1) {
		problem('test/bad-table', table.words[0]!.span, '`cases` needs a line of column names and at least one row.', {
			hint: 'Write `cases {`, then a line such as `path status`, and a line such as `/ 200` for each case.',
		});
		return [];
	}
	const columns = columnsOf(header, problem);
	if (columns === undefined) return [];
	const used = checkColumns(rest, columns, problem);
	for (const { text, span } of header.words) {
		if (used.has(text)) continue;
		const message = `The column \`${text}\` is not used.`;
		problem('test/unused-column', span, message, {
			severity: 'warning',
			hint: `Write \`{case.${text}}\` in the test.`,
		});
	}
	if (rows.length > MAX_ROWS) {
		const message = `A table has at most ${MAX_ROWS} rows.`;
		problem('test/bad-table', rows[MAX_ROWS]!.span, message);
		return [];
	}
	return rows.flatMap(row => {
		if (!isRow(row, columns, problem)) return [];
		const values = new Map(row.words.map(({ text }, at) => [columns[at]!, text]));
		const shown = columns.map(column => `${column}=${values.get(column)}`).join(' ');
		const text = `${name.text} (${shown.length > MAX_NAME ? `${shown.slice(0, MAX_NAME - 1)}…` : shown})`;
		const filled = rest.map(line => filledLine(line, values));
		return [{ block: { ...block, name: { ...name, text }, lines: filled }, span: spanOfWords(row.words) }];
	});
}

function columnsOf(header: Line, problem: TestProblem): string[] | undefined {
	const columns: string[] = [];
	for (const { text, span } of header.words) {
		const isRepeated = columns.includes(text);
		if (!isRepeated && /^[A-Za-z_]\w*$/.test(text)) {
			columns.push(text);
			continue;
		}
		const message = isRepeated ? `There are two columns \`${text}\`.` : `\`${text}\` is not a name of a column.`;
		problem('test/bad-table', span, message, {
			hint: 'The first line of a table has names of letters, digits and `_`.',
		});
		return undefined;
	}
	return columns;
}

function isRow(row: Line, columns: readonly string[], problem: TestProblem): boolean {
	if (row.block || row.alternative) {
		problem('directive/unexpected-block', row.span, 'A row of a table has no block.');
		return false;
	}
	if (row.words.length === columns.length) return true;
	const message = `This row has ${row.words.length} values for ${columns.length} columns.`;
	problem('test/bad-table', spanOfWords(row.words), message, {
		hint: 'Write `""` for an empty value, and quote values with spaces.',
	});
	return false;
}

/** Reports placeholders without a column. Returns the columns that are used. */
function checkColumns(lines: readonly Line[], columns: readonly string[], problem: TestProblem): Set<string> {
	const used = new Set<string>();
	for (const word of lines.flatMap(wordsOf)) {
		for (const [placeholder, column] of word.text.matchAll(PLACEHOLDER)) {
			used.add(column!);
			if (columns.includes(column!)) continue;
			problem('test/unknown-column', word.span, `There is no column for \`${placeholder}\`.`, {
				...didYouMean({ ...word, text: column! }, columns),
				hint:
					columns.length === 0
						? 'The test has no table; write one with `cases { … }`.'
						: `The columns are ${formatNameList(columns)}.`,
			});
		}
	}
	return used;
}

function wordsOf({ words, block, alternative }: Line): Word[] {
	const inner = [...(block?.lines ?? []), ...(alternative ? [alternative] : [])];
	return [...words, ...inner.flatMap(wordsOf)];
}

function filledLine(line: Line, values: ReadonlyMap<string, string>): Line {
	const { words, block, alternative } = line;
	return {
		...line,
		words: words.map(word => ({
			...word,
			text: word.text.replace(PLACEHOLDER, (placeholder, column: string) => values.get(column) ?? placeholder),
		})),
		block: block && { ...block, lines: block.lines.map(inner => filledLine(inner, values)) },
		alternative: alternative && filledLine(alternative, values),
	};
}

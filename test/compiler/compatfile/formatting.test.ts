/** The formatter of the compatible language: a test for each row of its documentation. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { formatText } from '../../../compiler/syntax/format.ts';

/** Input and expected output; `⏎` is a line break, `→` a tab. Without an output, the input must stay unchanged. */
const FORMATTING_CASES: readonly (readonly [row: string, input: string, output?: string])[] = [
	['spacing', 'abc   def⏎→g hi jkl⏎mn', 'abc def⏎g hi jkl⏎mn'],
	['one-line blocks', 'e { f⏎}', 'e {⏎→f⏎}'],
	['nested one-line', 'j { k {⏎l⏎}⏎}', 'j {⏎→k {⏎→→l⏎→}⏎}'],
	['3+ blank lines', 'a⏎⏎⏎⏎b', 'a⏎⏎b'],
	['block in block', 'a {⏎{⏎b⏎}⏎}', 'a {⏎→{⏎→→b⏎→}⏎}'],
	['glued close/open', 'abc {⏎def⏎}ghi{⏎jkl⏎pqr}', 'abc {⏎→def⏎}⏎⏎ghi {⏎→jkl⏎→pqr⏎}'],
	['env spans', 'd { {$E}⏎}', 'd {⏎→{$E}⏎}'],
	['env spans in a bare block', '{ {$F}⏎}', '{⏎→{$F}⏎}'],
	['commented brace', ' #b {⏎→c⏎}', '#b {⏎c⏎}'],
	['word with hash', 'e#f'],
	['path with hash', '/some/#/path'],
	['string then comment', '"a \\"b\\" "#c'],
	['multi-line string', 'a {⏎"foo⏎bar"⏎}', 'a {⏎→"foo⏎bar"⏎}'],
	['excess open', 'a⏎{⏎→{⏎}', 'a {⏎→{⏎→}'],
	['excess close', 'a⏎{⏎→{⏎}}}', 'a {⏎→{⏎→}⏎}⏎}'],
	['malformed', 'foo{bar} foo{ bar}baz', 'foo{bar} foo {⏎→bar⏎}⏎⏎baz'],
	['comment above brace', '# comment⏎{⏎→foo⏎}'],
	['escaped quote word', 'foo \\"literal\\"'],
	['raw text with braces', 'block {respond `{{x}}`}'],
	['quoted text with braces', 'block {respond "{{x}}"}'],
	['other-kind quotes', 'block { respond "`" } block { respond `"`}', 'block {⏎→respond "`"⏎}⏎⏎block {⏎→respond `"`⏎}'],
	['quoted open', 'respond "{"'],
	['quoted close', 'respond "}"'],
	['heredoc in block', 'a {⏎→respond <<E⏎  x   y⏎E⏎  b    c⏎}', 'a {⏎→respond <<E⏎  x   y⏎E⏎→b c⏎}'],
	['blank line then env span', 'a⏎⏎→{$X}', 'a⏎⏎{$X}'],
	['imports, then global block', 'import a⏎import b⏎{⏎→order x first⏎}'],
	// The remaining rows each show one rule of the formatter in brief.
	['white space at both ends', '⏎ →a ⏎⏎', 'a'],
	['nothing', '', ''],
	['no blank lines at the edges of a block', 'a {⏎⏎b⏎⏎}', 'a {⏎→b⏎}'],
	['carriage returns are white space', 'a {\r⏎b\r⏎}\r⏎', 'a {⏎→b⏎}'],
	['a brace on the next line', 'a⏎{⏎b⏎}', 'a {⏎→b⏎}'],
	['text after a brace', 'h { # i⏎}', 'h {⏎→# i⏎}'],
	['a single line break after } is kept', 'a {⏎}⏎b', 'a {⏎}⏎b'],
	['before a bare brace a blank line is made', 'a {⏎}⏎{⏎b⏎}', 'a {⏎}⏎⏎{⏎→b⏎}'],
	['placeholders', 'foo{bar} {$A} :{$PORT} foo{bar}baz'],
	['a heredoc marker with white space is a word', 'a <<E  x⏎b', 'a <<E x⏎b'],
	['an escaped one', 'a \\<<E⏎b'],
];

const rows = suite('formatting');
for (const [row, input, output = input] of FORMATTING_CASES) {
	rows(row, () => {
		const read = (text: string): string => text.replaceAll('⏎', '\n').replaceAll('→', '\t');
		const formatted = formatText(read(input));
		assert.is(formatted, `${read(output)}\n`);
		assert.is(formatText(formatted), formatted, 'once more');
	});
}
rows.run();

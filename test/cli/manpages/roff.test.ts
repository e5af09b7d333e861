/** Conversion of plain text and Markdown to roff. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { codeBlock, listEntry, paragraph, renderMarkdown, renderPage } from '../../../cli/manpages/roff.ts';

const roff = suite('roff');

roff('hyphens, quotes, backslashes and carets can be copied from the page and pasted', () => {
	assert.equal(paragraph("`-c 'a' \\d ^~`"), ['.PP', '\\fB\\%\\-c \\%\\(aqa\\(aq \\%\\ed \\%\\(ha\\(ti\\fR']);
	assert.equal(codeBlock(["'a'", '.b', '\tc']), ['.PP', '.RS 4', '.EX', '\\(aqa\\(aq', '\\&.b', '    c', '.EE', '.RE']);
});

roff('a line that starts like a roff request is printed as text', () => {
	assert.equal(paragraph('.SH is text'), ['.PP', '\\&.SH is text']);
	assert.equal(paragraph("'quoted'"), ['.PP', "\\&'quoted'"]);
	assert.equal(listEntry('.x', '.y'), ['.TP', '\\&.x', '\\&.y']);
	assert.equal(renderMarkdown('one\n.SH two\n'), ['.PP', 'one .SH two']);
});

roff('bold, emphasis and code are converted; unpaired asterisks are kept', () => {
	assert.equal(paragraph('**a b** *c* `**d**`'), ['.PP', '\\fBa b\\fR \\fIc\\fR \\fB\\%**d**\\fR']);
	assert.equal(paragraph('*.x and y* and 2 * 3'), ['.PP', '*.x and y* and 2 * 3']);
	assert.equal(paragraph('`` `a` ``'), ['.PP', '\\fB\\%\\(gaa\\(ga\\fR']);
});

roff('tables become lists of terms, and cells may contain escaped bars', () => {
	const table = [
		'| Line | Meaning | More |',
		'| --- | --- | --- |',
		'| `a \\| b` | either | or |',
		'| `c` | third | |',
	];
	assert.equal(renderMarkdown(table.join('\n')), [
		'.TP',
		'\\fB\\%a \\%| \\%b\\fR',
		'either; or',
		'.TP',
		'\\fB\\%c\\fR',
		'third',
	]);
});

roff('fenced code, lists and paragraphs may follow each other without blank lines', () => {
	assert.equal(renderMarkdown('one\ntwo\n\n```\n| code\n```\n- a\n  b\n- c\nthree'), [
		...['.PP', 'one two'],
		...['.PP', '.RS 4', '.EX', '| code', '.EE', '.RE'],
		...['.IP \\(bu 3', 'a b'],
		...['.IP \\(bu 3', 'c'],
		...['.PP', 'three'],
	]);
	assert.equal(renderMarkdown('```\nnever closed'), ['.PP', '.RS 4', '.EX', 'never closed', '.EE', '.RE']);
});

roff('non-ASCII characters are escaped, and control characters removed', () => {
	assert.equal(paragraph('a…é\u{1f600}\u0007'), ['.PP', 'a...\\[u00E9]\\[u1F600] ']);
});

roff('a page starts with its title, section and version', () => {
	const page = renderPage({ name: 'svc-x', section: 1, summary: 'Do it', body: ['.PP', 'text'] }, 'v1.2.3');
	assert.is(page, '.TH "SVC\\-X" 1 "" "svc v1.2.3"\n.SH "NAME"\nsvc\\-x \\- Do it\n.PP\ntext\n');
});

roff.run();

/** The rendering of diagnostics, byte for byte. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Diagnostic } from '../../../compiler/diagnostics/diagnostic.ts';
import { toReport } from '../../../compiler/diagnostics/diagnostic-report.ts';
import { renderDiagnostic } from '../../../compiler/diagnostics/render.ts';
import { Source } from '../../../compiler/source/source.ts';

const main = new Source({ name: 'Configfile', text: 'example.com {\n\timport snippets/legacy\n}\n' });
const legacy = new Source({
	name: 'snippets/legacy',
	text: '@old path /cart/*\n\tredirect @old /basket permament\n\tencode gzip\n',
	importedAt: { source: main, start: 22, end: 37 },
	importedAs: 'snippets/legacy',
});

function at(source: Source, word: string, more: Partial<Diagnostic> = {}): Diagnostic {
	const start = source.text.indexOf(word);
	const span = { source, start, end: start + word.length };
	return { code: 'area/what', severity: 'error', message: 'It is wrong.', span, ...more };
}

function lines(...expected: string[]): string {
	return expected.join('\n');
}

const frames = suite('diagnostic frames');
frames('a frame has code, place, surrounding lines, caret, label, import and hint', () => {
	const diagnostic = at(legacy, 'permament', {
		code: 'redirect/unknown-status',
		message: '`permament` is not a redirect status.',
		label: 'did you mean `permanent`?',
		hint: 'Give a number from 300 to 399, or one of: temporary, permanent.',
	});
	assert.is(
		renderDiagnostic(diagnostic),
		lines(
			'error[redirect/unknown-status]: `permament` is not a redirect status.',
			'  --> snippets/legacy:2:24',
			'1 | @old path /cart/*',
			'2 |     redirect @old /basket permament',
			'  |                           ^^^^^^^^^ did you mean `permanent`?',
			'3 |     encode gzip',
			'   imported at Configfile:2:9',
			'   hint: Give a number from 300 to 399, or one of: temporary, permanent.',
		),
	);
});
frames('two-digit line numbers widen the margin, and related places are listed', () => {
	const source = new Source({ name: 'f', text: `${'a\n'.repeat(8)}b\n\n` });
	const related = [{ span: { source, start: 0, end: 1 }, message: 'defined here first' }];
	assert.is(
		renderDiagnostic(at(source, 'b', { severity: 'warning', related, hint: 'Do.' })),
		lines(
			'warning[area/what]: It is wrong.',
			'   --> f:9:1',
			' 8 | a',
			' 9 | b',
			'   | ^',
			'10 |',
			'    defined here first: f:1:1',
			'    hint: Do.',
		),
	);
});
frames('tabs, wide and combining characters do not shift the caret', () => {
	const source = new Source({ name: 'f', text: '\t日本 e\u0301 🚀 bad' });
	assert.is(
		renderDiagnostic(at(source, 'bad')),
		lines('error[area/what]: It is wrong.', '  --> f:1:11', '1 |     日本 e\u0301 🚀 bad', '  |               ^^^'),
	);
});
frames('a wide word has a caret for each of its columns', () => {
	const source = new Source({ name: 'f', text: '日本' });
	assert.ok(renderDiagnostic(at(source, '日本')).endsWith('\n  | ^^^^'));
});
frames('the end of the file and an empty span have one caret', () => {
	const source = new Source({ name: 'f', text: 'abc' });
	const end = renderDiagnostic(at(source, 'abc', { span: { source, start: 3, end: 3 } }));
	assert.is(end, lines('error[area/what]: It is wrong.', '  --> f:1:4', '1 | abc', '  |    ^'));
	const empty = new Source({ name: 'f', text: '' });
	assert.ok(renderDiagnostic(at(empty, '')).endsWith('1 |\n  | ^'));
});
frames('a span over several lines is underlined on the first', () => {
	const source = new Source({ name: 'f', text: 'a "b\nc" d\n' });
	assert.is(
		renderDiagnostic(at(source, '"b\nc"')),
		lines('error[area/what]: It is wrong.', '  --> f:1:3', '1 | a "b', '  |   ^^', '2 | c" d'),
	);
});
frames('a long line is cut around the caret', () => {
	const source = new Source({ name: 'f', text: `${'x'.repeat(300)} BAD ${'y'.repeat(300)}` });
	const [, , text, caret] = renderDiagnostic(at(source, 'BAD')).split('\n');
	assert.is(text!.length, 4 + 100);
	assert.match(text!, /^1 \| …x+ BAD y+…$/u);
	assert.is(caret!.indexOf('^'), text!.indexOf('BAD'));
	assert.is(caret!.length - caret!.indexOf('^'), 3);
});
frames('a span longer than the frame is cut', () => {
	const source = new Source({ name: 'f', text: `a ${'z'.repeat(5000)} b` });
	for (const line of renderDiagnostic(at(source, 'z'.repeat(5000))).split('\n')) assert.ok(line.length < 130, line);
});
frames('control characters in the file do not reach the terminal', () => {
	const source = new Source({ name: 'f\u001b[2J', text: 'a \u001b[31m b\r\n' });
	const text = renderDiagnostic(at(source, 'b', { message: 'x \u0007', hint: '\u202e' }));
	for (const character of ['\u001b', '\u0007', '\r', '\u202e']) assert.not(text.includes(character));
	assert.ok(text.includes('1 | a ␛[31m b\n  |         ^'), text);
});
frames('a finding about the document shows its JSON pointer', () => {
	const diagnostic: Diagnostic = { code: 'a/b', severity: 'error', message: 'No.', pointer: '/sites/0', hint: 'Do.' };
	assert.is(renderDiagnostic(diagnostic), lines('error[a/b]: No.', '  --> /sites/0', '   hint: Do.'));
	assert.ok(renderDiagnostic({ ...diagnostic, pointer: '' }).includes('--> the whole document'));
});
frames('color adds only escape sequences', () => {
	const diagnostic = at(legacy, 'permament', { label: 'l', hint: 'h' });
	const coloured = renderDiagnostic(diagnostic, { color: true });
	assert.ok(coloured.includes('\u001b['));
	assert.is(
		coloured
			.split('\u001b[')
			.map((part, index) => (index === 0 ? part : part.replace(/^[0-9;]*m/, '')))
			.join(''),
		renderDiagnostic(diagnostic),
	);
});
frames('nested imports are shown as a chain', () => {
	const inner = legacy.importedFrom({ source: legacy, start: 1, end: 4 }, 'old');
	const text = renderDiagnostic(at(inner, 'gzip'));
	assert.ok(text.endsWith('   imported at snippets/legacy:1:2\n   imported at Configfile:2:9'), text);
});
frames.run();

const reports = suite('diagnostic reports');
reports('a report has the place as numbers, and the rendered text', () => {
	const diagnostic = at(legacy, 'permament', { hint: 'Do.' });
	assert.equal(toReport(diagnostic), {
		code: 'area/what',
		severity: 'error',
		message: 'It is wrong.',
		file: 'snippets/legacy',
		line: 2,
		column: 24,
		end_line: 2,
		end_column: 33,
		hint: 'Do.',
		text: renderDiagnostic(diagnostic),
	});
	assert.is(JSON.parse(JSON.stringify(toReport(diagnostic))).line, 2);
});
reports('a report about the document has a pointer and no place', () => {
	const report = toReport({ code: 'a/b', severity: 'note', message: 'm', pointer: '/x' });
	assert.equal(report, { code: 'a/b', severity: 'note', message: 'm', pointer: '/x', text: 'note[a/b]: m\n  --> /x' });
});
reports.run();

/** The order of diagnostics, and the removal of repeated ones. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Diagnostic } from '../../../compiler/diagnostics/diagnostic.ts';
import { sortDiagnostics } from '../../../compiler/diagnostics/sort-diagnostics.ts';
import { Source } from '../../../compiler/source/source.ts';

const main = new Source({ name: 'main', path: '/main', text: '0123456789' });
const imported = new Source({
	name: 'b',
	path: '/b',
	text: '0123456789',
	importedAt: { source: main, start: 5, end: 6 },
});

function found(source: Source, start: number, code = 'a/b', more: Partial<Diagnostic> = {}): Diagnostic {
	return { code, severity: 'error', message: code, span: { source, start, end: start + 1 }, ...more };
}

const order = suite('sortDiagnostics');
order('diagnostics in an imported file come at the place of its import', () => {
	const sorted = sortDiagnostics([
		{ code: 'no/place', severity: 'error', message: 'm', pointer: '/sites' },
		found(main, 7),
		found(imported, 2),
		found(main, 1),
		found(imported, 0),
	]);
	const shown = sorted.map(({ span }) => (span ? `${span.source.name}${span.start}` : 'nowhere'));
	assert.equal(shown, ['main1', 'b0', 'b2', 'main7', 'nowhere']);
});
order('the same finding through a second import is dropped', () => {
	const again = imported.importedFrom({ source: main, start: 8, end: 9 }, 'b');
	assert.is(sortDiagnostics([found(imported, 3), found(again, 3)]).length, 1);
});
order('an error on exactly the same words as an earlier error is dropped as its consequence', () => {
	const sorted = sortDiagnostics([found(main, 3, 'first/cause'), found(main, 3, 'then/effect')]);
	assert.equal(
		sorted.map(({ code }) => code),
		['first/cause'],
	);
});
order('a warning and an error at the same place are both kept', () => {
	assert.is(sortDiagnostics([found(main, 3), found(main, 3, 'c/d', { severity: 'warning' })]).length, 2);
});
order.run();

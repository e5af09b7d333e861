/** Edits of a document at a path. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { documentDifference } from '../../../compiler/schema/difference.ts';
import { editDocument } from '../../../compiler/schema/edit-document.ts';
import { restoreSecrets } from '../../../compiler/schema/secrets.ts';

const DOCUMENT = { settings: { threads: 1 }, sites: [{ a: 1 }, { b: [1, 2] }] };

/**
 * Applies an edit to {@link DOCUMENT}. Returns the edited document or, if the edit is refused, the reason and the nearest
 * existing path. Asserts that the original does not change.
 */
function applyEdit(line: string, value?: unknown): unknown {
	const before = JSON.stringify(DOCUMENT);
	const [method, pointer = ''] = line.split(' ') as ['POST' | 'PUT' | 'PATCH' | 'DELETE', string];
	const path = pointer === '' ? [] : pointer.slice(1).split('/');
	const result = editDocument(DOCUMENT, { method, path, value });
	assert.is(JSON.stringify(DOCUMENT), before, 'the document itself was changed');
	return 'refusal' in result ? `${result.refusal.reason} ${result.refusal.nearest}` : result.document;
}

const { settings, sites } = DOCUMENT;
const [first, second] = sites;

const edits = suite('edits');

for (const [line, value, expected] of [
	['POST /sites', 7, { settings, sites: [first, second, 7] }],
	['POST /sites', [7], { settings, sites: [first, second, [7]] }],
	['POST /sites/...', [7, 8], { settings, sites: [first, second, 7, 8] }],
	['POST /sites/1/b/...', [], DOCUMENT],
	['POST /sites/0', 7, { settings, sites: [first, second, 7] }],
	['POST /sites/1/b', 3, { settings, sites: [first, { b: [1, 2, 3] }] }],
	['POST /settings/threads', 2, { settings: { threads: 2 }, sites }],
	['POST /settings/debug', true, { settings: { threads: 1, debug: true }, sites }],
	['POST /routes', {}, { ...DOCUMENT, routes: {} }],
	['POST', { settings: {} }, { settings: {} }],
	['PUT /sites/0', 7, { settings, sites: [7, first, second] }],
	['PUT /sites/2', 7, { settings, sites: [first, second, 7] }],
	['PUT /sites/1/b/1', 7, { settings, sites: [first, { b: [1, 7, 2] }] }],
	['PUT /settings/debug', true, { settings: { threads: 1, debug: true }, sites }],
	['PATCH /sites/1/b/1', 7, { settings, sites: [first, { b: [1, 7] }] }],
	['PATCH /sites', [], { settings, sites: [] }],
	['PATCH /settings/threads', 2, { settings: { threads: 2 }, sites }],
	['PATCH', { sites: [] }, { sites: [] }],
	['DELETE /sites/0', undefined, { settings, sites: [second] }],
	['DELETE /settings', undefined, { sites }],
	['DELETE', undefined, {}],
] as const) {
	edits(`${line} ${JSON.stringify(value)}`, () => assert.equal(applyEdit(line, value), expected));
}

const refusals = suite('refused edits');

for (const [line, value, expected] of [
	['POST /sites/...', 7, 'value '],
	['PATCH /sites/...', [7], 'value '],
	['POST /settings/...', [7], 'value '],
	['POST /routes/...', [7], 'missing '],
	['POST /sites/7', 7, 'missing /sites'],
	['POST /sites/x', 7, 'missing /sites'],
	['POST /a/b/c', 7, 'missing '],
	['POST /settings/a/b', 7, 'missing /settings'],
	['POST /settings/threads/x', 7, 'missing /settings/threads'],
	['PUT /sites/3', 7, 'missing /sites'],
	['PUT /sites/-1', 7, 'missing /sites'],
	['PUT /sites/01', 7, 'missing /sites'],
	['PUT /settings/threads', 2, 'exists /settings'],
	['PUT', {}, 'exists '],
	['PATCH /sites/2', 7, 'missing /sites'],
	['PATCH /settings/debug', true, 'missing /settings'],
	['PATCH /toString', 1, 'missing '],
	['DELETE /sites/2', undefined, 'missing /sites'],
	['DELETE /settings/debug', undefined, 'missing /settings'],
	['DELETE /nothing', undefined, 'missing '],
] as const) {
	refusals(`${line} ${JSON.stringify(value)}`, () => assert.is(applyEdit(line, value), expected));
}

refusals('names of Object.prototype are treated like any other name', () => {
	const result = applyEdit('POST /__proto__', { polluted: true }) as { [key: string]: unknown };
	assert.ok(Object.hasOwn(result, '__proto__'));
	assert.is(({} as { polluted?: boolean }).polluted, undefined);
	assert.is(applyEdit('POST /__proto__/polluted', true), 'missing ');
	assert.is(applyEdit('DELETE /constructor', undefined), 'missing ');
});

const secrets = suite('secrets');

secrets('a redaction mark is replaced by the secret stored at its place, and nothing else is', () => {
	const stored = { settings: { admin: { token: 'sesame' } }, sites: [] };
	const back = { settings: { admin: { listen: ':1', token: '[redacted]' } }, sites: [] };
	assert.equal(restoreSecrets(back, stored, ['settings', 'admin']), {
		settings: { admin: { listen: ':1', token: 'sesame' } },
		sites: [],
	});
	assert.is(back.settings.admin.token, '[redacted]');
	assert.equal(restoreSecrets(back, { settings: {}, sites: [] }, []), back);
	assert.equal(restoreSecrets(back, stored, ['sites']), back);
	const partly = { settings: { admin: { token: 'x[redacted]' } } };
	assert.equal(restoreSecrets(partly, stored, []), partly);
});

const difference = suite('difference');

difference('a difference names the changed places, with the old and new values', () => {
	const before = { a: 1, b: { c: [1, 2, 3], d: 'x' }, e: 'same' };
	const after = { b: { c: [1, 9, 3, 4], 'f/g': true }, e: 'same', h: null };
	assert.equal(documentDifference(before, after, before, after), [
		{ op: 'remove', path: '/a', from: 1 },
		{ op: 'replace', path: '/b/c/1', from: 2, to: 9 },
		{ op: 'add', path: '/b/c/3', to: 4 },
		{ op: 'remove', path: '/b/d', from: 'x' },
		{ op: 'add', path: '/b/f~1g', to: true },
		{ op: 'add', path: '/h', to: null },
	]);
	assert.equal(documentDifference(before, structuredClone(before), before, before), []);
});

difference('a difference reports a changed secret without showing it', () => {
	const hide = (token: string) => ({ of: { token }, shown: { token: '[redacted]' } });
	const [a, b] = [hide('one'), hide('two')];
	assert.equal(documentDifference(a.of, b.of, a.shown, b.shown), [
		{ op: 'replace', path: '/token', from: '[redacted]', to: '[redacted]' },
	]);
	assert.equal(documentDifference({}, { s: [b.of] }, {}, { s: [b.shown] }), [
		{ op: 'add', path: '/s', to: [{ token: '[redacted]' }] },
	]);
});

edits.run();
refusals.run();
secrets.run();
difference.run();

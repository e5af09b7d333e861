/** Non-ASCII text in paths, fields and bodies is encoded in UTF-8 exactly once. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Matcher, Step } from '../../../compiler/document/document.ts';
import { bodyText, type RequestFields, serveRequest } from '../fake-exchange.ts';

const test = suite('non-ASCII text');

/** Converts text to a field value, which has one character for each byte of the text in UTF-8. */
const bytes = (text: string): string => Buffer.from(text, 'utf8').toString('latin1');

/** Characters of one, two, three and four bytes in UTF-8. */
const TEXT = 'ä €𝄞';
/** A character of one byte in Latin-1. */
const LATIN1 = 'caf\xe9';

const REQUEST: RequestFields = {
	target: `/${encodeURIComponent(TEXT)}?q=${encodeURIComponent(TEXT)}`,
	headers: [
		['X-In', bytes(TEXT)],
		['X-Old', LATIN1],
		['Cookie', `c=${bytes('ä')}`],
	],
};

function fields(...set: readonly (readonly [name: string, value: string])[]): Step {
	return { handler: 'edit_headers', response: { set: set.map(([name, value]) => ({ name, value })) } };
}

test('fields are set in UTF-8, whatever the source of the text', async () => {
	const x = await serveRequest(
		[
			{ handler: 'set_variables', variables: { v: '{http.request.header.X-In}' } },
			fields(
				['Path', '{http.request.uri.path}'],
				['Query', '{http.request.uri.query.q}'],
				['Field', '{http.request.header.X-In}'],
				['Cookie', '{http.request.cookie.c}'],
				['Variable', '{http.vars.v}'],
				['Written', 'ü'],
				['Mixed', '{http.request.uri.path.0} {http.request.header.X-In} {http.vars.v} ü'],
				['Twice', '{http.response.header.Mixed}'],
				['Old', '{http.request.header.X-Old}'],
			),
			{ handler: 'respond', status: 204 },
		],
		REQUEST,
	);
	const sent = (name: string) => x.response.headers.get(name);
	assert.is(sent('path'), bytes(`/${TEXT}`));
	for (const name of ['query', 'field', 'variable']) assert.is(sent(name), bytes(TEXT), name);
	assert.is(sent('cookie'), bytes('ä'));
	assert.is(sent('written'), bytes('ü'));
	assert.is(sent('mixed'), bytes(`${TEXT} ${TEXT} ${TEXT} ü`));
	assert.is(sent('twice'), sent('mixed'));
	// Invalid UTF-8 is kept byte for byte.
	assert.is(sent('old'), LATIN1);
});

test('a redirect points to the requested path', async () => {
	const x = await serveRequest([{ handler: 'redirect', to: '{http.request.uri.path}/' }], { target: '/%C3%A4' });
	assert.is(x.response.headers.get('location'), bytes('/ä/'));
});

test('bodies and variables contain the decoded text of fields, not their bytes', async () => {
	const body = '{http.request.header.X-In}|{http.request.cookie.c}|{http.vars.v}|{http.request.uri.path}|ü';
	const x = await serveRequest(
		[
			{ handler: 'set_variables', variables: { v: '{http.request.header.X-In}' } },
			{ handler: 'respond', body },
		],
		REQUEST,
	);
	assert.is(bodyText(x), `${TEXT}|ä|${TEXT}|/${TEXT}|ü`);
});

test('text from fields is escaped once in paths and queries', async () => {
	const x = await serveRequest(
		[{ handler: 'rewrite_target', to: '/{http.request.header.X-In}?q={http.request.header.X-In}' }],
		REQUEST,
	);
	assert.is(x.request.path, '/%C3%A4%20%E2%82%AC%F0%9D%84%9E');
	assert.is(x.request.query, 'q=%C3%A4+%E2%82%AC%F0%9D%84%9E');
});

test('matchers compare fields with the decoded text', async () => {
	const matchers: readonly (readonly [Matcher, boolean])[] = [
		[{ type: 'header', name: 'X-In', values: [TEXT] }, true],
		[{ type: 'header', name: 'X-In', values: ['ä*'] }, true],
		[{ type: 'header', name: 'X-In', values: ['*𝄞'] }, true],
		[{ type: 'header', name: 'X-In', values: ['{http.request.uri.query.q}'] }, true],
		[{ type: 'header', name: 'X-In', values: ['ö*'] }, false],
		[{ type: 'header_regexp', field: 'X-In', pattern: '^ä .𝄞$', name: 'r' }, true],
		[{ type: 'header_regexp', field: 'X-Old', pattern: '^café$' }, true],
		[{ type: 'vars', variables: { '{http.request.header.X-In}': [TEXT] } }, true],
	];
	for (const [when, expected] of matchers) {
		const x = await serveRequest(
			[
				{ handler: 'respond', body: 'yes', when },
				{ handler: 'respond', body: 'no' },
			],
			REQUEST,
		);
		assert.is(bodyText(x), expected ? 'yes' : 'no', JSON.stringify(when));
	}
});

test('captures and replacements in fields are decoded text', async () => {
	const x = await serveRequest(
		[
			{
				handler: 'respond',
				body: '{http.regexp.r.1}',
				when: { type: 'header_regexp', field: 'X-In', pattern: '^(ä)', name: 'r' },
			},
		],
		REQUEST,
	);
	assert.is(bodyText(x), 'ä');
	const replaced = await serveRequest(
		[
			fields(['A', '{http.request.header.X-In}'], ['Old', '{http.request.header.X-Old}']),
			{
				handler: 'edit_headers',
				response: {
					replace: [
						{ name: 'A', find: 'ä', replace: 'Ä{http.request.uri.path.0}' },
						{ name: 'Old', find: 'caf', replace: 'Caf' },
					],
				},
			},
			{ handler: 'respond', status: 204 },
		],
		REQUEST,
	);
	assert.is(replaced.response.headers.get('a'), bytes(`Ä${TEXT} €𝄞`));
	assert.is(replaced.response.headers.get('old'), 'Caf\xe9');
});

test.run();

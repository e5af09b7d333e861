/** Documents of before 0.2.0, read as those of today. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { upgradeDocument } from '../../../compiler/document/upgrade.ts';

const upgrade = suite('documents of before 0.2.0');

upgrade('`handle` becomes `pipeline` at every depth', () => {
	const old = {
		sites: [
			{
				addresses: [':80'],
				handle: [
					{ handler: 'group', handle: [{ handler: 'respond' }] },
					{ handler: 'first_match', branches: [{ handle: [] }] },
				],
				errors: [{ handle: [{ handler: 'respond' }] }],
			},
		],
		routes: { a: [{ handler: 'group', handle: [] }] },
	};
	assert.equal(upgradeDocument(old), {
		sites: [
			{
				addresses: [':80'],
				pipeline: [
					{ handler: 'group', pipeline: [{ handler: 'respond' }] },
					{ handler: 'first_match', branches: [{ pipeline: [] }] },
				],
				errors: [{ pipeline: [{ handler: 'respond' }] }],
			},
		],
		routes: { a: [{ handler: 'group', pipeline: [] }] },
	});
});

upgrade('an untagged matcher is tagged: kinds and-ed, lists or-ed', () => {
	const matcher = (when: unknown) => {
		const document = upgradeDocument({ sites: [{ pipeline: [{ handler: 'respond', when }] }] });
		return (document as { sites: [{ pipeline: [{ when: unknown }] }] }).sites[0].pipeline[0].when;
	};
	assert.equal(matcher({ path: ['/api/*'] }), { type: 'path', patterns: ['/api/*'] });
	assert.equal(matcher({ path: ['/api/*'], method: ['GET'] }), {
		type: 'all',
		of: [
			{ type: 'path', patterns: ['/api/*'] },
			{ type: 'method', methods: ['GET'] },
		],
	});
	assert.equal(matcher([{ path: ['/a'] }, { host: ['b'] }]), {
		type: 'any',
		of: [
			{ type: 'path', patterns: ['/a'] },
			{ type: 'host', hosts: ['b'] },
		],
	});
	assert.equal(matcher({ not: { method: ['GET'] } }), { type: 'not', of: { type: 'method', methods: ['GET'] } });
	assert.equal(matcher({ header: { 'X-A': ['1'] } }), { type: 'header', name: 'X-A', values: ['1'] });
	assert.equal(matcher({ header: { 'X-A': [] } }), { type: 'header', name: 'X-A', present: true });
});

upgrade("a proxy's retry fields become one predicate", () => {
	const old = {
		handler: 'proxy',
		retry_methods: ['GET'],
		retry_statuses: ['502'],
		retry_connect_errors: true,
	};
	const document = upgradeDocument({ sites: [{ pipeline: [old] }] });
	assert.equal((document as { sites: [{ pipeline: unknown[] }] }).sites[0].pipeline[0], {
		handler: 'proxy',
		retry_match: {
			type: 'all',
			of: [
				{ type: 'method', methods: ['GET'] },
				{ type: 'any', of: [{ type: 'connect_error' }, { type: 'status', codes: ['502'] }] },
			],
		},
	});
});

upgrade('a document of today stays as it is, and nothing else makes it throw', () => {
	const today = {
		sites: [
			{ addresses: [':80'], pipeline: [{ handler: 'group', when: { type: 'host', hosts: ['a'] }, pipeline: [] }] },
		],
	};
	assert.equal(upgradeDocument(today), today);
	for (const value of [
		null,
		1,
		'x',
		[],
		{ sites: 1 },
		{ sites: [null, [1]] },
		{ sites: [{ handle: 3 }] },
		{ routes: [] },
	]) {
		upgradeDocument(value);
	}
});

upgrade.run();

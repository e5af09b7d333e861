/** Documents in the format used before 0.2.0 are upgraded when read. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { compile } from '../../../compiler/compiler.ts';
import { upgradeDocument } from '../../../compiler/document/upgrade.ts';
import { goldenCases } from '../../golden.ts';
import { NO_FILES } from '../modules/directives/reverse-proxy/proxied-site.ts';
import { downgradablePlaces, downgradeDocument } from './downgrade.ts';

const upgrade = suite('upgrade of old documents');

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

upgrade('an untagged matcher gets tags: several kinds become `all`, lists become `any`', () => {
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
	for (const [old, today] of [
		[{ protocol: 'https' }, { type: 'protocol', protocol: 'https' }],
		[{ expression: 'path("/a")' }, { type: 'expression', expression: 'path("/a")' }],
		[{ expression: { expr: 'path("/a")', name: 'a' } }, { type: 'expression', expression: 'path("/a")', name: 'a' }],
		[{ vars: { a: ['1'], b: ['2'] } }, { type: 'vars', variables: { a: ['1'], b: ['2'] } }],
		[
			{ header_regexp: { Cookie: { name: 'sid', pattern: 'sid=(.*)' } } },
			{ type: 'header_regexp', field: 'Cookie', name: 'sid', pattern: 'sid=(.*)' },
		],
		[
			{ header_regexp: { A: 'a', B: { pattern: 'b' } } },
			{
				type: 'all',
				of: [
					{ type: 'header_regexp', field: 'A', pattern: 'a' },
					{ type: 'header_regexp', field: 'B', pattern: 'b' },
				],
			},
		],
		[{ vars_regexp: { tier: 'g.*' } }, { type: 'vars_regexp', variable: 'tier', pattern: 'g.*' }],
		[{ path_regexp: '^/a' }, { type: 'path_regexp', pattern: '^/a' }],
		[{ tls: {} }, { type: 'tls' }],
		[
			{ path: ['/a'], '@id': 'a' },
			{ type: 'path', patterns: ['/a'], '@id': 'a' },
		],
	]) {
		assert.equal(matcher(old), today);
	}
});

upgrade('an invalid old matcher is left for the schema to report, and does not match everything', () => {
	for (const when of [
		{ header: 'X-A' },
		{ header_regexp: ['X-A'] },
		{ vars: 'a' },
		{ protocol: ['https'] },
		{ remote_ip: { ranges: ['10.0.0.0/8'], forwarded: true } },
	]) {
		const text = JSON.stringify({ sites: [{ addresses: [':80'], handle: [{ handler: 'respond', when }] }] });
		const { document } = compile({ format: 'json', text, name: 'test.json' }, NO_FILES);
		assert.is(document, undefined, JSON.stringify(when));
	}
});

upgrade('rules of proxies and intercepts, bypasses, and retries of pools are upgraded too', () => {
	const steps = (name: 'handle' | 'pipeline', when: unknown, bypass: unknown, retries: object) => [
		{
			handler: 'proxy',
			upstreams: { to: ['a:1'], ...retries },
			responses: [{ match: { status: ['404'] }, [name]: [{ handler: 'respond', when }] }],
		},
		{
			handler: 'intercept_response',
			rules: [{ [name]: [{ handler: 'group', [name]: [{ handler: 'respond', when }] }] }],
		},
		{ handler: 'cache', bypass },
	];
	assert.equal(
		upgradeDocument({
			upstreams: { app: { to: ['a:1'], retry_statuses: ['5xx'] } },
			sites: [{ handle: steps('handle', { path: ['/a'] }, [{ protocol: 'http' }], { retry_connect_errors: true }) }],
		}),
		{
			upstreams: { app: { to: ['a:1'], retry_match: { type: 'status', codes: ['5xx'] } } },
			sites: [
				{
					pipeline: steps(
						'pipeline',
						{ type: 'path', patterns: ['/a'] },
						{ type: 'protocol', protocol: 'http' },
						{ retry_match: { type: 'connect_error' } },
					),
				},
			],
		},
	);
});

upgrade('every fixture document survives a downgrade and an upgrade', () => {
	const seen = new Set<string>();
	for (const golden of goldenCases('adapt')) {
		const text = golden.file('expected.json');
		if (text === undefined) continue;
		const today = JSON.parse(text);
		const old = downgradeDocument(today, seen);
		assert.not.match(JSON.stringify(old), /"pipeline":/, golden.name);
		assert.equal(upgradeDocument(old), today, golden.name);
	}
	assert.ok(seen.delete('retries'));
	assert.equal([...seen].sort(), downgradablePlaces(), 'every place in the schema needs a fixture');
});

upgrade('the retry fields of a proxy become one predicate', () => {
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

upgrade('a current document is unchanged, and no other value makes the upgrade throw', () => {
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

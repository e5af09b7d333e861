/** Host, method, header, query and address matchers, and their combinations. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Matcher, Settings } from '../../../../compiler/document/document.ts';
import { matchers } from '../../../../compiler/modules/registry/matchers.ts';
import { bodyText, buildTestSite, fakeExchange, type RequestFields, serveRequest } from '../../fake-exchange.ts';

function matcherHolds(when: Matcher, request: RequestFields = {}, settings: Settings = {}): boolean {
	const x = fakeExchange(request);
	const site = buildTestSite(
		[
			{ handler: 'respond', body: 'yes', when },
			{ handler: 'respond', body: 'no' },
		],
		{ settings },
	);
	assert.is(site.runSite(x), undefined);
	return bodyText(x) === 'yes';
}

const host = suite('host');

host('no spelling of a host evades a matcher', () => {
	const when = { type: 'host', hosts: ['example.com'] };
	for (const authority of [
		'example.com',
		'EXAMPLE.com',
		'example.com.',
		'example.com:80',
		'Example.COM.:8443',
		'example.com:',
	]) {
		assert.is(matcherHolds(when, { authority }), true, authority);
	}
	for (const authority of ['www.example.com', 'example.co', 'example.com.evil.test', 'xexample.com']) {
		assert.is(matcherHolds(when, { authority }), false, authority);
	}
});

host('an asterisk matches one label', () => {
	const when = { type: 'host', hosts: ['*.Example.com', 'a.*.test'] };
	for (const authority of ['x.example.com', 'X.EXAMPLE.COM:1', 'a.b.test'])
		assert.is(matcherHolds(when, { authority }), true, authority);
	for (const authority of ['example.com', 'x.y.example.com', '.example.com', 'a.b.c.test']) {
		assert.is(matcherHolds(when, { authority }), false, authority);
	}
});

host('IPv6 addresses and international names are normalized', () => {
	assert.is(matcherHolds({ type: 'host', hosts: ['[::1]'] }, { authority: '[0:0:0:0::1]:80' }), true);
	assert.is(matcherHolds({ type: 'host', hosts: ['::1'] }, { authority: '[::1]' }), true);
	assert.is(matcherHolds({ type: 'host', hosts: ['BÜCHER.example'] }, { authority: 'xn--bcher-kva.example' }), true);
});

host('many hosts and placeholders are supported', () => {
	const hosts = ['a.test', 'b.test', 'c.test', 'd.test', 'e.test', 'f.test'];
	assert.is(matcherHolds({ type: 'host', hosts }, { authority: 'F.test:1' }), true);
	assert.is(matcherHolds({ type: 'host', hosts }, { authority: 'g.test' }), false);
	const dynamic = { type: 'host', hosts: ['{http.request.header.Want}'] };
	assert.is(matcherHolds(dynamic, { headers: [['Want', 'EXAMPLE.test']] }), true);
	assert.is(matcherHolds(dynamic, { headers: [['Want', '*.test']] }), false);
	assert.is(matcherHolds(dynamic, {}), false);
});

host('an invalid host is rejected at load time', () => {
	assert.throws(() => matcherHolds({ type: 'host', hosts: ['a b'] }), /not a host name/);
});

host.run();

const method = suite('method');

method('the method as sent is compared with the upper-case pattern', () => {
	assert.is(matcherHolds({ type: 'method', methods: ['get'] }), true);
	assert.is(matcherHolds({ type: 'method', methods: ['POST', 'put'] }, { method: 'PUT' }), true);
	assert.is(matcherHolds({ type: 'method', methods: ['GET'] }, { method: 'get' }), false);
});

method.run();

const header = suite('header');

const HEADER_TABLE: readonly (readonly [object, readonly (readonly [string, string])[], boolean])[] = [
	[{ name: 'X', values: ['a'] }, [['x', 'a']], true],
	[{ name: 'X', values: ['a'] }, [['X', 'A']], false],
	[
		{ name: 'X', values: ['b'] },
		[
			['X', 'a'],
			['X', 'b'],
		],
		true,
	],
	[{ name: 'X', values: ['a*'] }, [['X', 'abc']], true],
	[{ name: 'X', values: ['*c'] }, [['X', 'abc']], true],
	[{ name: 'X', values: ['*b*'] }, [['X', 'abc']], true],
	[{ name: 'X', values: ['*b'] }, [['X', 'abc']], false],
	[{ name: 'X', values: ['q', 'a'] }, [['X', 'a']], true],
	[{ name: 'X', values: ['*'] }, [['X', '']], true],
	[{ name: 'X', values: ['*'] }, [], false],
	[{ name: 'X', present: true }, [['x', 'v']], true],
	[{ name: 'X', absent: true }, [], true],
	[{ name: 'X', absent: true }, [['x', '']], false],
	[{ name: 'X', values: ['{http.request.method}'] }, [['X', 'GET']], true],
	[
		{ name: 'X', values: ['{http.request.header.Y}'] },
		[
			['X', 'abc'],
			['Y', '*'],
		],
		false,
	],
	[{ name: 'Host', values: ['example.test:1'] }, [], true],
	[{ name: 'host', absent: true }, [], false],
];

header('values, wildcards, presence and absence can be matched', () => {
	for (const [rule, headers, expected] of HEADER_TABLE) {
		const authority = 'example.test:1';
		assert.is(
			matcherHolds({ type: 'header', ...rule }, { headers, authority }),
			expected,
			JSON.stringify([rule, headers]),
		);
	}
});

header.run();

const query = suite('query');

query('all names must be present, each with one of its values', () => {
	const when = (parameters: object) => ({ type: 'query', parameters });
	assert.is(matcherHolds(when({ a: ['1'] }), { target: '/?a=1' }), true);
	assert.is(matcherHolds(when({ a: ['1', '2'] }), { target: '/?b=&a=2' }), true);
	assert.is(matcherHolds(when({ a: ['1'], b: ['*'] }), { target: '/?a=1' }), false);
	assert.is(matcherHolds(when({ a: ['1'], b: ['*'] }), { target: '/?a=1&b' }), true);
	assert.is(matcherHolds(when({ a: ['x y'] }), { target: '/?a=x+y' }), true);
	assert.is(matcherHolds(when({ é: ['&'] }), { target: '/?%C3%A9=%26' }), true);
	assert.is(matcherHolds(when({ a: ['1'] }), { target: '/?a=1&b=%zz' }), false);
	assert.is(matcherHolds(when({}), { target: '/' }), true);
	assert.is(matcherHolds(when({}), { target: '/?' }), true);
	assert.is(matcherHolds(when({}), { target: '/?a' }), false);
	assert.is(matcherHolds(when({ a: ['{http.request.method}'] }), { target: '/?a=GET' }), true);
	assert.is(matcherHolds(when({ constructor: ['1'] }), { target: '/' }), false);
});

query.run();

const ip = suite('addresses');

ip('remote_ip is the peer, including mapped addresses and both families', () => {
	const when = { type: 'remote_ip', ranges: ['10.0.0.0/8', '2001:db8::/32', '192.0.2.7', 'private_ranges'] };
	for (const remoteAddress of ['10.1.2.3', '::ffff:10.0.0.1', '2001:db8:1::', '192.0.2.7', '172.31.0.1', '::1']) {
		assert.is(matcherHolds(when, { connection: { remoteAddress } }), true, remoteAddress);
	}
	for (const remoteAddress of ['11.0.0.1', '2001:db9::1', '192.0.2.8', '', '::ffff:11.0.0.1']) {
		assert.is(matcherHolds(when, { connection: { remoteAddress } }), false, remoteAddress);
	}
	assert.throws(() => matcherHolds({ type: 'remote_ip', ranges: ['10.0.0.0/33'] }), /not an IP address/);
	assert.throws(() => matcherHolds({ type: 'remote_ip', ranges: ['{http.request.header.X}'] }), /known at load time/);
});

ip('client_ip uses forwarded addresses only from trusted proxies', () => {
	const when = { type: 'client_ip', ranges: ['203.0.113.0/24'] };
	const request = (remoteAddress: string, forwarded: string): RequestFields => ({
		connection: { remoteAddress },
		headers: [['X-Forwarded-For', forwarded]],
	});
	const settings: Settings = { trusted_proxies: ['10.0.0.0/8'] };
	assert.is(matcherHolds(when, request('10.0.0.1', '203.0.113.9, 10.0.0.5'), settings), true);
	assert.is(matcherHolds(when, request('192.0.2.1', '203.0.113.9'), settings), false);
	assert.is(matcherHolds(when, request('10.0.0.1', '203.0.113.9')), false);
	assert.is(matcherHolds(when, request('10.0.0.1', 'nonsense, 203.0.113.9:4711'), settings), true);
	const strict: Settings = { ...settings, trusted_proxies_strict: true };
	assert.is(matcherHolds(when, request('10.0.0.1', '203.0.113.9, 198.51.100.1, 10.0.0.5'), strict), false);
	assert.is(matcherHolds(when, request('10.0.0.1', '198.51.100.1, 203.0.113.9, 10.0.0.5'), strict), true);
});

ip('{client_ip} is the address that the matcher uses', async () => {
	const steps = [{ handler: 'respond', body: '{http.vars.client_ip} {http.request.remote.host}' }];
	const request: RequestFields = {
		connection: { remoteAddress: '10.0.0.1' },
		headers: [['X-Forwarded-For', '203.0.113.9']],
	};
	assert.is(
		bodyText(await serveRequest(steps, request, { settings: { trusted_proxies: ['10.0.0.1'] } })),
		'203.0.113.9 10.0.0.1',
	);
	assert.is(bodyText(await serveRequest(steps, request)), '10.0.0.1 10.0.0.1');
});

ip.run();

const combined = suite('all, any, not');

combined('all, any and not can be nested, and stop early', () => {
	const yes = { type: 'method', methods: ['GET'] };
	const no = { type: 'method', methods: ['POST'] };
	const bad = { type: 'path', patterns: ['/x'] };
	const all = (...of: Matcher[]) => ({ type: 'all', of });
	const any = (...of: Matcher[]) => ({ type: 'any', of });
	const not = (of: Matcher) => ({ type: 'not', of });
	assert.is(matcherHolds(all()), true);
	assert.is(matcherHolds(any()), false);
	assert.is(matcherHolds(all(yes, yes, yes, yes)), true);
	assert.is(matcherHolds(all(yes, yes, yes, no)), false);
	assert.is(matcherHolds(any(no, no, yes)), true);
	assert.is(matcherHolds(any(no, no)), false);
	assert.is(matcherHolds(not(all(yes, any(no, not(yes))))), true);
	// A malformed path is an error only if its matcher is evaluated.
	assert.is(matcherHolds(all(no, bad), { target: '/%' }), false);
	assert.is(matcherHolds(any(yes, bad), { target: '/%' }), true);
});

combined.run();

const registry = suite('matcher registry');

registry('every module is documented and has a unique name', () => {
	assert.is(new Set(matchers.map(module => module.id)).size, matchers.length);
	for (const module of matchers) {
		assert.ok(module.summary.endsWith('.'), module.id);
		assert.match(module.documentation, '```', module.id);
	}
});

registry('two matchers of one kind merge into alternatives', () => {
	const merged = (a: Matcher, b: Matcher) => matchers.find(module => module.id === a.type)!.merge?.(a, b);
	assert.equal(merged({ type: 'path', patterns: ['/a'] }, { type: 'path', patterns: ['/b', '/a'] }), {
		type: 'path',
		patterns: ['/a', '/b'],
	});
	assert.equal(
		merged(
			{ type: 'query', parameters: { foo: ['bar', 'baz'], bar: ['foo'] } },
			{ type: 'query', parameters: { bar: ['baz'] } },
		),
		{ type: 'query', parameters: { foo: ['bar', 'baz'], bar: ['foo', 'baz'] } },
	);
	assert.equal(merged({ type: 'header', name: 'Foo', values: ['a'] }, { type: 'header', name: 'foo', values: ['b'] }), {
		type: 'header',
		name: 'Foo',
		values: ['a', 'b'],
	});
	assert.is(
		merged({ type: 'header', name: 'Foo', values: ['a'] }, { type: 'header', name: 'Bar', values: ['b'] }),
		undefined,
	);
});

registry.run();

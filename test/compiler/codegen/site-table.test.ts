/**
 * The selection of the site that serves a request: the order of sites, wildcards, address paths, and unusual spellings of hosts.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { ListenedSite } from '../../../compiler/codegen/plan/plan.ts';
import { SiteTable } from '../../../compiler/codegen/site-table.ts';
import { parseAuthority } from '../../../compiler/exchange/authority.ts';
import { fakeExchange } from '../fake-exchange.ts';

const test = suite('site table');

function siteLookup(...hosts: readonly (readonly string[])[]): (authority: string, target?: string) => number {
	const sites = new SiteTable(hosts.map((names, site): ListenedSite => ({ site, hosts: names, paths: [] })));
	return (authority, target = '/') => sites.findSiteIndex(fakeExchange({ authority, target }).request);
}

test('exact hosts match regardless of case, trailing dot and port', () => {
	const find = siteLookup(['a.test'], ['b.test', 'c.test']);
	for (const authority of ['a.test', 'A.TEST', 'a.test.', 'a.test:8080', 'A.Test.:1'])
		assert.is(find(authority), 0, authority);
	assert.is(find('c.test'), 1);
	assert.is(find('d.test'), -1);
	assert.is(find('xa.test'), -1);
});

test('the catch-all site serves the remaining hosts', () => {
	const find = siteLookup(['a.test'], []);
	assert.is(find('a.test'), 0);
	assert.is(find('b.test'), 1);
	assert.is(find('[::1]:80'), 1);
});

test('wildcards match one label, and exact hosts take precedence', () => {
	const find = siteLookup(['www.example.com'], ['*.example.com'], ['*.*.com'], ['*'], []);
	assert.is(find('www.example.com'), 0);
	assert.is(find('api.example.com'), 1);
	assert.is(find('a.b.com'), 2);
	assert.is(find('localhost'), 3);
	assert.is(find('example.com'), 4);
	assert.is(find('a.b.example.com'), 4);
});

test('the first matching site in search order wins, even if a later one is more exact', () => {
	const find = siteLookup(['*.io', 'very-long-host.example.com'], ['short.io'], []);
	assert.is(find('short.io'), 0);
	const before = siteLookup([], ['short.io']);
	assert.is(before('short.io'), 0);
});

test('C5: the order of the sites decides; hosts next to a catch-all do not limit it', () => {
	const find = siteLookup(['abcdefg'], ['abcdef'], ['abcde'], ['abc'], []);
	assert.is(find('abcdef'), 1);
	assert.is(find('abcdefg'), 0);
	assert.is(find('ab'), 4);
});

test('address paths are checked, and the next site is tried if they do not match', () => {
	const sites = new SiteTable([
		{ site: 7, hosts: ['a.test'], paths: ['/x'] },
		{ site: 3, hosts: ['a.test'], paths: ['/y*'] },
		{ site: 5, hosts: ['a.test'], paths: [] },
	]);
	const find = (target: string) => sites.findSiteIndex(fakeExchange({ authority: 'a.test', target }).request);
	assert.is(find('/x'), 7);
	assert.is(find('//X'), 7);
	assert.is(find('/yz'), 3);
	assert.is(find('/x/y'), 5);
});

test('a lookup among ten thousand sites takes as long as one among a single site', () => {
	const hosts = Array.from({ length: 10_000 }, (_, i) => [`site-${i}.example.test`]);
	const sites = new SiteTable([...hosts, ['*.example.test']].map((names, site) => ({ site, hosts: names, paths: [] })));
	const requests = Array.from(
		{ length: 100 },
		(_, i) => fakeExchange({ authority: `site-${i * 97}.example.test` }).request,
	);
	const startedAt = performance.now();
	for (let round = 0; round < 1000; round++) {
		for (let i = 0; i < requests.length; i++) if (sites.findSiteIndex(requests[i]!) !== i * 97) assert.unreachable();
	}
	assert.ok(performance.now() - startedAt < 4000);
	assert.is(sites.findSiteIndex(fakeExchange({ authority: 'other.example.test' }).request), 10_000);
});

test.run();

const authority = suite('authority');

authority('has exactly one accepted spelling', () => {
	for (const [text, host, port] of [
		['example.com', 'example.com', undefined],
		['EXAMPLE.com.:080', 'example.com', 80],
		['a:', 'a', undefined],
		['a:65535', 'a', 65535],
		['[2001:DB8::0:1]:443', '2001:db8::1', 443],
		['[::ffff:1.2.3.4]', '1.2.3.4', undefined],
		['a_b.test', 'a_b.test', undefined],
	] as const) {
		assert.equal(parseAuthority(text), { host, port }, text);
	}
	for (const text of [
		'',
		':80',
		'a:65536',
		'a:x',
		'a:1:2',
		'a b',
		'a/b',
		'a@b',
		'a%41',
		'a\u00e9',
		'[::1',
		'[::1]x',
		'[fe80::1%25eth0]',
		'[1.2.3.4]',
		'::1',
		'a#b',
		'a?b',
		'a\\b',
		`${'a'.repeat(256)}`,
	]) {
		assert.is(parseAuthority(text), undefined, text);
	}
});

authority.run();

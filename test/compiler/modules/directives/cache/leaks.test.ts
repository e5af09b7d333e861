/**
 * Every known way in which a cache has served one user's response to another, or an attacker's response to everyone. In each
 * case, the origin's response to the first user contains sensitive data, which the second user must not receive.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Exchange } from '../../../../../compiler/exchange/exchange.ts';
import type { CacheRules } from '../../../../../compiler/modules/directives/cache/cache-handler.ts';
import type { RequestFields } from '../../../fake-exchange.ts';
import { CachedSite, type OriginAnswer } from './cached-site.ts';

interface Leak {
	readonly name: string;
	readonly rules?: Partial<CacheRules>;
	/** Computes the origin's response to a request. */
	readonly origin: (x: Exchange) => OriginAnswer;
	readonly first: RequestFields & { readonly target?: string };
	readonly second: RequestFields & { readonly target?: string };
	/** Text that must not appear in the second response. */
	readonly secret: string;
	/** True if the second response may come from the cache, because the sensitive data was removed before the first was stored. */
	readonly kept?: true;
}

const TTL: Partial<CacheRules> = { ttlMsByStatus: new Map([['', 60_000]]) };
const freshAnswer = (body: string, ...more: (readonly [string, string])[]): OriginAnswer => ({
	headers: [['Cache-Control', 'max-age=60'], ...more],
	body,
});
const echo = (name: string) => (x: Exchange) => freshAnswer(`<a href="//${x.request.headers.get(name) ?? 'site'}">`);
const evil = (name: string) => ({
	first: { headers: [[name, 'evil.test']] as const },
	second: {},
	secret: 'evil.test',
});
const hello = (x: Exchange): string =>
	`hello ${x.request.headers.get('cookie') ?? x.request.headers.get('authorization') ?? 'nobody'}`;
const page = (text: string): OriginAnswer => ({ headers: [['Content-Type', 'text/html']], body: text });

// biome-ignore format: one leak per line
const LEAKS: readonly Leak[] = [
	{ name: 'an answer to a user with Authorization', origin: x => freshAnswer(hello(x)), first: { headers: [['Authorization', 'Basic ann']] }, second: {}, secret: 'ann' },
	{ name: 'the same, kept only because of `ttl`', rules: TTL, origin: x => ({ body: hello(x) }), first: { headers: [['Authorization', 'Basic ann']] }, second: {}, secret: 'ann' },
	{ name: 'an answer to a session cookie that says max-age', origin: x => freshAnswer(hello(x)), first: { headers: [['Cookie', 'session=ann']] }, second: { headers: [['Cookie', 'session=bob']] }, secret: 'ann' },
	{ name: 'the same, kept only because of `ttl`', rules: TTL, origin: x => ({ body: hello(x) }), first: { headers: [['Cookie', 'session=ann']] }, second: {}, secret: 'ann' },
	{ name: 'an answer that sets a cookie', origin: x => ({ headers: [['Cache-Control', 'public, max-age=60'], ['Set-Cookie', `session=${x.request.headers.get('x-user')}`]], body: `you are ${x.request.headers.get('x-user')}` }), first: { headers: [['X-User', 'ann']] }, second: {}, secret: 'ann' },
	{ name: 'cache deception by a suffix of the path', rules: TTL, origin: () => page('card number of ann'), first: { target: '/account/x.css' }, second: { target: '/account/x.css', headers: [['X-Second', '1']] }, secret: 'never' },
	...['/account%2fx.css', '/account;x.css', '/account%00x.css', '/account%23x.css', '/account%3fx.css', '/account/%2e%2e/x.js', '/account/x.CSS', '/account/x.png?v=1'].map((target): Leak => ({ name: `cache deception by ${target}`, rules: TTL, origin: () => page('card number of ann'), first: { target }, second: { target, headers: [['X-Second', '1']] }, secret: 'never' })),
	{ name: 'a field that a path seems to add to a key of the configuration’s own', rules: { renderKey: x => decodeURIComponent(x.request.path) }, origin: x => freshAnswer(`path ${x.request.path}`), first: { target: '/a%0Ax-host:b' }, second: { target: '/a', headers: [['X-Host', 'b']] }, secret: '%0A' },
	{ name: 'a page of an error that names a user', rules: TTL, origin: x => ({ status: 500, body: hello(x) }), first: { headers: [['Cookie', 'ann']] }, second: {}, secret: 'ann' },
	{ name: 'unkeyed X-Forwarded-Host', origin: echo('x-forwarded-host'), ...evil('X-Forwarded-Host') },
	{ name: 'unkeyed X-Host', origin: echo('x-host'), ...evil('X-Host') },
	{ name: 'unkeyed X-Forwarded-Server', origin: echo('x-forwarded-server'), ...evil('X-Forwarded-Server') },
	{ name: 'unkeyed X-Original-Host', origin: echo('x-original-host'), ...evil('X-Original-Host') },
	{ name: 'unkeyed host in Forwarded', origin: echo('forwarded'), first: { headers: [['Forwarded', 'for=1.2.3.4;host=evil.test']] }, second: {}, secret: 'evil.test' },
	{ name: 'unkeyed X-Forwarded-Proto', origin: echo('x-forwarded-proto'), ...evil('X-Forwarded-Proto') },
	{ name: 'unkeyed X-Forwarded-Scheme', origin: echo('x-forwarded-scheme'), ...evil('X-Forwarded-Scheme') },
	{ name: 'unkeyed X-Forwarded-Port', origin: echo('x-forwarded-port'), ...evil('X-Forwarded-Port') },
	{ name: 'unkeyed X-Forwarded-Prefix', origin: echo('x-forwarded-prefix'), ...evil('X-Forwarded-Prefix') },
	...['X-Forwarded-Protocol', 'X-Forwarded-Path', 'X-Forwarded-Uri', 'X-Forwarded-Url', 'X-HTTP-Host-Override', 'X-Backend-Host', 'X-Scheme', 'X-Script-Name', 'x-FORWARDED-hOST', 'X_Forwarded_Host', 'X-Forwarded_Proto', 'X_Http_Method_Override', 'X_Original_URL', 'X-Override-URL'].map((name): Leak => ({ name: `unkeyed ${name}`, origin: echo(name.toLowerCase()), ...evil(name) })),
	{ name: 'two values of one field', origin: x => freshAnswer(x.request.headers.getCombined('x-forwarded-host') ?? 'site'), first: { headers: [['X-Forwarded-Host', 'site'], ['X-Forwarded-Host', 'evil.test']] }, second: { headers: [['X-Forwarded-Host', 'site']] }, secret: 'evil' },
	{ name: 'a HEAD with a body', origin: x => freshAnswer(`${x.request.body ?? 'page'}`), first: { method: 'HEAD', body: 'evil' }, second: {}, secret: 'evil' },
	{ name: 'a range with a condition that the origin judges', origin: x => (x.request.headers.has('range') ? { status: 206, headers: [['Cache-Control', 'max-age=60'], ['Content-Range', 'bytes 0-3/9']], body: 'part' } : freshAnswer('the whole')), first: { headers: [['Range', 'bytes=0-3'], ['If-Range', '"a"']] }, second: { headers: [['If-Range', '"a"']] }, secret: 'part' },
	{ name: 'a method in the query', origin: x => freshAnswer(x.request.query ?? 'none'), first: { target: '/?_method=DELETE' }, second: { target: '/' }, secret: 'DELETE' },
	{ name: 'Vary by a field whose commas and spaces tell users apart', origin: x => ({ headers: [['Cache-Control', 'max-age=60'], ['Vary', 'X-User']], body: `hello ${x.request.headers.get('x-user')}` }), first: { headers: [['X-User', 'ann, bob']] }, second: { headers: [['X-User', 'ann,bob']] }, secret: 'ann, bob' },
	{ name: 'Vary by more fields than anybody compares', origin: x => ({ headers: [['Cache-Control', 'max-age=60'], ['Vary', Array.from({ length: 2000 }, (_, i) => `x-${i}`).join(', ')]], body: hello(x) }), first: { headers: [['X-1', 'ann']] }, second: { headers: [['X-1', 'ann']] }, secret: 'never' },
	{ name: 'a coding that only the first client knows', origin: x => ({ headers: [['Cache-Control', 'max-age=60'], ['Vary', 'Accept-Encoding'], ...(x.request.headers.get('accept-encoding')?.includes('dcz') ? [['Content-Encoding', 'dcz'] as const] : [])], body: x.request.headers.get('accept-encoding') ?? '' }), first: { headers: [['Accept-Encoding', 'gzip, dcz']] }, second: { headers: [['Accept-Encoding', 'gzip']] }, secret: 'dcz' },
	{ name: 'X-Original-URL', origin: echo('x-original-url'), ...evil('X-Original-URL') },
	{ name: 'X-Rewrite-URL', origin: echo('x-rewrite-url'), ...evil('X-Rewrite-URL') },
	{ name: 'X-HTTP-Method-Override', origin: echo('x-http-method-override'), ...evil('X-HTTP-Method-Override') },
	{ name: 'X-HTTP-Method', origin: echo('x-http-method'), ...evil('X-HTTP-Method') },
	{ name: 'X-Method-Override', origin: echo('x-method-override'), ...evil('X-Method-Override') },
	{ name: 'the port of the authority', origin: x => freshAnswer(`//${x.request.authority}/`), first: { authority: 'example.test:1337' }, second: {}, secret: '1337' },
	{ name: 'another host', origin: x => freshAnswer(`//${x.request.authority}/`), first: { authority: 'evil.test' }, second: {}, secret: 'evil' },
	{ name: 'a dot behind the host', origin: x => freshAnswer(`//${x.request.authority}/`), first: { authority: 'example.test.' }, second: {}, secret: 'test./' },
	{ name: 'another scheme', origin: x => freshAnswer(`${x.request.scheme}:`), first: { scheme: 'https' }, second: {}, secret: 'https' },
	{ name: 'a GET with a body', origin: x => freshAnswer(`you said ${x.request.body}`), first: { body: 'evil' }, second: {}, secret: 'evil' },
	{ name: 'letter case of the path', origin: x => freshAnswer(x.request.path), first: { target: '/ADMIN' }, second: { target: '/admin' }, secret: 'ADMIN' },
	{ name: 'an encoded slash', origin: x => freshAnswer(x.request.path), first: { target: '/a%2fb' }, second: { target: '/a/b' }, secret: '%2f' },
	{ name: 'an encoded letter', origin: x => freshAnswer(x.request.path), first: { target: '/%61' }, second: { target: '/a' }, secret: '%61' },
	{ name: 'dots in the path', origin: x => freshAnswer(x.request.path), first: { target: '/x/../a' }, second: { target: '/a' }, secret: '..' },
	{ name: 'two slashes', origin: x => freshAnswer(x.request.path), first: { target: '//a' }, second: { target: '/a' }, secret: '//' },
	{ name: 'an encoded question mark', origin: x => freshAnswer(x.received.path), first: { target: '/a%3fb' }, second: { target: '/a?b' }, secret: '%3f' },
	{ name: 'an empty query', origin: x => freshAnswer(`query ${x.request.query === undefined ? 'none' : 'empty'}`), first: { target: '/?' }, second: { target: '/' }, secret: 'empty' },
	{ name: 'a parameter given twice', origin: x => freshAnswer(x.request.query ?? ''), first: { target: '/?a=1&a=2' }, second: { target: '/?a=1' }, secret: 'a=2' },
	{ name: 'Vary: *', origin: x => freshAnswer(hello(x), ['Vary', '*']), first: { headers: [['Authorization', 'ann']] }, second: {}, secret: 'ann' },
	{ name: 'Vary: Cookie', origin: x => ({ headers: [['Cache-Control', 'public, max-age=60'], ['Vary', 'Cookie']], body: hello(x) }), first: { headers: [['Cookie', 'ann']] }, second: { headers: [['Cookie', 'bob']] }, secret: 'ann' },
	{ name: 'a part served for the whole', origin: x => (x.request.headers.has('range') ? { status: 206, headers: [['Cache-Control', 'max-age=60'], ['Content-Range', 'bytes 0-3/9']], body: 'part' } : freshAnswer('the whole')), first: { headers: [['Range', 'bytes=0-3']] }, second: {}, secret: 'part' },
	{ name: 'an empty HEAD served for the GET', origin: x => ({ ...freshAnswer(x.request.method === 'HEAD' ? 'empty' : 'full') }), first: { method: 'HEAD' }, second: {}, secret: 'empty' },
	{ name: 'a 304 served for the whole', origin: x => (x.request.headers.has('if-none-match') ? { status: 304, headers: [['Cache-Control', 'max-age=60']], body: 'not modified' } : freshAnswer('the whole')), first: { headers: [['If-None-Match', '"x"']] }, second: {}, secret: 'not modified', kept: true },
	{ name: 'a 416 served for the whole', origin: x => (x.request.headers.has('range') ? { status: 416, headers: [['Cache-Control', 'max-age=60']], body: 'no range' } : freshAnswer('the whole')), first: { headers: [['Range', 'bytes=99-']] }, second: {}, secret: 'no range' },
	{ name: 'a 400 to a field that the origin refuses (CPDoS)', rules: { ttlMsByStatus: new Map([['4xx', 60_000]]) }, origin: x => (x.request.headers.has('x-oversized') ? { status: 400, headers: [['Cache-Control', 'public, max-age=60']], body: 'refused' } : freshAnswer('page')), first: { headers: [['X-Oversized', 'x'.repeat(9000)]] }, second: {}, secret: 'refused' },
	...[408, 411, 412, 413, 415, 417, 421, 422, 425, 426, 428, 429, 431, 511].map((status): Leak => ({ name: `a ${status} to one request`, rules: { ttlMsByStatus: new Map([['4xx', 60_000], ['5xx', 60_000]]) }, origin: x => (x.request.headers.has('x-bad') ? { status, headers: [['Cache-Control', 'public, s-maxage=60']], body: 'refused' } : freshAnswer('page')), first: { headers: [['X-Bad', '\u0001']] }, second: {}, secret: 'refused' })),
	{ name: 'an Upgrade', origin: echo('upgrade'), ...evil('Upgrade') },
	{ name: 'private, whatever else is said', rules: TTL, origin: x => ({ headers: [['Cache-Control', 'private, s-maxage=60, public']], body: hello(x) }), first: { headers: [['Authorization', 'ann']] }, second: {}, secret: 'ann' },
];

const leaks = suite('cache leaks');

for (const { name, rules, origin, first, second, secret, kept } of LEAKS) {
	leaks(name, async () => {
		const site = new CachedSite(rules).script(origin);
		await site.get(first.target, first);
		const victim = await site.get(second.target, second);
		assert.is(site.asked.length, kept ? 1 : 2, 'the second request must reach the origin');
		assert.is(victim.cache === 'hit', kept === true);
		assert.not.match(victim.body, secret);
	});
}

leaks('a real image is cached, and so is a page whose name has no extension', async () => {
	const site = new CachedSite(TTL).script(
		{ headers: [['Content-Type', 'image/png']] },
		{ headers: [['Content-Type', 'text/html; charset=utf-8']] },
	);
	for (const target of ['/a.png', '/page']) {
		await site.get(target);
		assert.is((await site.get(target)).cache, 'hit', target);
	}
});

leaks("fields set on one request's response before the cache are not stored", async () => {
	const site = new CachedSite().script(freshAnswer('a'));
	const get = async (id: string) => {
		const x = (await site.get('/', { headers: [['X-Id', id]] })).x;
		return [...x.response.headers].map(([name]) => name);
	};
	assert.ok(!(await get('1')).includes('Server'));
	assert.ok(!(await get('2')).includes('Server'), 'a field removed by the origin stays removed');
});

leaks('a value with a line break never becomes part of another response', async () => {
	// The HTTP parser rejects fields with line breaks. The store must not split such a field either when it is converted to JSON.
	const site = new CachedSite().script(freshAnswer('a', ['X-A', 'b\r\nSet-Cookie: c=d']));
	await site.get();
	const hit = await site.get();
	assert.is(hit.cache, 'hit');
	assert.is(hit.field('set-cookie'), undefined);
});

leaks("background revalidation is sent without the client's credentials", async () => {
	const site = new CachedSite().script({ headers: [['Cache-Control', 'max-age=1, stale-while-revalidate=60']] });
	const user = {
		headers: [
			['Cookie', 'session=ann'],
			['Authorization', 'Basic ann'],
		] as const,
	};
	await site.get();
	assert.is((await site.wait(5).get('/', user)).cache, 'stale');
	await new Promise(resolve => setImmediate(resolve));
	assert.is(site.asked.length, 2);
	assert.is(site.asked[1]!.headers.get('cookie'), undefined);
	assert.is(site.asked[1]!.headers.get('authorization'), undefined);
	assert.is((await site.get('/', user)).cache, 'hit', 'the revalidated response was stored');
});

leaks('a response stored for credentials is revalidated with them', async () => {
	const site = new CachedSite().script({
		headers: [['Cache-Control', 'public, max-age=1, stale-while-revalidate=60']],
	});
	const user = { headers: [['Authorization', 'Basic ann']] as const };
	await site.get('/', user);
	assert.is((await site.wait(5).get('/', user)).cache, 'stale');
	await new Promise(resolve => setImmediate(resolve));
	assert.is(site.asked[1]!.headers.get('authorization'), 'Basic ann');
});

leaks('a response in an uncommon coding is served only to clients that list it', async () => {
	const site = new CachedSite().script(freshAnswer('a', ['Vary', 'Accept-Encoding'], ['Content-Encoding', 'dcz']));
	const asked = (codings: string) => site.get('/', { headers: [['Accept-Encoding', codings]] });
	await asked('gzip, dcz');
	assert.is((await asked('gzip, dcz')).cache, 'hit');
	assert.is((await asked('gzip')).cache, 'miss');
});

leaks('entries stored at one place of a site are not used at another', async () => {
	const cache = new CachedSite().script(freshAnswer('a'));
	await cache.get();
	assert.is((await cache.get()).cache, 'hit');
	const { key } = { key: (x: Exchange) => x.request.path };
	const mine = new CachedSite({ renderKey: key, stepPlace: ' /pipeline/1 ' }).script(freshAnswer('b'));
	assert.is((await mine.get('/?x')).cache, 'miss');
	assert.is((await mine.get('/?y')).cache, 'hit', 'the configured key omits the query');
});

leaks.run();

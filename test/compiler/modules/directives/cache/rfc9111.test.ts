/**
 * The requirements of RFC 9111 (and of RFC 5861, 9211 and 9213) for a shared cache, as a table. Each row has the origin's
 * responses and the clients' requests with their times, and says which requests must reach the origin.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { FakeCache } from '../../../../../compiler/dry-run/fake-cache.ts';
import type { Exchange } from '../../../../../compiler/exchange/exchange.ts';
import type { FetchOutcome, FetchTicket } from '../../../../../compiler/exchange/response-cache.ts';
import type { CacheRules } from '../../../../../compiler/modules/directives/cache/cache-handler.ts';
import type { RequestFields } from '../../../fake-exchange.ts';
import { CachedSite, type ClientAnswer, dateAt, type OriginAnswer } from './cached-site.ts';

interface Visit {
	/** Number of seconds since the previous request. */
	readonly after?: number;
	readonly target?: string;
	readonly with?: RequestFields;
	/** The expected cache status. */
	readonly is: 'hit' | 'miss' | 'stale' | 'bypass';
	readonly status?: number;
	readonly body?: string;
	/** Expected response fields; null means absent. */
	readonly fields?: { readonly [name: string]: string | null };
	/** Expected fields of the request to the origin; null means absent. */
	readonly sent?: { readonly [name: string]: string | null };
}

interface Requirement {
	readonly section: string;
	readonly level: 'MUST' | 'SHOULD' | 'MAY';
	readonly text: string;
	readonly rules?: Partial<CacheRules>;
	readonly origin: readonly OriginAnswer[];
	readonly visits: readonly Visit[];
}

const fields = (...list: (readonly [string, string])[]): OriginAnswer => ({ headers: list });
const cc = (value: string): OriginAnswer => fields(['Cache-Control', value]);
const ask = (...headers: (readonly [string, string])[]): RequestFields => ({ headers });
const HIT: readonly Visit[] = [{ is: 'miss' }, { is: 'hit' }];
const MISS: readonly Visit[] = [{ is: 'miss' }, { is: 'miss' }];
const FRESH = cc('max-age=60');
const OF_ALL = fields(['Cache-Control', 'public, max-age=1'], ['ETag', '"a"'], ['X-User', 'nobody']);
const confirmedFor = (control: string, user: string): OriginAnswer => ({
	status: 304,
	headers: [
		['ETag', '"a"'],
		['Cache-Control', control],
		['X-User', user],
	],
	body: null,
});
const CONFIRMED_FOR_ANN: readonly Visit[] = [
	{ is: 'miss' },
	{ after: 5, is: 'hit', with: ask(['Cookie', 'ann']), body: 'answer 1', fields: { 'X-User': 'ann' } },
];

// biome-ignore format: one requirement per line
const REQUIREMENTS: readonly Requirement[] = [
	{ section: '2', level: 'MUST', text: 'the cache key contains the URI', origin: [FRESH], visits: [{ is: 'miss', target: '/a' }, { is: 'miss', target: '/b' }, { is: 'miss', target: '/a?q' }, { is: 'hit', target: '/a' }] },
	{ section: '3', level: 'MUST', text: 'a fresh response is stored', origin: [FRESH], visits: HIT },
	{ section: '3', level: 'MUST', text: 'no-store is not stored', origin: [cc('no-store, max-age=60')], visits: MISS },
	{ section: '3', level: 'MUST', text: 'private is not stored', origin: [cc('private, max-age=60')], visits: MISS },
	{ section: '3', level: 'MUST', text: 'a response without a freshness lifetime is not stored', origin: [{}], visits: MISS },
	{ section: '3', level: 'MUST', text: 'a partial response is not stored as a complete one', origin: [{ status: 206, headers: [['Cache-Control', 'max-age=60'], ['Content-Range', 'bytes 0-1/9']] }], visits: MISS },
	{ section: '3', level: 'MUST', text: 'only responses to known methods are stored', origin: [FRESH], visits: [{ is: 'bypass', with: { method: 'POST' } }, { is: 'bypass', with: { method: 'POST' } }, { is: 'miss' }] },
	{ section: '3', level: 'MUST', text: 'must-understand: a response with an unknown status is not stored', origin: [{ status: 299, headers: [['Cache-Control', 'must-understand, max-age=60']] }], visits: MISS },
	{ section: '5.2.2.3', level: 'SHOULD', text: 'must-understand: with a known status, no-store is ignored', origin: [cc('must-understand, no-store, max-age=60')], visits: HIT },
	{ section: '3', level: 'MAY', text: 'any final status with explicit freshness is stored', origin: [{ status: 418, headers: [['Cache-Control', 'max-age=60']] }], visits: HIT },
	{ section: '3.1', level: 'MUST', text: 'hop-by-hop fields are not stored', origin: [fields(['Cache-Control', 'max-age=60'], ['Connection', 'X-Hop'], ['X-Hop', '1'], ['Keep-Alive', 'x'], ['Proxy-Authenticate', 'Basic'])], visits: [{ is: 'miss' }, { is: 'hit', fields: { Connection: null, 'X-Hop': null, 'Keep-Alive': null, 'Proxy-Authenticate': null } }] },
	{ section: '3.2', level: 'MUST', text: 'a 304 updates the stored fields, except those that describe the content', origin: [fields(['Cache-Control', 'max-age=1'], ['ETag', '"a"'], ['X-A', '1'], ['Content-Type', 'text/plain']), { status: 304, headers: [['ETag', '"a"'], ['X-A', '2'], ['Cache-Control', 'max-age=60'], ['Content-Type', 'text/html'], ['Content-Encoding', 'br']], body: null }], visits: [{ is: 'miss' }, { after: 5, is: 'hit', body: 'answer 1', fields: { 'X-A': '2', 'Content-Type': 'text/plain', 'Content-Encoding': null }, sent: { 'if-none-match': '"a"' } }, { after: 30, is: 'hit', fields: { 'X-A': '2' } }] },
	{ section: '3.2', level: 'MUST', text: 'a private 304 applies to its own client only', origin: [OF_ALL, confirmedFor('private, max-age=60', 'ann'), confirmedFor('public, max-age=60', 'nobody')], visits: [...CONFIRMED_FOR_ANN, { is: 'hit', body: 'answer 1', fields: { 'X-User': 'nobody' }, sent: { 'if-none-match': '"a"' } }, { after: 30, is: 'hit', fields: { 'X-User': 'nobody' } }] },
	{ section: '3.2', level: 'MUST', text: '… and so does one with no-store', origin: [OF_ALL, confirmedFor('no-store, max-age=60', 'ann'), confirmedFor('public, max-age=60', 'nobody')], visits: [...CONFIRMED_FOR_ANN, { is: 'hit', fields: { 'X-User': 'nobody' } }] },
	{ section: '3.2', level: 'MUST', text: '… and so does one for a request that forbids storing', origin: [OF_ALL, confirmedFor('max-age=60', 'ann'), confirmedFor('max-age=60', 'nobody')], visits: [{ is: 'miss' }, { after: 5, is: 'hit', with: ask(['Cache-Control', 'no-store']), fields: { 'X-User': 'ann' } }, { is: 'hit', fields: { 'X-User': 'nobody' } }] },
	{ section: '3.2', level: 'MUST', text: '… but for a request without credentials, it shows that the stored response is not for everyone', origin: [OF_ALL, confirmedFor('private', 'ann'), FRESH], visits: [{ is: 'miss' }, { after: 5, is: 'hit', fields: { 'X-User': 'ann' } }, { is: 'miss', body: 'answer 3', sent: { 'if-none-match': null } }] },
	{ section: '3.2', level: 'MUST', text: 'fields that `private` lists in a 304 are not stored', origin: [OF_ALL, confirmedFor('max-age=60, private="x-user"', 'ann')], visits: [{ is: 'miss' }, { after: 5, is: 'hit', fields: { 'X-User': 'ann' } }, { is: 'hit', fields: { 'X-User': null } }] },
	{ section: '3.2', level: 'MUST', text: 'a cookie that a 304 sets reaches its own client only', origin: [OF_ALL, { status: 304, headers: [['ETag', '"a"'], ['Cache-Control', 'public, max-age=60'], ['Set-Cookie', 'session=ann']], body: null }, confirmedFor('max-age=60', 'nobody')], visits: [{ is: 'miss' }, { after: 5, is: 'hit', with: ask(['Cookie', 'session=a']), fields: { 'Set-Cookie': 'session=ann' } }, { is: 'hit', fields: { 'Set-Cookie': null, 'X-User': 'nobody' } }] },
	{ section: '3.5', level: 'MUST', text: 'a 304 for a request with Authorization applies to its own client only', origin: [OF_ALL, confirmedFor('max-age=60', 'ann'), confirmedFor('max-age=60', 'nobody')], visits: [{ is: 'miss' }, { after: 5, is: 'hit', with: ask(['Authorization', 'Basic a']), fields: { 'X-User': 'ann' } }, { is: 'hit', fields: { 'X-User': 'nobody' } }] },
	{ section: '3.5', level: 'MUST', text: '… unless it is public', origin: [OF_ALL, confirmedFor('public, max-age=60', 'all')], visits: [{ is: 'miss' }, { after: 5, is: 'hit', with: ask(['Authorization', 'Basic a']), fields: { 'X-User': 'all' } }, { after: 30, is: 'hit', fields: { 'X-User': 'all' } }] },
	{ section: '4.1', level: 'MUST', text: 'the Vary of a 304 counts for selection, too', origin: [OF_ALL, { status: 304, headers: [['ETag', '"a"'], ['Cache-Control', 'max-age=60'], ['Vary', 'Accept-Language']], body: null }, FRESH], visits: [{ is: 'miss' }, { after: 5, is: 'hit', with: ask(['Accept-Language', 'en']), body: 'answer 1' }, { is: 'miss', with: ask(['Accept-Language', 'de']), body: 'answer 3' }, { is: 'hit', with: ask(['Accept-Language', 'en']), body: 'answer 1' }] },
	{ section: '3.5', level: 'MUST', text: 'responses to requests with Authorization are not stored', origin: [FRESH], visits: [{ is: 'miss', with: ask(['Authorization', 'Basic a']) }, { is: 'miss' }] },
	{ section: '3.5', level: 'MUST', text: '… unless they are public', origin: [cc('public, max-age=60')], visits: [{ is: 'miss', with: ask(['Authorization', 'Basic a']) }, { is: 'hit' }] },
	{ section: '3.5', level: 'MUST', text: '… or have s-maxage', origin: [cc('s-maxage=60')], visits: [{ is: 'miss', with: ask(['Authorization', 'Basic a']) }, { is: 'hit' }] },
	{ section: '3.5', level: 'MUST', text: '… or have must-revalidate', origin: [cc('max-age=60, must-revalidate')], visits: [{ is: 'miss', with: ask(['Authorization', 'Basic a']) }, { is: 'hit' }] },
	{ section: '4', level: 'MUST', text: 'stored responses are sent with Age', origin: [FRESH], visits: [{ is: 'miss', fields: { Age: null } }, { after: 7, is: 'hit', fields: { Age: '7' } }] },
	{ section: '4', level: 'MUST', text: 'a no-cache response is not served without validation', origin: [fields(['Cache-Control', 'no-cache, max-age=60'], ['ETag', '"a"']), { status: 304, headers: [['ETag', '"a"']], body: null }], visits: [{ is: 'miss' }, { is: 'hit', body: 'answer 1', sent: { 'if-none-match': '"a"' } }] },
	{ section: '5.2.2.4', level: 'MAY', text: 'a response with no-cache alone is stored for validation', origin: [fields(['Cache-Control', 'no-cache'], ['ETag', '"a"']), { status: 304, headers: [['ETag', '"a"'], ['Cache-Control', 'no-cache']], body: null }], visits: [{ is: 'miss', fields: { 'Cache-Status': 'svc; fwd=uri-miss; stored' } }, { is: 'hit', body: 'answer 1', sent: { 'if-none-match': '"a"' }, fields: { 'Cache-Status': 'svc; fwd=stale; fwd-status=304' } }, { is: 'hit', body: 'answer 1', sent: { 'if-none-match': '"a"' } }] },
	{ section: '5.2.2.4', level: 'MAY', text: '… by its Last-Modified', origin: [fields(['Cache-Control', 'no-cache'], ['Last-Modified', dateAt(-99)]), { status: 304, body: null }], visits: [{ is: 'miss' }, { is: 'hit', body: 'answer 1', sent: { 'if-modified-since': dateAt(-99) } }] },
	{ section: '5.2.2.4', level: 'MUST', text: '… but not without a validator', origin: [cc('no-cache')], visits: [{ is: 'miss', fields: { 'Cache-Status': 'svc; fwd=uri-miss' } }, { is: 'miss', sent: { 'if-none-match': null } }] },
	{ section: '5.2.2.4', level: 'MUST', text: '… nor with a status that is not cacheable by default', origin: [{ status: 302, headers: [['Cache-Control', 'no-cache'], ['ETag', '"a"']] }], visits: [{ is: 'miss', status: 302 }, { is: 'miss', sent: { 'if-none-match': null } }] },
	{ section: '5.2.2.4', level: 'MUST', text: '… nor for a request with a cookie', origin: [fields(['Cache-Control', 'no-cache'], ['ETag', '"a"'])], visits: [{ is: 'miss', with: ask(['Cookie', 'a=1']) }, { is: 'miss', sent: { 'if-none-match': null } }] },
	{ section: '5.2.2.4', level: 'MUST', text: '… and is never served stale, even if the origin fails', rules: { staleIfErrorMs: 60_000, staleWhileRevalidateMs: 60_000 }, origin: [fields(['Cache-Control', 'no-cache'], ['ETag', '"a"']), { fails: true }], visits: [{ is: 'miss' }, { is: 'miss', status: 502 }] },
	{ section: '4', level: 'MUST', text: 'unsafe methods go to the origin', origin: [FRESH], visits: [{ is: 'miss' }, { is: 'bypass', with: { method: 'DELETE' } }] },
	{ section: '4.1', level: 'MUST', text: 'Vary selects a stored response', origin: [fields(['Cache-Control', 'max-age=60'], ['Vary', 'X-Lang'])], visits: [{ is: 'miss', with: ask(['X-Lang', 'de']) }, { is: 'miss', with: ask(['X-Lang', 'fr']) }, { is: 'miss' }, { is: 'hit', with: ask(['X-Lang', 'de']), body: 'answer 1' }, { is: 'hit', with: ask(['X-Lang', 'fr']), body: 'answer 2' }, { is: 'hit', body: 'answer 3' }] },
	{ section: '4.1', level: 'MUST', text: 'Vary: * never matches', origin: [fields(['Cache-Control', 'max-age=60'], ['Vary', 'Accept, *'])], visits: MISS },
	{ section: '4.1', level: 'MAY', text: 'equivalent field values select the same response', origin: [fields(['Cache-Control', 'max-age=60'], ['Vary', 'Accept-Encoding, Accept-Language'])], visits: [{ is: 'miss', with: ask(['Accept-Encoding', 'gzip, br'], ['Accept-Language', 'de, en']) }, { is: 'hit', with: ask(['Accept-Encoding', 'br;q=0.9,gzip'], ['Accept-Language', 'DE,  EN']) }, { is: 'miss', with: ask(['Accept-Encoding', 'gzip, br;q=0'], ['Accept-Language', 'de, en']) }] },
	{ section: '4.1', level: 'MAY', text: 'the order of preferences does not matter', origin: [fields(['Cache-Control', 'max-age=60'], ['Vary', 'Accept-Language, Accept, Accept-Charset'])], visits: [{ is: 'miss', with: ask(['Accept-Language', 'en, de;q=0.5, fr'], ['Accept', 'text/html;level=1;q=0.50, */*;q=0.1'], ['Accept-Charset', 'utf-8, iso-8859-1;q=0.7']) }, { is: 'hit', with: ask(['Accept-Language', 'FR;q=1.0 ,en'], ['Accept-Language', 'de ; q=0.5'], ['Accept', '*/*;Q=0.100,TEXT/html; level=1 ;q=0.5'], ['Accept-Charset', 'ISO-8859-1;q=0.70,UTF-8']) }, { is: 'miss', with: ask(['Accept-Language', 'en, de, fr;q=0.5'], ['Accept', 'text/html;level=1;q=0.5, */*;q=0.1'], ['Accept-Charset', 'utf-8, iso-8859-1;q=0.7']) }] },
	{ section: '4.1', level: 'MUST', text: '… but other parameters of media types do', origin: [fields(['Cache-Control', 'max-age=60'], ['Vary', 'Accept'])], visits: [{ is: 'miss', with: ask(['Accept', 'text/a;p="x, y";q=0.5']) }, { is: 'miss', with: ask(['Accept', 'text/a;p="X, y";q=0.5']) }, { is: 'miss', with: ask(['Accept', 'text/a;p="x,y";q=0.5']) }, { is: 'hit', with: ask(['Accept', 'TEXT/A ; p="x, y" ; q=0.50']) }] },
	{ section: '4.1', level: 'MUST', text: '… and values that cannot be parsed are compared verbatim', origin: [fields(['Cache-Control', 'max-age=60'], ['Vary', 'Accept-Language'])], visits: [{ is: 'miss', with: ask(['Accept-Language', 'de, "en']) }, { is: 'miss', with: ask(['Accept-Language', '"en, de']) }, { is: 'hit', with: ask(['Accept-Language', 'de, "en']) }] },
	{ section: '4.1', level: 'MUST', text: 'of several matching responses, the newest is used', origin: [fields(['Cache-Control', 'max-age=60'], ['Vary', 'A']), fields(['Cache-Control', 'max-age=60'])], visits: [{ is: 'miss', with: ask(['A', '1']) }, { after: 1, is: 'miss', with: ask(['A', '2']) }, { is: 'hit', with: ask(['A', '1']), body: 'answer 2' }] },
	{ section: '4.2', level: 'MUST', text: 'a response is stale when its lifetime is over', origin: [FRESH], visits: [{ is: 'miss' }, { after: 59, is: 'hit' }, { after: 2, is: 'miss' }] },
	{ section: '4.2.1', level: 'MUST', text: 's-maxage takes precedence over max-age', origin: [cc('max-age=1, s-maxage=60')], visits: [{ is: 'miss' }, { after: 30, is: 'hit' }] },
	{ section: '4.2.1', level: 'MUST', text: 'max-age takes precedence over Expires', origin: [fields(['Cache-Control', 'max-age=60'], ['Expires', dateAt(-10)])], visits: [{ is: 'miss' }, { after: 30, is: 'hit' }] },
	{ section: '4.2.1', level: 'MUST', text: 'the lifetime is Expires minus Date', origin: [fields(['Expires', dateAt(60)])], visits: [{ is: 'miss' }, { after: 59, is: 'hit' }, { after: 2, is: 'miss' }] },
	{ section: '4.2', level: 'SHOULD', text: 'names in dates are case-insensitive', origin: [fields(['Expires', dateAt(60).toUpperCase()]), fields(['Expires', dateAt(60).toLowerCase()])], visits: [{ is: 'miss', target: '/a' }, { is: 'hit', target: '/a' }, { is: 'miss', target: '/b' }, { is: 'hit', target: '/b' }] },
	{ section: '5.3', level: 'MUST', text: 'an invalid Expires counts as past', origin: [fields(['Expires', '0'])], visits: MISS },
	{ section: '4.2.1', level: 'SHOULD', text: 'of two lifetimes, the shorter counts', origin: [cc('max-age=60, max-age=5')], visits: [{ is: 'miss' }, { after: 10, is: 'miss' }] },
	{ section: '4.2.1', level: 'SHOULD', text: 'a malformed lifetime is ignored', origin: [cc('max-age=1h')], visits: MISS },
	{ section: '1.2.2', level: 'MUST', text: 'a lifetime that overflows is a very long one', origin: [cc('max-age=99999999999999999999')], visits: [{ is: 'miss' }, { after: 1_000_000, is: 'hit' }] },
	{ section: '4.2.2', level: 'MUST', text: 'there is no heuristic freshness by default', origin: [fields(['Last-Modified', dateAt(-1000)])], visits: MISS },
	{ section: '4.2.2', level: 'MAY', text: 'heuristic freshness applies if it is configured', rules: { heuristicFraction: 0.1 }, origin: [fields(['Last-Modified', dateAt(-1000)])], visits: [{ is: 'miss' }, { after: 99, is: 'hit' }, { after: 2, is: 'miss' }] },
	{ section: '4.2.2', level: 'MUST', text: 'an explicit lifetime takes precedence over heuristic freshness', rules: { heuristicFraction: 0.1 }, origin: [fields(['Last-Modified', dateAt(-1000)], ['Cache-Control', 'max-age=1'])], visits: [{ is: 'miss' }, { after: 5, is: 'miss' }] },
	{ section: '4.2.3', level: 'MUST', text: 'the Age of the received response counts', origin: [fields(['Cache-Control', 'max-age=60'], ['Age', '50'])], visits: [{ is: 'miss' }, { after: 5, is: 'hit', fields: { Age: '55' } }, { after: 10, is: 'miss' }] },
	{ section: '4.2.3', level: 'MUST', text: 'a Date in the past counts as age', origin: [fields(['Cache-Control', 'max-age=60'], ['Date', dateAt(-50)])], visits: [{ is: 'miss' }, { after: 5, is: 'hit', fields: { Age: '55' } }, { after: 10, is: 'miss' }] },
	{ section: '4.2.3', level: 'MUST', text: 'the response delay counts as age', origin: [{ headers: [['Cache-Control', 'max-age=60'], ['Age', '10']], takes: 20_000 }], visits: [{ is: 'miss' }, { is: 'hit', fields: { Age: '30' } }] },
	{ section: '4.2.4', level: 'MUST', text: 'must-revalidate prevents stale responses', rules: { staleIfErrorMs: 1e6, staleWhileRevalidateMs: 1e6 }, origin: [cc('max-age=1, must-revalidate'), { fails: true }], visits: [{ is: 'miss' }, { after: 5, is: 'miss', status: 502 }] },
	{ section: '4.2.4', level: 'MUST', text: '… and so does proxy-revalidate', rules: { staleIfErrorMs: 1e6 }, origin: [cc('max-age=1, proxy-revalidate'), { fails: true }], visits: [{ is: 'miss' }, { after: 5, is: 'miss', status: 502 }] },
	{ section: '4.2.4', level: 'MUST', text: '… and s-maxage', rules: { staleIfErrorMs: 1e6 }, origin: [cc('s-maxage=1'), { fails: true }], visits: [{ is: 'miss' }, { after: 5, is: 'miss', status: 502 }] },
	{ section: '4.2.4', level: 'MUST', text: '… and no-cache', rules: { staleIfErrorMs: 1e6 }, origin: [fields(['Cache-Control', 'no-cache, max-age=9'], ['ETag', '"a"']), { fails: true }], visits: [{ is: 'miss' }, { after: 5, is: 'miss', status: 502 }] },
	{ section: '4.3.1', level: 'MUST', text: 'a validation sends the stored validators, not the client’s', origin: [fields(['Cache-Control', 'max-age=1'], ['ETag', '"a"'], ['Last-Modified', dateAt(-99)]), cc('max-age=60')], visits: [{ is: 'miss' }, { after: 5, is: 'miss', with: ask(['If-None-Match', '"zzz"']), sent: { 'if-none-match': '"a"', 'if-modified-since': dateAt(-99) } }] },
	{ section: '4.3.2', level: 'SHOULD', text: 'If-None-Match is answered from the store', origin: [fields(['Cache-Control', 'max-age=60'], ['ETag', '"a"'], ['Content-Type', 'text/plain'])], visits: [{ is: 'miss' }, { is: 'hit', with: ask(['If-None-Match', '"b", W/"a"']), status: 304, body: '', fields: { ETag: '"a"', 'Content-Type': null } }, { is: 'hit', with: ask(['If-None-Match', '"b"']), status: 200 }] },
	{ section: '4.3.2', level: 'SHOULD', text: 'If-Modified-Since is answered from the store', origin: [fields(['Cache-Control', 'max-age=60'], ['Last-Modified', dateAt(-99)])], visits: [{ is: 'miss' }, { is: 'hit', with: ask(['If-Modified-Since', dateAt(-99)]), status: 304 }, { is: 'hit', with: ask(['If-Modified-Since', dateAt(-100)]), status: 200 }] },
	{ section: '4.3.2', level: 'MUST', text: 'If-None-Match takes precedence over If-Modified-Since', origin: [fields(['Cache-Control', 'max-age=60'], ['ETag', '"a"'], ['Last-Modified', dateAt(-99)])], visits: [{ is: 'miss' }, { is: 'hit', with: ask(['If-None-Match', '"b"'], ['If-Modified-Since', dateAt(0)]), status: 200 }] },
	{ section: '4.3.2', level: 'SHOULD', text: 'a 304 for a response that has just been stored has no content fields', origin: [fields(['Cache-Control', 'max-age=60'], ['ETag', '"a"'], ['Content-Type', 'text/plain'], ['Content-Language', 'de'])], visits: [{ is: 'miss', with: ask(['If-None-Match', '"a"']), status: 304, fields: { ETag: '"a"', 'Content-Type': null, 'Content-Language': null } }, { is: 'hit', fields: { 'Content-Type': 'text/plain' } }] },
	{ section: '4.3.2', level: 'MAY', text: 'a condition does not keep a response from being stored', origin: [fields(['Cache-Control', 'max-age=60'], ['ETag', '"a"'])], visits: [{ is: 'miss', with: ask(['If-None-Match', '"a"']), status: 304, body: '', sent: { 'if-none-match': null } }, { is: 'hit', body: 'answer 1' }] },
	{ section: '4.3.3', level: 'MUST', text: 'a full response to a validation replaces the stored one', origin: [fields(['Cache-Control', 'max-age=1'], ['ETag', '"a"']), fields(['Cache-Control', 'max-age=60'], ['ETag', '"b"'])], visits: [{ is: 'miss' }, { after: 5, is: 'miss', body: 'answer 2' }, { is: 'hit', body: 'answer 2', fields: { ETag: '"b"' } }] },
	{ section: '4.3.3', level: 'MUST', text: 'a full response that may not be stored still removes the stored one', origin: [fields(['Cache-Control', 'max-age=10, stale-while-revalidate=600'], ['ETag', '"a"']), cc('private'), cc('private')], visits: [{ is: 'miss' }, { after: 20, is: 'stale' }, { is: 'miss', body: 'answer 3' }] },
	{ section: '4.3.3', level: 'SHOULD', text: '… unless its status concerns one request only', origin: [fields(['Cache-Control', 'max-age=10'], ['ETag', '"a"']), { status: 429 }, { status: 304, headers: [['Cache-Control', 'max-age=60']], body: null }], visits: [{ is: 'miss' }, { after: 20, is: 'miss', status: 429 }, { is: 'hit', body: 'answer 1' }] },
	{ section: '6585', level: 'MUST', text: '428, 429, 431 and 511 are not stored', origin: [429, 429].map(status => ({ status, headers: [['Cache-Control', 'public, max-age=60']] as const })), visits: MISS },
	{ section: '4.3.3', level: 'MAY', text: 'after a 5xx to a validation, the stale response may be served', rules: { staleIfErrorMs: 60_000 }, origin: [cc('max-age=1'), { status: 503 }], visits: [{ is: 'miss' }, { after: 5, is: 'stale', body: 'answer 1' }, { after: 90, is: 'miss', status: 503 }] },
	{ section: '4.3.2', level: 'SHOULD', text: 'without Last-Modified, If-Modified-Since is compared with Date', origin: [fields(['Cache-Control', 'max-age=60'], ['Date', dateAt(-5)])], visits: [{ is: 'miss' }, { is: 'hit', with: ask(['If-Modified-Since', dateAt(-5)]), status: 304 }, { is: 'hit', with: ask(['If-Modified-Since', dateAt(-6)]), status: 200 }] },
	{ section: '4.3.2', level: 'MUST', text: 'conditions apply to 200 and 206 only', origin: [{ status: 404, headers: [['Cache-Control', 'max-age=60'], ['ETag', '"a"']] }], visits: [{ is: 'miss', status: 404 }, { is: 'hit', with: ask(['If-None-Match', '"a"']), status: 404 }] },
	{ section: '4.3.2', level: 'SHOULD', text: 'If-None-Match: * matches any stored response', origin: [fields(['Cache-Control', 'max-age=60'], ['ETag', '"a"'])], visits: [{ is: 'miss' }, { is: 'hit', with: ask(['If-None-Match', '*']), status: 304 }] },
	{ section: '4.3.2', level: 'MUST', text: 'conditions for the origin are not evaluated here', origin: [FRESH], visits: [{ is: 'miss' }, { is: 'bypass', with: ask(['If-Match', '"b"']), status: 200 }, { is: 'bypass', with: ask(['If-Unmodified-Since', dateAt(-999)]), status: 200 }] },
	{ section: '4.3.4', level: 'MUST', text: 'a 304 with another validator updates nothing', origin: [fields(['Cache-Control', 'max-age=1'], ['ETag', '"a"']), { status: 304, headers: [['ETag', '"b"'], ['Cache-Control', 'max-age=60']], body: null }, fields(['Cache-Control', 'max-age=60'], ['ETag', '"b"'])], visits: [{ is: 'miss', body: 'answer 1' }, { after: 5, is: 'miss', body: 'answer 3', sent: { 'if-none-match': null } }, { is: 'hit', body: 'answer 3' }] },
	{ section: '4.3.5', level: 'SHOULD', text: 'a matching response to HEAD updates the stored fields', origin: [fields(['Cache-Control', 'max-age=10'], ['ETag', '"a"'], ['X-A', '1']), { headers: [['Cache-Control', 'max-age=60'], ['ETag', '"a"'], ['X-A', '2']], body: null }], visits: [{ is: 'miss' }, { after: 20, is: 'miss', with: { method: 'HEAD' } }, { is: 'hit', body: 'answer 1', fields: { 'X-A': '2' } }] },
	{ section: '4.3.5', level: 'SHOULD', text: 'HEAD is answered from a stored response to GET', origin: [FRESH], visits: [{ is: 'miss' }, { is: 'hit', with: { method: 'HEAD' }, body: '', fields: { 'Content-Length': '8' } }] },
	{ section: '4.3.5', level: 'SHOULD', text: 'a response to HEAD that differs removes the stored response', origin: [fields(['Cache-Control', 'max-age=1'], ['ETag', '"a"']), { headers: [['ETag', '"b"']], body: null }, FRESH], visits: [{ is: 'miss' }, { after: 5, is: 'miss', with: { method: 'HEAD' } }, { is: 'miss', sent: { 'if-none-match': null } }] },
	{ section: '4.4', level: 'MUST', text: 'a successful POST invalidates the URI', origin: [FRESH, { status: 201 }, FRESH], visits: [{ is: 'miss' }, { is: 'bypass', with: { method: 'POST' } }, { is: 'miss' }] },
	{ section: '4.4', level: 'MUST', text: '… and so does an unknown method', origin: [FRESH], visits: [{ is: 'miss' }, { is: 'bypass', with: { method: 'FROB' } }, { is: 'miss' }] },
	{ section: '4.4', level: 'MUST', text: '… but not one that fails', origin: [FRESH, { status: 400 }, FRESH], visits: [{ is: 'miss' }, { is: 'bypass', with: { method: 'PUT' } }, { is: 'hit' }] },
	{ section: '4.4', level: 'MAY', text: 'a Location on the same host is invalidated', origin: [FRESH, { status: 201, headers: [['Location', '/a']] }, FRESH], visits: [{ is: 'miss', target: '/a' }, { is: 'bypass', with: { method: 'POST' } }, { is: 'miss', target: '/a' }] },
	{ section: '4.4', level: 'MUST', text: '… but not one on another host', origin: [FRESH, { status: 201, headers: [['Content-Location', 'http://other.test/a']] }, FRESH], visits: [{ is: 'miss', target: '/a' }, { is: 'bypass', with: { method: 'POST' } }, { is: 'hit', target: '/a' }] },
	{ section: '4.4', level: 'MUST', text: 'safe methods invalidate nothing', origin: [FRESH], visits: [{ is: 'miss' }, { is: 'bypass', with: { method: 'OPTIONS' } }, { is: 'hit' }] },
	{ section: '5.2.1.1', level: 'SHOULD', text: 'max-age of a request is obeyed', origin: [FRESH], visits: [{ is: 'miss' }, { after: 10, is: 'hit', with: ask(['Cache-Control', 'max-age=20']) }, { is: 'miss', with: ask(['Cache-Control', 'max-age=5']) }] },
	{ section: '5.2.1.2', level: 'MAY', text: 'max-stale of a request is obeyed', origin: [FRESH], visits: [{ is: 'miss' }, { after: 65, is: 'hit', with: ask(['Cache-Control', 'max-stale=10']) }, { is: 'hit', with: ask(['Cache-Control', 'max-stale']) }, { is: 'miss', with: ask(['Cache-Control', 'max-stale=1']) }] },
	{ section: '5.2.1.3', level: 'SHOULD', text: 'min-fresh of a request is obeyed', origin: [FRESH], visits: [{ is: 'miss' }, { after: 10, is: 'hit', with: ask(['Cache-Control', 'min-fresh=40']) }, { is: 'miss', with: ask(['Cache-Control', 'min-fresh=55']) }] },
	{ section: '5.2.1.4', level: 'SHOULD', text: 'no-cache of a request is obeyed', origin: [FRESH], visits: [{ is: 'miss' }, { is: 'miss', with: ask(['Cache-Control', 'no-cache']) }] },
	{ section: '5.2.1.4', level: 'MAY', text: '… unless the configuration says otherwise', rules: { obeysClients: false }, origin: [FRESH], visits: [{ is: 'miss' }, { is: 'hit', with: ask(['Cache-Control', 'no-cache'], ['Pragma', 'no-cache']) }] },
	{ section: '5.2.1.5', level: 'MUST', text: 'no-store of a request is obeyed', origin: [FRESH], visits: [{ is: 'miss', with: ask(['Cache-Control', 'no-store']) }, { is: 'miss' }] },
	{ section: '5.2.1.7', level: 'SHOULD', text: 'only-if-cached is obeyed', origin: [FRESH], visits: [{ is: 'miss', status: 504, with: ask(['Cache-Control', 'only-if-cached']) }, { is: 'miss' }, { is: 'hit', with: ask(['Cache-Control', 'only-if-cached']) }] },
	{ section: '5.2.2.4', level: 'MUST', text: 'fields that `no-cache` lists are not sent from the cache', origin: [cc('max-age=60, no-cache="X-A, X-B"')].map(one => ({ headers: [...one.headers!, ['X-A', '1'], ['X-C', '2']] as const })), visits: [{ is: 'miss', fields: { 'X-A': '1' } }, { is: 'hit', fields: { 'X-A': null, 'X-C': '2' } }] },
	{ section: '5.2.2.7', level: 'MUST', text: 'fields that `private` lists are not stored', origin: [{ headers: [['Cache-Control', 'max-age=60, private="x-user"'], ['X-User', 'ann']] }], visits: [{ is: 'miss' }, { is: 'hit', fields: { 'X-User': null } }] },
	{ section: '5.2.3', level: 'MUST', text: 'unknown directives are ignored', origin: [cc('community="UCI", max-age=60, foo=bar')], visits: HIT },
	{ section: '5.2', level: 'MUST', text: 'names of directives are case-insensitive', origin: [cc('Max-Age=60')], visits: HIT },
	{ section: '5.2', level: 'MUST', text: 'several fields are one list', origin: [fields(['Cache-Control', 'max-age=60'], ['Cache-Control', 'no-store'])], visits: MISS },
	{ section: '5.2', level: 'MUST', text: 'a directive inside a quoted string does not count', origin: [cc('max-age=60, x="a, no-store, b"')], visits: HIT },
	{ section: '5.4', level: 'SHOULD', text: 'Pragma: no-cache counts without Cache-Control', origin: [FRESH], visits: [{ is: 'miss' }, { is: 'miss', with: ask(['Pragma', 'no-cache']) }, { is: 'hit', with: ask(['Pragma', 'no-cache'], ['Cache-Control', 'max-age=50']) }] },
	{ section: '9110 14.2', level: 'MAY', text: 'a range is answered from the complete response', origin: [fields(['Cache-Control', 'max-age=60'], ['ETag', '"a"'])], visits: [{ is: 'miss' }, { is: 'hit', with: ask(['Range', 'bytes=0-5']), status: 206, body: 'answer', fields: { 'Content-Range': 'bytes 0-5/8' } }, { is: 'hit', with: ask(['Range', 'bytes=-1'], ['If-Range', '"a"']), status: 206, body: '1' }, { is: 'hit', with: ask(['Range', 'bytes=-1'], ['If-Range', '"b"']), status: 200 }, { is: 'hit', with: ask(['Range', 'bytes=50-']), status: 416, fields: { 'Content-Range': 'bytes */8' } }] },
	{ section: '5861 3', level: 'MAY', text: 'stale-while-revalidate serves a stale response and validates it in the background', origin: [cc('max-age=10, stale-while-revalidate=60')], visits: [{ is: 'miss' }, { after: 20, is: 'stale', body: 'answer 1', fields: { Age: '20' } }, { is: 'hit', body: 'answer 2' }] },
	{ section: '5861 3', level: 'MUST', text: '… but no longer than it says', origin: [cc('max-age=10, stale-while-revalidate=60')], visits: [{ is: 'miss' }, { after: 80, is: 'miss' }] },
	{ section: '5861 4', level: 'MAY', text: 'stale-if-error serves a stale response when the origin fails', origin: [cc('max-age=10, stale-if-error=60'), { fails: true }], visits: [{ is: 'miss' }, { after: 20, is: 'stale', body: 'answer 1' }, { after: 80, is: 'miss', status: 502 }] },
	{ section: '9213 2.2', level: 'MUST', text: 'CDN-Cache-Control replaces Cache-Control', origin: [fields(['Cache-Control', 'no-store'], ['CDN-Cache-Control', 'max-age=60'])], visits: HIT },
	{ section: '9213 2.2', level: 'MUST', text: '… and Expires', origin: [fields(['Expires', dateAt(60)], ['CDN-Cache-Control', 'no-store'])], visits: MISS },
	{ section: '9213 2.2', level: 'MUST', text: '… but not if it is empty', origin: [fields(['Cache-Control', 'max-age=60'], ['CDN-Cache-Control', ' '])], visits: HIT },
	{ section: '9213 2.1', level: 'MUST', text: '… or is not a dictionary', origin: [fields(['Cache-Control', 'max-age=60'], ['CDN-Cache-Control', 'no-store,,'])], visits: HIT },
	{ section: '9213 2.1', level: 'MUST', text: '… or has names in capitals', origin: [fields(['Cache-Control', 'no-store'], ['CDN-Cache-Control', 'Max-Age=60'])], visits: MISS },
	{ section: '9213 2.1', level: 'MUST', text: 'parameters of its members are ignored', origin: [fields(['Cache-Control', 'no-store'], ['CDN-Cache-Control', 'max-age=60;x=1, foo="a,b", stale-if-error=?1'])], visits: HIT },
	{ section: '9213 2.1', level: 'MUST', text: 'a lifetime that is not an integer does not count', origin: [fields(['Cache-Control', 'no-store'], ['CDN-Cache-Control', 'max-age="10000"'])], visits: MISS },
	{ section: '9213 2.1', level: 'MUST', text: '… nor a decimal, a token, or none at all', origin: [fields(['Cache-Control', 'no-store'], ['CDN-Cache-Control', 'max-age=60.0, s-maxage=1h, stale-if-error'])], visits: MISS },
	{ section: '9213 2.1', level: 'MUST', text: '… and if nothing in it is valid, Cache-Control counts', rules: { ttlMsByStatus: new Map([['', 60_000]]) }, origin: [fields(['Cache-Control', 'no-store'], ['CDN-Cache-Control', 'max-age="60"'])], visits: MISS },
	{ section: '9213 2.1', level: 'MUST', text: 'of two members with one name, the last counts', origin: [fields(['Cache-Control', 'no-store'], ['CDN-Cache-Control', 'max-age=1, max-age=60'])], visits: [{ is: 'miss' }, { after: 30, is: 'hit' }] },
	{ section: '9213 2.1', level: 'MUST', text: 'true is a directive without an argument', origin: [fields(['CDN-Cache-Control', 'max-age=60, private=?1'])], visits: MISS },
	{ section: '9213 2.1', level: 'MUST', text: '… and false is no directive', origin: [fields(['CDN-Cache-Control', 'max-age=60, private=?0, no-store=?0'])], visits: HIT },
	{ section: '9213 2.1', level: 'MUST', text: 'a restriction counts whatever its value', origin: [fields(['CDN-Cache-Control', 'max-age=60, private=x'])], visits: MISS },
	{ section: '9213 2.1', level: 'MUST', text: '… but a string lists fields', origin: [{ headers: [['CDN-Cache-Control', 'max-age=60, private="x-user"'], ['X-User', 'ann']] }], visits: [{ is: 'miss' }, { is: 'hit', fields: { 'X-User': null } }] },
	{ section: '9213 2.1', level: 'MUST', text: 'inner lists are values, too', origin: [fields(['Cache-Control', 'no-store'], ['CDN-Cache-Control', 'x=(a "b" 1);p, y=( ), max-age=60;z="\\","'])], visits: HIT },
	{ section: '9211 2', level: 'SHOULD', text: 'Cache-Status describes a hit', origin: [fields(['Cache-Control', 'max-age=60'], ['Cache-Status', 'origin; hit'])], visits: [{ is: 'miss', fields: { 'Cache-Status': 'origin; hit, svc; fwd=uri-miss; stored' } }, { after: 10, is: 'hit', fields: { 'Cache-Status': 'origin; hit, svc; hit; ttl=50' } }, { is: 'bypass', with: { method: 'POST' }, fields: { 'Cache-Status': 'origin; hit, svc; fwd=method' } }] },
	{ section: '9211 2.2', level: 'SHOULD', text: 'Cache-Status says why a request was forwarded', rules: { bypass: x => x.request.path === '/b' }, origin: [fields(['Cache-Control', 'max-age=60'], ['Vary', 'A'])], visits: [{ is: 'miss' }, { is: 'miss', with: ask(['A', '1']), fields: { 'Cache-Status': 'svc; fwd=vary-miss; stored' } }, { is: 'miss', with: ask(['Cache-Control', 'no-cache']), fields: { 'Cache-Status': 'svc; fwd=request; stored' } }, { after: 90, is: 'miss', fields: { 'Cache-Status': 'svc; fwd=stale; fwd-status=200; stored' } }, { is: 'bypass', target: '/b', fields: { 'Cache-Status': 'svc; fwd=bypass' } }, { is: 'bypass', with: { body: 'x' }, fields: { 'Cache-Status': 'svc; fwd=bypass' } }, { is: 'bypass', with: { method: 'OPTIONS' }, fields: { 'Cache-Status': 'svc; fwd=method' } }] },
	{ section: 'ours', level: 'MAY', text: 'ttl applies if the response has no lifetime; 404 has its own', rules: { ttlMsByStatus: new Map([['', 60_000], ['404', 5000]]) }, origin: [{}, { status: 404 }], visits: [{ is: 'miss', target: '/a' }, { is: 'miss', target: '/b' }, { after: 3, is: 'hit', target: '/b', status: 404 }, { after: 5, is: 'hit', target: '/a' }, { is: 'miss', target: '/b' }] },
];

const table = suite('RFC 9111, requirement by requirement');

for (const { section, level, text, rules, origin, visits } of REQUIREMENTS) {
	table(`§${section} ${level}: ${text}`, async () => {
		const site = new CachedSite(rules).script(...origin);
		for (const [i, visit] of visits.entries()) {
			site.wait(visit.after ?? 0);
			const answer: ClientAnswer = await site.get(visit.target ?? '/', visit.with);
			// Lets background revalidation finish.
			await new Promise(resolve => setImmediate(resolve));
			const which = `visit ${i + 1}`;
			assert.is(answer.cache, visit.is, which);
			if (visit.status !== undefined) assert.is(answer.status, visit.status, which);
			if (visit.body !== undefined) assert.is(answer.body, visit.body, which);
			for (const [name, value] of Object.entries(visit.fields ?? {})) {
				assert.is(answer.field(name), value ?? undefined, `${which}: ${name}`);
			}
			for (const [name, value] of Object.entries(visit.sent ?? {})) {
				assert.is(site.asked.at(-1)!.headers.get(name), value ?? undefined, `${which}: sent ${name}`);
			}
		}
	});
}

table('the table lists every section with requirements for caches', () => {
	const sections = new Set(REQUIREMENTS.map(({ section }) => section));
	for (const section of [
		'2',
		'3',
		'3.1',
		'3.2',
		'3.5',
		'4',
		'4.1',
		'4.2',
		'4.2.1',
		'4.2.3',
		'4.2.4',
		'4.3.1',
		'4.3.2',
		'4.3.3',
		'4.3.4',
		'4.3.5',
		'4.4',
	]) {
		assert.ok(sections.has(section), section);
	}
});

const partial = suite('incomplete bodies (RFC 9111 §3.3)');

for (const [name, pieces, declared, whole] of [
	['breaks off', ['ab', undefined], undefined, false],
	['is shorter than it said', ['ab'], '5', false],
	['is as long as it said', ['abcde'], '5', true],
	['ends where nothing was said', ['abcde'], undefined, true],
] as const) {
	partial(`a stream that ${name} is ${whole ? 'kept' : 'not kept'}`, async () => {
		const stream = () => {
			const remainingPieces = [...pieces];
			const pull = (): Uint8Array | null => {
				if (remainingPieces.length === 0) return null;
				const piece = remainingPieces.shift();
				if (piece === undefined) throw new Error('the origin disconnected');
				return Buffer.from(piece);
			};
			return { length: undefined, pull, cancel: () => {} };
		};
		const site = new CachedSite().script(() => ({
			headers: [['Cache-Control', 'max-age=60'], ...(declared ? [['Content-Length', declared] as const] : [])],
			body: stream(),
		}));
		await site.get().catch(() => {});
		const again = await site.get().catch(() => undefined);
		assert.is(again?.cache === 'hit', whole);
		assert.is(site.asked.length, whole ? 1 : 2);
	});
}

const validation = suite('validation');

validation('starts over with the original request if the origin confirms a different entity tag', async () => {
	const seen: string[] = [];
	const rewriting = (answer: OriginAnswer) => (x: Exchange) => {
		const { method, host, authority, path, query } = x.request;
		seen.push(`${method} ${host} ${authority}${path}?${query} ${x.exclusiveGroups}`);
		x.request.method = 'HEAD';
		x.request.host = 'elsewhere.test';
		x.request.authority = 'elsewhere.test';
		x.request.path = '/elsewhere';
		x.request.query = 'x';
		x.exclusiveGroups = 1;
		return answer;
	};
	const etag = (tag: string): OriginAnswer => fields(['Cache-Control', 'max-age=1'], ['ETag', tag]);
	const site = new CachedSite().script(
		etag('"a"'),
		rewriting({ ...etag('"b"'), status: 304, body: null }),
		rewriting(etag('"b"')),
	);
	await site.get('/a?b');
	const answer = await site.wait(5).get('/a?b');
	assert.equal(seen, ['GET example.test example.test/a?b 0', 'GET example.test example.test/a?b 0']);
	assert.is(answer.body, 'answer 3');
});

validation('concurrent requests do not wait for a response that must be validated every time', async () => {
	for (const [control, outcome] of [
		['max-age=60', 'stored'],
		['no-cache', 'private'],
		['max-age=60, no-cache', 'private'],
		['max-age=0', 'private'],
		['max-age=0, stale-while-revalidate=60', 'stored'],
	] as const) {
		const outcomes: FetchOutcome[] = [];
		class Watched extends FakeCache {
			override joinFetch(): FetchTicket {
				return { ended: undefined, done: told => outcomes.push(told) };
			}
		}
		const headers = [['Cache-Control', control] as const, ['ETag', '"a"'] as const];
		const site = new CachedSite({ cache: new Watched() }).script({ headers }, { status: 304, headers, body: null });
		await site.get();
		await site.wait(0).get();
		assert.is(outcomes[0], outcome, control);
		if (outcome === 'private') assert.is(outcomes[1], 'private', `${control}, confirmed`);
	}
});

const invalidation = suite('invalidation (RFC 9111 §4.4)');

invalidation('is by the host that the client has asked for, even if later handlers change it', async () => {
	const cache = new FakeCache();
	const withOriginHost = (answer: OriginAnswer) => (x: Exchange) => {
		x.request.host = 'origin.test';
		x.request.authority = 'origin.test';
		return answer;
	};
	const site = new CachedSite({ cache }).script(withOriginHost(FRESH), withOriginHost(FRESH), FRESH);
	await site.get('/a');
	cache.invalidate('example.test', '/a', undefined);
	assert.is((await site.get('/a')).cache, 'miss');
	assert.is((await site.get('/a')).cache, 'hit');
	site.script(withOriginHost({ status: 201 }), FRESH);
	await site.get('/a', { method: 'POST' });
	assert.is((await site.get('/a')).cache, 'miss');
});

table.run();
invalidation.run();
validation.run();
partial.run();

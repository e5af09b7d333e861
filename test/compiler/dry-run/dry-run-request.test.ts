/** Parsing the requests that a user writes for a dry run. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
	canonicalClientAddress,
	fieldMistake,
	isRequestUrl,
	methodMistake,
	parseClockTime,
	parseRequestUrl,
} from '../../../compiler/dry-run/dry-run-request.ts';

const urls = suite('dry-run request URLs');

const GOOD: readonly (readonly [string, string])[] = [
	['http://example.com', 'http example.com example.com undefined / undefined'],
	['HTTP://Example.COM:8080/a/../b?c=d?e#f', 'http Example.COM:8080 example.com 8080 /a/../b c=d?e'],
	['https://example.com./?', 'https example.com. example.com undefined / '],
	['http://[::1]:81//x', 'http [::1]:81 ::1 81 //x undefined'],
	['http://bücher.example:80/ä b', 'http xn--bcher-kva.example:80 xn--bcher-kva.example 80 /%C3%A4%20b undefined'],
	['http://a/%2F%c3', 'http a a undefined /%2F%c3 undefined'],
	['http://a/?ä%', 'http a a undefined / %C3%A4%'],
];

for (const [text, expected] of GOOD) {
	urls(text, () => {
		const url = parseRequestUrl(text);
		if (!isRequestUrl(url)) throw new Error(url.message);
		const { scheme, authority, host, port, path, query } = url;
		assert.is(`${scheme} ${authority} ${host} ${port} ${path} ${query}`, expected);
	});
}

for (const text of [
	'',
	'/path',
	'example.com/x',
	'ftp://a/',
	'http:///x',
	'http://a:99999/',
	'http://u@a/',
	'http://a/%zz',
	'http://a b/',
]) {
	urls(`refuses ${JSON.stringify(text)}`, () => assert.not(isRequestUrl(parseRequestUrl(text))));
}

urls.run();

const parts = suite('dry-run request options');

parts('a method is a token other than CONNECT', () => {
	assert.is(methodMistake('PROPFIND'), undefined);
	assert.ok(methodMistake('G ET'));
	assert.ok(methodMistake('CONNECT'));
});

parts('a field has a name, fits on one line, and does not affect framing', () => {
	assert.is(fieldMistake('X-A', 'é'), undefined);
	assert.is(fieldMistake('Host', 'a.example:80'), undefined);
	for (const [name, value] of [
		['X A', '1'],
		['X', 'a\r\nb'],
		['Host', 'a b'],
		['content-length', '1'],
		['Transfer-Encoding', 'x'],
	]) {
		assert.ok(fieldMistake(name!, value!), name);
	}
});

parts('a client is an IP address, in canonical form', () => {
	assert.is(canonicalClientAddress('203.0.113.9'), '203.0.113.9');
	assert.is(canonicalClientAddress('2001:DB8:0::9'), '2001:db8::9');
	assert.is(canonicalClientAddress('[::1]'), '::1');
	assert.is(canonicalClientAddress('localhost'), undefined);
});

parts('a clock is a date, or a time with its UTC offset', () => {
	assert.is(parseClockTime('2026-01-31'), Date.UTC(2026, 0, 31));
	assert.is(parseClockTime('2026-01-31T12:00:00Z'), Date.UTC(2026, 0, 31, 12));
	assert.is(parseClockTime('2026-01-31 12:00+01:00'), Date.UTC(2026, 0, 31, 11));
	for (const text of ['noon', '2026-01-31T12:00', '2026-02-30', '2026-13-01', '31.1.2026'])
		assert.is(parseClockTime(text), undefined, text);
});

parts.run();

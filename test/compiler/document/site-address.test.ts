/** Site addresses in all forms. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
	effectivePort,
	formatSiteAddress,
	isSiteAddress,
	needsTls,
	parseSiteAddress,
	usesOtherSchemesPort,
} from '../../../compiler/document/site-address.ts';

const ports = { http: 80, https: 443 };

function parsed(text: string) {
	const address = parseSiteAddress(text);
	if (!isSiteAddress(address)) throw new Error(`${text}: ${address.message}`);
	return address;
}

function mistake(text: string): string {
	const address = parseSiteAddress(text);
	assert.not(isSiteAddress(address), text);
	return isSiteAddress(address) ? '' : address.message;
}

const addresses = suite('site addresses');

addresses('an address is split into scheme, host, port and path', () => {
	const table: [string, string | undefined, string, number | undefined, string][] = [
		['example.com', undefined, 'example.com', undefined, ''],
		['Example.COM:8080', undefined, 'example.com', 8080, ''],
		[':8080', undefined, '', 8080, ''],
		['http://', 'http', '', undefined, ''],
		['HTTPS://a.b:1', 'https', 'a.b', 1, ''],
		['http://*', 'http', '*', undefined, ''],
		['*.example.com', undefined, '*.example.com', undefined, ''],
		['[::1]', undefined, '::1', undefined, ''],
		['[0:0:0:0:0:0:0:1]:81', undefined, '::1', 81, ''],
		['::1', undefined, '::1', undefined, ''],
		['example.com/a/b', undefined, 'example.com', undefined, '/a/b'],
		['http://host:81/x', 'http', 'host', 81, '/x'],
		['{env.HOST}:81', undefined, '{env.HOST}', 81, ''],
		['münchen.example', undefined, 'xn--mnchen-3ya.example', undefined, ''],
	];
	for (const [text, scheme, host, port, path] of table) {
		const address = parsed(text);
		assert.equal([address.scheme, address.host, address.port, address.path], [scheme, host, port, path], text);
	}
});

addresses("errors are worded like Caddy's, and the port is checked before the scheme", () => {
	assert.is(mistake('wss://localhost'), 'the scheme wss:// is only supported in browsers; use https:// instead');
	assert.is(mistake('ws://localhost'), 'the scheme ws:// is only supported in browsers; use http:// instead');
	assert.is(mistake('FOO://x'), 'unsupported URL scheme foo://');
	assert.is(mistake('foo://x:abc'), "invalid port 'abc'");
	assert.is(mistake('a:65536'), 'port 65536 is out of range');
	assert.is(mistake('a:-1'), 'port -1 is out of range');
	assert.is(mistake('a:'), "invalid port ''");
	assert.is(mistake('a b.com'), '`a b.com` is not a host name.');
});

addresses('no text makes the parser throw', () => {
	const pieces = [
		'http://',
		':',
		'[',
		']',
		'{',
		'}',
		'/',
		'*',
		'a',
		'.',
		'1',
		'%',
		'::',
		' ',
		'é',
		'\u0000',
		'@',
		'?',
		'#',
	];
	for (let seed = 1; seed < 20_000; seed++) {
		let text = '';
		for (let rest = seed * 7919; rest > 0; rest = Math.floor(rest / pieces.length))
			text += pieces[rest % pieces.length];
		const address = parseSiteAddress(text);
		if (isSiteAddress(address)) formatSiteAddress(address);
	}
	assert.is(parsed(`example/${'a'.repeat(9000)}`).text.length, 4096);
	assert.ok(mistake('a.'.repeat(4000)).length < 120);
});

addresses('a formatted address parses to the same address', () => {
	for (const text of ['http://a:81', ':8080', 'https://', '[::1]:80', '*.a.b', 'http://[fe80::1]/x']) {
		assert.is(formatSiteAddress(parsed(text)), text);
	}
});

addresses('the port is the written one, or the default of the scheme, or the HTTPS port', () => {
	assert.is(effectivePort(parsed('http://a'), ports), 80);
	assert.is(effectivePort(parsed('a'), ports), 443);
	assert.is(effectivePort(parsed('a:8443'), ports), 8443);
	assert.is(effectivePort(parsed('http://a'), { http: 8080, https: 8443 }), 8080);
});

addresses('TLS is needed for the https scheme, the HTTPS port, or a host on any port except the HTTP port', () => {
	const table: [string, boolean][] = [
		['example.com', true],
		['localhost', true],
		['example.com:8443', true],
		['example.com:80', false],
		[':8080', false],
		[':443', true],
		['https://', true],
		['http://', false],
		['http://example.com:8443', false],
		['*:8080', false],
	];
	for (const [text, tls] of table) assert.is(needsTls(parsed(text), ports), tls, text);
});

addresses('http on the HTTPS port, and https on the HTTP port, violate convention', () => {
	assert.ok(usesOtherSchemesPort(parsed('http://a:443'), ports));
	assert.ok(usesOtherSchemesPort(parsed('https://a:80'), ports));
	assert.not(usesOtherSchemesPort(parsed('https://a:8080'), ports));
});

addresses.run();

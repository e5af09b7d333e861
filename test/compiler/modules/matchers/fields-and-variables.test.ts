/** The `header_regexp`, `protocol`, `tls`, `vars`, `vars_regexp` and `url_pattern` matchers. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Matcher } from '../../../../compiler/document/document.ts';
import { bodyText, buildTestSite, fakeExchange, type RequestFields } from '../../fake-exchange.ts';

/** Returns the body of the response: `body` with its placeholders expanded if the matcher holds, otherwise `no`. */
function ask(when: Matcher, request: RequestFields = {}, body = 'yes'): string {
	const x = fakeExchange(request);
	const site = buildTestSite([
		{ handler: 'set_variables', variables: { tier: 'gold', trick: '{http.request.header.Name}', count: 3 } },
		{ handler: 'respond', body, when },
		{ handler: 'respond', body: 'no' },
	]);
	assert.is(site.runSite(x), undefined);
	return bodyText(x);
}

const TLS = { version: 'tls1.3', cipherSuite: '', protocol: '', serverName: '', resumed: false };

const headerRegexp = suite('header_regexp');

headerRegexp('any value may match, and the first match provides the captures', () => {
	const when = { type: 'header_regexp', field: 'Foo', pattern: '^b(.)$', name: 'n' };
	const headers = [
		['foo', 'a1'],
		['FOO', 'b2'],
		['Foo', 'b3'],
	] as const;
	assert.is(
		ask(when, { headers }, '{http.regexp.n.1}{http.regexp.1}{http.regexp.n.0}{http.regexp.n.9}'),
		'22b2{http.regexp.n.9}',
	);
	assert.is(ask(when, { headers: [['Foo', 'B2']] }), 'no');
	assert.is(ask(when), 'no');
});

headerRegexp('Host is matched as sent', () => {
	assert.is(ask({ type: 'header_regexp', field: 'host', pattern: '^a\\.test:80$' }, { authority: 'a.test:80' }), 'yes');
});

headerRegexp('an expression that is too large is refused', () => {
	assert.throws(() => ask({ type: 'header_regexp', field: 'Foo', pattern: '(a{1000}){1000}' }), /too large/);
});

headerRegexp.run();

const protocol = suite('protocol and tls');

protocol('versions match exactly, or with a plus also newer ones', () => {
	const versions = ['HTTP/1.0', 'HTTP/1.1', 'HTTP/2.0', 'HTTP/3.0'] as const;
	const table: { [written: string]: string } = {
		'http/1.0': 'ynnn',
		'http/1.1': 'nynn',
		'http/2': 'nnyn',
		'http/3': 'nnny',
		'http/1.0+': 'yyyy',
		'http/1.1+': 'nyyy',
		'http/2+': 'nnyy',
		'http/3+': 'nnny',
		'HTTP/2': 'nnnn',
		'http/4': 'nnnn',
		h2: 'nnnn',
	};
	for (const [written, expected] of Object.entries(table)) {
		const found = versions.map(version => ask({ type: 'protocol', protocol: written }, { protocol: version })[0]);
		assert.is(found.join(''), expected, written);
	}
});

protocol('the scheme is that of the connection, and grpc depends on the content type', () => {
	assert.is(ask({ type: 'protocol', protocol: 'http' }), 'yes');
	assert.is(ask({ type: 'protocol', protocol: 'https' }, { headers: [['X-Forwarded-Proto', 'https']] }), 'no');
	assert.is(ask({ type: 'protocol', protocol: 'https' }, { scheme: 'https' }), 'yes');
	const grpc = { type: 'protocol', protocol: 'grpc' };
	assert.is(ask(grpc, { headers: [['content-type', 'application/grpc+proto']] }), 'yes');
	assert.is(ask(grpc, { headers: [['content-type', 'text/application/grpc']] }), 'no');
});

protocol('tls matches only over TLS, and early data never matches', () => {
	assert.is(ask({ type: 'tls' }, { scheme: 'https' }), 'no');
	assert.is(ask({ type: 'tls' }, { connection: { tls: TLS } }), 'yes');
	assert.is(ask({ type: 'tls', early_data: true }, { connection: { tls: TLS } }), 'no');
});

protocol.run();

const vars = suite('vars and vars_regexp');

vars('vars compares the text of a variable or placeholder', () => {
	const holds = (variables: { [key: string]: string[] }, request?: RequestFields) =>
		ask({ type: 'vars', variables }, request);
	assert.is(holds({ tier: ['silver', 'gold'] }), 'yes');
	assert.is(holds({ tier: ['GOLD'] }), 'no');
	assert.is(holds({ count: ['3'] }), 'yes');
	assert.is(holds({ absent: ['x'], tier: ['gold'] }), 'yes');
	assert.is(holds({ absent: [''] }), 'yes');
	assert.is(holds({ '{http.request.method}': ['GET'] }), 'yes');
	assert.is(holds({ '{http.request.header.Want}': ['{http.request.method}'] }, { headers: [['Want', 'GET']] }), 'yes');
	assert.is(holds({ client_ip: ['127.0.0.1'] }), 'yes');
	assert.is(holds({ __proto__: ['x'] } as never), 'no');
});

vars('a value is not expanded again', () => {
	const headers = [['Name', '{http.request.method}']] as const;
	assert.is(ask({ type: 'vars', variables: { trick: ['GET'] } }, { headers }), 'no');
	assert.is(ask({ type: 'vars', variables: { '{http.request.header.Name}': ['GET'] } }, { headers }), 'no');
	assert.is(ask({ type: 'vars_regexp', variable: 'trick', pattern: '^GET$' }, { headers }), 'no');
	assert.is(ask({ type: 'vars_regexp', variable: 'trick', pattern: 'method' }, { headers }), 'yes');
});

vars('vars_regexp keeps its captures', () => {
	const when = { type: 'vars_regexp', variable: '{http.request.uri.path.0}', pattern: '^v(?P<major>\\d)$', name: 'v' };
	assert.is(ask(when, { target: '/v7/x' }, '{http.regexp.v.major}{http.regexp.major}'), '77');
	assert.is(ask(when, { target: '/w7/x' }), 'no');
});

vars.run();

const urlPattern = suite('url_pattern');

const BOOK = { type: 'url_pattern', pattern: '/books/:id(\\d+)/*' };

urlPattern('a path with groups matches on any host', () => {
	const body = '{http.url_pattern.pathname.id} {http.url_pattern.pathname.0}';
	assert.is(ask(BOOK, { target: '/books/12/a%20b?q=1', authority: 'x:81' }, body), '12 a b');
	assert.is(ask(BOOK, { target: '/books/x/y' }), 'no');
});

urlPattern('no spelling of a path evades a pattern', () => {
	for (const target of [
		'/books/12/x',
		'//books//12/x',
		'/./books/12/x',
		'/a/../books/12/x',
		'/%62ooks/12/x',
		'/books%2F12/x',
	]) {
		assert.is(ask(BOOK, { target }), 'yes', target);
	}
	for (const target of [
		'/Books/12/x',
		'/books\\12/x',
		'/books/12',
		'/public/%252e%252e/books/12/x',
		'/p/..%5cbooks/12/x',
	]) {
		assert.is(ask(BOOK, { target }), 'no', target);
	}
	assert.is(ask({ ...BOOK, ignore_case: true }, { target: '/BOOKS/12/x' }), 'yes');
	assert.is(ask({ type: 'url_pattern', pattern: '/a//:x' }, { target: '/a//b' }), 'yes');
	assert.is(ask({ type: 'url_pattern', pattern: '/a//:x' }, { target: '/a/b' }), 'no');
});

urlPattern('complete URLs and base URLs are supported', () => {
	const whole = { type: 'url_pattern', pattern: 'http://:sub.example.test/*' };
	assert.is(ask(whole, { authority: 'WWW.example.test' }, '{http.url_pattern.hostname.sub}'), 'www');
	assert.is(ask(whole, { authority: 'www.example.test:81' }), 'no');
	assert.is(ask(whole, { scheme: 'https', authority: 'www.example.test' }), 'no');
	const based = { type: 'url_pattern', pattern: '/x', base_url: 'http://example.test:81' };
	assert.is(ask(based, { target: '/x', authority: 'example.test:81' }), 'yes');
	assert.is(ask(based, { target: '/x', authority: 'example.test' }), 'no');
	assert.is(ask({ type: 'url_pattern', pattern: 'http://[\\:\\:1]/x' }, { target: '/x', authority: '[::1]' }), 'yes');
	const query = { type: 'url_pattern', pattern: '/x\\?q=:q' };
	assert.is(ask(query, { target: '/x?q=7' }, '{http.url_pattern.search.q}'), '7');
});

urlPattern('invalid patterns, and expressions in them that engines interpret differently, are rejected', () => {
	assert.throws(() => ask({ type: 'url_pattern', pattern: '/:' }), /not a URL pattern/);
	assert.throws(() => ask({ type: 'url_pattern', pattern: '/x', base_url: 'nowhere' }), /not a URL pattern/);
	assert.throws(() => ask({ type: 'url_pattern', pattern: '/:a((?=x)x)' }), /lookaround/);
	assert.throws(() => ask({ type: 'url_pattern', pattern: '/:a((?:x{1000}){1000})' }), /too large/);
	assert.throws(() => ask({ type: 'url_pattern', pattern: '/:a((?<b>x))' }), /a group inside a group/);
});

urlPattern.run();

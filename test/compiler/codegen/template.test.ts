/** Templates and placeholders: syntax, constant folding, every placeholder name. Inserted values are never expanded again. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { fakeLeases } from '../../../compiler/codegen/context/fake-leases.ts';
import {
	isKnownPlaceholder,
	placeholderNames,
	placeholders,
	UNKNOWN_HOST_FACTS,
} from '../../../compiler/codegen/placeholders/index.ts';
import type { HostFacts, PlaceholderScope } from '../../../compiler/codegen/placeholders/placeholder.ts';
import { expandShorthands, SHORTHANDS } from '../../../compiler/codegen/placeholders/shorthands.ts';
import { compileTemplate, TemplateError } from '../../../compiler/codegen/placeholders/template.ts';
import { bodyText, fakeExchange, type RequestFields, serveRequest } from '../fake-exchange.ts';

const facts: HostFacts = {
	hostname: 'box',
	os: 'linux',
	arch: 'x64',
	workingDirectory: '/work',
	env: name => ({ HOME: '/root', TRICK: '{http.request.method}' })[name],
};
const scope: PlaceholderScope = {
	facts,
	clientIp: x => x.connection.remoteAddress,
	isMapped: () => false,
	files: () => fakeLeases.lease('files', {}),
	needsBody() {},
};

function constant(text: string, unknown: 'keep' | 'empty' = 'keep'): string | undefined {
	return compileTemplate(text, unknown, scope).constant;
}

function rendered(text: string, request: RequestFields = {}, unknown: 'keep' | 'empty' = 'keep'): string {
	return compileTemplate(text, unknown, scope).render(fakeExchange(request));
}

const templates = suite('templates');

templates('constant parts are folded into a string', () => {
	assert.is(constant('plain'), 'plain');
	assert.is(constant('{env.HOME}/x {system.hostname}{system.slash}{env.UNSET}.'), '/root/x box/.');
	assert.is(constant('{http.request.host}'), undefined);
});

templates('unknown names are kept or replaced by an empty string', () => {
	assert.is(constant('a {no.such} b'), 'a {no.such} b');
	assert.is(constant('a {no.such} b', 'empty'), 'a  b');
	assert.is(constant('{}'), '{}');
	assert.is(constant('{"a":{"b":1}}'), '{"a":{"b":1}}');
	assert.is(rendered('{"m":"{http.request.method}"}'), '{"m":"GET"}');
	assert.is(rendered('{http.error.message}'), '{http.error.message}');
	assert.is(rendered('{http.error.message}|', {}, 'empty'), '|');
	// The placeholder of a missing cookie is known, and its value is empty.
	assert.is(rendered('[{http.request.cookie.none}]'), '[]');
});

templates('escaped braces are literal', () => {
	assert.is(constant('\\{http.request.method\\}'), '{http.request.method}');
	assert.is(constant('\\}'), '}');
	assert.is(constant('a\\b'), 'a\\b');
	assert.is(rendered('\\{{http.request.method}\\}'), '{GET}');
});

templates('an unclosed brace is literal, and an excessive number of them is refused', () => {
	assert.is(constant('{http.request.method'), '{http.request.method');
	assert.is(constant('{'.repeat(100)), '{'.repeat(100));
	assert.throws(
		() => constant('{'.repeat(102)),
		(error: unknown) => error instanceof TemplateError,
	);
});

templates('values are never expanded, whatever their source', async () => {
	const evil = '{env.HOME}{http.request.method}\\{x\\}';
	const target = `/${encodeURIComponent(evil)}?q=${encodeURIComponent(evil)}`;
	const text = '{http.request.header.X}|{http.request.uri.path.0}|{http.request.uri.query.q}|{env.TRICK}';
	assert.is(rendered(text, { target, headers: [['X', evil]] }), `${evil}|${evil}|${evil}|{http.request.method}`);
	const x = await serveRequest([{ handler: 'respond', body: text }], { target, headers: [['X', evil]] }, { facts });
	assert.is(bodyText(x), `${evil}|${evil}|${evil}|{http.request.method}`);
});

templates.run();

const names = suite('placeholders');

/** The name of a placeholder, a request, and the value of the placeholder for this request. */
const PLACEHOLDER_CASES: readonly (readonly [string, RequestFields, string])[] = [
	['http.request.method', { method: 'PUT' }, 'PUT'],
	['http.request.scheme', { scheme: 'https' }, 'https'],
	['http.request.proto', { protocol: 'HTTP/2.0' }, 'HTTP/2.0'],
	['http.request.proto_name', { protocol: 'HTTP/2.0' }, 'HTTP/2'],
	['http.request.proto_name', { protocol: 'HTTP/1.0' }, 'HTTP/1.0'],
	['http.request.host', { authority: 'Foo.Example:81' }, 'foo.example'],
	['http.request.hostport', { authority: 'Foo.Example:81' }, 'Foo.Example:81'],
	['http.request.port', { authority: 'foo.example:81' }, '81'],
	['http.request.port', { authority: '[::1]' }, ''],
	['http.request.host.labels.0', { authority: 'foo.example.com' }, 'com'],
	['http.request.host.labels.2', { authority: 'foo.example.com' }, 'foo'],
	['http.request.host.labels.3', { authority: 'foo.example.com' }, ''],
	['http.request.local', {}, '127.0.0.1:9080'],
	['http.request.remote', { connection: { remoteAddress: '::1' } }, '[::1]:40000'],
	['http.request.remote.host', {}, '127.0.0.1'],
	['http.request.remote.port', {}, '40000'],
	['http.request.remote.host/24', { connection: { remoteAddress: '10.1.2.3' } }, '10.1.2.0/24'],
	['http.request.remote.host/24,32', { connection: { remoteAddress: '2001:db8:5::1' } }, '2001:db8::/32'],
	['http.request.uri', { target: '/a%20b?c=d' }, '/a%20b?c=d'],
	['http.request.uri_escaped', { target: '/a?c=d' }, '%2Fa%3Fc%3Dd'],
	['http.request.uri.path', { target: '/a%20b/%C3%A9' }, '/a b/é'],
	['http.request.uri.path', { target: '/%zz' }, '/%zz'],
	['http.request.uri.path_escaped', { target: '/a%20b' }, '%2Fa+b'],
	['http.request.uri.path.0', { target: '/a/b' }, 'a'],
	['http.request.uri.path.1', { target: '/a/b' }, 'b'],
	['http.request.uri.path.2', { target: '/a/b' }, ''],
	['http.request.uri.path.dir', { target: '/a/b.html' }, '/a/'],
	['http.request.uri.path.file', { target: '/a/b.html' }, 'b.html'],
	['http.request.uri.path.file.base', { target: '/a/b.html' }, 'b'],
	['http.request.uri.path.file.ext', { target: '/a/b.html' }, '.html'],
	['http.request.uri.query', { target: '/?a=%20' }, 'a=%20'],
	['http.request.uri.query_escaped', { target: '/?a=b' }, 'a%3Db'],
	['http.request.uri.prefixed_query', { target: '/?a' }, '?a'],
	['http.request.uri.prefixed_query', { target: '/?' }, ''],
	['http.request.uri.query.a', { target: '/?a=1&b=2&a=x+y' }, '1,x y'],
	['http.request.orig_uri', { target: '/a?b' }, '/a?b'],
	[
		'http.request.header.x-a',
		{
			headers: [
				['X-A', '1'],
				['x-a', '2'],
			],
		},
		'1,2',
	],
	['http.request.header.Nope', {}, ''],
	['http.request.cookie.SID', { headers: [['Cookie', 'a=b; sid="c d"; sid=e']] }, 'c d'],
	['http.request.tls.version', {}, ''],
	['http.vars.nope', {}, ''],
	['http.response.status', {}, '0'],
	['time.now.year', {}, String(new Date().getFullYear())],
	['system.os', {}, 'linux'],
	['system.wd', {}, '/work'],
];

for (const [name, request, expected] of PLACEHOLDER_CASES) {
	names(`{${name}} evaluates to ${JSON.stringify(expected)}`, () => {
		assert.is(rendered(`{${name}}`, request), expected);
	});
}

names('times, durations and identifiers have their documented formats', () => {
	assert.match(rendered('{time.now.http}'), /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/);
	assert.match(rendered('{time.now.common_log}'), /^\d\d\/\w{3}\/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}$/);
	assert.match(rendered('{time.now.unix} {time.now.unix_ms}'), /^\d{10} \d{13}$/);
	assert.match(rendered('{http.request.duration}'), /^[\d.]+(µs|ms|s)$/);
	const x = fakeExchange();
	const uuid = compileTemplate('{http.request.uuid}', 'keep', scope);
	assert.match(uuid.render(x), /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
	assert.is(uuid.render(x), uuid.render(x));
});

names('names must be complete, and every family accepts a parameter', () => {
	for (const name of placeholderNames()) {
		if (name === 'http.request.remote.host/*') assert.is(isKnownPlaceholder('http.request.remote.host/24'), true);
		else if (!name.endsWith('*')) assert.is(isKnownPlaceholder(name), true, name);
	}
	for (const name of [
		'host',
		'http.request.nope',
		'http.request.header.',
		'env.',
		'',
		'http.request.host.labels.x',
		'http.request.remote.host/33',
	]) {
		assert.is(isKnownPlaceholder(name), false, name);
	}
	assert.is(UNKNOWN_HOST_FACTS.env('HOME'), undefined);
	for (const placeholder of placeholders) assert.ok(placeholder.summary.endsWith('.'), placeholder.name);
});

names.run();

const shorthands = suite('shorthands');

shorthands('shorthands expand to full names', () => {
	for (const [text, expected] of [
		['{host}{uri}', '{http.request.host}{http.request.uri}'],
		[
			'{?query} {%path} {orig_?query}',
			'{http.request.uri.prefixed_query} {http.request.uri.path_escaped} {http.request.orig_uri.prefixed_query}',
		],
		[
			'{header.content-type} {labels.0} {query.p} {path.0}',
			'{http.request.header.content-type} {http.request.host.labels.0} {http.request.uri.query.p} {http.request.uri.path.0}',
		],
		[
			'{re.name.0} {re.1} {err.status_code} {rp.upstream.hostport}',
			'{http.regexp.name.0} {http.regexp.1} {http.error.status_code} {http.reverse_proxy.upstream.hostport}',
		],
		[
			'{file.base} {file} {file./etc/x}',
			'{http.request.uri.path.file.base} {http.request.uri.path.file} {file./etc/x}',
		],
		['{client_ip} {vars.a-b}', '{http.vars.client_ip} {http.vars.a-b}'],
		['\\{host\\} {nope} {constructor} {header.a.b}', '\\{host\\} {nope} {constructor} {header.a.b}'],
		['{"a": "{host}"}', '{"a": "{http.request.host}"}'],
	]) {
		assert.is(expandShorthands(text!), expected);
	}
});

shorthands('every shorthand refers to an existing name', () => {
	for (const [short, full] of Object.entries(SHORTHANDS)) {
		assert.is(isKnownPlaceholder(full), true, short);
	}
});

shorthands.run();

/** Requests that must be refused and requests that must be accepted: every accepted request has exactly one interpretation. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { bodyOf, openWire, send, serve, statusOf, type WireServer } from './wire.ts';

const HOST_FIELD = 'Host: a\r\n';
const CLOSE_FIELD = 'Connection: close\r\n';

/** A request, and the status of the only response that the server must send before it closes the connection. */
type RefusedRequest = readonly [name: string, request: string, status: number];

const REFUSED_REQUESTS: readonly RefusedRequest[] = [
	['an empty method', ` / HTTP/1.1\r\n${HOST_FIELD}\r\n`, 400],
	['a method that is not a token', `G@T / HTTP/1.1\r\n${HOST_FIELD}\r\n`, 400],
	['a NUL in the method', `G\0T / HTTP/1.1\r\n${HOST_FIELD}\r\n`, 400],
	['a method longer than 32 characters', `${'M'.repeat(33)} / HTTP/1.1\r\n${HOST_FIELD}\r\n`, 405],
	['a TLS ClientHello', '\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03', 400],
	['two spaces before the target', `GET  / HTTP/1.1\r\n${HOST_FIELD}\r\n`, 400],
	['two spaces after the target', `GET /  HTTP/1.1\r\n${HOST_FIELD}\r\n`, 400],
	['a tab instead of a space', `GET\t/ HTTP/1.1\r\n${HOST_FIELD}\r\n`, 400],
	['a space in the target', `GET /a b HTTP/1.1\r\n${HOST_FIELD}\r\n`, 400],
	['a space after the version', `GET / HTTP/1.1 \r\n${HOST_FIELD}\r\n`, 400],
	['two empty lines before', `\r\n\r\nGET / HTTP/1.1\r\n${HOST_FIELD}\r\n`, 400],
	['a space before the method', ` GET / HTTP/1.1\r\n${HOST_FIELD}\r\n`, 400],
	['HTTP/0.9', 'GET /\r\n', 400],
	['an explicit HTTP/0.9', `GET / HTTP/0.9\r\n${HOST_FIELD}\r\n`, 505],
	['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 505],
	['HTTP/1.2', `GET / HTTP/1.2\r\n${HOST_FIELD}\r\n`, 505],
	['a version with two digits', `GET / HTTP/1.10\r\n${HOST_FIELD}\r\n`, 400],
	['a version in lower case', `GET / http/1.1\r\n${HOST_FIELD}\r\n`, 400],
	['another protocol', `GET / ICAP/1.0\r\n${HOST_FIELD}\r\n`, 400],
	['a target without a slash', `GET a HTTP/1.1\r\n${HOST_FIELD}\r\n`, 400],
	['a fragment', `GET /#a HTTP/1.1\r\n${HOST_FIELD}\r\n`, 400],
	['a control character in the target', `GET /\x01 HTTP/1.1\r\n${HOST_FIELD}\r\n`, 400],
	['a byte above 127 in the target', `GET /\xe9 HTTP/1.1\r\n${HOST_FIELD}\r\n`, 400],
	['a broken percent encoding in the path', `GET /%4 HTTP/1.1\r\n${HOST_FIELD}\r\n`, 400],
	['a percent encoding that is not hexadecimal', `GET /%zz HTTP/1.1\r\n${HOST_FIELD}\r\n`, 400],
	['an asterisk with GET', `GET * HTTP/1.1\r\n${HOST_FIELD}\r\n`, 400],
	['another scheme', `GET ftp://a/ HTTP/1.1\r\n${HOST_FIELD}\r\n`, 400],
	['an absolute form without a host', `GET http:/// HTTP/1.1\r\n${HOST_FIELD}\r\n`, 400],
	['an absolute form with user information', `GET http://u@a/ HTTP/1.1\r\n${HOST_FIELD}\r\n`, 400],
	['an absolute form with a bad Host', 'GET http://a/ HTTP/1.1\r\nHost: a/b\r\n\r\n', 400],
	['an absolute form without a Host', 'GET http://a/ HTTP/1.1\r\n\r\n', 400],
	['CONNECT with a path', `CONNECT / HTTP/1.1\r\n${HOST_FIELD}\r\n`, 400],
	['CONNECT without a port', `CONNECT a HTTP/1.1\r\n${HOST_FIELD}\r\n`, 400],
	['CONNECT with an absolute form', `CONNECT http://a:80/ HTTP/1.1\r\n${HOST_FIELD}\r\n`, 400],
	['bare LF after the request line', `GET / HTTP/1.1\n${HOST_FIELD}\r\n`, 400],
	['bare LF after a field', 'GET / HTTP/1.1\r\nHost: a\n\r\n', 400],
	['bare LF at the end', `GET / HTTP/1.1\r\n${HOST_FIELD}\n`, 400],
	['bare CR in a value', 'GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n', 400],
	['bare CR in a name', 'GET / HTTP/1.1\r\nHost: a\r\nX\rY: a\r\n\r\n', 400],
	['CR CR LF', 'GET / HTTP/1.1\r\nHost: a\r\r\n\r\n', 400],
	['a folded line', `GET / HTTP/1.1\r\n${HOST_FIELD}X: a\r\n b\r\n\r\n`, 400],
	['a line folded by a tab', `GET / HTTP/1.1\r\n${HOST_FIELD}X: a\r\n\tb\r\n\r\n`, 400],
	['a space before the first field', `GET / HTTP/1.1\r\n ${HOST_FIELD}\r\n`, 400],
	['a space before the colon', `GET / HTTP/1.1\r\n${HOST_FIELD}X : a\r\n\r\n`, 400],
	['a tab before the colon', `GET / HTTP/1.1\r\n${HOST_FIELD}X\t: a\r\n\r\n`, 400],
	['a field without a colon', `GET / HTTP/1.1\r\n${HOST_FIELD}X\r\n\r\n`, 400],
	['an empty field name', `GET / HTTP/1.1\r\n${HOST_FIELD}: a\r\n\r\n`, 400],
	['a NUL in a name', `GET / HTTP/1.1\r\n${HOST_FIELD}X\0: a\r\n\r\n`, 400],
	['a NUL in a value', `GET / HTTP/1.1\r\n${HOST_FIELD}X: a\0b\r\n\r\n`, 400],
	['DEL in a value', `GET / HTTP/1.1\r\n${HOST_FIELD}X: \x7f\r\n\r\n`, 400],
	['a byte above 127 in a name', `GET / HTTP/1.1\r\n${HOST_FIELD}X\xe9: a\r\n\r\n`, 400],
	['a separator in a name', `GET / HTTP/1.1\r\n${HOST_FIELD}X(Y): a\r\n\r\n`, 400],
	['no Host', 'GET / HTTP/1.1\r\n\r\n', 400],
	['an empty Host', 'GET / HTTP/1.1\r\nHost:\r\n\r\n', 400],
	['two Hosts', `GET / HTTP/1.1\r\n${HOST_FIELD}${HOST_FIELD}\r\n`, 400],
	['two Hosts in HTTP/1.0', `GET / HTTP/1.0\r\n${HOST_FIELD}${HOST_FIELD}\r\n`, 400],
	['a list in Host', 'GET / HTTP/1.1\r\nHost: a, b\r\n\r\n', 400],
	['a path in Host', 'GET / HTTP/1.1\r\nHost: a/b\r\n\r\n', 400],
	['user information in Host', 'GET / HTTP/1.1\r\nHost: u@a\r\n\r\n', 400],
	['a bad port in Host', 'GET / HTTP/1.1\r\nHost: a:b\r\n\r\n', 400],
	['a port above 65535', 'GET / HTTP/1.1\r\nHost: a:65536\r\n\r\n', 400],
	['a broken IPv6 address in Host', 'GET / HTTP/1.1\r\nHost: [::1\r\n\r\n', 400],
	['a bad Host in HTTP/1.0', 'GET / HTTP/1.0\r\nHost: a b\r\n\r\n', 400],
	[
		'both Content-Length and Transfer-Encoding',
		`POST / HTTP/1.1\r\n${HOST_FIELD}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
		400,
	],
	[
		'both lengths, in reverse order',
		`POST / HTTP/1.1\r\n${HOST_FIELD}Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n`,
		400,
	],
	[
		'two lengths that differ',
		`POST / HTTP/1.1\r\n${HOST_FIELD}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd`,
		400,
	],
	['two lengths that agree', `POST / HTTP/1.1\r\n${HOST_FIELD}Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc`, 400],
	['a list of lengths', `POST / HTTP/1.1\r\n${HOST_FIELD}Content-Length: 3, 3\r\n\r\nabc`, 400],
	['a length with a sign', `POST / HTTP/1.1\r\n${HOST_FIELD}Content-Length: +3\r\n\r\nabc`, 400],
	['a negative length', `POST / HTTP/1.1\r\n${HOST_FIELD}Content-Length: -3\r\n\r\nabc`, 400],
	['a hexadecimal length', `POST / HTTP/1.1\r\n${HOST_FIELD}Content-Length: 0x3\r\n\r\nabc`, 400],
	['an empty length', `POST / HTTP/1.1\r\n${HOST_FIELD}Content-Length:\r\n\r\nabc`, 400],
	['a length of many digits', `POST / HTTP/1.1\r\n${HOST_FIELD}Content-Length: 18446744073709551619\r\n\r\nabc`, 400],
	[
		'another coding after chunked',
		`POST / HTTP/1.1\r\n${HOST_FIELD}Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n`,
		400,
	],
	['chunked twice', `POST / HTTP/1.1\r\n${HOST_FIELD}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n`, 400],
	[
		'chunked in two fields',
		`POST / HTTP/1.1\r\n${HOST_FIELD}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n`,
		400,
	],
	[
		'chunked and identity in two fields',
		`POST / HTTP/1.1\r\n${HOST_FIELD}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n`,
		400,
	],
	['identity', `POST / HTTP/1.1\r\n${HOST_FIELD}Transfer-Encoding: identity\r\n\r\n`, 400],
	['a coding similar to chunked', `POST / HTTP/1.1\r\n${HOST_FIELD}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`, 400],
	['quoted chunked', `POST / HTTP/1.1\r\n${HOST_FIELD}Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n`, 400],
	['an empty coding', `POST / HTTP/1.1\r\n${HOST_FIELD}Transfer-Encoding:\r\n\r\n`, 400],
	[
		'an unknown coding before chunked',
		`POST / HTTP/1.1\r\n${HOST_FIELD}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
		501,
	],
	['chunked in HTTP/1.0', `POST / HTTP/1.0\r\n${HOST_FIELD}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`, 400],
	['an unknown expectation', `POST / HTTP/1.1\r\n${HOST_FIELD}Expect: 200-ok\r\nContent-Length: 1\r\n\r\na`, 417],
	['an endless request line', `GET /${'a'.repeat(33_000)}`, 414],
	['an oversized target', `GET /${'a'.repeat(33_000)} HTTP/1.1\r\n${HOST_FIELD}\r\n`, 414],
	['an oversized field', `GET / HTTP/1.1\r\n${HOST_FIELD}X: ${'a'.repeat(33_000)}\r\n\r\n`, 431],
	['an endless head', `GET / HTTP/1.1\r\n${HOST_FIELD}${'X: a\r\n'.repeat(6000)}`, 431],
	['too many fields', `GET / HTTP/1.1\r\n${HOST_FIELD}${'X: a\r\n'.repeat(100)}\r\n`, 431],
];

/** Invalid chunked bodies. Each is sent after a head that announces a chunked body. */
const BAD_CHUNKS: readonly (readonly [name: string, body: string])[] = [
	['no size', '\r\nabc\r\n0\r\n\r\n'],
	['a size with 0x', '0x3\r\nabc\r\n0\r\n\r\n'],
	['a size with a sign', '+3\r\nabc\r\n0\r\n\r\n'],
	['a negative size', '-3\r\nabc\r\n0\r\n\r\n'],
	['a size that is not a number', 'g\r\nabc\r\n0\r\n\r\n'],
	['a size with an underscore', '0_3\r\nabc\r\n0\r\n\r\n'],
	['a space before the size', ' 3\r\nabc\r\n0\r\n\r\n'],
	['a space after the size', '3 \r\nabc\r\n0\r\n\r\n'],
	['a size of many digits', '10000000000000003\r\nabc\r\n0\r\n\r\n'],
	['endless zeros', `${'0'.repeat(20)}3\r\nabc\r\n0\r\n\r\n`],
	['bare LF after the size', '3\nabc\r\n0\r\n\r\n'],
	['bare CR after the size', '3\rabc\r\n0\r\n\r\n'],
	['bare LF after the data', '3\r\nabc\n0\r\n\r\n'],
	['a size that is too small', '2\r\nabc\r\n0\r\n\r\n'],
	['a size that is too large', '4\r\nabc\r\n0\r\n\r\n'],
	['bare LF in an extension', '3;a\nb\r\nabc\r\n0\r\n\r\n'],
	['bare CR in an extension', '3;a\rb\r\nabc\r\n0\r\n\r\n'],
	['an empty extension', '3;\r\nabc\r\n0\r\n\r\n'],
	['a NUL in an extension', '3;a="\0"\r\nabc\r\n0\r\n\r\n'],
	['a flood of extensions', `3;${'a'.repeat(5000)}\r\nabc\r\n0\r\n\r\n`],
	['a bare LF at the end', '3\r\nabc\r\n0\r\n\n'],
	['a trailer that is not a field', '3\r\nabc\r\n0\r\nabc\r\n\r\n'],
	['a folded trailer', '3\r\nabc\r\n0\r\nX: a\r\n b\r\n\r\n'],
	['Content-Length in a trailer', '3\r\nabc\r\n0\r\nContent-Length: 3\r\n\r\n'],
	['Transfer-Encoding in a trailer', '3\r\nabc\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n'],
	['oversized trailers', `3\r\nabc\r\n0\r\nX: ${'a'.repeat(33_000)}\r\n\r\n`],
];

const refused = suite<{ server: WireServer }>('HTTP/1.1: refused requests');

refused.before(async context => {
	context.server = await serve(async x => {
		const body = await bodyOf(x);
		x.response.body = `${x.request.method} ${x.request.path} ${body}`;
	});
});
refused.after(context => context.server.stop());

for (const [name, request, status] of REFUSED_REQUESTS) {
	refused(`${name} gives ${status}`, async ({ server }) => {
		const seen = server.exchanges.length;
		const counted = server.refused.length;
		// A second request follows the malformed one. The server must answer only the first request and close the connection, so
		// that no request is smuggled.
		const text = await send(server.port, `${request}GET /smuggled HTTP/1.1\r\n${HOST_FIELD}\r\n`);
		assert.is(statusOf(text), status);
		assert.match(text, /\r\nConnection: close\r\n/);
		assert.is(text.split('HTTP/1.1 ').length, 2, 'one answer');
		assert.is(server.exchanges.length, seen, 'no exchange');
		assert.is(server.refused.length, counted + 1, 'counted');
	});
	if (request.length <= 200)
		refused(`${name}, a byte at a time, gives ${status}`, async ({ server }) => {
			const text = await trickle(server.port, request);
			assert.is(statusOf(text), status);
		});
}

for (const [name, body] of BAD_CHUNKS) {
	const head = `POST /c HTTP/1.1\r\n${HOST_FIELD}Transfer-Encoding: chunked\r\n\r\n`;
	refused(`chunks: ${name}`, async ({ server }) => {
		const next = `GET /smuggled HTTP/1.1\r\n${HOST_FIELD}\r\n`;
		for (const text of [await send(server.port, head + body + next), await send(server.port, head, body + next)]) {
			assert.is(statusOf(text), 400);
			assert.match(text, /\r\nConnection: close\r\n/);
			assert.is(text.split('HTTP/1.1 ').length, 2, 'one answer');
		}
		assert.not.ok(server.exchanges.some(x => x.received.path === '/smuggled'));
	});
}
refused.run();

async function trickle(port: number, request: string): Promise<string> {
	const wire = await openWire(port);
	for (const byte of request) {
		wire.send(byte);
		await new Promise(resolve => setImmediate(resolve));
	}
	const text = await wire.whole();
	wire.socket.destroy();
	return text;
}

/** Valid requests and their interpretation, as `method path?query authority host body`. */
const ACCEPTED_REQUESTS: readonly (readonly [name: string, request: string, read: string])[] = [
	[
		'origin form',
		`GET /a%20b?c=d?e HTTP/1.1\r\nHost: A.example:80\r\n${CLOSE_FIELD}\r\n`,
		'GET /a%20b?c=d?e A.example:80 a.example ',
	],
	['an empty query', `GET /? HTTP/1.1\r\n${HOST_FIELD}${CLOSE_FIELD}\r\n`, 'GET /? a a '],
	['two slashes', `GET //b/c HTTP/1.1\r\n${HOST_FIELD}${CLOSE_FIELD}\r\n`, 'GET //b/c a a '],
	[
		'characters that browsers send raw',
		`GET /{a}|^"<> HTTP/1.1\r\n${HOST_FIELD}${CLOSE_FIELD}\r\n`,
		'GET /{a}|^"<> a a ',
	],
	['a broken percent encoding in a query', `GET /?100% HTTP/1.1\r\n${HOST_FIELD}${CLOSE_FIELD}\r\n`, 'GET /?100% a a '],
	[
		'absolute form, whose authority takes precedence',
		`GET http://B:8080/x?y HTTP/1.1\r\n${HOST_FIELD}${CLOSE_FIELD}\r\n`,
		'GET /x?y B:8080 b ',
	],
	['absolute form without a path', `GET http://b HTTP/1.1\r\n${HOST_FIELD}${CLOSE_FIELD}\r\n`, 'GET / b b '],
	['absolute form with a query only', `GET HTTP://b?y HTTP/1.1\r\n${HOST_FIELD}${CLOSE_FIELD}\r\n`, 'GET /?y b b '],
	['asterisk form', `OPTIONS * HTTP/1.1\r\n${HOST_FIELD}${CLOSE_FIELD}\r\n`, 'OPTIONS * a a '],
	['asterisk form through a proxy', `OPTIONS http://b HTTP/1.1\r\n${HOST_FIELD}${CLOSE_FIELD}\r\n`, 'OPTIONS * b b '],
	['an IPv6 host', `GET / HTTP/1.1\r\nHost: [::1]:80\r\n${CLOSE_FIELD}\r\n`, 'GET / [::1]:80 ::1 '],
	['an empty line before', `\r\nGET / HTTP/1.1\r\n${HOST_FIELD}${CLOSE_FIELD}\r\n`, 'GET / a a '],
	['a custom method', `X-My.Method / HTTP/1.1\r\n${HOST_FIELD}${CLOSE_FIELD}\r\n`, 'X-My.Method / a a '],
	[
		'a method of 32 characters',
		`${'M'.repeat(32)} / HTTP/1.1\r\n${HOST_FIELD}${CLOSE_FIELD}\r\n`,
		`${'M'.repeat(32)} / a a `,
	],
	['HTTP/1.0 without a Host', 'GET / HTTP/1.0\r\n\r\n', 'GET /   '],
	['a length', `POST / HTTP/1.1\r\n${HOST_FIELD}${CLOSE_FIELD}Content-Length: 3\r\n\r\nabc`, 'POST / a a abc'],
	['a length of zero', `POST / HTTP/1.1\r\n${HOST_FIELD}${CLOSE_FIELD}Content-Length: 0\r\n\r\n`, 'POST / a a '],
	['a GET with a body', `GET / HTTP/1.1\r\n${HOST_FIELD}${CLOSE_FIELD}Content-Length: 3\r\n\r\nabc`, 'GET / a a abc'],
	[
		'chunks',
		`POST / HTTP/1.1\r\n${HOST_FIELD}${CLOSE_FIELD}Transfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n`,
		'POST / a a abc0123456789',
	],
	[
		'chunks with leading zeros',
		`POST / HTTP/1.1\r\n${HOST_FIELD}${CLOSE_FIELD}Transfer-Encoding: chunked\r\n\r\n003\r\nabc\r\n000\r\n\r\n`,
		'POST / a a abc',
	],
	[
		'chunk extensions',
		`POST / HTTP/1.1\r\n${HOST_FIELD}${CLOSE_FIELD}Transfer-Encoding: chunked\r\n\r\n3;a;b=c;d="e;\\""\r\nabc\r\n0;x\r\n\r\n`,
		'POST / a a abc',
	],
	[
		'trailers',
		`POST / HTTP/1.1\r\n${HOST_FIELD}${CLOSE_FIELD}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: y\r\n\r\n`,
		'POST / a a abc',
	],
	['spaces around a value', `GET / HTTP/1.1\r\nHost: \t a \t\r\n${CLOSE_FIELD}\r\n`, 'GET / a a '],
	['an empty value', `GET / HTTP/1.1\r\n${HOST_FIELD}X:\r\n${CLOSE_FIELD}\r\n`, 'GET / a a '],
];

const accepted = suite<{ server: WireServer }>('HTTP/1.1: accepted requests');

accepted.before(async context => {
	context.server = await serve(async x => {
		const { method, path, query, authority, host } = x.request;
		const body = await bodyOf(x);
		x.response.body = `${method} ${path}${query === undefined ? '' : `?${query}`} ${authority} ${host} ${body}`;
	});
});
accepted.after(context => context.server.stop());

for (const [name, request, read] of ACCEPTED_REQUESTS) {
	accepted(name, async ({ server }) => {
		for (const text of [await send(server.port, request), await trickle(server.port, request)]) {
			assert.is(statusOf(text), 200, text);
			assert.is(text.slice(text.indexOf('\r\n\r\n') + 4), read);
		}
	});
}

for (const size of [17_000, 32_768]) {
	accepted(`a head of ${size} bytes, in one piece and in several`, async ({ server }) => {
		const line = 'GET / HTTP/1.1\r\n';
		const rest = `${HOST_FIELD}${CLOSE_FIELD}X: \r\n\r\n`;
		const head = `${line}X: ${'a'.repeat(size - line.length - rest.length)}\r\n${HOST_FIELD}${CLOSE_FIELD}\r\n`;
		assert.is(head.length, size);
		for (const pieces of [[head], [head.slice(0, 9000), head.slice(9000, 16_500), head.slice(16_500)]]) {
			assert.is(statusOf(await send(server.port, ...pieces)), 200);
		}
	});
}

accepted(
	'fields keep their order and spelling; Host is separate; names with _ or . are dropped',
	async ({ server }) => {
		await send(
			server.port,
			`GET / HTTP/1.1\r\nX-B: 1\r\n${HOST_FIELD}x-a:2\r\nX_C: 3\r\nX.D: 4\r\nContent_Length: 5\r\nX-B: 6\xe9\r\n${CLOSE_FIELD}\r\n`,
		);
		const headers = [...server.exchanges.at(-1)!.request.headers];
		assert.equal(headers, [
			['X-B', '1'],
			['x-a', '2'],
			['X-B', '6\xe9'],
			['Connection', 'close'],
		]);
	},
);

accepted('trailers are available at the end of the body, without routing fields', async ({ server }) => {
	await send(
		server.port,
		`POST / HTTP/1.1\r\n${HOST_FIELD}${CLOSE_FIELD}Transfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\nHost: b\r\nX_Z: y\r\n\r\n`,
	);
	const body = server.exchanges.at(-1)!.request.body as { trailers?: Iterable<[string, string]> };
	assert.equal([...body.trailers!], [['X', 'y']]);
});
accepted.run();

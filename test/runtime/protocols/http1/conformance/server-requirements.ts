/** The requirements of RFC 9110 and RFC 9112 for an origin server. */
import { CLOSE, FINAL_REQUEST, GET, PROXIED_POST_HEAD, type Requirement } from './requirement.ts';

const row = (
	section: string,
	level: Requirement['level'],
	says: string,
	rest: Omit<Requirement, 'section' | 'level' | 'says' | 'who'>,
): Requirement => ({ section, level, who: 'server', says, ...rest });

/** The requirements for servers, in the order of the RFCs. */
export const SERVER_REQUIREMENTS: readonly Requirement[] = [
	row('9112 §2.2', 'MUST', 'parse a message as octets in a superset of ASCII: keep obs-text in values', {
		send: `${GET.replace('/own', '/up/x')}X-Name: caf\xe9\r\n${CLOSE}\r\n`,
		statuses: [200],
		upstreamHas: ['X-Name: caf\xe9\r\n'],
	}),
	row('9112 §2.2', 'SHOULD', 'ignore one empty line before the request line', {
		send: `\r\n${GET}${CLOSE}\r\n`,
		statuses: [200],
	}),
	row('9112 §2.2', 'MUST', 'refuse whitespace between start line and first field', {
		send: `GET / HTTP/1.1\r\n Host: a\r\n\r\n`,
		statuses: [400],
	}),
	row('9112 §2.2', 'MUST', 'refuse a bare CR in a field', { send: `${GET}X: a\rb\r\n\r\n`, statuses: [400] }),
	row('9112 §2.2', 'MUST', 'refuse input that is not an HTTP message, and close', {
		send: `\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03`,
		statuses: [400],
		has: ['Connection: close\r\n'],
	}),
	row('9112 §2.3', 'MUST', 'answer an HTTP/1.0 client with its own version, 1.1', {
		send: 'GET /own HTTP/1.0\r\n\r\n',
		statuses: [200],
		has: [/^HTTP\/1\.1 200 /],
	}),
	row('9110 §6.2', 'SHOULD', 'answer 505 to a major version that is not served', {
		send: 'GET / HTTP/3.0\r\nHost: a\r\n\r\n',
		statuses: [505],
	}),
	row('9112 §3', 'SHOULD', 'answer 400 to a malformed request line, and not repair it', {
		send: 'GET /a b HTTP/1.1\r\nHost: a\r\n\r\n',
		statuses: [400],
	}),
	row('9112 §3', 'SHOULD', 'answer 501 or 405 to a method longer than any known one', {
		send: `${'M'.repeat(40)} / HTTP/1.1\r\nHost: a\r\n\r\n`,
		statuses: [405],
	}),
	row('9112 §3', 'MUST', 'answer 414 to a target over the limit', {
		send: `GET /${'a'.repeat(40_000)} HTTP/1.1\r\nHost: a\r\n\r\n`,
		statuses: [414],
	}),
	row('9110 §4.1', 'SHOULD', 'read request lines of at least 8000 octets', {
		send: `GET /own?${'a'.repeat(8000)} HTTP/1.1\r\nHost: a\r\n${CLOSE}\r\n`,
		statuses: [200],
	}),
	row('9112 §3.2', 'MUST', 'answer 400 to HTTP/1.1 without Host', { send: 'GET / HTTP/1.1\r\n\r\n', statuses: [400] }),
	row('9112 §3.2', 'MUST', 'answer 400 to more than one Host', {
		send: `${GET}Host: a.example\r\n\r\n`,
		statuses: [400],
	}),
	row('9112 §3.2', 'MUST', 'answer 400 to an invalid Host', {
		send: 'GET / HTTP/1.1\r\nHost: a/b\r\n\r\n',
		statuses: [400],
	}),
	row('9112 §3.2.2', 'MUST', 'accept absolute form', {
		send: `GET http://a.example/own HTTP/1.1\r\nHost: a.example\r\n${CLOSE}\r\n`,
		statuses: [200],
	}),
	row('9112 §3.2.2', 'MUST', 'replace Host with the authority of an absolute-form target', {
		send: `GET http://b.example/up/x HTTP/1.1\r\nHost: a.example\r\n${CLOSE}\r\n`,
		statuses: [200],
		upstreamHas: ['Host: b.example\r\n'],
		upstreamLacks: ['a.example'],
	}),
	row('9112 §3.2.4', 'MUST', 'accept the asterisk for OPTIONS only', {
		send: `OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\nGET * HTTP/1.1\r\nHost: a\r\n\r\n`,
		statuses: [200, 400],
	}),
	row('9110 §9.3.6', 'MUST', 'not answer 2xx to a CONNECT that does not create a tunnel', {
		send: 'CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n',
		statuses: [405],
	}),
	row('9112 §5.1', 'MUST', 'answer 400 to whitespace between field name and colon', {
		send: `${GET}X : a\r\n\r\n`,
		statuses: [400],
	}),
	row('9112 §5.1', 'MUST', 'trim whitespace around a value', {
		send: `${GET.replace('/own', '/up/x')}X-Blank: \t a b \t\r\n${CLOSE}\r\n`,
		statuses: [200],
		upstreamHas: ['X-Blank: a b\r\n'],
	}),
	row('9112 §5.2', 'MUST', 'refuse or unfold an obsolete line folding', {
		send: `${GET}X: a\r\n b\r\n\r\n`,
		statuses: [400],
	}),
	row('9110 §5.5', 'MUST', 'refuse NUL, CR and LF in a value', { send: `${GET}X: a\0b\r\n\r\n`, statuses: [400] }),
	row('9110 §5.4', 'MUST', 'answer 4xx to fields over the limit', {
		send: `${GET}${'X: a\r\n'.repeat(150)}\r\n`,
		statuses: [431],
	}),
	row('9112 §6.1', 'MUST', 'parse the chunked coding', {
		send: `${PROXIED_POST_HEAD}${CLOSE}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n`,
		statuses: [200],
		upstreamHas: ['abc'],
	}),
	row('9112 §6.1', 'SHOULD', 'answer 501 to an unknown transfer coding', {
		send: `${PROXIED_POST_HEAD}Transfer-Encoding: gzip, chunked\r\n\r\n`,
		statuses: [501],
		upstreamRequests: 0,
	}),
	row('9112 §6.1', 'MUST', 'close after a request with both Transfer-Encoding and Content-Length', {
		send: `${PROXIED_POST_HEAD}Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n${FINAL_REQUEST}`,
		statuses: [400],
		upstreamRequests: 0,
	}),
	row('9112 §6.1', 'MUST', 'take a Transfer-Encoding of HTTP/1.0 for faulty framing', {
		send: 'POST /up/x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
		statuses: [400],
		upstreamRequests: 0,
	}),
	row('9112 §6.3', 'MUST', 'answer 400 when chunked is not the last coding', {
		send: `${PROXIED_POST_HEAD}Transfer-Encoding: chunked, identity\r\n\r\n`,
		statuses: [400],
	}),
	row('9112 §6.3', 'MUST', 'answer 400 to an invalid Content-Length, and close', {
		send: `${PROXIED_POST_HEAD}Content-Length: +3\r\n\r\nabc${FINAL_REQUEST}`,
		statuses: [400],
		upstreamRequests: 0,
	}),
	row('9112 §6.3', 'MUST', 'refuse differing lengths', {
		send: `${PROXIED_POST_HEAD}Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd`,
		statuses: [400],
	}),
	row('9112 §6.3', 'MUST', 'treat a request with neither length field as having no body', {
		send: `POST /own HTTP/1.1\r\nHost: a\r\n\r\n${FINAL_REQUEST}`,
		statuses: [200, 200],
	}),
	row('9112 §6.3', 'SHOULD', 'answer an error if the body is truncated', {
		send: [`${PROXIED_POST_HEAD}Content-Length: 10\r\n\r\nabc`, '<end>'],
		statuses: [400],
	}),
	row('9112 §7.1', 'MUST', 'ignore unknown chunk extensions', {
		send: `${PROXIED_POST_HEAD}${CLOSE}Transfer-Encoding: chunked\r\n\r\n3;a=b;c="d\\"e"\r\nabc\r\n0;f\r\n\r\n`,
		statuses: [200],
		upstreamLacks: ['a=b'],
	}),
	row('9112 §7.1', 'MUST', 'limit the length of chunk extensions', {
		send: `${PROXIED_POST_HEAD}Transfer-Encoding: chunked\r\n\r\n3;${'a'.repeat(10_000)}\r\nabc\r\n0\r\n\r\n`,
		statuses: [400],
	}),
	row('9112 §7.1', 'MUST', 'not overflow on a large chunk size', {
		send: `${PROXIED_POST_HEAD}Transfer-Encoding: chunked\r\n\r\n10000000000000003\r\nabc\r\n0\r\n\r\n`,
		statuses: [400],
	}),
	row('9112 §7.1.2', 'MUST NOT', 'merge trailers into the header section', {
		send: `${PROXIED_POST_HEAD}${CLOSE}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Trailer: t\r\n\r\n`,
		statuses: [200],
		upstreamLacks: [/X-Trailer: t[\s\S]*\r\n\r\n[\s\S]*a\r\n/],
	}),
	row('9110 §6.5.1', 'MUST NOT', 'trust framing fields in a trailer', {
		send: `${PROXIED_POST_HEAD}Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nContent-Length: 5\r\n\r\n`,
		statuses: [400],
	}),
	row('9112 §8', 'MUST', 'answer 400 to an incomplete request', {
		send: ['POST /up/x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab', '<end>'],
		statuses: [400],
	}),
	row('9112 §9.3', 'MUST', 'keep a connection of HTTP/1.1 open', {
		send: `${GET}\r\n${FINAL_REQUEST}`,
		statuses: [200, 200],
	}),
	row('9112 §9.3', 'MUST', 'close after a request that says close', {
		send: `${GET}${CLOSE}\r\n${FINAL_REQUEST}`,
		statuses: [200],
		has: ['Connection: close\r\n'],
	}),
	row('9112 §9.3', 'MUST', 'close after HTTP/1.0 unless it asks to keep alive', {
		send: `GET /own HTTP/1.0\r\n\r\n${FINAL_REQUEST}`,
		statuses: [200],
	}),
	row('9112 §9.3', 'MAY', 'keep an HTTP/1.0 connection alive if asked, and say so', {
		send: `GET /own HTTP/1.0\r\nConnection: keep-alive\r\n\r\n${FINAL_REQUEST}`,
		statuses: [200, 200],
		has: [/^[\s\S]*?Connection: keep-alive\r\n/],
	}),
	row('9112 §9.3', 'MUST', 'read the whole body or close: an unread body must not become the next request', {
		send: `POST /own HTTP/1.1\r\nHost: a\r\nContent-Length: ${FINAL_REQUEST.length}\r\n\r\n${FINAL_REQUEST}${FINAL_REQUEST}`,
		statuses: [200, 200],
	}),
	row('9112 §9.3.2', 'MUST', 'answer pipelined requests in order', {
		send: `${GET.replace('/own', '/up/slow')}\r\n${FINAL_REQUEST}`,
		upstream: 'HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n',
		statuses: [201, 200],
	}),
	row('9112 §9.6', 'MUST', 'send nothing after a response that said close', {
		send: `${GET}${CLOSE}\r\n${GET}\r\n${GET}\r\n`,
		statuses: [200],
	}),
	row('9112 §9.6', 'SHOULD', 'deliver the last response even though the client keeps sending', {
		send: [`${PROXIED_POST_HEAD}Content-Length: nonsense\r\n\r\n`, 'x'.repeat(100_000), 'x'.repeat(100_000)],
		statuses: [400],
	}),
	row('9112 §9.8', 'SHOULD', 'serve requests of a client that has closed its side', {
		send: [`${GET}\r\n${GET}\r\n`, '<end>'],
		statuses: [200, 200],
	}),
	row('9110 §6.6.1', 'MUST', 'send Date, in the format of RFC 5322, with every response', {
		send: `${GET}${CLOSE}\r\n`,
		has: [/\r\nDate: (Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\r\n/],
	}),
	row('9110 §6.6.1', 'MUST', 'also send Date with an error response', {
		send: 'nonsense\r\n\r\n',
		has: [/\r\nDate: /],
	}),
	row('9110 §7.2', 'MUST', 'treat Host and the authority without regard to case', {
		send: `GET /own HTTP/1.1\r\nHost: A.EXAMPLE\r\n${CLOSE}\r\n`,
		statuses: [200],
	}),
	row('9110 §7.6.1', 'MUST', 'read options of Connection without regard to case, in a list', {
		send: `${GET}Connection: Foo, CLOSE\r\n\r\n${FINAL_REQUEST}`,
		statuses: [200],
	}),
	row('9110 §7.8', 'MUST', 'ignore an Upgrade to an unsupported protocol', {
		send: `${GET}Connection: Upgrade, close\r\nUpgrade: irc/1\r\n\r\n`,
		statuses: [200],
	}),
	row('9110 §7.8', 'MUST', 'ignore Upgrade in HTTP/1.0', {
		send: 'GET /own HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
		statuses: [200],
	}),
	row('9110 §8.6', 'MUST NOT', 'send Content-Length with 204', {
		send: `GET /none HTTP/1.1\r\nHost: a\r\n${CLOSE}\r\n`,
		statuses: [204],
		lacks: ['Content-Length', 'Transfer-Encoding'],
	}),
	row('9112 §6.1', 'MUST NOT', 'send Transfer-Encoding to a client of HTTP/1.0', {
		send: 'GET /up/x HTTP/1.0\r\n\r\n',
		upstream: 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n',
		statuses: [200],
		lacks: ['Transfer-Encoding'],
		has: [/\r\n\r\nok$/],
	}),
	row('9110 §9.1', 'MUST', 'distinguish methods by case', {
		send: `get /up/x HTTP/1.1\r\nHost: a\r\n${CLOSE}\r\n`,
		upstreamHas: [/^get \/up\/x /],
	}),
	row('9110 §9.3.2', 'MUST NOT', 'send a body in answer to HEAD', {
		send: `HEAD /own HTTP/1.1\r\nHost: a\r\n\r\n${FINAL_REQUEST}`,
		statuses: [200, 200],
		has: [/^[\s\S]*?Content-Length: 2\r\n\r\nHTTP\/1\.1/],
	}),
	row('9110 §10.1.1', 'MUST', 'send 100 only when the body is read', {
		send: `POST /own HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n`,
		statuses: [200],
		lacks: ['HTTP/1.1 100'],
	}),
	row('9110 §10.1.1', 'MUST', 'send 100 before the final response when the body is read', {
		send: [`${PROXIED_POST_HEAD}${CLOSE}Expect: 100-continue\r\nContent-Length: 3\r\n\r\n`, 'abc'],
		upstreamContinues: true,
		statuses: [100, 200],
		upstreamHas: ['abc'],
	}),
	row('9110 §10.1.1', 'MUST NOT', 'send 100 to a client of HTTP/1.0', {
		send: ['POST /up/x HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n', 'abc'],
		statuses: [200],
	}),
	row('9110 §10.1.1', 'MAY', 'omit 100 if the body has already arrived', {
		send: `${PROXIED_POST_HEAD}${CLOSE}Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc`,
		statuses: [200],
	}),
	row('9110 §10.1.1', 'SHOULD', 'answer 417 to another expectation', {
		send: `${PROXIED_POST_HEAD}Expect: tea\r\nContent-Length: 3\r\n\r\nabc`,
		statuses: [417],
	}),
	row('9110 §15.2', 'MUST NOT', 'send 1xx to a client of HTTP/1.0', {
		send: 'GET /up/x HTTP/1.0\r\n\r\n',
		upstream: 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok',
		statuses: [200],
	}),
	row('9112 §4', 'MUST', 'send the space after a status without a reason phrase', {
		send: `${GET.replace('/own', '/up/x')}${CLOSE}\r\n`,
		upstream: 'HTTP/1.1 299\r\nContent-Length: 0\r\n\r\n',
		has: [/^HTTP\/1\.1 299 \r\n/],
	}),
];

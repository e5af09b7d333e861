/** The requirements of RFC 9113 §8, RFC 7541 and RFC 8441 for a server: what a client sends, and the required outcome. */
import { FRAME_FLAG, FRAME_TYPE, H2_ERROR } from '../../../../runtime/protocols/http2/frame-codes.ts';
import type { Outcome, Requirement } from './connection-requirements.ts';
import { encodeFieldBlock, frame, POST, REQUEST, request } from './frames.ts';

const END_HEADERS = FRAME_FLAG.endHeaders;
const malformed: Outcome = { stream: 1, code: H2_ERROR.protocol };
const requestWithout = (name: string) => REQUEST.filter(([field]) => field !== name);
const withField = (name: string, value: string) => [...REQUEST, [name, value] as const];
const connect = (...fields: (readonly [string, string])[]) =>
	request(1, [[':method', 'CONNECT'], ...fields], END_HEADERS);
const data = (stream: number, text: string, flags = 0) => frame(FRAME_TYPE.data, flags, stream, Buffer.from(text));

/** The requirements for messages, tunnels and compression. */
export const MESSAGE_REQUIREMENTS: readonly Requirement[] = [
	{
		section: '8.1',
		asks: 'trailers complete the request',
		sends: [request(1, POST, END_HEADERS), frame(FRAME_TYPE.headers, END_HEADERS, 1, encodeFieldBlock([['x', 'y']]))],
		outcome: malformed,
	},
	{
		section: '8.1',
		asks: 'trailers are accepted',
		sends: [
			request(1, POST, END_HEADERS),
			data(1, 'x'),
			frame(FRAME_TYPE.headers, END_HEADERS | FRAME_FLAG.endStream, 1, encodeFieldBlock([['x', 'y']])),
		],
		outcome: { stream: 1, status: '200' },
	},
	{
		section: '8.1.1',
		asks: 'less content than Content-Length is malformed',
		sends: [request(1, [...POST, ['content-length', '3']], END_HEADERS), data(1, 'ab', FRAME_FLAG.endStream)],
		outcome: malformed,
	},
	{
		section: '8.1.1',
		asks: 'more content than Content-Length is malformed',
		sends: [request(1, [...POST, ['content-length', '3']], END_HEADERS), data(1, 'ab'), data(1, 'cd')],
		outcome: malformed,
	},
	{
		section: '8.1.1',
		asks: 'a Content-Length without content is malformed',
		sends: [request(1, [...POST, ['content-length', '3']])],
		outcome: malformed,
	},
	{
		section: '8.1.1',
		asks: 'two Content-Lengths are malformed',
		sends: [request(1, [...POST, ['content-length', '1'], ['content-length', '1']], END_HEADERS)],
		outcome: malformed,
	},
	{
		section: '8.1.1',
		asks: 'a non-numeric Content-Length is malformed',
		sends: [request(1, [...POST, ['content-length', '+1']], END_HEADERS)],
		outcome: malformed,
	},
	{
		section: '8.2.1',
		asks: 'an uppercase name is malformed',
		sends: [request(1, withField('X-Upper', 'x'))],
		outcome: malformed,
	},
	{
		section: '8.2.1',
		asks: 'a name that is not a token is malformed',
		sends: [request(1, withField('bad name', 'x'))],
		outcome: malformed,
	},
	{ section: '8.2.1', asks: 'an empty name is malformed', sends: [request(1, withField('', 'x'))], outcome: malformed },
	{
		section: '8.2.1',
		asks: 'a name with a colon is malformed',
		sends: [request(1, withField('a:b', 'x'))],
		outcome: malformed,
	},
	{
		section: '8.2.1',
		asks: 'a value with a line feed is malformed',
		sends: [request(1, withField('x', 'a\nb: c'))],
		outcome: malformed,
	},
	{
		section: '8.2.1',
		asks: 'a value with a carriage return is malformed',
		sends: [request(1, withField('x', 'a\rb'))],
		outcome: malformed,
	},
	{
		section: '8.2.1',
		asks: 'a value with NUL is malformed',
		sends: [request(1, withField('x', 'a\0b'))],
		outcome: malformed,
	},
	{
		section: '8.2.1',
		asks: 'a value with a leading space is malformed',
		sends: [request(1, withField('x', ' a'))],
		outcome: malformed,
		beyondNode: true,
	},
	{
		section: '8.2.1',
		asks: 'a value with a trailing space is malformed',
		sends: [request(1, withField('x', 'a\t'))],
		outcome: malformed,
		beyondNode: true,
	},
	{
		section: '8.2.2',
		asks: '`connection` is malformed',
		sends: [request(1, withField('connection', 'close'))],
		outcome: malformed,
	},
	{
		section: '8.2.2',
		asks: '`keep-alive` is malformed',
		sends: [request(1, withField('keep-alive', 'x'))],
		outcome: malformed,
	},
	{
		section: '8.2.2',
		asks: '`proxy-connection` is malformed',
		sends: [request(1, withField('proxy-connection', 'x'))],
		outcome: malformed,
	},
	{
		section: '8.2.2',
		asks: '`transfer-encoding` is malformed',
		sends: [request(1, withField('transfer-encoding', 'chunked'))],
		outcome: malformed,
	},
	{
		section: '8.2.2',
		asks: '`upgrade` is malformed',
		sends: [request(1, withField('upgrade', 'websocket'))],
		outcome: malformed,
	},
	{
		section: '8.2.2',
		asks: '`te` other than trailers is malformed',
		sends: [request(1, withField('te', 'gzip'))],
		outcome: malformed,
	},
	{
		section: '8.2.2',
		asks: '`te: trailers` is accepted',
		sends: [request(1, withField('te', 'trailers'))],
		outcome: { stream: 1, status: '200' },
	},
	{
		section: '8.3',
		asks: 'a pseudo-header after a field is malformed',
		sends: [request(1, [REQUEST[0]!, ['x', 'y'], ...REQUEST.slice(1)])],
		outcome: malformed,
	},
	{
		section: '8.3',
		asks: 'undefined pseudo-headers are malformed',
		sends: [request(1, [[':test', 'x'], ...REQUEST])],
		outcome: malformed,
	},
	{
		section: '8.3',
		asks: "`:status` is a response's",
		sends: [request(1, [[':status', '200'], ...REQUEST])],
		outcome: malformed,
	},
	{
		section: '8.3',
		asks: 'pseudo-headers in trailers are malformed',
		sends: [
			request(1, POST, END_HEADERS),
			frame(FRAME_TYPE.headers, END_HEADERS | FRAME_FLAG.endStream, 1, encodeFieldBlock([[':path', '/']])),
		],
		outcome: malformed,
	},
	{
		section: '8.3.1',
		asks: 'a missing `:method` is malformed',
		sends: [request(1, requestWithout(':method'))],
		outcome: malformed,
	},
	{
		section: '8.3.1',
		asks: 'a missing `:scheme` is malformed',
		sends: [request(1, requestWithout(':scheme'))],
		outcome: malformed,
	},
	{
		section: '8.3.1',
		asks: 'a missing `:path` is malformed',
		sends: [request(1, requestWithout(':path'))],
		outcome: malformed,
	},
	{
		section: '8.3.1',
		asks: 'an empty `:path` is malformed',
		sends: [request(1, [[':path', ''], ...requestWithout(':path')])],
		outcome: malformed,
	},
	{
		section: '8.3.1',
		asks: 'a `:path` without a leading slash is malformed',
		sends: [request(1, [[':path', 'http://localhost/'], ...requestWithout(':path')])],
		outcome: malformed,
		beyondNode: true,
	},
	{
		section: '8.3.1',
		asks: '`:path` `*` is malformed except for OPTIONS',
		sends: [request(1, [[':path', '*'], ...requestWithout(':path')])],
		outcome: malformed,
	},
	{
		section: '8.3.1',
		asks: 'a `:path` with a fragment is malformed',
		sends: [request(1, [[':path', '/a#b'], ...requestWithout(':path')])],
		outcome: { stream: 1, status: '400' },
		beyondNode: true,
	},
	{
		section: '8.3.1',
		asks: 'a repeated `:method` is malformed',
		sends: [request(1, [[':method', 'GET'], ...REQUEST])],
		outcome: malformed,
	},
	{
		section: '8.3.1',
		asks: 'a repeated `:scheme` is malformed',
		sends: [request(1, [[':scheme', 'http'], ...REQUEST])],
		outcome: malformed,
	},
	{
		section: '8.3.1',
		asks: 'a repeated `:path` is malformed',
		sends: [request(1, [[':path', '/b'], ...REQUEST])],
		outcome: malformed,
	},
	{
		section: '8.3.1',
		asks: 'a repeated `:authority` is malformed',
		sends: [request(1, [[':authority', 'other'], ...REQUEST])],
		outcome: malformed,
	},
	{
		section: '8.3.1',
		asks: 'a request without a host is refused',
		sends: [request(1, requestWithout(':authority'))],
		outcome: { stream: 1, status: '400' },
		beyondNode: true,
	},
	{
		section: '8.3.1',
		asks: '`host` is used if there is no `:authority`',
		sends: [request(1, [...requestWithout(':authority'), ['host', 'localhost']])],
		outcome: { stream: 1, status: '200' },
	},
	{
		section: '8.3.1',
		asks: '`host` that differs from `:authority` is malformed',
		sends: [request(1, withField('host', 'other'))],
		outcome: malformed,
		beyondNode: true,
	},
	{
		section: '8.3.1',
		asks: '`host` equal to `:authority` is accepted',
		sends: [request(1, withField('host', 'LOCALHOST'))],
		outcome: { stream: 1, status: '200' },
	},
	{
		section: '8.3.1',
		asks: 'an `:authority` with user information is malformed',
		sends: [request(1, [...requestWithout(':authority'), [':authority', 'me@localhost']])],
		outcome: { stream: 1, status: '400' },
		beyondNode: true,
	},
	// CONNECT
	{
		section: '8.5',
		asks: 'CONNECT with `:scheme` or `:path` is malformed',
		sends: [request(1, [[':method', 'CONNECT'], ...REQUEST.slice(1)], END_HEADERS)],
		outcome: malformed,
	},
	{ section: '8.5', asks: 'CONNECT without `:authority` is malformed', sends: [connect()], outcome: malformed },
	{
		section: '8.5',
		asks: 'CONNECT without a handler for it is not answered 2xx',
		sends: [connect([':authority', 'localhost:80'])],
		outcome: { stream: 1, status: '405' },
	},
	{
		section: 'RFC 8441 4',
		asks: '`:protocol` without CONNECT is malformed',
		sends: [request(1, [[':protocol', 'websocket'], ...REQUEST])],
		outcome: malformed,
	},
	{
		section: 'RFC 8441 4',
		asks: 'extended CONNECT without `:scheme` and `:path` is malformed',
		sends: [connect([':protocol', 'websocket'], [':authority', 'localhost'])],
		outcome: malformed,
	},
	{
		section: 'RFC 8441 5',
		asks: 'extended CONNECT without a handler for it is not answered 2xx',
		sends: [connect([':protocol', 'websocket'], ...REQUEST.slice(1))],
		outcome: { stream: 1, status: '501' },
	},
	// HPACK
	{
		section: 'RFC 7541 2.3.3',
		asks: 'an index beyond the tables ends the connection',
		sends: [frame(FRAME_TYPE.headers, END_HEADERS | FRAME_FLAG.endStream, 1, Buffer.from([0xff, 0x20]))],
		outcome: { connection: H2_ERROR.compression },
	},
	{
		section: 'RFC 7541 4.2',
		asks: 'a table size update after a field ends the connection',
		sends: [
			frame(
				FRAME_TYPE.headers,
				END_HEADERS | FRAME_FLAG.endStream,
				1,
				Buffer.concat([encodeFieldBlock(REQUEST), Buffer.from([0x20])]),
			),
		],
		outcome: { connection: H2_ERROR.compression },
	},
	{
		section: 'RFC 7541 4.2',
		asks: 'a table size above the limit ends the connection',
		sends: [
			frame(
				FRAME_TYPE.headers,
				END_HEADERS | FRAME_FLAG.endStream,
				1,
				Buffer.concat([Buffer.from([0x3f, 0xe2, 0x1f]), encodeFieldBlock(REQUEST)]),
			),
		],
		outcome: { connection: H2_ERROR.compression },
	},
	{
		section: 'RFC 7541 5.1',
		asks: 'an endless integer ends the connection',
		sends: [
			frame(
				FRAME_TYPE.headers,
				END_HEADERS | FRAME_FLAG.endStream,
				1,
				Buffer.from([0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]),
			),
		],
		outcome: { connection: H2_ERROR.compression },
	},
	{
		section: 'RFC 7541 5.2',
		asks: 'Huffman padding longer than seven bits ends the connection',
		sends: [
			frame(
				FRAME_TYPE.headers,
				END_HEADERS | FRAME_FLAG.endStream,
				1,
				Buffer.from([0x00, 0x82, 0x1f, 0xff, 0x01, 0x61]),
			),
		],
		outcome: { connection: H2_ERROR.compression },
	},
	{
		section: 'RFC 7541 5.2',
		asks: 'Huffman padding other than ones ends the connection',
		sends: [
			frame(FRAME_TYPE.headers, END_HEADERS | FRAME_FLAG.endStream, 1, Buffer.from([0x00, 0x81, 0x18, 0x01, 0x61])),
		],
		outcome: { connection: H2_ERROR.compression },
	},
	{
		section: 'RFC 7541 5.2',
		asks: 'the Huffman EOS symbol inside a string ends the connection',
		sends: [
			frame(
				FRAME_TYPE.headers,
				END_HEADERS | FRAME_FLAG.endStream,
				1,
				Buffer.from([0x00, 0x84, 0xff, 0xff, 0xff, 0xff, 0x01, 0x61]),
			),
		],
		outcome: { connection: H2_ERROR.compression },
	},
	{
		section: 'RFC 7541 5.2',
		asks: 'a string longer than its block ends the connection',
		sends: [frame(FRAME_TYPE.headers, END_HEADERS | FRAME_FLAG.endStream, 1, Buffer.from([0x00, 0x05, 0x61]))],
		outcome: { connection: H2_ERROR.compression },
	},
];

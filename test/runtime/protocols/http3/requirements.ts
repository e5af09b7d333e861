/** The requirements of RFC 9114 and RFC 9204 for a server: what a client sends, and the required outcome. */
import { H3_ERROR } from '../../../../runtime/protocols/http3/http3-codes.ts';
import { data, encodeFieldSection, encodePrefixedInteger, frame, headers, POST, REQUEST, varint } from './frames.ts';

/** A required outcome. Unless it is a connection error, the connection must serve another request afterwards. */
export type Outcome =
	| { readonly connection: number }
	| { readonly stream: number }
	| { readonly status: string }
	| 'served';

/** A requirement of RFC 9114 or RFC 9204. */
export interface Requirement {
	readonly section: string;
	readonly asks: string;
	/** Bytes written on a request stream. */
	readonly request?: Uint8Array;
	/** True if the request stream stays open. */
	readonly open?: boolean;
	/** Bytes written on the control stream after its type; the default is empty SETTINGS. */
	readonly control?: Uint8Array;
	/** Bytes written on unidirectional streams, including their types. */
	readonly uni?: readonly Uint8Array[];
	/** True if the unidirectional streams end. */
	readonly uniEnds?: boolean;
	/** True if the control stream ends. */
	readonly controlEnds?: boolean;
	readonly outcome: Outcome;
}

const SETTINGS = frame(4);
const fails = (connection: number): Outcome => ({ connection });
const malformed: Outcome = { stream: H3_ERROR.message };
const withFields = (...fields: [string, string][]) => headers([...REQUEST, ...fields]);
const without = (name: string) => headers(REQUEST.filter(([other]) => other !== name));
const withControl = (...frames: Uint8Array[]) => Buffer.concat([SETTINGS, ...frames]);
const sectionOf = (...bytes: number[]) => frame(1, Buffer.from(bytes));
/** Returns the head of a minimal request with the value of one field replaced. */
const requestWith = (name: string, value: string) =>
	headers(REQUEST.map(([other, before]) => [other, other === name ? value : before]));
const withTrailers = (...fields: [string, string][]) => Buffer.concat([headers(POST), data('a'), headers(fields)]);
const CONNECT: readonly (readonly [string, string])[] = [
	[':method', 'CONNECT'],
	[':protocol', 'websocket'],
	...REQUEST.slice(1),
];
const PRIORITY_UPDATE = 0xf0700;
const PRIORITY_UPDATE_PUSH = 0xf0701;

export const REQUIREMENTS: readonly Requirement[] = [
	// Requests
	{ section: '4.1', asks: 'a request is served', request: headers(), outcome: { status: '200' } },
	{
		section: '4.1',
		asks: 'a request with a body and trailers is served',
		request: Buffer.concat([headers(POST), data('one'), data('two'), headers([['x-checked', 'yes']])]),
		outcome: { status: '200' },
	},
	{
		section: '4.1',
		asks: 'DATA before HEADERS ends the connection',
		request: data('early'),
		outcome: fails(H3_ERROR.frameUnexpected),
	},
	{
		section: '4.1',
		asks: 'HEADERS after trailers ends the connection',
		request: Buffer.concat([headers(POST), data('a'), headers([['x', 'y']]), headers([['x', 'y']])]),
		outcome: fails(H3_ERROR.frameUnexpected),
	},
	{
		section: '4.1',
		asks: 'DATA after trailers ends the connection',
		request: Buffer.concat([headers(POST), headers([['x', 'y']]), data('late')]),
		outcome: fails(H3_ERROR.frameUnexpected),
	},
	{
		section: '4.1.1',
		asks: 'a stream that ends before its HEADERS is an incomplete request',
		request: Buffer.alloc(0),
		outcome: { stream: H3_ERROR.incomplete },
	},
	{
		section: '4.1.2',
		asks: 'less body than Content-Length is malformed',
		request: Buffer.concat([headers([...POST, ['content-length', '5']]), data('four')]),
		outcome: malformed,
	},
	{
		section: '4.1.2',
		asks: 'more body than Content-Length is malformed',
		request: Buffer.concat([headers([...POST, ['content-length', '3']]), data('four')]),
		outcome: malformed,
	},
	{
		section: '4.1.2',
		asks: 'a Content-Length without a body is malformed',
		request: headers([...POST, ['content-length', '3']]),
		outcome: malformed,
	},
	{
		section: '4.1.2',
		asks: 'two Content-Lengths are malformed',
		request: Buffer.concat([headers([...POST, ['content-length', '1'], ['content-length', '1']]), data('a')]),
		outcome: malformed,
	},
	{
		section: '4.1.2',
		asks: 'a non-numeric Content-Length is malformed',
		request: Buffer.concat([headers([...POST, ['content-length', '+1']]), data('a')]),
		outcome: malformed,
	},
	{
		section: '4.1',
		asks: 'a request with an empty body is served',
		request: Buffer.concat([headers([...POST, ['content-length', '0']]), frame(0)]),
		outcome: { status: '200' },
	},
	{
		section: '4.1',
		asks: 'trailers without a body are served',
		request: Buffer.concat([headers(POST), headers([['x', 'y']])]),
		outcome: { status: '200' },
	},
	{
		section: '4.1',
		asks: 'unknown frames between and after those of a message are ignored',
		request: Buffer.concat([
			...[headers(POST), frame(0x21), data('a'), frame(0x5f, Buffer.alloc(70))],
			...[headers([['x', 'y']]), frame(0x21)],
		]),
		outcome: { status: '200' },
	},
	// Fields
	{
		section: '4.2',
		asks: 'an uppercase name is malformed',
		request: withFields(['X-Big', '1']),
		outcome: malformed,
	},
	{ section: '4.2', asks: 'Connection is malformed', request: withFields(['connection', 'close']), outcome: malformed },
	{
		section: '4.2',
		asks: 'Transfer-Encoding is malformed',
		request: withFields(['transfer-encoding', 'chunked']),
		outcome: malformed,
	},
	{ section: '4.2', asks: 'TE may be trailers', request: withFields(['te', 'trailers']), outcome: { status: '200' } },
	{
		section: '4.2',
		asks: 'TE other than trailers is malformed',
		request: withFields(['te', 'gzip']),
		outcome: malformed,
	},
	{
		section: '4.2',
		asks: 'a value with a line break is malformed',
		request: withFields(['x', 'a\nb']),
		outcome: malformed,
	},
	...['keep-alive', 'proxy-connection', 'upgrade'].map(
		(name): Requirement => ({
			section: '4.2',
			asks: `${name} is malformed`,
			request: withFields([name, 'x']),
			outcome: malformed,
		}),
	),
	{ section: '4.2', asks: 'an empty name is malformed', request: withFields(['', 'x']), outcome: malformed },
	{
		section: '10.3',
		asks: 'a name that is not a token is malformed',
		request: withFields(['a b', 'x']),
		outcome: malformed,
	},
	{ section: '10.3', asks: 'a name with a colon is malformed', request: withFields(['a:b', 'x']), outcome: malformed },
	{
		section: '10.3',
		asks: 'a name beyond ASCII is malformed',
		request: withFields(['x-\xe9', 'x']),
		outcome: malformed,
	},
	{
		section: '10.3',
		asks: 'a value with a carriage return is malformed',
		request: withFields(['x', 'a\rb']),
		outcome: malformed,
	},
	{ section: '10.3', asks: 'a value with a zero is malformed', request: withFields(['x', 'a\0b']), outcome: malformed },
	{
		section: '4.2',
		asks: 'an uppercase name in trailers is malformed',
		request: withTrailers(['X-Big', '1']),
		outcome: malformed,
	},
	{
		section: '4.2',
		asks: 'Connection in trailers is malformed',
		request: withTrailers(['connection', 'close']),
		outcome: malformed,
	},
	...(['transfer-encoding', 'content-length', 'te'] as const).map(
		(name): Requirement => ({
			section: '4.2',
			asks: `${name} in trailers is malformed`,
			request: withTrailers([name, '1']),
			outcome: malformed,
		}),
	),
	{
		section: '4.1.2',
		asks: 'a Content-Length that is too large to be exact is malformed',
		request: Buffer.concat([headers([...POST, ['content-length', '18446744073709551617']]), data('a')]),
		outcome: malformed,
	},
	{
		section: '4.1.2',
		asks: 'more body than Content-Length is malformed, although each frame is shorter',
		request: Buffer.concat([headers([...POST, ['content-length', '5']]), data('four'), data('two')]),
		outcome: malformed,
	},
	{
		section: '4.1.2',
		asks: 'less body than Content-Length before trailers is malformed',
		request: Buffer.concat([headers([...POST, ['content-length', '5']]), data('four'), headers([['x', 'y']])]),
		outcome: malformed,
	},
	{
		section: '6.2.2',
		asks: 'a push stream that has only begun ends the connection',
		uni: [Buffer.of(1)],
		outcome: fails(H3_ERROR.streamCreation),
	},
	{
		section: '4.2.2',
		asks: 'oversized trailers are malformed',
		request: withTrailers(['x-large', 'x'.repeat(40_000)]),
		outcome: malformed,
	},
	{
		section: '4.2.2',
		asks: 'trailers larger than any allowed section are malformed',
		request: withTrailers(['x-huge', 'x'.repeat(200_000)]),
		outcome: malformed,
	},
	{
		section: '4.2.2',
		asks: 'too many fields are refused with 431',
		request: headers([
			...REQUEST,
			...Array.from({ length: 2000 }, (_, at): readonly [string, string] => [`x-${at}`, '']),
		]),
		outcome: { status: '431' },
	},
	{
		section: '4.2.1',
		asks: 'several Cookie fields are joined',
		request: withFields(['cookie', 'a=1'], ['cookie', 'b=2']),
		outcome: { status: '200' },
	},
	{
		section: '4.2.2',
		asks: 'an oversized field section is refused with 431',
		request: withFields(['x-large', 'x'.repeat(40_000)]),
		outcome: { status: '431' },
	},
	{
		section: '4.2.2',
		asks: 'a HEADERS frame larger than any allowed section is refused with 431',
		request: withFields(['x-huge', 'x'.repeat(200_000)]),
		outcome: { status: '431' },
	},
	// Pseudo-headers
	{
		section: '4.3',
		asks: 'an unknown pseudo-header is malformed',
		request: headers([...REQUEST, [':x', '1']]),
		outcome: malformed,
	},
	{
		section: '4.3',
		asks: 'a pseudo-header after a field is malformed',
		request: headers([['accept', '*/*'], ...REQUEST]),
		outcome: malformed,
	},
	{
		section: '4.3',
		asks: 'a pseudo-header in trailers is malformed',
		request: Buffer.concat([headers(POST), data('a'), headers([[':path', '/']])]),
		outcome: malformed,
	},
	{ section: '4.3.1', asks: 'a missing :method is malformed', request: without(':method'), outcome: malformed },
	{ section: '4.3.1', asks: 'a missing :scheme is malformed', request: without(':scheme'), outcome: malformed },
	{ section: '4.3.1', asks: 'a missing :path is malformed', request: without(':path'), outcome: malformed },
	{
		section: '4.3.1',
		asks: 'an empty :path is malformed',
		request: headers([...REQUEST.slice(0, 3), [':path', '']]),
		outcome: malformed,
	},
	{
		section: '4.3.1',
		asks: 'a second :path is malformed',
		request: headers([...REQUEST, [':path', '/']]),
		outcome: malformed,
	},
	{
		section: '4.3.1',
		asks: 'a request without any authority is refused',
		request: without(':authority'),
		outcome: { status: '400' },
	},
	{
		section: '4.3.1',
		asks: 'Host is used if there is no :authority',
		request: headers([...REQUEST.filter(([name]) => name !== ':authority'), ['host', 'localhost']]),
		outcome: { status: '200' },
	},
	{
		section: '4.3.1',
		asks: 'a Host that differs from :authority is malformed',
		request: withFields(['host', 'other']),
		outcome: malformed,
	},
	{
		section: '4.4',
		asks: 'CONNECT is refused',
		request: headers([
			[':method', 'CONNECT'],
			[':authority', 'localhost:443'],
		]),
		outcome: { status: '405' },
	},
	{
		section: '4.4',
		asks: 'CONNECT with a path and no protocol is malformed',
		request: headers([[':method', 'CONNECT'], ...REQUEST.slice(1)]),
		outcome: malformed,
	},
	{
		section: '4.3',
		asks: "a response's pseudo-header is malformed",
		request: headers([...REQUEST, [':status', '200']]),
		outcome: malformed,
	},
	...REQUEST.map(
		(field): Requirement => ({
			section: '4.3.1',
			asks: `a repeated ${field[0]} is malformed`,
			request: headers([...REQUEST, field]),
			outcome: malformed,
		}),
	),
	{
		section: '4.3.1',
		asks: 'a method that is not a token is malformed',
		request: requestWith(':method', 'G T'),
		outcome: malformed,
	},
	{
		section: '4.3.1',
		asks: 'a :path without a slash is malformed',
		request: requestWith(':path', 'index.html'),
		outcome: malformed,
	},
	{
		section: '4.3.1',
		asks: 'a :path of * is only for OPTIONS',
		request: requestWith(':path', '*'),
		outcome: malformed,
	},
	{
		section: '4.3.1',
		asks: 'OPTIONS * is served',
		request: headers([[':method', 'OPTIONS'], ...REQUEST.slice(1, 3), [':path', '*']]),
		outcome: { status: '200' },
	},
	{
		section: '4.3.1',
		asks: 'a :path with a fragment is refused',
		request: requestWith(':path', '/a#b'),
		outcome: { status: '400' },
	},
	{
		section: '4.3.1',
		asks: 'an :authority with user information is refused',
		request: requestWith(':authority', 'user@localhost'),
		outcome: { status: '400' },
	},
	{
		section: '4.3.1',
		asks: 'an empty :authority is refused',
		request: requestWith(':authority', ''),
		outcome: { status: '400' },
	},
	{
		section: '4.3.1',
		asks: 'an empty Host without :authority is refused',
		request: headers([...REQUEST.filter(([name]) => name !== ':authority'), ['host', '']]),
		outcome: { status: '400' },
	},
	{
		section: '4.3.1',
		asks: 'an empty Host beside :authority is malformed',
		request: withFields(['host', '']),
		outcome: malformed,
	},
	{
		section: '4.3.1',
		asks: 'a Host equal to :authority is accepted',
		request: withFields(['host', 'localhost']),
		outcome: { status: '200' },
	},
	{
		section: '4.3.1',
		asks: 'two Hosts are malformed',
		request: withFields(['host', 'localhost'], ['host', 'localhost']),
		outcome: malformed,
	},
	{
		section: '4.3.1',
		asks: 'a :scheme that is not of the web is refused',
		request: requestWith(':scheme', 'ftp'),
		outcome: { status: '400' },
	},
	{
		section: '4.4',
		asks: 'CONNECT without :authority is malformed',
		request: headers([[':method', 'CONNECT']]),
		outcome: malformed,
	},
	{
		section: '4.4',
		asks: 'CONNECT with :scheme is malformed',
		request: headers([
			[':method', 'CONNECT'],
			[':authority', 'localhost:443'],
			[':scheme', 'https'],
		]),
		outcome: malformed,
	},
	{
		section: '4.4',
		asks: 'CONNECT without a port is refused',
		request: headers([
			[':method', 'CONNECT'],
			[':authority', 'localhost'],
		]),
		outcome: { status: '400' },
	},
	{
		section: 'RFC 9220 3',
		asks: 'an extended CONNECT that no handler accepts is refused',
		request: headers(CONNECT),
		outcome: { status: '501' },
	},
	{
		section: 'RFC 9220 3',
		asks: 'an extended CONNECT without :path is malformed',
		request: headers(CONNECT.filter(([name]) => name !== ':path')),
		outcome: malformed,
	},
	{
		section: 'RFC 9220 3',
		asks: 'an extended CONNECT without :scheme is malformed',
		request: headers(CONNECT.filter(([name]) => name !== ':scheme')),
		outcome: malformed,
	},
	{
		section: 'RFC 9220 3',
		asks: 'an extended CONNECT without :authority is malformed',
		request: headers(CONNECT.filter(([name]) => name !== ':authority')),
		outcome: malformed,
	},
	{
		section: 'RFC 9220 3',
		asks: ':protocol in any other method is malformed',
		request: headers([...REQUEST, [':protocol', 'websocket']]),
		outcome: malformed,
	},
	{
		section: 'RFC 9220 5',
		asks: 'an ENABLE_CONNECT_PROTOCOL above 1 ends the connection',
		control: frame(4, varint(8, 2)),
		outcome: fails(H3_ERROR.settings),
	},
	// Streams
	{ section: '6.2', asks: 'streams of unknown types are ignored', uni: [varint(0x21, 1, 2, 3)], outcome: 'served' },
	{
		section: '6.2.1',
		asks: 'a second control stream ends the connection',
		uni: [Buffer.concat([varint(0), SETTINGS])],
		outcome: fails(H3_ERROR.streamCreation),
	},
	{
		section: '6.2.1',
		asks: 'a control stream that does not start with SETTINGS ends the connection',
		control: frame(0xd, varint(1)),
		outcome: fails(H3_ERROR.missingSettings),
	},
	{
		section: '6.2.1',
		asks: 'an unknown frame before SETTINGS ends the connection',
		control: frame(0x21),
		outcome: fails(H3_ERROR.missingSettings),
	},
	{
		section: '6.2.1',
		asks: 'the end of the control stream ends the connection',
		controlEnds: true,
		outcome: fails(H3_ERROR.closedCriticalStream),
	},
	{
		section: '6.2.2',
		asks: 'a push stream from a client ends the connection',
		uni: [varint(1, 0)],
		outcome: fails(H3_ERROR.streamCreation),
	},
	{
		section: '6.2',
		asks: 'unidirectional streams may end before their type',
		uni: [Buffer.alloc(0), Buffer.of(0x40)],
		uniEnds: true,
		outcome: 'served',
	},
	{
		section: '6.2.3',
		asks: 'streams of reserved types are ignored',
		uni: [varint(0x1f * 7 + 0x21), Buffer.concat([Buffer.from('ffffffffffffffe0', 'hex'), Buffer.from('data')])],
		outcome: 'served',
	},
	// Frames
	{
		section: '7.1',
		asks: 'a truncated frame ends the connection',
		request: Buffer.concat([headers(POST), Buffer.from([0, 10, 1, 2])]),
		outcome: fails(H3_ERROR.frame),
	},
	{
		section: '7.1',
		asks: 'a frame with too much payload ends the connection',
		control: withControl(frame(0xd, varint(1, 2))),
		outcome: fails(H3_ERROR.frame),
	},
	{
		section: '7.1',
		asks: 'a frame with a truncated integer ends the connection',
		control: withControl(frame(0xd, Buffer.of(0x40))),
		outcome: fails(H3_ERROR.frame),
	},
	{
		section: '7.2.1',
		asks: 'DATA on the control stream ends the connection',
		control: withControl(data('a')),
		outcome: fails(H3_ERROR.frameUnexpected),
	},
	{
		section: '7.2.2',
		asks: 'HEADERS on the control stream ends the connection',
		control: withControl(headers()),
		outcome: fails(H3_ERROR.frameUnexpected),
	},
	{
		section: '7.2.3',
		asks: 'CANCEL_PUSH of a push that was never promised ends the connection',
		control: withControl(frame(3, varint(0))),
		outcome: fails(H3_ERROR.id),
	},
	{
		section: '7.2.3',
		asks: 'CANCEL_PUSH on a request stream ends the connection',
		request: Buffer.concat([headers(POST), frame(3, varint(0))]),
		open: true,
		outcome: fails(H3_ERROR.frameUnexpected),
	},
	{
		section: '7.2.4',
		asks: 'a second SETTINGS ends the connection',
		control: withControl(SETTINGS),
		outcome: fails(H3_ERROR.frameUnexpected),
	},
	{
		section: '7.2.4',
		asks: 'SETTINGS on a request stream ends the connection',
		request: Buffer.concat([headers(POST), SETTINGS]),
		open: true,
		outcome: fails(H3_ERROR.frameUnexpected),
	},
	{
		section: '7.2.4',
		asks: 'a repeated setting ends the connection',
		control: frame(4, varint(6, 100, 6, 100)),
		outcome: fails(H3_ERROR.settings),
	},
	{
		section: '7.2.4.1',
		asks: 'an HTTP/2 setting ends the connection',
		control: frame(4, varint(2, 0)),
		outcome: fails(H3_ERROR.settings),
	},
	{
		section: '7.2.4',
		asks: 'settings beyond 2^53 that differ are two',
		control: frame(4, Buffer.from('ffffffffffffffff01fffffffffffffffe01', 'hex')),
		outcome: 'served',
	},
	{
		section: '5.2',
		asks: 'a GOAWAY beyond 2^53 may not go up by one either',
		control: withControl(
			frame(7, Buffer.from('fffffffffffffff0', 'hex')),
			frame(7, Buffer.from('fffffffffffffff1', 'hex')),
		),
		outcome: fails(H3_ERROR.id),
	},
	{
		section: '7.2.4.1',
		asks: 'unknown settings are ignored',
		control: frame(4, varint(0x21, 5, 0x4000, 1)),
		outcome: 'served',
	},
	{
		section: '7.2.4.1',
		asks: 'a setting without a value ends the connection',
		control: frame(4, varint(6)),
		outcome: fails(H3_ERROR.frame),
	},
	{
		section: '7.2.5',
		asks: 'PUSH_PROMISE from a client ends the connection',
		request: Buffer.concat([headers(POST), frame(5, varint(0))]),
		open: true,
		outcome: fails(H3_ERROR.frameUnexpected),
	},
	{
		section: '7.2.6',
		asks: 'GOAWAY from a client is accepted',
		control: withControl(frame(7, varint(0))),
		outcome: 'served',
	},
	{
		section: '5.2',
		asks: 'a GOAWAY with a larger identifier ends the connection',
		control: withControl(frame(7, varint(1)), frame(7, varint(2))),
		outcome: fails(H3_ERROR.id),
	},
	{
		section: '7.2.6',
		asks: 'GOAWAY on a request stream ends the connection',
		request: Buffer.concat([headers(POST), frame(7, varint(0))]),
		open: true,
		outcome: fails(H3_ERROR.frameUnexpected),
	},
	{
		section: '7.2.7',
		asks: 'MAX_PUSH_ID is accepted',
		control: withControl(frame(0xd, varint(1)), frame(0xd, varint(5))),
		outcome: 'served',
	},
	{
		section: '7.2.7',
		asks: 'a smaller MAX_PUSH_ID ends the connection',
		control: withControl(frame(0xd, varint(5)), frame(0xd, varint(1))),
		outcome: fails(H3_ERROR.id),
	},
	{
		section: '7.2.8',
		asks: 'frames of unknown types are ignored',
		request: Buffer.concat([frame(0x21, Buffer.from('grease')), headers(), frame(0x40, Buffer.from('x'))]),
		outcome: { status: '200' },
	},
	...[0x2, 0x6, 0x8, 0x9].flatMap((type): Requirement[] => [
		{
			section: '7.2.8',
			asks: `HTTP/2 frame 0x${type} on a request stream ends the connection`,
			request: frame(type),
			open: true,
			outcome: fails(H3_ERROR.frameUnexpected),
		},
		{
			section: '7.2.8',
			asks: `HTTP/2 frame 0x${type} on the control stream ends the connection`,
			control: withControl(frame(type)),
			outcome: fails(H3_ERROR.frameUnexpected),
		},
	]),
	{
		section: '7.1',
		asks: 'a frame truncated in its length ends the connection',
		request: Buffer.concat([headers(), Buffer.of(0x21, 0x40)]),
		outcome: fails(H3_ERROR.frame),
	},
	{
		section: '7.1',
		asks: 'a truncated HEADERS ends the connection',
		request: headers().subarray(0, 10),
		outcome: fails(H3_ERROR.frame),
	},
	{
		section: '7.1',
		asks: 'SETTINGS that end within an integer end the connection',
		control: frame(4, Buffer.of(6, 0x40)),
		outcome: fails(H3_ERROR.frame),
	},
	...[3, 7, 0xd].flatMap((type): Requirement[] => [
		{
			section: '7.1',
			asks: `an empty frame 0x${type.toString(16)} ends the connection`,
			control: withControl(frame(type)),
			outcome: fails(H3_ERROR.frame),
		},
		{
			section: '7.1',
			asks: `a frame 0x${type.toString(16)} with two identifiers ends the connection`,
			control: withControl(frame(type, varint(0, 0))),
			outcome: fails(H3_ERROR.frame),
		},
	]),
	{
		section: '7.2.3',
		asks: 'CANCEL_PUSH of an allowed push that was never promised ends the connection',
		control: withControl(frame(0xd, varint(5)), frame(3, varint(1))),
		outcome: fails(H3_ERROR.id),
	},
	...[0x0, 0x3, 0x4, 0x5].map(
		(setting): Requirement => ({
			section: '7.2.4.1',
			asks: `the HTTP/2 setting 0x${setting} ends the connection`,
			control: frame(4, varint(setting, 1)),
			outcome: fails(H3_ERROR.settings),
		}),
	),
	{
		section: '7.2.5',
		asks: 'PUSH_PROMISE on the control stream ends the connection',
		control: withControl(frame(5, varint(0))),
		outcome: fails(H3_ERROR.frameUnexpected),
	},
	{
		section: '7.2.7',
		asks: 'MAX_PUSH_ID on a request stream ends the connection',
		request: Buffer.concat([headers(POST), frame(0xd, varint(1))]),
		open: true,
		outcome: fails(H3_ERROR.frameUnexpected),
	},
	{
		section: '7.2.8',
		asks: 'unknown frames on the control stream are ignored, however long they are',
		control: withControl(frame(0x21), frame(0xfa, Buffer.alloc(60_000))),
		outcome: 'served',
	},
	// Priorities
	{
		section: 'RFC 9218 7.2',
		asks: 'PRIORITY_UPDATE of a request is accepted, before and after its stream is opened',
		control: withControl(
			frame(PRIORITY_UPDATE, Buffer.concat([varint(0), Buffer.from('u=1, i')])),
			frame(PRIORITY_UPDATE, varint(400)),
		),
		outcome: 'served',
	},
	{
		section: 'RFC 9218 7.2',
		asks: 'PRIORITY_UPDATE of a stream that is not a request ends the connection',
		control: withControl(frame(PRIORITY_UPDATE, Buffer.concat([varint(402), Buffer.from('u=1')]))),
		outcome: fails(H3_ERROR.id),
	},
	{
		section: 'RFC 9218 7.2',
		asks: 'PRIORITY_UPDATE of a push that was never promised ends the connection',
		control: withControl(frame(PRIORITY_UPDATE_PUSH, Buffer.concat([varint(0), Buffer.from('u=1')]))),
		outcome: fails(H3_ERROR.id),
	},
	{
		section: 'RFC 9218 7.2',
		asks: 'PRIORITY_UPDATE without an identifier ends the connection',
		control: withControl(frame(PRIORITY_UPDATE)),
		outcome: fails(H3_ERROR.frame),
	},
	...[PRIORITY_UPDATE, PRIORITY_UPDATE_PUSH].map(
		(type): Requirement => ({
			section: 'RFC 9218 7.2',
			asks: `PRIORITY_UPDATE 0x${type.toString(16)} on a request stream ends the connection`,
			request: Buffer.concat([headers(POST), frame(type, varint(0))]),
			open: true,
			outcome: fails(H3_ERROR.frameUnexpected),
		}),
	),
	// QPACK
	{
		section: 'QPACK 2.2',
		asks: 'a reference to the dynamic table ends the connection',
		request: sectionOf(0, 0, 0x80),
		outcome: fails(H3_ERROR.decompression),
	},
	{
		section: 'QPACK 2.2.3',
		asks: 'a Required Insert Count above 0 ends the connection',
		request: sectionOf(2, 0, 0xd1),
		outcome: fails(H3_ERROR.decompression),
	},
	{
		section: 'QPACK 3.1',
		asks: 'an index beyond the static table ends the connection',
		request: frame(1, Buffer.concat([Buffer.of(0, 0), encodePrefixedInteger(0xc0, 6, 99)])),
		outcome: fails(H3_ERROR.decompression),
	},
	{
		section: 'QPACK 4.1.2',
		asks: 'a string longer than its section ends the connection',
		request: sectionOf(0, 0, 0x51, 10, 47),
		outcome: fails(H3_ERROR.decompression),
	},
	{
		section: 'QPACK 4.1.1',
		asks: 'an integer beyond 62 bits ends the connection',
		request: sectionOf(0, 0, 0xff, ...Array.from({ length: 12 }, () => 0xff), 0),
		outcome: fails(H3_ERROR.decompression),
	},
	{
		section: 'QPACK 4.1.1',
		asks: 'a truncated integer ends the connection',
		request: sectionOf(0, 0, 0xff, 0x80),
		outcome: fails(H3_ERROR.decompression),
	},
	{
		section: 'QPACK 4.1.1',
		asks: 'integers of 62 bits are read',
		uni: [Buffer.concat([Buffer.of(3, 0x7f), Buffer.from('c0ffffffffffffff3f', 'hex'), Buffer.of(0x40)])],
		outcome: 'served',
	},
	{
		section: 'QPACK 4.1.2',
		asks: 'the end-of-string symbol within a string ends the connection',
		request: sectionOf(0, 0, 0x51, 0x84, 0xff, 0xff, 0xff, 0xff),
		outcome: fails(H3_ERROR.decompression),
	},
	{
		section: 'QPACK 4.1.2',
		asks: 'Huffman padding of zeros ends the connection',
		request: sectionOf(0, 0, 0x51, 0x81, 0x18),
		outcome: fails(H3_ERROR.decompression),
	},
	{
		section: 'QPACK 4.1.2',
		asks: 'Huffman padding of eight bits or more ends the connection',
		request: sectionOf(0, 0, 0x51, 0x82, 0x1f, 0xff),
		outcome: fails(H3_ERROR.decompression),
	},
	{
		section: 'QPACK 4.5.1.2',
		asks: 'a Base without a meaning may have any value',
		request: frame(
			1,
			Buffer.concat([Buffer.from('007fc0ffffffffffff3f', 'hex'), encodeFieldSection(REQUEST).subarray(2)]),
		),
		outcome: { status: '200' },
	},
	{
		section: 'QPACK 4.5.1.2',
		asks: 'a negative Base ends the connection',
		request: frame(1, Buffer.concat([Buffer.of(0, 0x80), encodeFieldSection(REQUEST).subarray(2)])),
		outcome: fails(H3_ERROR.decompression),
	},
	{
		section: 'QPACK 4.5.1.2',
		asks: 'a truncated Base ends the connection',
		request: sectionOf(0, 0x7f, 0x80),
		outcome: fails(H3_ERROR.decompression),
	},
	{
		section: 'QPACK 4.5.3',
		asks: 'a post-base index ends the connection',
		request: sectionOf(0, 0, 0x10),
		outcome: fails(H3_ERROR.decompression),
	},
	{
		section: 'QPACK 4.5.4',
		asks: 'a literal with a name from the dynamic table ends the connection',
		request: sectionOf(0, 0, 0x40, 0x00),
		outcome: fails(H3_ERROR.decompression),
	},
	{
		section: 'QPACK 4.5.4',
		asks: 'literals that must never be indexed are served',
		request: frame(
			1,
			Buffer.concat([
				...[encodeFieldSection(REQUEST.slice(0, 3)), Buffer.of(0x71, 2), Buffer.from('/a')],
				...[Buffer.of(0x31), Buffer.from('x'), Buffer.of(1), Buffer.from('y')],
			]),
		),
		outcome: { status: '200' },
	},
	{
		section: 'QPACK 4.5.1',
		asks: 'a section without its prefix ends the connection',
		request: sectionOf(0),
		outcome: fails(H3_ERROR.decompression),
	},
	{
		section: 'QPACK 4.5.5',
		asks: 'a post-base name ends the connection',
		request: sectionOf(0, 0, 0x00, 0x00),
		outcome: fails(H3_ERROR.decompression),
	},
	{
		section: 'QPACK 4.2',
		asks: 'a second encoder stream ends the connection',
		uni: [varint(2), varint(2)],
		outcome: fails(H3_ERROR.streamCreation),
	},
	{
		section: 'QPACK 4.2',
		asks: 'the end of the encoder stream ends the connection',
		uni: [varint(2)],
		uniEnds: true,
		outcome: fails(H3_ERROR.closedCriticalStream),
	},
	{
		section: 'QPACK 4.2',
		asks: 'the end of the decoder stream ends the connection',
		uni: [varint(3)],
		uniEnds: true,
		outcome: fails(H3_ERROR.closedCriticalStream),
	},
	{
		section: 'QPACK 4.2',
		asks: 'a second decoder stream ends the connection',
		uni: [varint(3), varint(3)],
		outcome: fails(H3_ERROR.streamCreation),
	},
	{
		section: 'QPACK 4.2',
		asks: 'both QPACK streams may be opened and stay empty',
		uni: [varint(2), varint(3)],
		outcome: 'served',
	},
	{
		section: 'QPACK 4.3.3',
		asks: 'an insertion with a literal name ends the connection',
		uni: [Buffer.of(2, 0x41, 120, 1, 121)],
		outcome: fails(H3_ERROR.encoderStream),
	},
	{
		section: 'QPACK 4.3.4',
		asks: 'a duplication ends the connection',
		uni: [Buffer.of(2, 0x00)],
		outcome: fails(H3_ERROR.encoderStream),
	},
	{
		section: 'QPACK 4.4.3',
		asks: 'an insert count increment of 0 ends the connection',
		uni: [Buffer.of(3, 0x00)],
		outcome: fails(H3_ERROR.decoderStream),
	},
	{ section: 'QPACK 4.3.1', asks: 'a capacity of 0 is accepted', uni: [Buffer.of(2, 0x20)], outcome: 'served' },
	{
		section: 'QPACK 4.3.1',
		asks: 'a capacity above the limit ends the connection',
		uni: [Buffer.of(2, 0x21)],
		outcome: fails(H3_ERROR.encoderStream),
	},
	{
		section: 'QPACK 4.3.2',
		asks: 'an insertion into the dynamic table ends the connection',
		uni: [Buffer.concat([Buffer.of(2, 0xc1, 1), Buffer.from('/')])],
		outcome: fails(H3_ERROR.encoderStream),
	},
	{
		section: 'QPACK 4.4.1',
		asks: 'an acknowledgment without a pending section ends the connection',
		uni: [Buffer.of(3, 0x80)],
		outcome: fails(H3_ERROR.decoderStream),
	},
	{
		section: 'QPACK 4.4.2',
		asks: 'a stream cancellation is accepted',
		uni: [Buffer.concat([Buffer.of(3), encodePrefixedInteger(0x40, 6, 400), Buffer.of(0x44)])],
		outcome: 'served',
	},
	{
		section: 'QPACK 4.4.3',
		asks: 'an insert count increment without insertions ends the connection',
		uni: [Buffer.of(3, 0x01)],
		outcome: fails(H3_ERROR.decoderStream),
	},
	{
		section: 'QPACK 3.2',
		asks: 'sections of static entries are served',
		request: frame(1, Buffer.concat([Buffer.of(0, 0, 0xd1, 0xd7, 0xc1, 0x50, 9), Buffer.from('localhost')])),
		outcome: { status: '200' },
	},
	{
		section: 'QPACK 4.5.4',
		asks: 'a literal with the name of a static entry is served',
		request: frame(1, Buffer.concat([encodeFieldSection(REQUEST.slice(0, 3)), Buffer.of(0x51, 2), Buffer.from('/a')])),
		outcome: { status: '200' },
	},
];

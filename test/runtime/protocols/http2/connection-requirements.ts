/** The requirements of RFC 9113 for frames and streams: what a client sends, and the outcome that is required. */
import { CLIENT_PREFACE, FRAME_FLAG, FRAME_TYPE, H2_ERROR } from '../../../../runtime/protocols/http2/frame-codes.ts';
import { encodeFieldBlock, encodeUint32s, frame, POST, REQUEST, request, settings } from './frames.ts';

/**
 * A required outcome. A connection error consists of a GOAWAY and the end of the connection. After any other outcome, the
 * connection must stay usable.
 */
export type Outcome =
	| { readonly connection: number }
	| { readonly stream: number; readonly code: number }
	| { readonly stream: number; readonly status: string }
	| 'served';

/** A requirement of RFC 9113. */
export interface Requirement {
	readonly section: string;
	readonly asks: string;
	/** Frames that the client sends. Unless `bare`, it sends the preface and empty SETTINGS before them. */
	readonly sends: readonly Uint8Array[];
	readonly bare?: boolean;
	readonly outcome: Outcome;
	/** True if Node's HTTP/2 implementation does not meet the requirement, or leaves it to the application. */
	readonly beyondNode?: boolean;
}

const END_HEADERS = FRAME_FLAG.endHeaders;
const PREFACE = Buffer.from(CLIENT_PREFACE);
const protocol: Outcome = { connection: H2_ERROR.protocol };
const frameSize: Outcome = { connection: H2_ERROR.frameSize };
const flowControl: Outcome = { connection: H2_ERROR.flowControl };
const malformed: Outcome = { stream: 1, code: H2_ERROR.protocol };
const withField = (name: string, value: string) => [...REQUEST, [name, value] as const];
const data = (stream: number, text: string, flags = 0) => frame(FRAME_TYPE.data, flags, stream, Buffer.from(text));

/** The requirements of RFC 9113, sections 3 to 6. */
export const CONNECTION_REQUIREMENTS: readonly Requirement[] = [
	// Connection preface
	{
		section: '3.4',
		asks: 'a bad preface ends the connection',
		bare: true,
		sends: [Buffer.from(CLIENT_PREFACE.replace('SM', 'XX'))],
		outcome: protocol,
	},
	{
		section: '3.4',
		asks: 'a first frame other than SETTINGS ends the connection',
		bare: true,
		sends: [PREFACE, request(1)],
		outcome: protocol,
	},
	{
		section: '3.4',
		asks: 'an acknowledgment as the first SETTINGS ends the connection',
		bare: true,
		sends: [PREFACE, frame(FRAME_TYPE.settings, FRAME_FLAG.ack, 0)],
		outcome: protocol,
	},
	{
		section: '3.4',
		asks: 'frames may follow the preface immediately',
		bare: true,
		sends: [Buffer.concat([PREFACE, settings(), request(1)])],
		outcome: { stream: 1, status: '200' },
	},
	// Frames
	{
		section: '4.1',
		asks: 'frames of unknown type are ignored',
		sends: [frame(0xfa, 0xff, 0, Buffer.alloc(8)), frame(0x10, 0, 0, Buffer.alloc(5))],
		outcome: 'served',
	},
	{
		section: '4.1',
		asks: 'unknown flags are ignored',
		sends: [frame(FRAME_TYPE.ping, 0xfe, 0, Buffer.alloc(8))],
		outcome: 'served',
	},
	{
		section: '4.1',
		asks: 'the reserved bit of a stream identifier is ignored',
		sends: [request(1 + 0x80000000)],
		outcome: { stream: 1, status: '200' },
	},
	{
		section: '4.2',
		asks: 'a DATA frame over the maximum size is an error',
		sends: [request(1, POST, END_HEADERS), frame(FRAME_TYPE.data, 0, 1, Buffer.alloc(16_385))],
		outcome: frameSize,
	},
	{
		section: '4.2',
		asks: 'a HEADERS frame over the maximum size is an error',
		sends: [frame(FRAME_TYPE.headers, END_HEADERS, 1, Buffer.alloc(16_385))],
		outcome: frameSize,
	},
	{
		section: '4.3',
		asks: 'a header block that cannot be decoded ends the connection',
		sends: [frame(FRAME_TYPE.headers, END_HEADERS | FRAME_FLAG.endStream, 1, Buffer.from([0x80]))],
		outcome: { connection: H2_ERROR.compression },
	},
	{
		section: '4.3',
		asks: 'another frame inside a header block ends the connection',
		sends: [
			frame(FRAME_TYPE.headers, FRAME_FLAG.endStream, 1, encodeFieldBlock(REQUEST)),
			frame(FRAME_TYPE.ping, 0, 0, Buffer.alloc(8)),
		],
		outcome: protocol,
	},
	{
		section: '4.3',
		asks: 'an unknown frame inside a header block ends the connection',
		sends: [frame(FRAME_TYPE.headers, FRAME_FLAG.endStream, 1, encodeFieldBlock(REQUEST)), frame(0xfa, 0, 1)],
		outcome: protocol,
	},
	{
		section: '4.3',
		asks: 'CONTINUATION on another stream ends the connection',
		sends: [
			frame(FRAME_TYPE.headers, FRAME_FLAG.endStream, 1, encodeFieldBlock(REQUEST)),
			frame(FRAME_TYPE.continuation, FRAME_FLAG.endHeaders, 3),
		],
		outcome: protocol,
	},
	// Streams
	{
		section: '5.1',
		asks: 'DATA on an idle stream ends the connection',
		sends: [data(1, 'x', FRAME_FLAG.endStream)],
		outcome: protocol,
	},
	{
		section: '5.1',
		asks: 'RST_STREAM on an idle stream ends the connection',
		sends: [frame(FRAME_TYPE.resetStream, 0, 1, encodeUint32s(8))],
		outcome: protocol,
	},
	{
		section: '5.1',
		asks: 'WINDOW_UPDATE on an idle stream ends the connection',
		sends: [frame(FRAME_TYPE.windowUpdate, 0, 1, encodeUint32s(100))],
		outcome: protocol,
	},
	{
		section: '5.1',
		asks: 'CONTINUATION on an idle stream ends the connection',
		sends: [frame(FRAME_TYPE.continuation, FRAME_FLAG.endHeaders, 1, encodeFieldBlock(REQUEST))],
		outcome: protocol,
	},
	{
		section: '5.1',
		asks: 'PRIORITY on an idle stream is ignored',
		sends: [frame(FRAME_TYPE.priority, 0, 9, Buffer.from([0, 0, 0, 1, 5]))],
		outcome: 'served',
	},
	{
		section: '5.1',
		asks: 'DATA after the end of a request is a stream error',
		sends: [request(1, [...REQUEST.slice(0, 2), [':path', '/slow'], REQUEST[3]!]), data(1, 'x')],
		outcome: { stream: 1, code: H2_ERROR.streamClosed },
		beyondNode: true,
	},
	{
		section: '5.1',
		asks: 'HEADERS after the end of a request are a stream error',
		sends: [request(1, [...REQUEST.slice(0, 2), [':path', '/slow'], REQUEST[3]!]), request(1)],
		outcome: { stream: 1, code: H2_ERROR.streamClosed },
		beyondNode: true,
	},
	{
		section: '5.1',
		asks: 'DATA on a closed stream ends the connection',
		sends: [request(1), data(1, 'x')],
		outcome: { connection: H2_ERROR.streamClosed },
		beyondNode: true,
	},
	{
		section: '5.1',
		asks: 'HEADERS on a closed stream end the connection',
		sends: [request(1), request(1)],
		outcome: { connection: H2_ERROR.streamClosed },
		beyondNode: true,
	},
	{
		section: '5.1',
		asks: 'DATA on a stream that the client has reset ends the connection',
		sends: [request(1, POST, END_HEADERS), frame(FRAME_TYPE.resetStream, 0, 1, encodeUint32s(8)), data(1, 'x')],
		outcome: { connection: H2_ERROR.streamClosed },
		beyondNode: true,
	},
	{
		section: '5.1',
		asks: 'WINDOW_UPDATE, RST_STREAM and PRIORITY on a closed stream are ignored',
		sends: [
			request(1),
			frame(FRAME_TYPE.windowUpdate, 0, 1, encodeUint32s(9)),
			frame(FRAME_TYPE.resetStream, 0, 1, encodeUint32s(8)),
			frame(FRAME_TYPE.priority, 0, 1, Buffer.alloc(5)),
		],
		outcome: 'served',
	},
	{
		section: '5.1',
		asks: 'DATA in transit to a stream that the server has reset is ignored',
		sends: [
			request(1, withField('bad name', 'x'), END_HEADERS),
			data(1, 'late'),
			data(1, 'later', FRAME_FLAG.endStream),
		],
		outcome: 'served',
	},
	{
		section: '5.1',
		asks: 'trailers in transit to a stream that the server has reset are ignored',
		sends: [
			request(1, withField('bad name', 'x'), END_HEADERS),
			frame(FRAME_TYPE.headers, END_HEADERS | FRAME_FLAG.endStream, 1, encodeFieldBlock([['x', 'y']])),
		],
		outcome: 'served',
	},
	{
		section: '5.1.1',
		asks: 'an even stream opened by a client ends the connection',
		sends: [request(2)],
		outcome: protocol,
	},
	{ section: '5.1.1', asks: 'a request on stream 0 ends the connection', sends: [request(0)], outcome: protocol },
	{
		section: '5.1.1',
		asks: 'opening a stream below the last one ends the connection',
		sends: [request(5), request(3)],
		outcome: { connection: H2_ERROR.streamClosed },
		beyondNode: true,
	},
	{
		section: '5.1.1',
		asks: 'stream identifiers may be skipped',
		sends: [request(7)],
		outcome: { stream: 7, status: '200' },
	},
	// DATA
	{ section: '6.1', asks: 'DATA on stream 0 ends the connection', sends: [data(0, 'x')], outcome: protocol },
	{
		section: '6.1',
		asks: 'padding longer than its frame ends the connection',
		sends: [
			request(1, POST, END_HEADERS),
			frame(FRAME_TYPE.data, FRAME_FLAG.padded | FRAME_FLAG.endStream, 1, Buffer.from([9, 1, 2])),
		],
		outcome: protocol,
	},
	{
		section: '6.1',
		asks: 'padding is removed',
		sends: [
			request(1, POST, END_HEADERS),
			frame(FRAME_TYPE.data, FRAME_FLAG.padded | FRAME_FLAG.endStream, 1, Buffer.from([2, 0x68, 0x69, 0, 0])),
		],
		outcome: { stream: 1, status: '200' },
	},
	// HEADERS
	{
		section: '6.2',
		asks: 'HEADERS padding longer than the frame ends the connection',
		sends: [
			frame(
				FRAME_TYPE.headers,
				END_HEADERS | FRAME_FLAG.padded | FRAME_FLAG.endStream,
				1,
				Buffer.concat([Buffer.from([255]), encodeFieldBlock(REQUEST)]),
			),
		],
		outcome: protocol,
	},
	{
		section: '6.2',
		asks: 'padding and priority of HEADERS are removed',
		sends: [
			frame(
				FRAME_TYPE.headers,
				END_HEADERS | FRAME_FLAG.padded | FRAME_FLAG.priority | FRAME_FLAG.endStream,
				1,
				Buffer.concat([Buffer.from([3, 0, 0, 0, 0, 200]), encodeFieldBlock(REQUEST), Buffer.alloc(3)]),
			),
		],
		outcome: { stream: 1, status: '200' },
	},
	{
		section: '6.2',
		asks: 'HEADERS too short for its priority end the connection',
		sends: [frame(FRAME_TYPE.headers, END_HEADERS | FRAME_FLAG.priority | FRAME_FLAG.endStream, 1, Buffer.alloc(4))],
		outcome: protocol,
	},
	// PRIORITY, RST_STREAM
	{
		section: '6.3',
		asks: 'PRIORITY on stream 0 ends the connection',
		sends: [frame(FRAME_TYPE.priority, 0, 0, Buffer.alloc(5))],
		outcome: protocol,
	},
	{
		section: '6.3',
		asks: 'PRIORITY of a length other than five bytes is an error',
		sends: [frame(FRAME_TYPE.priority, 0, 1, Buffer.alloc(4))],
		outcome: frameSize,
	},
	{
		section: '6.4',
		asks: 'RST_STREAM on stream 0 ends the connection',
		sends: [frame(FRAME_TYPE.resetStream, 0, 0, encodeUint32s(8))],
		outcome: protocol,
	},
	{
		section: '6.4',
		asks: 'RST_STREAM of a length other than four bytes is an error',
		sends: [request(1, POST, END_HEADERS), frame(FRAME_TYPE.resetStream, 0, 1, Buffer.alloc(3))],
		outcome: frameSize,
	},
	// SETTINGS
	{
		section: '6.5',
		asks: 'an acknowledgment with a payload is an error',
		sends: [frame(FRAME_TYPE.settings, FRAME_FLAG.ack, 0, Buffer.alloc(6))],
		outcome: frameSize,
	},
	{
		section: '6.5',
		asks: 'SETTINGS on a stream are an error',
		sends: [frame(FRAME_TYPE.settings, 0, 1)],
		outcome: protocol,
	},
	{
		section: '6.5',
		asks: 'SETTINGS of a length that is not a multiple of six are an error',
		sends: [frame(FRAME_TYPE.settings, 0, 0, Buffer.alloc(7))],
		outcome: frameSize,
	},
	{
		section: '6.5.2',
		asks: 'ENABLE_PUSH other than 0 or 1 ends the connection',
		sends: [settings(2, 2)],
		outcome: protocol,
	},
	{
		section: '6.5.2',
		asks: 'an initial window above the maximum is an error',
		sends: [settings(4, 0x80000000)],
		outcome: flowControl,
	},
	{
		section: '6.5.2',
		asks: 'a maximum frame size below 16384 is an error',
		sends: [settings(5, 16_383)],
		outcome: protocol,
	},
	{
		section: '6.5.2',
		asks: 'a maximum frame size above 16777215 is an error',
		sends: [settings(5, 16_777_216)],
		outcome: protocol,
	},
	{ section: '6.5.2', asks: 'unknown settings are ignored', sends: [settings(0xfafa, 77)], outcome: 'served' },
	// PUSH_PROMISE, PING, GOAWAY
	{
		section: '6.6',
		asks: 'PUSH_PROMISE from a client is an error',
		sends: [frame(FRAME_TYPE.pushPromise, FRAME_FLAG.endHeaders, 1, Buffer.alloc(8))],
		outcome: protocol,
	},
	{
		section: '6.7',
		asks: 'PING on a stream is an error',
		sends: [frame(FRAME_TYPE.ping, 0, 1, Buffer.alloc(8))],
		outcome: protocol,
	},
	{
		section: '6.7',
		asks: 'PING of a length other than eight bytes is an error',
		sends: [frame(FRAME_TYPE.ping, 0, 0, Buffer.alloc(6))],
		outcome: frameSize,
	},
	{
		section: '6.7',
		asks: 'an unsolicited PING acknowledgment is ignored',
		sends: [frame(FRAME_TYPE.ping, FRAME_FLAG.ack, 0, Buffer.alloc(8))],
		outcome: 'served',
		beyondNode: true,
	},
	{
		section: '6.8',
		asks: 'GOAWAY on a stream is an error',
		sends: [frame(FRAME_TYPE.goAway, 0, 1, Buffer.alloc(8))],
		outcome: protocol,
	},
	{
		section: '6.8',
		asks: 'GOAWAY shorter than eight bytes is an error',
		sends: [frame(FRAME_TYPE.goAway, 0, 0, Buffer.alloc(7))],
		outcome: frameSize,
	},
	// WINDOW_UPDATE
	{
		section: '6.9',
		asks: 'a WINDOW_UPDATE of 0 ends the connection',
		sends: [frame(FRAME_TYPE.windowUpdate, 0, 0, encodeUint32s(0))],
		outcome: protocol,
	},
	{
		section: '6.9',
		asks: 'a WINDOW_UPDATE of 0 on a stream is a stream error',
		sends: [request(1, POST, END_HEADERS), frame(FRAME_TYPE.windowUpdate, 0, 1, encodeUint32s(0))],
		outcome: malformed,
	},
	{
		section: '6.9',
		asks: 'WINDOW_UPDATE of a length other than four bytes is an error',
		sends: [frame(FRAME_TYPE.windowUpdate, 0, 0, Buffer.alloc(5))],
		outcome: frameSize,
	},
	{
		section: '6.9.1',
		asks: 'an overflow of the connection window ends the connection',
		sends: [frame(FRAME_TYPE.windowUpdate, 0, 0, encodeUint32s(0x7fffffff))],
		outcome: flowControl,
		beyondNode: true,
	},
	{
		section: '6.9.1',
		asks: 'an overflow of a stream window is a stream error',
		sends: [request(1, POST, END_HEADERS), frame(FRAME_TYPE.windowUpdate, 0, 1, encodeUint32s(0x7fffffff))],
		outcome: { stream: 1, code: H2_ERROR.flowControl },
		beyondNode: true,
	},
	{
		section: '6.9.1',
		asks: "more DATA than a stream's window allows is an error",
		sends: [
			request(1, [[':method', 'POST'], ...REQUEST.slice(1, 2), [':path', '/unread'], REQUEST[3]!], END_HEADERS),
			...Array.from({ length: 5 }, () => frame(FRAME_TYPE.data, 0, 1, Buffer.alloc(16_384))),
		],
		outcome: { stream: 1, code: H2_ERROR.flowControl },
	},
	{
		section: '6.9.2',
		asks: 'settings that overflow the window of an open stream end the connection',
		sends: [
			request(1, POST, END_HEADERS),
			frame(FRAME_TYPE.windowUpdate, 0, 1, encodeUint32s(0x7fffffff - 65_535)),
			settings(4, 65_536),
		],
		outcome: flowControl,
		beyondNode: true,
	},
	// CONTINUATION
	{
		section: '6.10',
		asks: 'a header block may be split',
		sends: [
			frame(FRAME_TYPE.headers, FRAME_FLAG.endStream, 1, encodeFieldBlock(REQUEST).subarray(0, 9)),
			frame(FRAME_TYPE.continuation, 0, 1, encodeFieldBlock(REQUEST).subarray(9, 20)),
			frame(FRAME_TYPE.continuation, FRAME_FLAG.endHeaders, 1, encodeFieldBlock(REQUEST).subarray(20)),
		],
		outcome: { stream: 1, status: '200' },
	},
	{
		section: '6.10',
		asks: 'CONTINUATION after a complete header block ends the connection',
		sends: [request(1), frame(FRAME_TYPE.continuation, FRAME_FLAG.endHeaders, 1, encodeFieldBlock(REQUEST))],
		outcome: protocol,
	},
];

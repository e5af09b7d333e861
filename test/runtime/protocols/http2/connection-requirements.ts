/** What RFC 9113 asks of a server's frames and streams, as data: what a client sends, and what has to come of it. */
import { FLAG, FRAME, H2_ERROR, PREFACE } from '../../../../runtime/protocols/http2/frame-codes.ts';
import { block, frame, numbers, POST, REQUEST, request, settings } from './frames.ts';

/** What has to come. A connection error is a GOAWAY and the end; after all else the connection goes on. */
export type Outcome =
	| { readonly connection: number }
	| { readonly stream: number; readonly code: number }
	| { readonly stream: number; readonly status: string }
	| 'served';

/** One requirement. */
export interface Requirement {
	readonly section: string;
	readonly asks: string;
	/** Sent after the preface and empty settings, unless `bare`. */
	readonly sends: readonly Uint8Array[];
	readonly bare?: boolean;
	readonly outcome: Outcome;
	/** Node's core does otherwise, or leaves it to the application. */
	readonly beyondNode?: boolean;
}

const OPEN = FLAG.endHeaders;
const HELLO = Buffer.from(PREFACE);
const protocol: Outcome = { connection: H2_ERROR.protocol };
const frameSize: Outcome = { connection: H2_ERROR.frameSize };
const flowControl: Outcome = { connection: H2_ERROR.flowControl };
const malformed: Outcome = { stream: 1, code: H2_ERROR.protocol };
const withField = (name: string, value: string) => [...REQUEST, [name, value] as const];
const data = (stream: number, text: string, flags = 0) => frame(FRAME.data, flags, stream, Buffer.from(text));

/** Sections 3 to 6. */
export const CONNECTION_REQUIREMENTS: readonly Requirement[] = [
	// Starting
	{
		section: '3.4',
		asks: 'a bad preface ends the connection',
		bare: true,
		sends: [Buffer.from(PREFACE.replace('SM', 'XX'))],
		outcome: protocol,
	},
	{ section: '3.4', asks: 'the first frame is SETTINGS', bare: true, sends: [HELLO, request(1)], outcome: protocol },
	{
		section: '3.4',
		asks: 'an acknowledgement is no first SETTINGS',
		bare: true,
		sends: [HELLO, frame(FRAME.settings, FLAG.ack, 0)],
		outcome: protocol,
	},
	{
		section: '3.4',
		asks: 'frames may follow the preface at once',
		bare: true,
		sends: [Buffer.concat([HELLO, settings(), request(1)])],
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
		sends: [frame(FRAME.ping, 0xfe, 0, Buffer.alloc(8))],
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
		asks: 'a DATA frame beyond the maximum size is an error',
		sends: [request(1, POST, OPEN), frame(FRAME.data, 0, 1, Buffer.alloc(16_385))],
		outcome: frameSize,
	},
	{
		section: '4.2',
		asks: 'a HEADERS frame beyond the maximum size is an error',
		sends: [frame(FRAME.headers, OPEN, 1, Buffer.alloc(16_385))],
		outcome: frameSize,
	},
	{
		section: '4.3',
		asks: 'a header block that cannot be decoded ends the connection',
		sends: [frame(FRAME.headers, OPEN | FLAG.endStream, 1, Buffer.from([0x80]))],
		outcome: { connection: H2_ERROR.compression },
	},
	{
		section: '4.3',
		asks: 'another frame within a header block ends the connection',
		sends: [frame(FRAME.headers, FLAG.endStream, 1, block(REQUEST)), frame(FRAME.ping, 0, 0, Buffer.alloc(8))],
		outcome: protocol,
	},
	{
		section: '4.3',
		asks: 'an unknown frame within a header block ends the connection',
		sends: [frame(FRAME.headers, FLAG.endStream, 1, block(REQUEST)), frame(0xfa, 0, 1)],
		outcome: protocol,
	},
	{
		section: '4.3',
		asks: 'CONTINUATION of another stream ends the connection',
		sends: [frame(FRAME.headers, FLAG.endStream, 1, block(REQUEST)), frame(FRAME.continuation, FLAG.endHeaders, 3)],
		outcome: protocol,
	},
	// Streams
	{
		section: '5.1',
		asks: 'DATA on an idle stream ends the connection',
		sends: [data(1, 'x', FLAG.endStream)],
		outcome: protocol,
	},
	{
		section: '5.1',
		asks: 'RST_STREAM on an idle stream ends the connection',
		sends: [frame(FRAME.resetStream, 0, 1, numbers(8))],
		outcome: protocol,
	},
	{
		section: '5.1',
		asks: 'WINDOW_UPDATE on an idle stream ends the connection',
		sends: [frame(FRAME.windowUpdate, 0, 1, numbers(100))],
		outcome: protocol,
	},
	{
		section: '5.1',
		asks: 'CONTINUATION on an idle stream ends the connection',
		sends: [frame(FRAME.continuation, FLAG.endHeaders, 1, block(REQUEST))],
		outcome: protocol,
	},
	{
		section: '5.1',
		asks: 'PRIORITY on an idle stream is let pass',
		sends: [frame(FRAME.priority, 0, 9, Buffer.from([0, 0, 0, 1, 5]))],
		outcome: 'served',
	},
	{
		section: '5.1',
		asks: 'DATA after the end of a request is an error of its stream',
		sends: [request(1, [...REQUEST.slice(0, 2), [':path', '/slow'], REQUEST[3]!]), data(1, 'x')],
		outcome: { stream: 1, code: H2_ERROR.streamClosed },
		beyondNode: true,
	},
	{
		section: '5.1',
		asks: 'HEADERS after the end of a request are an error of its stream',
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
		sends: [request(1, POST, OPEN), frame(FRAME.resetStream, 0, 1, numbers(8)), data(1, 'x')],
		outcome: { connection: H2_ERROR.streamClosed },
		beyondNode: true,
	},
	{
		section: '5.1',
		asks: 'WINDOW_UPDATE, RST_STREAM and PRIORITY on a closed stream are let pass',
		sends: [
			request(1),
			frame(FRAME.windowUpdate, 0, 1, numbers(9)),
			frame(FRAME.resetStream, 0, 1, numbers(8)),
			frame(FRAME.priority, 0, 1, Buffer.alloc(5)),
		],
		outcome: 'served',
	},
	{
		section: '5.1',
		asks: 'DATA that was under way to a stream that we reset is let pass',
		sends: [request(1, withField('bad name', 'x'), OPEN), data(1, 'late'), data(1, 'later', FLAG.endStream)],
		outcome: 'served',
	},
	{
		section: '5.1',
		asks: 'trailers that were under way to a stream that we reset are let pass',
		sends: [
			request(1, withField('bad name', 'x'), OPEN),
			frame(FRAME.headers, OPEN | FLAG.endStream, 1, block([['x', 'y']])),
		],
		outcome: 'served',
	},
	{ section: '5.1.1', asks: 'a client opens odd streams only', sends: [request(2)], outcome: protocol },
	{ section: '5.1.1', asks: 'stream 0 carries no request', sends: [request(0)], outcome: protocol },
	{
		section: '5.1.1',
		asks: 'a stream below the last one cannot be opened',
		sends: [request(5), request(3)],
		outcome: { connection: H2_ERROR.streamClosed },
		beyondNode: true,
	},
	{ section: '5.1.1', asks: 'streams may be left out', sends: [request(7)], outcome: { stream: 7, status: '200' } },
	// DATA
	{ section: '6.1', asks: 'DATA belongs to a stream', sends: [data(0, 'x')], outcome: protocol },
	{
		section: '6.1',
		asks: 'padding longer than its frame ends the connection',
		sends: [request(1, POST, OPEN), frame(FRAME.data, FLAG.padded | FLAG.endStream, 1, Buffer.from([9, 1, 2]))],
		outcome: protocol,
	},
	{
		section: '6.1',
		asks: 'padding is taken off',
		sends: [
			request(1, POST, OPEN),
			frame(FRAME.data, FLAG.padded | FLAG.endStream, 1, Buffer.from([2, 0x68, 0x69, 0, 0])),
		],
		outcome: { stream: 1, status: '200' },
	},
	// HEADERS
	{
		section: '6.2',
		asks: 'padding of HEADERS longer than the frame ends the connection',
		sends: [
			frame(FRAME.headers, OPEN | FLAG.padded | FLAG.endStream, 1, Buffer.concat([Buffer.from([255]), block(REQUEST)])),
		],
		outcome: protocol,
	},
	{
		section: '6.2',
		asks: 'padding and priority of HEADERS are taken off',
		sends: [
			frame(
				FRAME.headers,
				OPEN | FLAG.padded | FLAG.priority | FLAG.endStream,
				1,
				Buffer.concat([Buffer.from([3, 0, 0, 0, 0, 200]), block(REQUEST), Buffer.alloc(3)]),
			),
		],
		outcome: { stream: 1, status: '200' },
	},
	{
		section: '6.2',
		asks: 'HEADERS too short for its priority end the connection',
		sends: [frame(FRAME.headers, OPEN | FLAG.priority | FLAG.endStream, 1, Buffer.alloc(4))],
		outcome: protocol,
	},
	// PRIORITY, RST_STREAM
	{
		section: '6.3',
		asks: 'PRIORITY belongs to a stream',
		sends: [frame(FRAME.priority, 0, 0, Buffer.alloc(5))],
		outcome: protocol,
	},
	{
		section: '6.3',
		asks: 'PRIORITY has five bytes',
		sends: [frame(FRAME.priority, 0, 1, Buffer.alloc(4))],
		outcome: frameSize,
	},
	{
		section: '6.4',
		asks: 'RST_STREAM belongs to a stream',
		sends: [frame(FRAME.resetStream, 0, 0, numbers(8))],
		outcome: protocol,
	},
	{
		section: '6.4',
		asks: 'RST_STREAM has four bytes',
		sends: [request(1, POST, OPEN), frame(FRAME.resetStream, 0, 1, Buffer.alloc(3))],
		outcome: frameSize,
	},
	// SETTINGS
	{
		section: '6.5',
		asks: 'an acknowledgement has no payload',
		sends: [frame(FRAME.settings, FLAG.ack, 0, Buffer.alloc(6))],
		outcome: frameSize,
	},
	{
		section: '6.5',
		asks: 'SETTINGS belong to the connection',
		sends: [frame(FRAME.settings, 0, 1)],
		outcome: protocol,
	},
	{
		section: '6.5',
		asks: 'SETTINGS come in sixes of bytes',
		sends: [frame(FRAME.settings, 0, 0, Buffer.alloc(7))],
		outcome: frameSize,
	},
	{ section: '6.5.2', asks: 'ENABLE_PUSH is 0 or 1', sends: [settings(2, 2)], outcome: protocol },
	{
		section: '6.5.2',
		asks: 'a window cannot begin above its maximum',
		sends: [settings(4, 0x80000000)],
		outcome: flowControl,
	},
	{
		section: '6.5.2',
		asks: 'the maximum frame size cannot be below 16384',
		sends: [settings(5, 16_383)],
		outcome: protocol,
	},
	{
		section: '6.5.2',
		asks: 'the maximum frame size cannot be above 16777215',
		sends: [settings(5, 16_777_216)],
		outcome: protocol,
	},
	{ section: '6.5.2', asks: 'unknown settings are ignored', sends: [settings(0xfafa, 77)], outcome: 'served' },
	// PUSH_PROMISE, PING, GOAWAY
	{
		section: '6.6',
		asks: 'a client cannot push',
		sends: [frame(FRAME.pushPromise, FLAG.endHeaders, 1, Buffer.alloc(8))],
		outcome: protocol,
	},
	{
		section: '6.7',
		asks: 'PING belongs to the connection',
		sends: [frame(FRAME.ping, 0, 1, Buffer.alloc(8))],
		outcome: protocol,
	},
	{
		section: '6.7',
		asks: 'PING has eight bytes',
		sends: [frame(FRAME.ping, 0, 0, Buffer.alloc(6))],
		outcome: frameSize,
	},
	{
		section: '6.7',
		asks: 'an acknowledged PING is not answered and no error',
		sends: [frame(FRAME.ping, FLAG.ack, 0, Buffer.alloc(8))],
		outcome: 'served',
		beyondNode: true,
	},
	{
		section: '6.8',
		asks: 'GOAWAY belongs to the connection',
		sends: [frame(FRAME.goAway, 0, 1, Buffer.alloc(8))],
		outcome: protocol,
	},
	{
		section: '6.8',
		asks: 'GOAWAY has eight bytes at least',
		sends: [frame(FRAME.goAway, 0, 0, Buffer.alloc(7))],
		outcome: frameSize,
	},
	// WINDOW_UPDATE
	{
		section: '6.9',
		asks: 'an increment of 0 ends the connection',
		sends: [frame(FRAME.windowUpdate, 0, 0, numbers(0))],
		outcome: protocol,
	},
	{
		section: '6.9',
		asks: 'an increment of 0 on a stream is an error of it',
		sends: [request(1, POST, OPEN), frame(FRAME.windowUpdate, 0, 1, numbers(0))],
		outcome: malformed,
	},
	{
		section: '6.9',
		asks: 'WINDOW_UPDATE has four bytes',
		sends: [frame(FRAME.windowUpdate, 0, 0, Buffer.alloc(5))],
		outcome: frameSize,
	},
	{
		section: '6.9.1',
		asks: 'the window of the connection cannot overflow',
		sends: [frame(FRAME.windowUpdate, 0, 0, numbers(0x7fffffff))],
		outcome: flowControl,
		beyondNode: true,
	},
	{
		section: '6.9.1',
		asks: 'the window of a stream cannot overflow',
		sends: [request(1, POST, OPEN), frame(FRAME.windowUpdate, 0, 1, numbers(0x7fffffff))],
		outcome: { stream: 1, code: H2_ERROR.flowControl },
		beyondNode: true,
	},
	{
		section: '6.9.1',
		asks: 'more DATA than the window of a stream is an error of it',
		sends: [
			request(1, [[':method', 'POST'], ...REQUEST.slice(1, 2), [':path', '/unread'], REQUEST[3]!], OPEN),
			...Array.from({ length: 5 }, () => frame(FRAME.data, 0, 1, Buffer.alloc(16_384))),
		],
		outcome: { stream: 1, code: H2_ERROR.flowControl },
	},
	{
		section: '6.9.2',
		asks: 'settings cannot make the window of an open stream overflow',
		sends: [request(1, POST, OPEN), frame(FRAME.windowUpdate, 0, 1, numbers(0x7fffffff - 65_535)), settings(4, 65_536)],
		outcome: flowControl,
		beyondNode: true,
	},
	// CONTINUATION
	{
		section: '6.10',
		asks: 'a header block may come in parts',
		sends: [
			frame(FRAME.headers, FLAG.endStream, 1, block(REQUEST).subarray(0, 9)),
			frame(FRAME.continuation, 0, 1, block(REQUEST).subarray(9, 20)),
			frame(FRAME.continuation, FLAG.endHeaders, 1, block(REQUEST).subarray(20)),
		],
		outcome: { stream: 1, status: '200' },
	},
	{
		section: '6.10',
		asks: 'CONTINUATION follows a block that has not ended',
		sends: [request(1), frame(FRAME.continuation, FLAG.endHeaders, 1, block(REQUEST))],
		outcome: protocol,
	},
];

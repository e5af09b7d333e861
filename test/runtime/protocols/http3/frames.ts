/** An HTTP/3 server over real QUIC with a scripted handler, and functions that build frames, valid or not. */
import type { Exchange, TlsInfo } from '../../../../compiler/exchange/exchange.ts';
import type { Handler } from '../../../../compiler/exchange/handler.ts';
import { DEFAULT_LIMITS } from '../../../../runtime/protocols/http1/limits.ts';
import { StringMemory } from '../../../../runtime/protocols/http2/hpack-decoder.ts';
import { createHttp3Server, type Http3Server } from '../../../../runtime/protocols/http3/http3-server.ts';
import { QpackDecoder } from '../../../../runtime/protocols/http3/qpack-decoder.ts';
import { VarintReader, varintLength, writeVarint } from '../../../../runtime/protocols/http3/varint.ts';
import type { ProtocolHost, ProtocolLimits } from '../../../../runtime/protocols/protocol.ts';
import { QuicEndpoint } from '../../../../runtime/sockets/quic/quic-endpoint.ts';
import type { QuicLimits } from '../../../../runtime/sockets/quic/quic-limits.ts';
import { quicThread } from '../../../../runtime/sockets/quic/quic-thread.ts';
import type { QuicCertificateChoice, QuicHello } from '../../../../runtime/sockets/quic/quic-tls.ts';
import { threadPoller } from '../../../../runtime/sockets/socket-poller.ts';
import { TestAuthority } from '../../../certificates.ts';
import { freePorts, until } from '../../../harness.ts';
import type { ClientStream, QuicClient } from './quic-client.ts';

/** Maximum number of refusals that a server records. */
const MAX_RECORDED = 100_000;

/** A running server, and what it has recorded. */
export interface FrameServer {
	readonly port: number;
	readonly protocol: Http3Server;
	readonly endpoint: QuicEndpoint;
	readonly exchanges: Exchange[];
	readonly finished: Exchange[];
	readonly refused: string[];
	/** The reasons for which the server has closed connections because of abuse. */
	readonly cut: string[];
	/** Reasons for which datagrams and handshakes were refused. */
	readonly refusals: string[];
	readonly handshakes: string[];
	/** Errors that connections have thrown. */
	readonly failures: unknown[];
	readonly counts: {
		connections: number;
		streams: number;
		resetsByClient: number;
		resetsByServer: number;
		portChanges: number;
	};
	stop(): void;
}

/** Settings of a test server, used in place of the defaults. */
export interface FrameServerOptions {
	readonly limits?: Partial<ProtocolLimits>;
	readonly handshakeLimit?: number;
	readonly quicLimits?: Partial<QuicLimits>;
	/** The address to bind; 127.0.0.1 by default. */
	readonly address?: string;
	readonly choose?: (hello: QuicHello, resume: () => void) => QuicCertificateChoice;
	readonly admit?: (address: string) => (() => void) | undefined;
}

/** The certificate that all test servers use. */
export const certificate: Promise<{ readonly serial: number; readonly chain: string; readonly key: string }> =
	TestAuthority.make()
		.then(authority => authority.issue({ names: ['localhost'] }))
		.then(({ certificate: chain, key }) => ({ serial: 1, chain, key }));

/** Resolves once this thread's poller works. Before that, no socket is read. */
export async function pollerReady(): Promise<void> {
	await until('the poller', () => threadPoller() !== undefined);
}

/** Serves on a free port of 127.0.0.1. If a handler throws, the response has the error's status, as in the runtime. */
export async function serve(handler: Handler, terms: FrameServerOptions = {}): Promise<FrameServer> {
	await pollerReady();
	const exchanges: Exchange[] = [];
	const finished: Exchange[] = [];
	const refused: string[] = [];
	const cut: string[] = [];
	const turnedAway: string[] = [];
	const handshakes: string[] = [];
	const failures: unknown[] = [];
	const counts = { connections: 0, streams: 0, resetsByClient: 0, resetsByServer: 0, portChanges: 0 };
	const fail = (x: Exchange, error: unknown): void => {
		x.response.body = null;
		x.response.status = (error as { status?: number }).status ?? 500;
	};
	const host: ProtocolHost = {
		handle(x) {
			exchanges.push(x);
			try {
				return handler(x)?.then(undefined, error => fail(x, error));
			} catch (error) {
				fail(x, error);
			}
		},
		onExchangeFinished: x => void finished.push(x),
		countRefusal: reason => void refused.push(reason),
		onConnectionOpened: () => {},
		onConnectionClosed: () => {},
		limits: { ...DEFAULT_LIMITS, ...terms.limits },
		draining: false,
		http3: {
			connectionOpened: () => void counts.connections++,
			connectionClosed: () => void counts.connections--,
			streamOpened: () => void counts.streams++,
			streamReset: byClient => void (byClient ? counts.resetsByClient++ : counts.resetsByServer++),
			connectionCut: reason => void cut.push(reason),
		},
	};
	const protocol = createHttp3Server(host);
	const [port] = (await freePorts(1)) as [number];
	const own = await certificate;
	const endpoint = new QuicEndpoint(
		quicThread()!,
		{ address: terms.address ?? '127.0.0.1', port, only6: false, shared: false },
		{
			onConnected(connection) {
				const { cipherSuite, serverName, resumed } = connection.facts;
				const tls: TlsInfo = { version: 'tls1.3', cipherSuite, protocol: 'h3', serverName, resumed };
				protocol.accept(connection, tls);
			},
			onHandshakeEnded: result => void handshakes.push(result),
			admit: terms.admit ?? (() => () => {}),
			onConnectionEnded: () => {},
			onRefused: reason => {
				if (turnedAway.length < MAX_RECORDED) turnedAway.push(reason);
			},
			countDatagrams: () => {},
			onPortChanged: () => void counts.portChanges++,
			handshakeLimitMs: terms.handshakeLimit ?? 10_000,
			chooseCertificate: terms.choose ?? (() => own),
			clientKey: address => address,
			limits: terms.quicLimits,
			onInternalError: error => void failures.push(error),
			onError: error => void failures.push(error),
		},
	);
	endpoint.open();
	return {
		...{
			port,
			protocol,
			endpoint,
			exchanges,
			finished,
			refused,
			cut,
			refusals: turnedAway,
			handshakes,
			failures,
			counts,
		},
		stop: () => endpoint.close(),
	};
}

/** Encodes numbers as variable-length integers (RFC 9000 §16), one after another. */
export function varint(...values: number[]): Buffer {
	return Buffer.concat(
		values.map(value => {
			const bytes = Buffer.alloc(varintLength(value));
			writeVarint(bytes, 0, value);
			return bytes;
		}),
	);
}

export function frame(type: number, payload: Uint8Array = Buffer.alloc(0)): Buffer {
	return Buffer.concat([varint(type, payload.length), payload]);
}

/** Encodes a field section: literals without Huffman coding. */
export function encodeFieldSection(fields: readonly (readonly [name: string, value: string])[]): Buffer {
	const parts: Buffer[] = [Buffer.of(0, 0)];
	for (const [name, value] of fields) {
		const bytes = Buffer.from(name, 'latin1');
		parts.push(
			encodePrefixedInteger(0x20, 3, bytes.length),
			bytes,
			encodePrefixedInteger(0, 7, value.length),
			Buffer.from(value, 'latin1'),
		);
	}
	return Buffer.concat(parts);
}

/** Encodes an integer with a prefix of `prefix` bits, in the low bits of `first` (RFC 7541 §5.1). */
export function encodePrefixedInteger(first: number, prefix: number, value: number): Buffer {
	const mask = (1 << prefix) - 1;
	if (value < mask) return Buffer.of(first | value);
	const bytes = [first | mask];
	let rest = value - mask;
	for (; rest >= 128; rest >>>= 7) bytes.push((rest & 127) | 128);
	bytes.push(rest);
	return Buffer.from(bytes);
}

/** The fields of a minimal request. */
export const REQUEST: readonly (readonly [name: string, value: string])[] = [
	[':method', 'GET'],
	[':scheme', 'https'],
	[':authority', 'localhost'],
	[':path', '/'],
];

/** The fields of a minimal POST request. */
export const POST: readonly (readonly [name: string, value: string])[] = [[':method', 'POST'], ...REQUEST.slice(1)];

/** Returns a HEADERS frame with these fields, by default those of a minimal request. */
export function headers(fields: readonly (readonly [name: string, value: string])[] = REQUEST): Buffer {
	return frame(0x1, encodeFieldSection(fields));
}

/** Returns a DATA frame with a text. */
export function data(text: string): Buffer {
	return frame(0x0, Buffer.from(text));
}

export interface ReceivedFrame {
	readonly type: number;
	readonly payload: Buffer;
	/** The decoded fields, if this is a HEADERS frame. */
	readonly fields?: { readonly [name: string]: string };
}

/** Returns the complete frames among the bytes received on a stream, after the first `skip` bytes. */
export function framesOf(bytes: Buffer, skip = 0): ReceivedFrame[] {
	const found: ReceivedFrame[] = [];
	const decoder = new QpackDecoder(new StringMemory(65_536));
	for (let at = skip; at < bytes.length; ) {
		const numbers: number[] = [];
		const reader = new VarintReader();
		while (numbers.length < 2 && at < bytes.length) if (reader.push(bytes[at++]!)) numbers.push(reader.value);
		const [type, length] = numbers;
		if (length === undefined || at + length > bytes.length) break;
		const payload = bytes.subarray(at, at + length);
		at += length;
		if (type !== 1) {
			found.push({ type: type!, payload });
			continue;
		}
		const fields: { [name: string]: string } = {};
		const whole = decoder.decode(payload, 0, payload.length, {
			onField: ({ name, value }) => {
				fields[name] = value;
			},
		});
		if (!whole) throw new Error('the server sent a malformed field section');
		found.push({ type, payload, fields });
	}
	return found;
}

/** A complete response. */
export interface ReceivedResponse {
	/** The fields of interim heads, of the final head and of trailers, in this order. */
	readonly heads: readonly { readonly [name: string]: string }[];
	readonly status: string;
	readonly fields: { readonly [name: string]: string };
	readonly body: string;
}

/** Waits for the end of a stream. Resolves to the response on the stream. */
export async function response(client: QuicClient, stream: ClientStream): Promise<ReceivedResponse> {
	await client.until(`the end of stream ${stream.id}`, () => stream.ended || stream.resetCode !== undefined);
	if (stream.resetCode !== undefined) throw new Error(`stream ${stream.id} was reset with ${stream.resetCode}`);
	const frames = framesOf(stream.bytes);
	const heads = frames.flatMap(({ fields }) => (fields === undefined ? [] : [fields]));
	const head = heads.find(({ ':status': status }) => status !== undefined && status >= '200');
	const body = Buffer.concat(frames.filter(({ type }) => type === 0).map(({ payload }) => payload)).toString();
	return { heads, status: head?.[':status'] ?? '', fields: head ?? {}, body };
}

/** Opens the control stream that every client must open, with empty SETTINGS. */
export function openControlStream(client: QuicClient): ClientStream {
	return client.open(true).write(Buffer.concat([varint(0), frame(4)]));
}

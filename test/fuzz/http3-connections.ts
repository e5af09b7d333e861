/**
 * Feeds random and mutated bytes to the streams of HTTP/3 connections, without QUIC. No input may make a connection throw, keep
 * an exchange or a stream after its end, exceed its memory limits, or send anything but valid frames.
 */
import type { BodySource } from '../../compiler/exchange/body.ts';
import { isStream } from '../../compiler/exchange/body.ts';
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import { HeaderList } from '../../compiler/exchange/header-list.ts';
import { DEFAULT_LIMITS } from '../../runtime/protocols/http1/limits.ts';
import { StringMemory } from '../../runtime/protocols/http2/hpack-decoder.ts';
import { FrameReader } from '../../runtime/protocols/http3/frame-reader.ts';
import { FRAME_TYPE, H3_ERROR } from '../../runtime/protocols/http3/http3-codes.ts';
import { createHttp3Server } from '../../runtime/protocols/http3/http3-server.ts';
import { MAX_HELD_BODY_BYTES } from '../../runtime/protocols/http3/limits.ts';
import { QpackDecoder } from '../../runtime/protocols/http3/qpack-decoder.ts';
import type { ProtocolHost } from '../../runtime/protocols/protocol.ts';
import type {
	QuicConnection,
	QuicConnectionOwner,
	QuicStream,
	QuicStreamOwner,
} from '../../runtime/sockets/quic/quic-connection.ts';
import { data, encodeFieldSection, frame, headers, POST, REQUEST, varint } from '../runtime/protocols/http3/frames.ts';
import { SeededChance } from './chance.ts';

const INPUTS_PER_CONNECTION = 40;
const ERROR_CODES: ReadonlySet<number> = new Set(Object.values(H3_ERROR));
const TUNNEL_FIELDS = [[':method', 'CONNECT'], [':protocol', 'websocket'], ...REQUEST.slice(1)] as const;
const decoder = new QpackDecoder(new StringMemory(65_536));

/** A stream in memory. */
class FakeStream implements QuicStream {
	owner: QuicStreamOwner | undefined = undefined;
	readonly id: number;
	roomBytes = 0;
	paused = false;
	/** True once the server has reset, ended or released its side. */
	over = false;
	released = false;
	resetWith: number | undefined = undefined;
	starved = false;
	/** Bytes of this stream's input that the client has not sent yet. */
	unsentInput: Buffer = Buffer.alloc(0);
	readonly #sent: SentFrames;

	constructor(id: number, skipsType: boolean) {
		this.id = id;
		this.#sent = new SentFrames(skipsType);
	}

	get isBidirectional(): boolean {
		return (this.id & 2) === 0;
	}

	awaitRoom(): void {
		this.starved = true;
	}

	write(bytes: Uint8Array, start: number, end: number, fin: boolean): boolean {
		if (this.over || this.released) return false;
		this.#sent.read(Buffer.from(bytes.subarray(start, end)));
		this.roomBytes = Math.max(0, this.roomBytes - (end - start));
		if (fin) this.over = true;
		return true;
	}

	pause(paused: boolean): void {
		this.paused = paused;
	}

	reset(code: number): void {
		this.resetWith = code;
		this.over = true;
	}

	release(): void {
		this.released = true;
		this.owner = undefined;
	}

	/** Describes what is wrong with what the server has sent on the stream; undefined if nothing is. */
	get fault(): string | undefined {
		if (this.resetWith !== undefined && !ERROR_CODES.has(this.resetWith)) return `reset with ${this.resetWith}`;
		return this.#sent.fault;
	}
}

/** The frames that the server has sent on one stream. */
class SentFrames {
	fault: string | undefined = undefined;
	#skips: boolean;
	#final = false;
	readonly #reader = new FrameReader({
		onFrame: type => {
			if (type === FRAME_TYPE.data && !this.#final) this.fault = 'DATA before a final response';
			return type === FRAME_TYPE.headers ? 'gather' : 'skip';
		},
		onPayloadPart: () => true,
		onWholePayload: (_type, bytes, start, end) => {
			const valid = decoder.decode(bytes, start, end, {
				onField: ({ name, value }) => {
					if (name === ':status' && value >= '200') {
						if (this.#final) this.fault = 'two final responses';
						this.#final = true;
					}
				},
			});
			if (!valid) this.fault = 'a field section that cannot be decoded';
			return true;
		},
	});

	constructor(skipsType: boolean) {
		this.#skips = skipsType;
	}

	read(bytes: Buffer): void {
		this.#reader.read(bytes, this.#skips ? 1 : 0);
		this.#skips = false;
	}
}

/** A connection in memory. */
class FakeConnection implements QuicConnection {
	owner: QuicConnectionOwner | undefined = undefined;
	readonly facts = { cipherSuite: 'TLS_AES_128_GCM_SHA256', serverName: 'localhost', resumed: false };
	readonly remoteAddress = '127.0.0.1';
	readonly remotePort = 1;
	readonly localAddress = '127.0.0.1';
	readonly localPort = 2;
	readonly streams: FakeStream[] = [];
	code: number | undefined = undefined;
	#control: FakeStream | undefined = undefined;

	openUni(): QuicStream {
		this.#control = new FakeStream(3, true);
		this.streams.push(this.#control);
		return this.#control;
	}

	flush(): void {}

	end(code: number): void {
		this.close(code);
	}

	close(code: number): void {
		if (this.code !== undefined) return;
		this.code = code;
		this.owner?.onClosed({ byPeer: false, isTransportError: false, code });
	}

	destroy(): void {
		this.close(H3_ERROR.none);
	}
}

/** Returns a body in pieces, some of which are available only later. */
function randomBody(chance: SeededChance): BodySource {
	let remaining = chance.below(6);
	const trailers = chance.once(3) ? new HeaderList(['x-sum', '1']) : undefined;
	return {
		length: undefined,
		...(trailers ? { trailers } : {}),
		pull() {
			if (remaining-- <= 0) return null;
			const piece = Buffer.alloc(1 + chance.below(40_000), 97);
			return chance.once(2) ? piece : Promise.resolve(piece);
		},
		cancel() {},
	} as BodySource;
}

/** Answers in one of the ways in which handlers answer, chosen at random. */
function answerRandomly(x: Exchange, chance: SeededChance): void | Promise<void> {
	if (chance.once(4)) x.sendInterim(103, new HeaderList(['link', '</a>']));
	switch (chance.below(6)) {
		case 0:
			x.response.body = 'text'.repeat(chance.below(30));
			return;
		case 1:
			x.response.body = randomBody(chance);
			return;
		case 2:
			x.upgrade(tunnel => {
				tunnel.on('data', (piece: Buffer) => tunnel.write(piece));
				tunnel.on('end', () => tunnel.end());
				tunnel.resume();
			});
			return;
		case 3:
			x.response.status = chance.of([0, 101, 204, 304, 404, 1000]);
			return;
		case 4:
			return Promise.reject(new Error('broken'));
		default: {
			const { body } = x.request;
			return (async () => {
				if (isStream(body)) while ((await body.pull()) !== null);
				x.response.body = randomBody(chance);
			})();
		}
	}
}

/** Returns frames for a new stream, mostly in a valid order. */
function randomFrames(chance: SeededChance): Buffer {
	const head = chance.of([
		headers(),
		headers(POST),
		headers(TUNNEL_FIELDS),
		headers([...POST, ['content-length', '3']]),
	]);
	const parts = [head];
	for (let i = chance.below(4); i > 0; i--) parts.push(data('d'.repeat(chance.below(400))));
	if (chance.once(3)) parts.push(headers([['x-trailer', 'yes']]));
	if (chance.once(10)) parts.splice(chance.below(parts.length + 1), 0, oddFrame(chance));
	return mutate(Buffer.concat(parts), chance);
}

function oddFrame(chance: SeededChance): Buffer {
	const type = chance.of([...Object.values(FRAME_TYPE), 0x2, 0x6, 0x21, 0x40, 2 ** 40]);
	const payload = chance.of([
		Buffer.alloc(chance.below(20), chance.below(256)),
		varint(chance.below(10)),
		encodeFieldSection([...REQUEST, ['x', 'y'.repeat(chance.below(300))]]),
	]);
	return frame(type, payload);
}

function unidirectional(chance: SeededChance): Buffer {
	const parts = [varint(chance.of([0, 0, 1, 2, 3, 0x21, 2 ** 33]))];
	if (!chance.once(5))
		parts.push(
			frame(FRAME_TYPE.settings, chance.once(2) ? varint(chance.below(60), chance.below(9)) : Buffer.alloc(0)),
		);
	for (let i = chance.below(4); i > 0; i--) parts.push(oddFrame(chance));
	if (chance.once(3)) parts.push(Buffer.of(0x20, 0x44, chance.below(256)));
	return mutate(Buffer.concat(parts), chance);
}

/** Changes a few bytes in one of five inputs. Some inputs are also cut short or get a length that is far too large. */
function mutate(bytes: Buffer, chance: SeededChance): Buffer {
	if (!chance.once(5)) return bytes;
	for (let i = 1 + chance.below(3); i > 0; i--) bytes[chance.below(bytes.length)] = chance.below(256);
	if (chance.once(6)) return bytes.subarray(0, chance.below(bytes.length));
	if (chance.once(6)) return Buffer.concat([bytes, varint(chance.below(8), 2 ** chance.below(53))]);
	return bytes;
}

/** Tries about `count` inputs. Returns a description of each input that broke an invariant, with the seed that generates it. */
export async function fuzzHttp3Connections(count: number, from: number): Promise<string[]> {
	const findings: string[] = [];
	for (let at = 0; at * INPUTS_PER_CONNECTION < count && findings.length < 5; at++) {
		const seed = from * 1_000_003 + at;
		const fault = await one(new SeededChance(seed)).catch(error => `threw ${error.stack}`);
		if (fault !== undefined) findings.push(`seed ${seed}: ${fault}`);
	}
	return findings;
}

async function one(chance: SeededChance): Promise<string | undefined> {
	let begun = 0;
	let finished = 0;
	const host: ProtocolHost = {
		handle(x) {
			begun++;
			return answerRandomly(x, chance)?.then(undefined, () => {
				x.response.body = null;
				x.response.status = 500;
			});
		},
		onExchangeFinished: () => void finished++,
		countRefusal: () => {},
		onConnectionOpened: () => {},
		onConnectionClosed: () => {},
		limits: DEFAULT_LIMITS,
		draining: false,
	};
	const server = createHttp3Server(host);
	const quic = new FakeConnection();
	server.accept(quic, { version: 'tls1.3', cipherSuite: '', protocol: 'h3', serverName: '', resumed: false });
	const ids = [0, 2];
	let delivered = 0;
	for (let input = 0; input < INPUTS_PER_CONNECTION && quic.code === undefined; input++) {
		const sending = quic.streams.filter(({ id, released }) => (id & 1) === 0 && !released);
		if (sending.length === 0 || chance.once(4)) openStream(quic, ids, chance);
		else delivered += actRandomly(chance.of(sending), chance);
		quic.owner?.onEventsDelivered();
		for (const stream of quic.streams) {
			const { held = 0 } = (stream.owner ?? {}) as { held?: number };
			if (held > MAX_HELD_BODY_BYTES + delivered) return `holds ${held} bytes of one body`;
			if (stream.fault !== undefined) return `${stream.fault} on stream ${stream.id}`;
		}
		if (chance.once(8)) await new Promise(resolve => setImmediate(resolve));
		if (chance.once(200)) server.drain();
	}
	if (quic.code !== undefined && !ERROR_CODES.has(quic.code)) return `closed with ${quic.code}`;
	server.close();
	for (let rounds = 0; rounds < 100 && finished < begun; rounds++) await new Promise(resolve => setImmediate(resolve));
	if (finished !== begun) return `${begun} exchanges began, ${finished} ended`;
	if (server.connections !== 0) return 'the connection is still there';
	return undefined;
}

/** Opens a stream and sends the beginning of its input. */
function openStream(quic: FakeConnection, ids: number[], chance: SeededChance): void {
	const isUni = chance.once(4) ? 1 : 0;
	const stream = new FakeStream(ids[isUni]!, false);
	ids[isUni]! += 4;
	stream.roomBytes = isUni === 1 ? 0 : chance.below(60_000);
	stream.unsentInput = isUni === 1 ? unidirectional(chance) : randomFrames(chance);
	quic.streams.push(stream);
	quic.owner!.onStreamOpened(stream);
	actRandomly(stream, chance);
}

/** Performs a random action of the client on a stream. Returns the number of bytes that the server received. */
function actRandomly(stream: FakeStream, chance: SeededChance): number {
	const { owner } = stream;
	if (owner === undefined) return 0;
	switch (chance.below(12)) {
		case 0:
			owner.onReset(chance.below(600));
			return 0;
		case 1:
			if (stream.isBidirectional) owner.onStopped();
			return 0;
		case 2:
		case 3:
			stream.roomBytes = 100_000;
			if (stream.starved) {
				stream.starved = false;
				owner.onDrained();
			}
			return 0;
	}
	if (stream.paused) return 0;
	const taken = chance.once(2) ? stream.unsentInput.length : chance.below(stream.unsentInput.length + 1);
	const piece = stream.unsentInput.subarray(0, taken);
	stream.unsentInput = stream.unsentInput.subarray(taken);
	if (!owner.onData(Buffer.from(piece), stream.unsentInput.length === 0 && chance.once(2))) stream.paused = true;
	return taken;
}

/** Random and mutated inputs for the parsers of HTTP/3 and of QUIC headers. No input may make them throw. */

import { StringMemory } from '../../runtime/protocols/http2/hpack-decoder.ts';
import { FrameReader } from '../../runtime/protocols/http3/frame-reader.ts';
import { QpackDecoder } from '../../runtime/protocols/http3/qpack-decoder.ts';
import { DatagramRouter, type RouteTarget } from '../../runtime/sockets/quic/router.ts';

const MAX_INPUT_LENGTH = 200;

/** Tries `count` inputs, generated from the seed `from`. Returns the inputs that broke a parser, in hexadecimal. */
export function fuzzHttp3(count: number, from: number): string[] {
	let seed = from >>> 0;
	const random = (below: number): number => {
		seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
		return (seed >>> 8) % below;
	};
	const findings: string[] = [];
	const decoder = new QpackDecoder(new StringMemory(MAX_INPUT_LENGTH * 2));
	const router = new DatagramRouter<RouteTarget>();
	const sample = Buffer.alloc(MAX_INPUT_LENGTH);
	for (let i = 0; i < count && findings.length < 5; i++) {
		const bytes = sample.subarray(0, random(MAX_INPUT_LENGTH));
		// Inputs that start with plausible bytes reach more code in the parsers.
		for (let at = 0; at < bytes.length; at++) bytes[at] = random(4) === 0 ? random(256) : random(16);
		if (bytes.length > 8 && random(2) === 0) bytes.set([0xc0, 0, 0, 0, 1, 8]);
		try {
			if (!survives(bytes, decoder, router, i, 1 + random(bytes.length + 1))) findings.push(bytes.toString('hex'));
		} catch {
			findings.push(bytes.toString('hex'));
		}
	}
	return findings;
}

/** Feeds bytes to all parsers. Returns false if a parser returned an impossible result without throwing. */
function survives(
	bytes: Buffer,
	decoder: QpackDecoder,
	router: DatagramRouter<RouteTarget>,
	now: number,
	piece: number,
): boolean {
	let sum = 0;
	decoder.decode(bytes, 0, bytes.length, {
		onField: ({ name, value }) => {
			sum += name.length + value.length;
		},
	});
	const target = { registeredIds: new Set<string>() };
	router.route(bytes, 0, bytes.length, now);
	router.registerFromPacket(bytes, 0, bytes.length, target);
	const known = target.registeredIds.size === router.size;
	router.forgetTarget(target);
	// The frames must be the same whether the bytes arrive at once or in pieces.
	const whole = frames([bytes]);
	const pieces: Buffer[] = [];
	for (let at = 0; at < bytes.length; at += piece) pieces.push(bytes.subarray(at, at + piece));
	// The decoded size has a bound: Huffman codes have at least five bits, and two bytes can refer to a name in the static table.
	return known && sum <= bytes.length * 60 && router.size === 0 && frames(pieces) === whole;
}

function frames(pieces: readonly Buffer[]): string {
	let receivedData = '';
	let payload = 0;
	const reader = new FrameReader({
		onFrame(type, length) {
			receivedData += `${type}:${length};`;
			return type === 1 && length < 1000 ? 'gather' : type === 0 ? 'stream' : 'skip';
		},
		onPayloadPart(_bytes, start, end) {
			payload += end - start;
			return true;
		},
		onWholePayload(_type, bytes, start, end) {
			receivedData += `${bytes.toString('hex', start, end)};`;
			return true;
		},
	});
	for (const piece of pieces) reader.read(piece);
	return `${receivedData}${payload}${reader.isIncomplete}`;
}

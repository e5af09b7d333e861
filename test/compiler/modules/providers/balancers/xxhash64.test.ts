/** Compares XXH64 with an implementation that follows the specification literally, with big integers. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { XxHash64 } from '../../../../../compiler/modules/providers/balancers/xxhash64.ts';

const PRIMES = [
	0x9e3779b185ebca87n,
	0xc2b2ae3d27d4eb4fn,
	0x165667b19e3779f9n,
	0x85ebca77c2b2ae63n,
	0x27d4eb2f165667c5n,
];
const [P1, P2, P3, P4, P5] = PRIMES as [bigint, bigint, bigint, bigint, bigint];

const wrapped = (value: bigint): bigint => BigInt.asUintN(64, value);
const rotated = (value: bigint, bits: bigint): bigint => wrapped(value << bits) | (value >> (64n - bits));
const round = (lane: bigint, input: bigint): bigint => wrapped(rotated(wrapped(lane + input * P2), 31n) * P1);

function specified(bytes: Buffer): bigint {
	let at = 0;
	let hash = P5;
	if (bytes.length >= 32) {
		let lanes = [wrapped(P1 + P2), P2, 0n, wrapped(-P1)];
		for (; at + 32 <= bytes.length; at += 32) {
			lanes = lanes.map((lane, i) => round(lane, bytes.readBigUInt64LE(at + 8 * i)));
		}
		hash = wrapped([1n, 7n, 12n, 18n].reduce((sum, bits, i) => sum + rotated(lanes[i]!, bits), 0n));
		for (const lane of lanes) hash = wrapped((hash ^ round(0n, lane)) * P1 + P4);
	}
	hash = wrapped(hash + BigInt(bytes.length));
	for (; at + 8 <= bytes.length; at += 8) {
		hash = wrapped(rotated(hash ^ round(0n, bytes.readBigUInt64LE(at)), 27n) * P1 + P4);
	}
	if (at + 4 <= bytes.length) {
		hash = wrapped(rotated(hash ^ wrapped(BigInt(bytes.readUInt32LE(at)) * P1), 23n) * P2 + P3);
		at += 4;
	}
	for (; at < bytes.length; at++) hash = wrapped(rotated(hash ^ wrapped(BigInt(bytes[at]!) * P5), 11n) * P1);
	hash = wrapped((hash ^ (hash >> 33n)) * P2);
	hash = wrapped((hash ^ (hash >> 29n)) * P3);
	return hash ^ (hash >> 32n);
}

const ours = new XxHash64();

/** Hashes bytes at an arbitrary, possibly odd, offset in a buffer. */
function hashAtOffset(bytes: Buffer, offset: number): bigint {
	const around = Buffer.concat([Buffer.alloc(offset, 0xaa), bytes, Buffer.alloc(3, 0xbb)]);
	ours.hash(new DataView(around.buffer, around.byteOffset, around.length), offset, offset + bytes.length);
	return (BigInt(ours.high >>> 0) << 32n) | BigInt(ours.low >>> 0);
}

const hashes = suite('xxhash64');

hashes('known hashes are reproduced', () => {
	for (const [text, hash] of [
		['', 0xef46db3751d8e999n],
		['a', 0xd24ec4f1a98c6e5bn],
		['abc', 0x44bc2cf5ad770999n],
	] as const) {
		assert.is(hashAtOffset(Buffer.from(text), 0), hash, text);
		assert.is(specified(Buffer.from(text)), hash, text);
	}
});

hashes('all lengths up to five stripes agree with the specification', () => {
	let state = 1;
	const next = (): number => {
		state = Math.imul(state, 1103515245) + 12345;
		return (state >>> 16) & 0xff;
	};
	for (let round = 0; round < 12; round++) {
		for (let length = 0; length <= 160; length++) {
			const bytes = Buffer.from(Array.from({ length }, () => (round === 0 ? 0xff : round === 1 ? 0 : next())));
			assert.is(hashAtOffset(bytes, length % 7), specified(bytes), `${bytes.toString('hex')}`);
		}
	}
});

hashes.run();

/**
 * XXH64: xxHash with 64 bits and seed 0 (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md). 64-bit numbers are
 * stored in two halves, because BigInts are several times slower.
 */

const PRIME_1 = [0x9e3779b1 | 0, 0x85ebca87 | 0] as const;
const PRIME_2 = [0xc2b2ae3d | 0, 0x27d4eb4f | 0] as const;
const PRIME_3 = [0x165667b1 | 0, 0x9e3779f9 | 0] as const;
const PRIME_4 = [0x85ebca77 | 0, 0xc2b2ae63 | 0] as const;
const PRIME_5 = [0x27d4eb2f | 0, 0x165667c5 | 0] as const;

/** Computes hashes. The two halves of a result are fields, because returning both of them would allocate an object. */
export class XxHash64 {
	/** Upper 32 bits of the last hash, as a signed integer. */
	high = 0;
	/** Lower 32 bits of the last hash, as a signed integer. */
	low = 0;
	/** The four accumulators for inputs of at least 32 bytes, each as its upper half and its lower half. */
	readonly #lanes = new Int32Array(8);

	/** Hashes the bytes from `start` to `end` into `high` and `low`. */
	hash(bytes: DataView, start: number, end: number): void {
		let position = start;
		if (end - start >= 32) {
			position = this.#hashStripes(bytes, start, end);
		} else {
			this.high = PRIME_5[0];
			this.low = PRIME_5[1];
		}
		this.#add(0, end - start);
		for (; position + 8 <= end; position += 8) {
			const { high, low } = this;
			this.high = 0;
			this.low = 0;
			this.#round(bytes.getInt32(position + 4, true), bytes.getInt32(position, true));
			this.high ^= high;
			this.low ^= low;
			this.#rotate(27);
			this.#multiply(PRIME_1[0], PRIME_1[1]);
			this.#add(PRIME_4[0], PRIME_4[1]);
		}
		if (position + 4 <= end) {
			const { high, low } = this;
			this.high = 0;
			this.low = bytes.getInt32(position, true);
			this.#multiply(PRIME_1[0], PRIME_1[1]);
			this.high ^= high;
			this.low ^= low;
			this.#rotate(23);
			this.#multiply(PRIME_2[0], PRIME_2[1]);
			this.#add(PRIME_3[0], PRIME_3[1]);
			position += 4;
		}
		for (; position < end; position++) {
			const { high, low } = this;
			this.high = 0;
			this.low = bytes.getUint8(position);
			this.#multiply(PRIME_5[0], PRIME_5[1]);
			this.high ^= high;
			this.low ^= low;
			this.#rotate(11);
			this.#multiply(PRIME_1[0], PRIME_1[1]);
		}
		this.#finish();
	}

	/** Hashes all complete stripes of 32 bytes, and returns the position after the last one. */
	#hashStripes(bytes: DataView, start: number, end: number): number {
		const lanes = this.#lanes;
		// The initial accumulators: prime 1 + prime 2, prime 2, 0 and −prime 1.
		lanes[0] = 0x60ea27ee;
		lanes[1] = 0xadc0b5d6;
		lanes[2] = PRIME_2[0];
		lanes[3] = PRIME_2[1];
		lanes[4] = 0;
		lanes[5] = 0;
		lanes[6] = ~PRIME_1[0];
		lanes[7] = -PRIME_1[1];
		let position = start;
		for (; position + 32 <= end; position += 32) {
			for (let lane = 0; lane < 8; lane += 2) {
				this.high = lanes[lane]!;
				this.low = lanes[lane + 1]!;
				this.#round(bytes.getInt32(position + lane * 4 + 4, true), bytes.getInt32(position + lane * 4, true));
				lanes[lane] = this.high;
				lanes[lane + 1] = this.low;
			}
		}
		this.#loadLane(0);
		this.#rotate(1);
		this.#addRotatedLane(2, 7);
		this.#addRotatedLane(4, 12);
		this.#addRotatedLane(6, 18);
		for (let lane = 0; lane < 8; lane += 2) {
			const { high, low } = this;
			this.high = 0;
			this.low = 0;
			this.#round(lanes[lane]!, lanes[lane + 1]!);
			this.high ^= high;
			this.low ^= low;
			this.#multiply(PRIME_1[0], PRIME_1[1]);
			this.#add(PRIME_4[0], PRIME_4[1]);
		}
		return position;
	}

	#loadLane(lane: number): void {
		this.high = this.#lanes[lane]!;
		this.low = this.#lanes[lane + 1]!;
	}

	#addRotatedLane(lane: number, bits: number): void {
		const { high, low } = this;
		this.#loadLane(lane);
		this.#rotate(bits);
		this.#add(high, low);
	}

	/** Mixes eight bytes of input into the accumulator in `high` and `low`. */
	#round(inputHigh: number, inputLow: number): void {
		const { high, low } = this;
		this.high = inputHigh;
		this.low = inputLow;
		this.#multiply(PRIME_2[0], PRIME_2[1]);
		this.#add(high, low);
		this.#rotate(31);
		this.#multiply(PRIME_1[0], PRIME_1[1]);
	}

	#finish(): void {
		this.low ^= this.high >>> 1;
		this.#multiply(PRIME_2[0], PRIME_2[1]);
		this.low ^= (this.high << 3) | (this.low >>> 29);
		this.high ^= this.high >>> 29;
		this.#multiply(PRIME_3[0], PRIME_3[1]);
		this.low ^= this.high;
	}

	#add(high: number, low: number): void {
		const previousLow = this.low;
		this.low = (previousLow + low) | 0;
		const carry = this.low >>> 0 < previousLow >>> 0 ? 1 : 0;
		this.high = (this.high + high + carry) | 0;
	}

	/** Rotates left by 1 to 31 bits. */
	#rotate(bits: number): void {
		const { high, low } = this;
		this.high = (high << bits) | (low >>> (32 - bits));
		this.low = (low << bits) | (high >>> (32 - bits));
	}

	#multiply(high: number, low: number): void {
		const a = this.low & 0xffff;
		const b = this.low >>> 16;
		const c = low & 0xffff;
		const d = low >>> 16;
		// Multiplies the lower halves in 16-bit digits, so that no sum exceeds 32 bits.
		const middle1 = Math.imul(b, c) + (Math.imul(a, c) >>> 16);
		const middle2 = Math.imul(a, d) + (middle1 & 0xffff);
		const upper = Math.imul(b, d) + (middle1 >>> 16) + (middle2 >>> 16);
		this.high = (upper + Math.imul(this.high, low) + Math.imul(this.low, high)) | 0;
		this.low = Math.imul(this.low, low);
	}
}

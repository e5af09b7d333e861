/**
 * Bodies that are sent at a limited rate, with a simulated clock: the rate is exact for every kind of body, even if timers are
 * late.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { BodySource } from '../../../compiler/exchange/body.ts';
import { type PaceClock, PacedBody, paceBody } from '../../../runtime/protocols/paced-body.ts';

const paced = suite('bodies at a limited rate');

const KIB = 1024;
const PATTERN = Uint8Array.from({ length: 65_521 }, (_, index) => (index * 31 + (index >> 8)) & 0xff);
const MIB = 1024 * KIB;
/** Minimum number of bytes that a read of a file returns. */
const MIN_PIECE_BYTES = KIB;

/** A clock that stands still while code runs, and advances to the next timer while everything waits. */
class SimulatedClock implements PaceClock {
	time = 1000;
	/** The milliseconds by which timers are late. Each timer takes the next of these values in turn. */
	readonly #late: readonly number[];
	#timers: { readonly at: number; readonly callback: () => void }[] = [];
	#count = 0;

	constructor(late: readonly number[] = [0]) {
		this.#late = late;
	}

	now(): number {
		return this.time;
	}

	callAfter(milliseconds: number, callback: () => void): () => void {
		return this.exactly(milliseconds + this.#late[this.#count++ % this.#late.length]!, callback);
	}

	/** Works like `after`, but with a timer that is never late. */
	exactly(milliseconds: number, callback: () => void): () => void {
		const timer = { at: this.time + milliseconds, callback };
		this.#timers.push(timer);
		return () => {
			this.#timers = this.#timers.filter(other => other !== timer);
		};
	}

	get waiting(): number {
		return this.#timers.length;
	}

	/** Advances to the next timer and runs it. */
	advance(): void {
		const next = this.#timers.reduce((first, other) => (other.at < first.at ? other : first));
		this.#timers = this.#timers.filter(other => other !== next);
		this.time = Math.max(this.time, next.at);
		next.callback();
	}

	/** Waits for a result. The clock advances only if the result needs a timer. */
	async settle<T>(result: T | Promise<T>): Promise<T> {
		let settled = false;
		const watched = Promise.resolve(result).finally(() => {
			settled = true;
		});
		watched.catch(() => {});
		for (;;) {
			for (let turn = 0; turn < 10 && !settled; turn++) await undefined;
			if (settled) return watched;
			this.advance();
		}
	}
}

/** An endless or finite body whose bytes can be predicted from their positions. */
class PatternBody implements BodySource {
	readonly length: number | undefined;
	canceled: unknown = undefined;
	pulls = 0;
	readonly #size: number;
	readonly #piece: (most: number) => number;
	readonly #delay: ((bytes: Uint8Array | null) => Promise<Uint8Array | null>) | undefined;
	#memory = new Uint8Array(0);
	#at = 0;

	constructor(
		size: number,
		piece: (most: number) => number,
		announced = true,
		delay?: (bytes: Uint8Array | null) => Promise<Uint8Array | null>,
	) {
		this.#size = size;
		this.length = announced ? size : undefined;
		this.#piece = piece;
		this.#delay = delay;
	}

	pull(most = Infinity): Uint8Array | null | Promise<Uint8Array | null> {
		this.pulls++;
		const left = this.#size - this.#at;
		const size = Math.min(left, this.#piece(most));
		// All pieces use the same memory, like the pieces of files and sockets.
		if (this.#memory.byteLength < size) this.#memory = new Uint8Array(size);
		for (let done = 0; done < size; ) {
			const part = PATTERN.subarray((this.#at + done) % PATTERN.byteLength).subarray(0, size - done);
			this.#memory.set(part, done);
			done += part.byteLength;
		}
		this.#at += size;
		const bytes = left === 0 ? null : this.#memory.subarray(0, size);
		return this.#delay === undefined ? bytes : this.#delay(bytes);
	}

	cancel(reason?: unknown): void {
		this.canceled = reason ?? true;
	}

	/** Skips at most `most` bytes, as if they had been pulled. Returns the number of skipped bytes. */
	protected skip(most: number): number {
		const count = Math.min(this.#size - this.#at, most);
		this.#at += count;
		return count;
	}
}

/** A file that the kernel sends itself, as far as the socket accepts its bytes. */
class KernelPatternBody extends PatternBody {
	/** Number of bytes that were sent without being pulled. */
	sentBytes = 0;
	readonly #acceptedBytes: number;

	/** @param acceptedBytes Number of bytes that the socket accepts at once. */
	constructor(size: number, acceptedBytes: number) {
		super(size, most => Math.max(most, MIN_PIECE_BYTES));
		this.#acceptedBytes = acceptedBytes;
	}

	sendTo(_socket: number, maxBytes: number = Infinity): number {
		const count = this.skip(Math.min(maxBytes, this.#acceptedBytes));
		this.sentBytes += count;
		return count;
	}
}

function byteAt(at: number): number {
	return PATTERN[at % PATTERN.byteLength]!;
}

/** A time at which bytes were sent or pulled, in milliseconds since the first bytes, and the total number of bytes until then. */
type Passage = readonly [time: number, total: number];

/**
 * Pulls until `milliseconds` of simulated time have passed, or to the end of the body. `start` is the number of bytes that have
 * been pulled before.
 */
async function passagesOf(
	body: BodySource,
	clock: SimulatedClock,
	duration: number,
	start: number = 0,
): Promise<Passage[]> {
	const passages: Passage[] = [];
	const begun = clock.time;
	let total = start;
	while (clock.time - begun <= duration) {
		const sentBytes = body.sendTo?.(1) ?? 0;
		total += sentBytes;
		if (sentBytes > 0) passages.push([clock.time - begun, total]);
		const piece = await clock.settle(body.pull());
		if (piece === null || clock.time - begun > duration) break;
		if (piece.byteLength === 0) continue;
		for (let i = 0; i < piece.byteLength; i += 97) assert.is(piece[i], byteAt(total + i), `byte ${total + i}`);
		total += piece.byteLength;
		passages.push([clock.time - begun, total]);
	}
	return passages;
}

/** Functions that create bodies. The kinds of bodies differ in how much a pull returns. */
const BODIES_BY_KIND: { readonly [name: string]: (clock: SimulatedClock, size: number) => BodySource } = {
	'a file': (_, size) => new PatternBody(size, most => Math.min(most, 64 * KIB)),
	'a file that the kernel sends': (_, size) => new KernelPatternBody(size, Infinity),
	'a file that the kernel sends to a full socket': (_, size) => new KernelPatternBody(size, 9000),
	'large pieces': (_, size) => new PatternBody(size, () => 300_000),
	'small pieces': (_, size) => new PatternBody(size, () => 1400, false),
	'pieces that arrive a little later': (clock, size) =>
		new PatternBody(
			size,
			() => 64 * KIB,
			false,
			bytes => {
				return new Promise(resolve => clock.exactly(0.5, () => resolve(bytes)));
			},
		),
};

for (const [name, create] of Object.entries(BODIES_BY_KIND)) {
	for (const [late, lateness] of [
		['in time', [0]],
		['up to 40 ms late', [3, 0, 40, 12, 0.4, 25]],
	] as const) {
		paced(
			`${name}, timers ${late}: within 5 % of the rate over 2 s, and never more than a tenth of a second ahead`,
			async () => {
				for (const rate of [10 * KIB, 64 * KIB, 500_000, MIB, 10 * MIB, 100 * MIB]) {
					if (name === 'small pieces' && rate > MIB) continue;
					// Skips high rates for a body that returns only 1,400 bytes per pull, because its rate then depends on more than
					// the simulated clock.
					const clock = new SimulatedClock(lateness);
					const body = new PacedBody(create(clock, 2.5 * rate), rate, 0, clock);
					const passages = await passagesOf(body, clock, 2000);
					const sent = passages.at(-1)![1];
					const share = sent / (2 * rate);
					assert.ok(share > 0.95 && share < 1.05, `${rate} B/s: ${share.toFixed(4)} of the rate`);
					const burst = Math.max(rate / 10, KIB);
					// Checks every period from one passage to a later one, including the bytes of the first passage.
					let lowest = 0;
					for (const [index, [time, total]] of passages.entries()) {
						const before = index === 0 ? 0 : passages[index - 1]![1];
						lowest = Math.min(lowest, before - (rate * time) / 1000);
						const ahead = total - (rate * time) / 1000 - lowest;
						assert.ok(ahead <= burst + 2, `${rate} B/s: ${ahead} bytes ahead at ${time} ms`);
					}
				}
			},
		);
	}
}

paced('the first bytes are not limited with `after`', async () => {
	const clock = new SimulatedClock();
	const body = new PacedBody(new PatternBody(3 * MIB, most => Math.min(most, 64 * KIB)), 100 * KIB, MIB, clock);
	const passages = await passagesOf(body, clock, 2000);
	const atOnce = passages.findLast(([time]) => time === 0)![1];
	assert.ok(atOnce >= MIB && atOnce <= MIB + 10 * KIB, `${atOnce} bytes at once`);
	const limited = passages.at(-1)![1] - MIB;
	assert.ok(Math.abs(limited / (200 * KIB) - 1) < 0.05, `${limited} bytes in 2 s after that`);
});

paced('what a stalled client does not take accumulates to a tenth of a second only', async () => {
	const clock = new SimulatedClock();
	const body = new PacedBody(new PatternBody(MIB, most => most), 100 * KIB, 0, clock);
	const before = (await clock.settle(body.pull()))!.byteLength;
	clock.time += 60_000;
	const passages = await passagesOf(body, clock, 1000, before);
	const atOnce = passages.findLast(([time]) => time === 0)![1] - before;
	assert.is(atOnce, 10 * KIB);
});

paced('no byte changes, and the end and errors pass without a wait', async () => {
	const clock = new SimulatedClock();
	const size = 40 * KIB + 7;
	const body = new PacedBody(new PatternBody(size, () => 9000), 20 * KIB, 0, clock);
	const passages = await passagesOf(body, clock, 10_000);
	assert.is(passages.at(-1)![1], size);
	assert.is(clock.waiting, 0);
	assert.is(await body.pull(), null);
	assert.is(clock.waiting, 0, 'the end of a body that ends as announced needs no timer');

	const failing: BodySource = {
		length: undefined,
		pull: () => {
			throw new Error('cut short');
		},
		cancel: () => {},
	};
	assert.throws(() => new PacedBody(failing, 20 * KIB, 0, clock).pull(), /cut short/);
	let pulls = 0;
	const later: BodySource = {
		...failing,
		pull: () => {
			if (pulls++ === 0) return new Uint8Array(10 * KIB);
			throw new Error('cut short');
		},
	};
	const laterPaced = new PacedBody(later, 20 * KIB, 0, clock);
	const readAll = async (): Promise<void> => {
		while ((await clock.settle(laterPaced.pull())) !== null);
	};
	await assertRejects(readAll(), /cut short/);
});

async function assertRejects(promise: Promise<unknown>, expected: RegExp): Promise<void> {
	const error = await promise.then(
		() => undefined,
		failure => failure as Error,
	);
	assert.match(String(error?.message), expected);
}

paced('the kernel sends a file as far as the rate allows, and nothing of it is read', async () => {
	for (const rate of [20 * KIB, MIB, 100 * MIB]) {
		const clock = new SimulatedClock([3, 0, 40, 12]);
		const source = new KernelPatternBody(2 * rate, Infinity);
		const body = new PacedBody(source, rate, 0, clock);
		const passages = await passagesOf(body, clock, 10_000);
		assert.is(passages.at(-1)![1], 2 * rate);
		assert.is(source.sentBytes, 2 * rate);
		assert.is(await body.pull(), null);
	}
});

paced('bytes that were read are sent before the kernel continues, and none is lost or sent twice', async () => {
	const clock = new SimulatedClock();
	// A pull returns more bytes than the rate allows, so the remaining bytes are kept.
	const source = new KernelPatternBody(100 * KIB, 5000);
	const body = new PacedBody(source, 20 * KIB, 0, clock);
	const passages = await passagesOf(body, clock, 20_000);
	assert.is(passages.at(-1)![1], 100 * KIB);
	assert.ok(source.sentBytes > 0);
});

paced('a wait ends when the body is canceled, without a timer that remains', async () => {
	const clock = new SimulatedClock();
	const source = new PatternBody(MIB, most => most);
	const body = new PacedBody(source, 10 * KIB, 0, clock);
	await clock.settle(body.pull());
	const pending = body.pull();
	assert.ok(pending instanceof Promise);
	assert.is(clock.waiting, 1);
	body.cancel(new Error('the client has left'));
	await assertRejects(pending as Promise<unknown>, /the client has left/);
	assert.is(clock.waiting, 0);
	assert.instance(source.canceled, Error);
	body.cancel();
});

paced('nothing is pulled while the rate allows nothing', async () => {
	const clock = new SimulatedClock();
	const source = new PatternBody(MIB, most => most);
	const body = new PacedBody(source, 10 * KIB, 0, clock);
	await clock.settle(body.pull());
	void body.pull();
	assert.is(source.pulls, 1);
	assert.is(body.heldBytes, 0);
	clock.time += 30;
	assert.ok(Math.abs(body.waitedMs(clock.time) - 30) < 0.001);
	clock.advance();
	await undefined;
	assert.is(source.pulls, 2);
	const waited = body.waitedMs(clock.time);
	clock.time += 500;
	assert.is(body.waitedMs(clock.time), waited, 'only waits for the rate count');
	body.cancel();
});

paced('bodies are paced only if there is a rate, and only if they are longer than what is sent at once', () => {
	const limits = { maxWriteRate: 20 * KIB, maxWriteRateAfter: 1000 };
	// The number of bytes that may be sent in a twentieth of a second, in addition to the first 1,000 bytes.
	const most = 1000 + KIB;
	assert.is(paceBody('a'.repeat(most + 1), undefined), undefined);
	assert.is(paceBody('a'.repeat(most + 1), { maxWriteRate: 0 }), undefined);
	assert.is(paceBody('a'.repeat(most + 1), { writeTimeout: 5 }), undefined);
	assert.is(paceBody(null, limits), undefined);
	assert.is(paceBody('a'.repeat(most), limits), undefined);
	assert.is(paceBody('a'.repeat(most + 1), limits)?.length, most + 1);
	assert.is(paceBody('é'.repeat(most), limits)?.length, 2 * most, 'the length in bytes decides');
	assert.is(paceBody(new Uint8Array(most), limits), undefined);
	assert.is(paceBody(new Uint8Array(most + 1), limits)?.length, most + 1);
	assert.is(paceBody(new PatternBody(most, () => 1), limits), undefined);
	assert.is(paceBody(new PatternBody(most + 1, () => 1), limits)?.length, most + 1);
	const unknown = paceBody(new PatternBody(1, () => 1, false), limits);
	assert.ok(unknown !== undefined);
	assert.is(unknown!.length, undefined);
	assert.is((unknown as BodySource).sendTo, undefined, 'the kernel cannot send this body');
	assert.is((unknown as BodySource).prependHead, undefined);
});

paced.run();

/** The adaptive limit of an upstream's concurrent requests, against a simulated upstream and clock. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { ShedSettings } from '../../../compiler/modules/directives/reverse-proxy/shed-settings.ts';
import { ADAPTIVE_LIMIT_WORDS, AdaptiveLimit } from '../../../runtime/upstreams/adaptive-limit.ts';

const test = suite('adaptive limits');

/** What clients have seen in a period. */
interface Period {
	readonly answered: number;
	readonly refused: number;
	/** 99th percentile of the milliseconds until the response head. */
	readonly p99Ms: number;
	readonly limits: readonly [lowest: number, highest: number];
}

/** A server with a fixed number of workers behind an unlimited queue, and a limit in front of it, in simulated time. */
class SimulatedUpstream {
	workers: number;
	serviceMs: number;
	readonly limit: AdaptiveLimit;
	/** Starts near the end of the 32-bit range, so that the clock wraps during most tests. */
	#nowMs: number;
	#running = 0;
	#queue: number[] = [];
	#busy: { readonly endsAt: number; readonly arrivedAt: number }[] = [];
	#nextArrivalAt: number;
	/** State of a linear congruential generator. */
	#seed = 1;

	constructor(settings: ShedSettings, workers: number, serviceMs: number, startMs: number = 2 ** 31 - 3000) {
		this.limit = new AdaptiveLimit(new Int32Array(ADAPTIVE_LIMIT_WORDS), 0, settings);
		this.workers = workers;
		this.serviceMs = serviceMs;
		this.#nowMs = startMs;
		this.#nextArrivalAt = startMs;
	}

	/** Sends requests at random times, at a mean rate, for some seconds. */
	run(seconds: number, requestsPerSecond: number, sendsAtOnce = 1): Period {
		const endMs = this.#nowMs + seconds * 1000;
		const latenciesMs: number[] = [];
		let refused = 0;
		let lowest = Number.POSITIVE_INFINITY;
		let highest = 0;
		this.#nextArrivalAt = Math.max(this.#nextArrivalAt, this.#nowMs);
		for (;;) {
			const firstEnd = this.#busy.reduce((first, { endsAt }) => Math.min(first, endsAt), Number.POSITIVE_INFINITY);
			const nextMs = Math.min(firstEnd, requestsPerSecond > 0 ? this.#nextArrivalAt : Number.POSITIVE_INFINITY);
			if (nextMs > endMs) break;
			this.#nowMs = nextMs;
			const clock = Math.floor(nextMs) | 0;
			if (firstEnd === nextMs) {
				const index = this.#busy.findIndex(({ endsAt }) => endsAt === firstEnd);
				const { arrivedAt } = this.#busy.splice(index, 1)[0]!;
				this.#running--;
				latenciesMs.push(nextMs - arrivedAt);
				this.limit.recordLatency(nextMs - arrivedAt, clock);
				this.#startNext();
			} else {
				for (let i = 0; i < sendsAtOnce; i++) {
					if (!this.limit.allows(this.#running)) {
						refused++;
						this.limit.recordRefusal(clock);
						continue;
					}
					this.limit.recordStart(++this.#running, clock);
					this.#queue.push(nextMs);
					this.#startNext();
				}
				const meanMs = (1000 * sendsAtOnce) / requestsPerSecond;
				this.#nextArrivalAt = nextMs - Math.log(1 - this.#random()) * meanMs;
			}
			lowest = Math.min(lowest, this.limit.limit);
			highest = Math.max(highest, this.limit.limit);
		}
		this.#nowMs = endMs;
		latenciesMs.sort((a, b) => a - b);
		const p99Ms = latenciesMs[Math.floor(latenciesMs.length * 0.99)] ?? 0;
		return { answered: latenciesMs.length, refused, p99Ms, limits: [lowest, highest] };
	}

	#startNext(): void {
		while (this.#busy.length < this.workers && this.#queue.length > 0) {
			const arrivedAt = this.#queue.shift()!;
			// The service time varies between 75 % and 125 % of its mean.
			const serviceMs = this.serviceMs * (0.75 + this.#random() * 0.5);
			this.#busy.push({ endsAt: this.#nowMs + serviceMs, arrivedAt });
		}
	}

	#random(): number {
		this.#seed = (Math.imul(this.#seed, 1_664_525) + 1_013_904_223) >>> 0;
		return this.#seed / 2 ** 32;
	}
}

for (const [workers, serviceMs] of [
	[8, 20],
	[2, 5],
	[40, 200],
	[1, 50],
] as const) {
	const capacity = (workers * 1000) / serviceMs;
	const name = `${workers} workers of ${serviceMs} ms`;

	test(`steady load keeps the limit, and nothing is refused: ${name}`, () => {
		const upstream = new SimulatedUpstream({}, workers, serviceMs);
		const { refused, limits } = upstream.run(120, capacity * 0.7);
		assert.is(refused, 0);
		assert.ok(limits[0] >= 50, `${limits}`);
	});

	test(`three times the load keeps the latency of what is answered low, and the upstream busy: ${name}`, () => {
		const upstream = new SimulatedUpstream({}, workers, serviceMs);
		const quiet = upstream.run(30, capacity * 0.5);
		upstream.run(30, capacity * 3);
		const overloaded = upstream.run(120, capacity * 3);
		// With one or two workers, requests queue even at the minimum of the limit.
		const factor = workers > 4 ? 3 : 6;
		const text = JSON.stringify({ quiet, overloaded });
		assert.ok(overloaded.p99Ms < quiet.p99Ms * factor + 5, text);
		assert.ok(overloaded.answered > capacity * 120 * 0.9, text);
		assert.ok(overloaded.refused > capacity * 120 * 1.8, text);
	});

	test(`an upstream that is overloaded from the beginning is measured while it is: ${name}`, () => {
		const upstream = new SimulatedUpstream({}, workers, serviceMs);
		upstream.run(60, capacity * 3);
		const { p99Ms, answered } = upstream.run(60, capacity * 3);
		assert.ok(p99Ms < serviceMs * 1.25 * (workers > 4 ? 3 : 10) + 5, `${p99Ms}`);
		assert.ok(answered > capacity * 60 * 0.9, `${answered}`);
	});
}

test('an upstream that becomes slow lowers the limit, and recovery raises it', () => {
	const upstream = new SimulatedUpstream({}, 20, 10);
	const before = upstream.run(30, 1000);
	assert.is(before.refused, 0);
	upstream.serviceMs = 100;
	upstream.run(10, 1000);
	const slow = upstream.limit.limit;
	assert.ok(slow < 60, `${slow}`);
	upstream.serviceMs = 10;
	upstream.run(10, 1000);
	assert.is(upstream.run(30, 1000).refused, 0);
	assert.ok(upstream.limit.limit >= 100, `${upstream.limit.limit}`);
});

test('requests that need longer than before are not refused for long, if the upstream can serve them', () => {
	const upstream = new SimulatedUpstream({}, 500, 10);
	upstream.run(30, 1000);
	// 150 requests are now in progress at a time; before, there were only 10.
	upstream.serviceMs = 150;
	const change = upstream.run(5, 1000);
	assert.ok(change.refused < 2500, JSON.stringify(change));
	const later = upstream.run(60, 1000);
	assert.is(later.refused, 0, JSON.stringify(later));
});

test('a burst of fast requests does not lower the limit', () => {
	const upstream = new SimulatedUpstream({}, 100, 10);
	upstream.run(20, 500);
	const before = upstream.limit.limit;
	const burst = upstream.run(4, 4000, 80);
	// Only the requests beyond the limit are refused, until the limit has risen.
	assert.ok(burst.refused < burst.answered / 10, JSON.stringify(burst));
	assert.ok(burst.limits[0] >= before, `${burst.limits}`);
});

test('the limit rises above its initial value if it is used, up to the maximum', () => {
	const upstream = new SimulatedUpstream({ max: 300 }, 1000, 100);
	// 200 requests are in progress at a time, which is more than the initial limit.
	upstream.run(20, 2000);
	assert.is(upstream.limit.limit, 300);
	assert.is(upstream.run(20, 2000).refused, 0);
});

test('idleness changes nothing, not even over weeks in which the clock wraps', () => {
	const upstream = new SimulatedUpstream({}, 8, 20);
	upstream.run(60, 1200);
	const overloaded = upstream.limit.limit;
	assert.ok(overloaded < 60, `${overloaded}`);
	upstream.run(3600, 0);
	assert.is(upstream.limit.limit, overloaded);
	for (const days of [20, 25, 30, 50]) {
		upstream.run(days * 86_400, 0);
		assert.is(upstream.run(60, 200).refused, 0, `after ${days} days`);
	}
	assert.is(upstream.limit.limit, 100);
});

test('the bounds hold, and the initial limit is within them', () => {
	const one = new SimulatedUpstream({ min: 10, max: 50 }, 1, 100);
	assert.is(one.limit.limit, 50);
	const { limits } = one.run(60, 100);
	assert.ok(limits[0] >= 10 && limits[1] <= 50, `${limits}`);
	const { limit } = new SimulatedUpstream({ initial: 7 }, 1, 1);
	assert.is(limit.limit, 7);
	assert.ok(limit.allows(6));
	assert.not.ok(limit.allows(7));
});

test('a larger tolerance admits more', () => {
	const limits = [0, 0.5, 2].map(tolerance => {
		const upstream = new SimulatedUpstream({ tolerance }, 20, 50);
		upstream.run(30, 200);
		upstream.run(30, 1200);
		return upstream.limit.limit;
	});
	assert.ok(limits[0]! < limits[1]! && limits[1]! < limits[2]!, `${limits}`);
});

test('instances on several threads share one limit', () => {
	const words = new Int32Array(2 * ADAPTIVE_LIMIT_WORDS);
	const [here, there] = [0, 1].map(() => new AdaptiveLimit(words, ADAPTIVE_LIMIT_WORDS, { initial: 40 }));
	let now = 1000;
	const answer = (limit: AdaptiveLimit, latencyMs: number) => {
		now += 20;
		limit.recordStart(30, now);
		limit.recordLatency(latencyMs, now);
	};
	for (let i = 0; i < 200; i++) answer(here!, 10);
	const before = here!.limit;
	for (let i = 0; i < 100; i++) answer(there!, 100);
	assert.ok(here!.limit < before / 2, `${before} ${here!.limit}`);
	assert.is(here!.limit, there!.limit);
	assert.ok(words.subarray(0, ADAPTIVE_LIMIT_WORDS).every(word => word === 0));
});

test.run();

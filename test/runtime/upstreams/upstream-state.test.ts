/** State of upstreams that all threads share: failures, circuits, slow start, latencies and retry budgets. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { UpstreamSettings } from '../../../compiler/modules/directives/reverse-proxy/upstream-pool.ts';
import { CircuitBreaker } from '../../../runtime/upstreams/circuit-breaker.ts';
import { passiveHealthOf } from '../../../runtime/upstreams/passive-health.ts';
import { PoolMemory, poolMemoryBytes } from '../../../runtime/upstreams/pool-memory.ts';
import { PoolRegistry } from '../../../runtime/upstreams/pool-registry.ts';
import { processClockNow } from '../../../runtime/upstreams/process-clock.ts';
import { RetryBudget } from '../../../runtime/upstreams/retry-budget.ts';
import { UpstreamHealth } from '../../../runtime/upstreams/upstream-health.ts';
import { createUpstreamPool } from '../../../runtime/upstreams/upstream-pool.ts';
import { fakeClientExchange } from './scripted-upstream.ts';

const test = suite('state of upstreams');

function createMemories(settings: UpstreamSettings, threads = 2): PoolMemory[] {
	const buffer = new SharedArrayBuffer(poolMemoryBytes(settings, threads));
	return Array.from({ length: threads }, (_, row) => new PoolMemory(settings, { buffer, rows: threads, row }));
}

function health(memory: PoolMemory, settings: UpstreamSettings, slot = 0): UpstreamHealth {
	return new UpstreamHealth(memory, slot, passiveHealthOf(settings), settings.slow_start ?? 0);
}

test('failures count for their duration, whichever thread they occurred on', () => {
	const settings: UpstreamSettings = { to: ['a:1', 'b:1'], fail_duration: 1000, max_fails: 3 };
	const [one, two] = createMemories(settings).map(memory => health(memory, settings));
	one!.recordFail(100);
	two!.recordFail(400);
	assert.ok(one!.isPassing(500));
	assert.is(one!.countFails(500), 2);
	one!.recordFail(600);
	assert.not.ok(one!.isPassing(700));
	assert.not.ok(two!.isPassing(1099));
	assert.is(two!.countFails(1099), 3);
	assert.ok(two!.isPassing(1100));
	assert.is(two!.countFails(1100), 2);
	// Ten further failures displace the earlier ones from the memory, which keeps only the last three.
	for (let i = 0; i < 10; i++) one!.recordFail(2000 + i);
	assert.not.ok(two!.isPassing(3006));
	assert.ok(two!.isPassing(3007));
});

test('failures are counted correctly when the clock wraps', () => {
	const settings: UpstreamSettings = { to: ['a:1'], fail_duration: 1000, max_fails: 1 };
	const of = health(createMemories(settings)[0]!, settings);
	of.recordFail(2 ** 31 - 10);
	assert.not.ok(of.isPassing((2 ** 31 - 10 + 500) | 0));
	assert.ok(of.isPassing((2 ** 31 - 10 + 1000) | 0));
});

test('an upstream that stays down is reported once, then rarely with a count, and again when it answers', () => {
	const settings: UpstreamSettings = { to: ['a:1'], fail_duration: 10_000, max_fails: 1 };
	const [one, two] = createMemories(settings).map(memory => health(memory, settings)) as [
		UpstreamHealth,
		UpstreamHealth,
	];
	// The clock wraps in the middle.
	const startedAt = 2 ** 31 - 300_000;
	const at = (milliseconds: number): number => (startedAt + milliseconds) | 0;
	assert.is(one.recordSuccess(at(0)), undefined, 'an upstream that has never failed');
	assert.equal(one.recordFail(at(0)), { isRepeated: false, times: 1 });
	assert.is(two.recordFail(at(1)), undefined, 'a failure of a request that was in progress');
	assert.is(two.recordSuccess(at(2)), undefined, 'a response to an earlier request');
	const reports: unknown[] = [];
	for (let i = 1; i <= 125; i++) {
		const report = (i % 2 === 0 ? one : two).recordFail(at(i * 10_001));
		if (report) reports.push([i, report]);
	}
	assert.equal(reports, [
		[60, { isRepeated: true, times: 60 }],
		[120, { isRepeated: true, times: 60 }],
	]);
	assert.is(two.recordSuccess(at(1_270_000)), 1_270_000);
	assert.is(one.recordSuccess(at(1_270_001)), undefined);
});

test('an upstream that alternates between failures and answers is reported at most once per minute', () => {
	const settings: UpstreamSettings = { to: ['a:1'], fail_duration: 1000, max_fails: 1 };
	const of = health(createMemories(settings)[0]!, settings);
	const reports: unknown[] = [];
	for (let second = 1; second <= 130; second += 2) {
		const report = of.recordFail(second * 1000);
		const failedForMs = of.recordSuccess(second * 1000 + 1500);
		if (report || failedForMs !== undefined) reports.push([second, report?.times, failedForMs]);
	}
	assert.equal(reports, [
		[1, 1, 1500],
		[61, 30, 1500],
		[121, 30, 1500],
	]);
});

test('a recovering upstream gets gradually more requests', () => {
	const settings: UpstreamSettings = { to: ['a:1'], fail_duration: 100, slow_start: 1000 };
	const of = health(createMemories(settings)[0]!, settings);
	assert.is(of.trafficShare(0), 1);
	of.setDown(true, 1000);
	assert.ok(of.setDown(false, 2000));
	assert.not.ok(of.setDown(false, 2100));
	assert.is(of.trafficShare(2000), 0.1);
	assert.is(of.trafficShare(2500), 0.5);
	assert.is(of.trafficShare(3000), 1);
	// An upstream also starts slowly after one of its failures has expired.
	of.recordFail(5000);
	assert.not.ok(of.isPassing(5050));
	assert.ok(of.isPassing(5100));
	assert.is(of.trafficShare(5600), 0.5);
});

test('the latency estimate is a decaying peak', () => {
	const settings: UpstreamSettings = { to: ['a:1'] };
	const of = health(createMemories(settings)[0]!, settings);
	assert.is(of.latencyMs(0), undefined);
	of.observeLatency(10, 0);
	of.observeLatency(2000, 10);
	assert.ok(of.latencyMs(10)! > 1990);
	of.observeLatency(10, 20);
	assert.ok(of.latencyMs(20)! > 1900);
	assert.ok(of.latencyMs(10_010)! < 800);
	for (let at = 1000; at < 60_000; at += 100) of.observeLatency(10, at);
	const settled = of.latencyMs(60_000)!;
	assert.ok(settled > 8 && settled < 40, `${settled}`);
});

test('a circuit opens when too many requests fail, lets probes through, and closes again', () => {
	const settings: UpstreamSettings = {
		to: ['a:1'],
		circuit: { min_requests: 10, error_ratio: 0.5, window: 1000, open_for: 500, probes: 2 },
	};
	const [here, there] = createMemories(settings).map(memory => new CircuitBreaker(memory, 0, settings.circuit!));
	for (let i = 0; i < 5; i++) here!.endRequest(false, false, 1, 10);
	for (let i = 0; i < 4; i++) there!.endRequest(false, true, 1, 20);
	assert.is(here!.state, 'closed');
	here!.endRequest(false, true, 1, 30);
	assert.is(there!.state, 'open');
	assert.not.ok(there!.allows(529));
	assert.ok(there!.allows(530));
	assert.ok(there!.beginRequest(530));
	assert.is(here!.state, 'half_open');
	assert.ok(here!.beginRequest(531));
	assert.not.ok(here!.allows(532));
	// Requests that were sent before the circuit opened no longer count.
	assert.not.ok(here!.endRequest(false, true, 1, 533));
	assert.not.ok(here!.endRequest(true, false, 1, 534));
	assert.ok(there!.endRequest(true, false, 1, 535));
	assert.is(here!.state, 'closed');
	assert.not.ok(here!.beginRequest(536));
});

test('a failed probe reopens the circuit, an abandoned one allows another, and lost ones do not block it', () => {
	const settings: UpstreamSettings = {
		to: ['a:1'],
		circuit: { min_requests: 1, open_for: 100, probes: 1, slow_after: 50 },
	};
	const breaker = new CircuitBreaker(createMemories(settings)[0]!, 0, settings.circuit!);
	breaker.endRequest(false, false, 60, 0);
	assert.is(breaker.state, 'open');
	assert.ok(breaker.beginRequest(100));
	breaker.endRequest(true, true, 1, 110);
	assert.is(breaker.state, 'open');
	assert.not.ok(breaker.allows(209));
	assert.ok(breaker.beginRequest(210));
	assert.not.ok(breaker.allows(211));
	breaker.abandonProbe(true);
	assert.ok(breaker.allows(212));
	assert.ok(breaker.beginRequest(213));
	assert.not.ok(breaker.allows(300));
	assert.ok(breaker.allows(310));
	assert.ok(breaker.beginRequest(310));
	assert.ok(breaker.endRequest(true, false, 1, 320));
});

test('errors of an earlier window are forgotten', () => {
	const settings: UpstreamSettings = { to: ['a:1'], circuit: { min_requests: 4, window: 100 } };
	const breaker = new CircuitBreaker(createMemories(settings)[0]!, 0, settings.circuit!);
	for (let at = 0; at < 3000; at += 60) breaker.endRequest(false, true, 1, at);
	assert.is(breaker.state, 'closed');
	for (let at = 3000; at < 3040; at += 10) breaker.endRequest(false, true, 1, at);
	assert.is(breaker.state, 'open');
});

test('a retry budget allows a fraction of the requests, plus a few per second', () => {
	const settings: UpstreamSettings = { to: ['a:1'], retry_budget: { ratio: 0.2, per_second: 2 } };
	const [here, there] = createMemories(settings).map(memory => new RetryBudget(memory, settings.retry_budget));
	let taken = 0;
	while (here!.takeRetry(1000)) taken++;
	assert.is(taken, 20);
	for (let i = 0; i < 100; i++) there!.addRequest();
	while (here!.takeRetry(1000)) taken++;
	assert.is(taken, 40);
	while (there!.takeRetry(2000)) taken++;
	assert.is(taken, 42);
});

test('a dynamic address has the same slot on all threads, and unused slots are reused', () => {
	const settings: UpstreamSettings = { to: ['{http.request.header.X}'] };
	const [here, there] = createMemories(settings);
	const slot = here!.claimSlot(12345, 1000)!;
	assert.is(there!.claimSlot(12345, 2000), slot);
	assert.is.not(there!.claimSlot(12345 + 256, 2000), slot);
	here!.addInFlight(slot, 1);
	assert.is(there!.requestsInFlight(slot), 1);
	const slots = new Set<number | undefined>();
	for (let i = 0; i < 3000; i++) slots.add(here!.claimSlot(i * 7919, 3000));
	assert.ok(slots.size > 200 && slots.size <= 257);
	here!.addInFlight(slot, -1);
	const again = new Set<number | undefined>();
	for (let i = 0; i < 100; i++) again.add(here!.claimSlot(1_000_000 + i * 7919, 3000 + 600_001));
	assert.not(again.has(undefined));
});

const QUIET = { log: () => {}, expand: (text: string) => text, environment: {} };

test("an upstream's state survives changes of other settings and the replacement of its pool", () => {
	const registry = new PoolRegistry(QUIET);
	const before: UpstreamSettings = { to: ['a:1', 'b:1'], fail_duration: 60_000, max_fails: 2 };
	const after: UpstreamSettings = { ...before, to: ['b:1', 'c:1'], balance: { policy: 'first' } };
	const open = (key: string, settings: UpstreamSettings) => {
		const buffer = new SharedArrayBuffer(poolMemoryBytes(settings, 1));
		registry.onPoolOpened(key, settings, buffer, 1);
		return health(new PoolMemory(settings, { buffer, rows: 1, row: 0 }), settings, settings.to.indexOf('b:1'));
	};
	const first = open('one', before);
	first.recordFail(processClockNow());
	first.setDown(true, processClockNow());
	const second = open('two', after);
	assert.is(second.countFails(processClockNow()), 1);
	assert.ok(second.isDown);
	registry.onPoolClosed('one');
	registry.onPoolClosed('two');
	assert.equal(registry.reports(), []);
	assert.is(open('3 before', before).countFails(processClockNow()), 1);
	assert.not.ok(open('4 after', { ...before, max_fails: 5 }).isDown);
	assert.equal(
		registry
			.reports()
			.filter(({ address }) => address === 'b:1')
			.map(({ healthy, fails }) => [healthy, fails]),
		[
			[false, 1],
			[true, 0],
		],
	);
});

test('a pool skips upstreams that are unhealthy, failing, full, or have an open circuit', () => {
	const settings: UpstreamSettings = {
		to: ['a:1', 'b:1', 'c:1'],
		balance: { policy: 'first' },
		fail_duration: 10_000,
		unhealthy_request_count: 1,
		circuit: {},
		health: {},
	};
	const buffer = new SharedArrayBuffer(poolMemoryBytes(settings, 1));
	const pool = createUpstreamPool(settings, { buffer, rows: 1, row: 0 });
	const memory = new PoolMemory(settings, { buffer, rows: 1, row: 0 });
	const chosen = () => pool.select(fakeClientExchange())?.host;
	assert.is(chosen(), 'a');
	health(memory, settings, 0).setDown(true, processClockNow());
	assert.is(chosen(), 'b');
	health(memory, settings, 1).recordFail(processClockNow());
	assert.is(chosen(), 'c');
	memory.addInFlight(2, 1);
	assert.is(chosen(), undefined);
	health(memory, settings, 0).setDown(false, processClockNow());
	assert.is(chosen(), 'a');
	const breaker = new CircuitBreaker(memory, 0, settings.circuit!);
	for (let i = 0; i < 20; i++) breaker.endRequest(false, true, 1, processClockNow());
	assert.is(chosen(), undefined);
	pool.close();
});

test('with slow start, a recovering upstream gets its share, and all requests if it is alone', () => {
	const settings: UpstreamSettings = {
		to: ['a:1', 'b:1'],
		balance: { policy: 'round_robin' },
		health: {},
		slow_start: 60_000,
	};
	const buffer = new SharedArrayBuffer(poolMemoryBytes(settings, 1));
	const pool = createUpstreamPool(settings, { buffer, rows: 1, row: 0 });
	const memory = new PoolMemory(settings, { buffer, rows: 1, row: 0 });
	const back = health(memory, settings, 0);
	back.setDown(true, processClockNow());
	back.setDown(false, processClockNow());
	let count = 0;
	for (let i = 0; i < 2000; i++) if (pool.select(fakeClientExchange())?.host === 'a') count++;
	assert.ok(count > 30 && count < 300, `${count}`);
	health(memory, settings, 1).setDown(true, processClockNow());
	for (let i = 0; i < 50; i++) assert.is(pool.select(fakeClientExchange())?.host, 'a');
	pool.close();
});

test.run();

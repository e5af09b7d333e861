/** Usage of shared rate limits that is not reported yet: the list for the main thread, and what is reported after a failure. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Rate, UNDECIDED } from '../../../compiler/modules/directives/rate-limit/rate-limiter.ts';
import { LimitTable, limitTableWords } from '../../../runtime/rate-limits/limit-table.ts';
import { UnreportedUsage, unreportedUsageWords } from '../../../runtime/rate-limits/unreported-usage.ts';

const test = suite('unreported usage');

const PLACES = 8192;
const memory = (): SharedArrayBuffer => new SharedArrayBuffer(4 * unreportedUsageWords(PLACES));
const usageIn = (buffer: SharedArrayBuffer): UnreportedUsage => new UnreportedUsage(buffer, 0, PLACES);

function listed(usage: UnreportedUsage): number[] {
	const places: number[] = [];
	for (let place = usage.takeListedPlace(); place !== -1; place = usage.takeListedPlace()) places.push(place);
	return places;
}

test('a place is listed once, when half of its batch is used, and the main thread is told once', () => {
	const buffer = memory();
	const [thread, other, main] = [usageIn(buffer), usageIn(buffer), usageIn(buffer)];
	thread.add(3, 40, 100, 1000);
	assert.is(thread.mustTell, false);
	thread.add(3, 10, 100, 1000);
	thread.add(3, 10, 100, 1000);
	other.add(7, 100, 100, 1000);
	assert.equal([thread.mustTell, other.mustTell], [true, false]);
	main.allowNotification();
	assert.equal(listed(main), [3, 7]);
	assert.equal(main.takeReport(3, 500), { amountMs: 60, capacityMs: 1000, isBeyondBatch: false });
	assert.is(main.takeReport(3, 500), undefined);
	other.add(3, 50, 100, 1000);
	assert.is(other.mustTell, true);
	assert.equal(listed(main), [3]);
});

test('places that do not fit into the list are listed by a later request', () => {
	const usage = usageIn(memory());
	for (let place = 0; place < PLACES; place++) usage.add(place, 50, 100, 1000);
	assert.equal(
		listed(usage),
		Array.from({ length: 4096 }, (_, place) => place),
	);
	usage.add(5000, 1, 100, 1000);
	assert.equal(listed(usage), [5000]);
	assert.is(usage.takeReport(5000, 500)!.amountMs, 51);
});

test('an entry that a dead thread has not written does not block the list', () => {
	const buffer = memory();
	const usage = usageIn(buffer);
	// Four Int32 values precede the list. The first of them is the position at which the list ends.
	const words = new Int32Array(buffer);
	words[words.length - 4096 - 4] = 1;
	usage.add(5, 50, 100, 1000);
	const found = Array.from({ length: 102 }, () => usage.takeListedPlace());
	assert.equal(
		found.filter(place => place !== -1),
		[5],
	);
});

test('after more than a batch, what has been regained is not reported, and the report has a maximum', () => {
	const usage = usageIn(memory());
	usage.add(1, 100, 100, 1000);
	assert.is(usage.admits(1, 1, 100), false);
	usage.add(1, 900, 100, 1000);
	assert.equal(usage.takeReport(1, 600), { amountMs: 600, capacityMs: 1000, isBeyondBatch: true });
	// Reported usage counts against the batch until the report is confirmed.
	assert.is(usage.admits(1, 1, 100), false);
	usage.add(1, 30, 100, 1000);
	assert.is(usage.confirmSent(1), 30);
	assert.is(usage.admits(1, 70, 100), true);
	assert.is(usage.admits(1, 71, 100), false);
});

test('a request that costs more than a batch is admitted if nothing is unreported', () => {
	const usage = usageIn(memory());
	assert.is(usage.admits(1, 500, 100), true);
	usage.add(1, 500, 100, 1000);
	assert.is(usage.admits(1, 1, 100), false);
});

test('threads wait for Redis until a reply is due for too long, or it is known to be unavailable', () => {
	const buffer = memory();
	const [thread, main] = [usageIn(buffer), usageIn(buffer)];
	assert.is(thread.isAway(1000, 50), false);
	main.setWaitingSince(1000);
	assert.equal([thread.isAway(1050, 50), thread.isAway(1051, 50)], [false, true]);
	main.setWaitingSince('away');
	assert.is(thread.isAway(1000, 50), true);
	main.setWaitingSince(undefined);
	assert.is(thread.isAway(5000, 50), false);
});

test('two tables that exchange reports at random never admit more than the limit and a batch each', () => {
	const buffer = (): SharedArrayBuffer => new SharedArrayBuffer(4 * limitTableWords(8, true));
	const batch = 3;
	const rate: Rate = {
		intervalMs: 10,
		capacityMs: 200,
		maxDelayMs: 0,
		shared: { batchMs: 10 * batch, waitMs: 50, onError: 'local' },
	};
	let now = 1000;
	/** The time at which the key's limit is unused again, as stored by Redis. */
	let fullAt = 0;
	const secret = [1, 2];
	const machines = Array.from({ length: 3 }, () => {
		const memory = buffer();
		new Int32Array(memory).set(secret);
		return { table: new LimitTable(memory, 8, true), reply: undefined as (() => void) | undefined };
	});
	let usage = 0;
	let highest = 0;
	let undecided = 0;
	const chance = (percent: number): boolean => Math.random() * 100 < percent;
	for (let step = 0; step < 300_000; step++) {
		if (chance(20)) {
			const elapsed = Math.random() * 10;
			now += elapsed;
			usage = Math.max(0, usage - elapsed / rate.intervalMs);
		}
		const machine = machines[step % machines.length]!;
		const excessMs = machine.table.take('key', now, rate, 1);
		if (excessMs === UNDECIDED) undecided++;
		if (excessMs <= 0) highest = Math.max(highest, ++usage);
		if (machine.reply) {
			if (chance(30)) {
				machine.reply();
				machine.reply = undefined;
			}
		} else if (chance(30)) {
			const place = machine.table.unreported!.takeListedPlace();
			const report = place === -1 ? undefined : machine.table.takeReport(place, now);
			if (!report) continue;
			fullAt = Math.max(fullAt, now) + report.amountMs;
			const remainingMs = fullAt - now;
			machine.reply = () => machine.table.confirmReport(report, now, remainingMs);
		}
	}
	assert.ok(undecided > 0);
	assert.ok(highest > 20, `${highest}`);
	assert.ok(highest <= 20 + 3 * batch + 1e-6, `${highest}`);
});

test.run();

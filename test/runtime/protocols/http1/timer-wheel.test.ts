/** Deadlines in a timer wheel: each deadline fires after it has passed and never before, however it was changed. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type TimedItem, TimerWheel } from '../../../../runtime/protocols/http1/timer-wheel.ts';
import { TransferPace } from '../../../../runtime/protocols/http1/transfer-pace.ts';

const wheels = suite('timer wheel');

class WheelItem implements TimedItem {
	dueTick = -1;
	positionInSet = -1;
	deadline: number;
	fired: number[] = [];
	looks = 0;

	constructor(deadline: number) {
		this.deadline = deadline;
	}

	checkDeadlines(now: number): void {
		this.looks++;
		if (now < this.deadline) return;
		this.fired.push(now);
		this.deadline = Infinity;
	}
}

wheels('near and distant deadlines fire on time and never early', () => {
	const wheel = new TimerWheel<WheelItem>(10, 5);
	const items = [1, 9, 10, 11, 500, 5115, 5125, 60_000, 123_456].map(deadline => new WheelItem(deadline));
	for (const item of items) wheel.add(item);
	const wanted = items.map(item => item.deadline);
	for (let now = 5; now < 130_000; now += 7) wheel.advance(now);
	items.forEach((item, index) => {
		assert.is(item.fired.length, 1, `${wanted[index]}`);
		const late = item.fired[0]! - wanted[index]!;
		assert.ok(late >= 0 && late <= 24, `${wanted[index]} fired at ${item.fired[0]}`);
		assert.ok(item.looks < 60, `checked ${item.looks} times`);
	});
});

wheels('a deadline moved earlier fires earlier, and one moved later fires later', () => {
	const wheel = new TimerWheel<WheelItem>(10, 0);
	const forward = new WheelItem(5000);
	const back = new WheelItem(100);
	wheel.add(forward);
	wheel.add(back);
	forward.deadline = 50;
	wheel.deadlineAdvanced(forward, 50);
	back.deadline = 900;
	wheel.deadlineAdvanced(back, 900);
	for (let now = 0; now <= 1000; now += 10) wheel.advance(now);
	assert.equal(forward.fired, [50]);
	assert.equal(back.fired, [900]);
	assert.is(back.looks, 2);
});

wheels('removed items are not checked, and a stall loses no deadline', () => {
	const wheel = new TimerWheel<WheelItem>(10, 0);
	const removed = new WheelItem(100);
	const late = new WheelItem(200);
	wheel.add(removed);
	wheel.add(late);
	wheel.remove(removed);
	wheel.advance(1_000_000);
	assert.is(removed.looks, 0);
	assert.equal(late.fired, [1_000_000]);
});

wheels('a rate is measured only while waiting for the client', () => {
	const pace = new TransferPace();
	pace.start(1000, 100, Infinity);
	assert.is(pace.startWait(0, 0), 1000);
	pace.endWait(400);
	// A minute during which the server does not wait for the client does not count.
	assert.is(pace.startWait(60_400, 40), 60_400 + 1000);
	pace.endWait(60_900);
	// The client had an initial second. It has waited 900 ms, and the 40 bytes have earned it 400 ms, so 500 ms are left.
	assert.is(pace.startWait(61_000, 40), 61_000 + 500);
	pace.start(0, 0, 5000);
	assert.is(pace.startWait(100, 0), 5000);
});

wheels.run();

/** How long a thread has been unresponsive, measured in the thread's own time, and what does not count as unresponsive. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
	CHECK_INTERVAL_MS,
	readThreadTimes,
	StallClock,
	type ThreadTimes,
} from '../../../runtime/threads/stall-clock.ts';

/** Simulates checks of a thread that has stopped responding. Returns the value of the clock after each check. */
function stallTimes(times: readonly (ThreadTimes | undefined)[], elapsed: number = CHECK_INTERVAL_MS): number[] {
	const clock = new StallClock();
	clock.update(1, CHECK_INTERVAL_MS, () => undefined);
	return times.map(now => clock.update(1, elapsed, () => now));
}

const at = (state: string, ran: number, waited: number): ThreadTimes => ({ state, ranMs: ran, waitedMs: waited });

const clock = suite('stall clock');

clock('a thread that responds or has not started yet has no stall time', () => {
	const watched = new StallClock();
	for (const beat of [0, 0, 0, 1, 2, 3])
		assert.is(
			watched.update(beat, 500, () => undefined),
			0,
		);
	assert.is(
		watched.update(3, 500, () => undefined),
		500,
	);
	assert.is(
		watched.update(4, 500, () => undefined),
		0,
	);
});

clock('for a thread in an endless loop, its processor time counts', () => {
	assert.equal(stallTimes([at('R', 100, 0), at('R', 600, 0), at('R', 1100, 0)]), [0, 500, 1000]);
});

clock('for a blocked thread, the elapsed time counts', () => {
	assert.equal(stallTimes([at('S', 100, 0), at('S', 100, 0), at('D', 100, 0)]), [0, 500, 1000]);
});

clock('time spent waiting for a processor does not count', () => {
	assert.equal(stallTimes([at('R', 100, 0), at('R', 150, 450), at('R', 150, 450)]), [0, 50, 50]);
	assert.equal(stallTimes([at('S', 100, 0), at('S', 120, 400)]), [0, 100]);
});

clock('for a thread stopped by a signal, no time counts', () => {
	assert.equal(stallTimes([at('t', 100, 0), at('t', 100, 0), at('T', 100, 0)]), [0, 0, 0]);
});

clock('a late check counts as one interval, because the process or the machine was suspended', () => {
	assert.equal(stallTimes([at('S', 100, 0), at('S', 100, 0)], 3_600_000), [0, 500]);
});

clock('without thread times from the system, elapsed time counts', () => {
	assert.equal(stallTimes([undefined, undefined]), [500, 1000]);
});

clock('thread times can be read where /proc exists', () => {
	const times = readThreadTimes(process.pid);
	assert.is(times === undefined, process.platform !== 'linux');
	if (times) assert.ok(times.ranMs > 0 && times.waitedMs >= 0 && /^[RSD]$/.test(times.state), JSON.stringify(times));
	assert.is(readThreadTimes(0), undefined);
});

clock.run();

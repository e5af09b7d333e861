/** How long a thread has not answered, in its own time: what must not count as such. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { LOOK_INTERVAL, readThreadTimes, StallClock, type ThreadTimes } from '../../../runtime/main/stall-clock.ts';

/** Looks at a thread that has given its last sign of life; returns what the clock says after each look. */
function looks(times: readonly (ThreadTimes | undefined)[], elapsed: number = LOOK_INTERVAL): number[] {
	const clock = new StallClock();
	clock.look(1, LOOK_INTERVAL, () => undefined);
	return times.map(now => clock.look(1, elapsed, () => now));
}

const at = (state: string, ran: number, waited: number): ThreadTimes => ({ state, ran, waited });

const clock = suite('stall clock');

clock('a thread that answers, and one that has not begun to, has nothing against it', () => {
	const watched = new StallClock();
	for (const beat of [0, 0, 0, 1, 2, 3])
		assert.is(
			watched.look(beat, 500, () => undefined),
			0,
		);
	assert.is(
		watched.look(3, 500, () => undefined),
		500,
	);
	assert.is(
		watched.look(4, 500, () => undefined),
		0,
	);
});

clock('a thread that runs without an end is charged what it ran', () => {
	assert.equal(looks([at('R', 100, 0), at('R', 600, 0), at('R', 1100, 0)]), [0, 500, 1000]);
});

clock('a thread that is blocked is charged the time', () => {
	assert.equal(looks([at('S', 100, 0), at('S', 100, 0), at('D', 100, 0)]), [0, 500, 1000]);
});

clock('waiting for a processor is not charged', () => {
	assert.equal(looks([at('R', 100, 0), at('R', 150, 450), at('R', 150, 450)]), [0, 50, 50]);
	assert.equal(looks([at('S', 100, 0), at('S', 120, 400)]), [0, 100]);
});

clock('a thread that was stopped from outside is not charged', () => {
	assert.equal(looks([at('t', 100, 0), at('t', 100, 0), at('T', 100, 0)]), [0, 0, 0]);
});

clock('a look that comes late counts as one: the process or the machine was suspended', () => {
	assert.equal(looks([at('S', 100, 0), at('S', 100, 0)], 3_600_000), [0, 500]);
});

clock('without what the system tells, time is charged as it passes', () => {
	assert.equal(looks([undefined, undefined]), [500, 1000]);
});

clock('the times of a thread can be read where there is /proc', () => {
	const times = readThreadTimes(process.pid);
	assert.is(times === undefined, process.platform !== 'linux');
	if (times) assert.ok(times.ran > 0 && times.waited >= 0 && /^[RSD]$/.test(times.state), JSON.stringify(times));
	assert.is(readThreadTimes(0), undefined);
});

clock.run();

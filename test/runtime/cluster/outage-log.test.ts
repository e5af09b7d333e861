/**
 * Log entries about a connection that is lost and restored again and again: which are written immediately, and which are held
 * back.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { OutageLog } from '../../../runtime/cluster/outage-log.ts';

const outages = suite('log entries about outages');

/** A log whose clock the test moves. */
function openLog() {
	const entries: string[] = [];
	const timers = new Set<{ readonly at: number; readonly callback: () => void }>();
	let now = 0;
	const log = new OutageLog(
		{ lost: 'lost', regained: 'regained' },
		(_level, message, { cause, losses }) => entries.push([message, cause, losses].filter(part => part).join(' ')),
		{
			threadNow: () => now,
			monotonicNow: () => now,
			startTimer(callback, delayMs) {
				const timer = { at: now + delayMs, callback };
				timers.add(timer);
				return () => timers.delete(timer);
			},
			callSoon: callback => callback(),
		},
	);
	const pass = (seconds: number): void => {
		now += seconds * 1000;
		for (const timer of [...timers]) {
			if (timer.at > now) continue;
			timers.delete(timer);
			timer.callback();
		}
	};
	/** Returns the entries since the last call. */
	const take = (): string[] => entries.splice(0);
	return { log, pass, take, timers };
}

outages('a single outage has one entry at its beginning and one at its end, however often connecting fails', () => {
	const { log, pass, take } = openLog();
	log.onAvailable();
	assert.equal(take(), ['regained']);
	for (let attempt = 0; attempt < 5; attempt++) {
		log.onLost('refused');
		pass(20);
	}
	assert.equal(take(), ['lost refused']);
	log.onAvailable();
	assert.equal(take(), ['regained']);
	pass(120);
	assert.equal(take(), []);
});

outages('a connection that comes and goes every second soon has one entry a minute, with the number of losses', () => {
	const { log, pass, take } = openLog();
	log.onAvailable();
	take();
	for (let second = 0; second < 59; second++) {
		log.onLost('reset');
		log.onAvailable();
		pass(1);
	}
	const [first, last] = ['lost reset', 'regained'];
	assert.equal(take(), [first, last, first, last, first, last]);
	pass(1);
	assert.equal(take(), ['regained 56']);
	log.onLost('refused');
	log.onAvailable();
	log.onLost('refused');
	assert.equal(take(), []);
	// If a connection stays lost, this is logged within a minute.
	pass(60);
	assert.equal(take(), ['lost refused 2']);
	log.onAvailable();
	assert.equal(take(), ['regained']);
	pass(60);
	assert.equal(take(), []);
	// After a minute without changes, the loss of the connection is logged immediately again.
	log.onLost('closed');
	assert.equal(take(), ['lost closed']);
});

outages('a closed log writes nothing later', () => {
	const { log, pass, take, timers } = openLog();
	for (let outage = 0; outage < 5; outage++) {
		log.onLost('refused');
		log.onAvailable();
	}
	log.close();
	assert.is(timers.size, 0);
	take();
	pass(60);
	assert.equal(take(), []);
});

outages.run();

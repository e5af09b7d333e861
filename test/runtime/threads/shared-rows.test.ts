/** Rows of shared memory that threads acquire by key. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { SharedRows } from '../../../runtime/threads/shared-rows.ts';
import { until } from '../../harness.ts';

const rows = suite('shared rows');

rows('every thread gets the same memory for a key, which is released by the last thread', () => {
	const shared = new SharedRows(3);
	const buffer = shared.takeMemory('a', { slots: 2 }, 0)!;
	assert.is(buffer.byteLength, 24);
	assert.is(shared.takeMemory('a', { slots: 2 }, 1), buffer);
	shared.releaseMemory('a', 0);
	assert.is(shared.takeMemory('a', { slots: 2 }, 2), buffer);
	shared.releaseMemory('a', 1);
	shared.releaseMemory('a', 2);
	shared.releaseMemory('a', 2);
	assert.is(shared.size, 0);
	assert.is.not(shared.takeMemory('a', { slots: 2 }, 0), buffer);
});

rows('the counters of a dead thread are reset', () => {
	const shared = new SharedRows(2);
	const numbers = new Int32Array(shared.takeMemory('a', { slots: 2 }, 0)!);
	shared.takeMemory('a', { slots: 2 }, 1);
	shared.takeMemory('b', { slots: 1 }, 1);
	numbers.set([1, 2, 3, 4]);
	shared.releaseThread(1);
	assert.equal([...numbers], [1, 2, 0, 0]);
	assert.is(shared.size, 1);
});

rows('a row whose table is locked is cleared later, and a new thread gets it only then', async () => {
	let isLocked = true;
	let attempts = 0;
	const shared = new SharedRows(2, undefined, undefined, undefined, {
		onConcurrencyOpened: () => {},
		onConcurrencyClosed: () => {},
		onThreadEnded: () => {
			attempts++;
			return !isLocked;
		},
	});
	const request = { slots: 1, concurrency: { zone: 'a', maxKeys: 1 } };
	const numbers = new Int32Array(shared.takeMemory('a', request, 0)!);
	shared.takeMemory('a', request, 1);
	numbers.set([1, 2]);
	shared.releaseThread(1);
	const cleared: string[] = [];
	shared.whenCleared('a', 1, () => cleared.push('first'));
	shared.whenCleared('a', 0, () => cleared.push('other row'));
	// The new thread dies, too, before it can use the row.
	shared.releaseThread(1);
	shared.whenCleared('a', 1, () => cleared.push('second'));
	await until('another attempt', () => attempts > 2);
	assert.equal([...numbers], [1, 2]);
	assert.equal(cleared, ['other row']);
	isLocked = false;
	await until('cleared', () => cleared.length > 1);
	assert.equal(cleared, ['other row', 'second']);
	assert.equal([...numbers], [1, 0]);
	shared.releaseMemory('a', 0);
	assert.is(shared.size, 0);
});

rows('an allocation that fails returns undefined and leaves no entry', () => {
	const shared = new SharedRows(1);
	assert.is(shared.takeMemory('a', { slots: 2 ** 50 }, 0), undefined);
	assert.is(shared.size, 0);
});

rows.run();

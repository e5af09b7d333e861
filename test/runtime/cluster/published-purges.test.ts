/** The latest purges of a process: which of them are added to the stream in Redis again. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { PublishedPurges } from '../../../runtime/cluster/published-purges.ts';

const test = suite('published purges');

const MINUTE_MS = 60_000;

/** Remembers the purges `1` to `count`, of which one was accepted each millisecond from `firstAt` on. */
function published(count: number, firstAt = 0): PublishedPurges<number> {
	const purges = new PublishedPurges<number>();
	for (let number = 1; number <= count; number++)
		purges.add({ id: `${number}-0`, purge: number, at: firstAt + number }, true);
	return purges;
}

test('are lost if the stream does not have them, and are then no longer remembered', () => {
	const purges = published(4);
	assert.equal(purges.takeLost(purges.ids, new Set(['1-0', '3-0'])), [2, 4]);
	assert.equal([...purges.ids], ['1-0', '3-0']);
});

test('that were accepted while the stream was searched are not lost', () => {
	const purges = published(1);
	const { ids } = purges;
	purges.add({ id: '2-0', purge: 2, at: 2 }, false);
	assert.equal(purges.takeLost(ids, new Set(['1-0'])), []);
	assert.equal(purges.unreadIds, ['2-0']);
});

test('are forgotten ten minutes later if the stream was read in the meantime, not if the machine was cut off', () => {
	const purges = published(2, 1000);
	assert.is(purges.searchFrom(1000), '1-0');
	assert.is(purges.searchFrom(1001 + 10 * MINUTE_MS), '1-0');
	assert.is(purges.searchFrom(1002 + 10 * MINUTE_MS), '2-0');
	assert.is(purges.searchFrom(1003 + 10 * MINUTE_MS), undefined);
});

test('are in the stream once they are read, before or after Redis has answered with their IDs', () => {
	const purges = new PublishedPurges<string>();
	purges.onRead('1-0');
	purges.add({ id: '1-0', purge: 'read early', at: 1 }, false);
	purges.add({ id: '2-0', purge: 'read later', at: 2 }, false);
	purges.add({ id: '3-0', purge: 'not read', at: 3 }, false);
	const { unreadIds } = purges;
	assert.equal(unreadIds, ['2-0', '3-0']);
	purges.onRead('2-0');
	assert.equal(purges.takeUnread(unreadIds), ['not read']);
	assert.equal(purges.takeUnread(unreadIds), []);
});

test('replace everything if some of them may be lost that were too many to remember', () => {
	const purges = published(1001);
	assert.is(purges.ids.size, 1000);
	assert.is(purges.takeLost(purges.ids, new Set()), 'everything');
	assert.is(purges.ids.size, 0);
	const found = published(1001);
	assert.equal(found.takeLost(found.ids, new Set(['2-0'])).length, 999);
});

test.run();

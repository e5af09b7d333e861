/** Compares the index of a disk tier with a plain list of the same entries. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { DiskIndex, type IndexedResponse } from '../../../../runtime/cache/disk/disk-index.ts';

const index = suite('index of a disk tier');

/** Returns a seeded generator of random integers from 0 to `below` − 1. */
function seededRandom(seed: number): (below: number) => number {
	let state = seed;
	return below => {
		state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x297a2d39) | 0;
		return ((state ^ (state >>> 12)) >>> 0) % below;
	};
}

index('the index finds, replaces and removes entries like a plain list', async () => {
	const random = seededRandom(7);
	const onDisk = new Map<number, number>();
	const all = new DiskIndex(1, (a, by) => onDisk.set(a, (onDisk.get(a) ?? 0) + by));
	let places: IndexedResponse[] = [];
	const forget = (isMeant: (place: IndexedResponse) => boolean): number => {
		const before = places.length;
		places = places.filter(place => !isMeant(place));
		return before - places.length;
	};
	for (let i = 0; i < 30_000; i++) {
		const a = random(300) - 150;
		const b = random(3);
		const url = random(200) - 100;
		const path = random(100) - 50;
		const what = random(100);
		if (what < 80) {
			const place = {
				a,
				b,
				variant: random(2),
				url,
				path,
				segment: 1 + (i >> 10),
				offset: i,
				headBytes: 1,
				bodyBytes: 2,
			};
			forget(one => one.a === a && one.b === b && one.variant === place.variant);
			places.push(place);
			all.add(place);
		} else if (what < 85)
			assert.is(
				all.forgetKey(a, b),
				forget(one => one.a === a && one.b === b),
			);
		else if (what < 87) {
			const gone = all.forgetVariant(a, b, 1);
			assert.is(
				gone,
				forget(one => one.a === a && one.b === b && one.variant === 1),
			);
		} else if (what < 89)
			assert.is(
				all.forgetUrl(url),
				forget(one => one.url === url),
			);
		else if (what < 90)
			assert.is(
				all.forgetPath(path),
				forget(one => one.path === path),
			);
		else if (what < 91)
			assert.is(
				all.forgetHash(a).length,
				forget(one => one.a === a),
			);
		else if (what < 92 && i % 16 === 0) {
			const segment = 1 + random((i >> 10) + 1);
			const gone = all.forgetSegment(segment);
			forget(one => one.segment === segment);
			await gone;
		} else if (what === 92 && i % 16 === 0) {
			assert.is(
				(await all.forgetWhere(hash => hash % 7 === 0)).length,
				forget(one => one.a % 7 === 0),
			);
		}
		const wanted = places.filter(one => one.a === a && one.b === b);
		assert.equal(
			[...all.find(a, b)].sort((x, y) => x.offset - y.offset),
			wanted,
		);
		assert.is(all.size, places.length);
	}
	for (const [a, count] of onDisk) assert.is(count, places.filter(one => one.a === a).length);
});

index('long operations yield to other work', async () => {
	const all = new DiskIndex(2 ** 31, () => {});
	const place = { variant: 0, url: 1, headBytes: 1, bodyBytes: 1 };
	for (let i = 1; i <= 60_000; i++) all.add({ ...place, a: i, b: i, url: i, path: i, segment: 1, offset: i });
	let turns = 0;
	let isOver = false;
	const count = (): void => {
		turns++;
		if (!isOver) setImmediate(count);
	};
	setImmediate(count);
	const forgotten = all.forgetSegment(1);
	assert.is(all.find(60_000, 60_000).length, 0, 'the entry must be gone before the operation ends');
	await forgotten;
	isOver = true;
	assert.ok(turns > 5, String(turns));
	assert.is(all.size, 0);
});

index.run();

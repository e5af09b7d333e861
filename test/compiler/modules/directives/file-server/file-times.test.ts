/** Dates and entity tags built from cached parts equal those computed from scratch. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { FileTimes } from '../../../../../compiler/modules/directives/file-server/file-times.ts';
import { Random } from '../../../syntax/random-text.ts';

const test = suite('file times');

/** Computes an entity tag without any cache, as the expected value. */
function uncachedTag(seconds: number, nanoseconds: number, size: number): string {
	return `"${(BigInt(seconds) * 1_000_000_000n + BigInt(nanoseconds)).toString(36)}-${size.toString(36)}"`;
}

test('entity tags and dates equal their definition, for random times and sizes in sequence', () => {
	const times = new FileTimes();
	const random = new Random(1);
	const seconds = [0, 2, 3, 1_795_285_381, 1_795_285_382, 4_294_967_296, 9_000_000_000, -1, -2, -5_000_000_000];
	const nanoseconds = [0, 1, 35, 36, 176_782_335, 176_782_336, 999_999_999];
	for (const one of seconds)
		for (const other of nanoseconds) assert.is(times.entityTag(one, other, 0), uncachedTag(one, other, 0));
	for (let i = 0; i < 50_000; i++) {
		const one = random.below(3) === 0 ? random.below(2 ** 31) * 2 : 1_795_285_000 + random.below(3000);
		const other = random.below(1_000_000_000);
		const size = random.below(4) === 0 ? random.below(2 ** 31) * 1000 : 4096;
		assert.is(times.entityTag(one, other, size), uncachedTag(one, other, size));
		assert.is(times.date(one), new Date(one * 1000).toUTCString());
	}
});

test.run();

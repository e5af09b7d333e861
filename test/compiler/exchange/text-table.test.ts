/** A table of texts, in which the key to look up may be the beginning of a longer string. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { TextTable } from '../../../compiler/exchange/text-table.ts';

const tables = suite('text tables');

tables('tables agree with a map, for whole texts and for prefixes', () => {
	const map = new Map<string, number>();
	for (let i = 0; i < 2000; i++) map.set(`host-${i % 7}${i}.example`, i);
	map.set('', -1).set('é\u0100', -2);
	const table = new TextTable(map);
	for (const [key, value] of map) {
		assert.is(table.get(key, key.length), value);
		assert.is(table.get(`${key}/behind`, key.length), value);
	}
	for (const text of ['x', 'host-00.exampl', 'host-00.exampleX', 'é', 'HOST-00.EXAMPLE', 'y'.repeat(70_000)]) {
		assert.is(table.get(text, text.length), map.get(text), text.slice(0, 20));
	}
});

tables('an empty table has no entries, and texts with equal hashes are distinguished', () => {
	assert.is(new TextTable(new Map()).get('a', 1), undefined);
	// The hash multiplies by 31, and 31 × 'A' + 'a' equals 31 × 'B' + 'B', so the two keys have the same hash.
	const table = new TextTable(
		new Map([
			['Aa', 1],
			['BB', 2],
			['AaAa', 3],
			['BBBB', 4],
			['AaBB', 5],
		]),
	);
	assert.equal(
		['Aa', 'BB', 'AaAa', 'BBBB', 'AaBB', 'BBAa'].map(text => table.get(text, text.length)),
		[1, 2, 3, 4, 5, undefined],
	);
});

tables.run();

/** Reading a single query parameter gives the same value as parsing the whole query. */
import { randomInt } from 'node:crypto';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parseQueryLeniently, readQueryParameter } from '../../../compiler/exchange/uri-escape.ts';

const queries = suite('parameters of queries');

queries('several values are joined, and names and values are decoded', () => {
	const query = 'a=1&b=2&a=x+y&%61=%C3%A9&a&&=none&ab=3&a=4=5';
	assert.is(readQueryParameter(query, 'a'), '1,x y,é,,4=5');
	assert.is(readQueryParameter(query, ''), 'none');
	assert.is(readQueryParameter(query, 'c'), '');
});

queries('a parameter that cannot be decoded is ignored', () => {
	assert.is(readQueryParameter('a=1&a=%4&%a=2&a=3', 'a'), '1,3');
});

queries('random queries give the same values as when they are parsed as a whole', () => {
	const pieces = ['a', 'b', 'ab', '=', '&', '%61', '%4', '%', '+', '%26', '%FF', 'é', ' '];
	for (let round = 0; round < 20_000; round++) {
		const query = Array.from({ length: randomInt(12) }, () => pieces[randomInt(pieces.length)]).join('');
		for (const name of ['a', 'ab', '', 'a b', '&'])
			assert.is(readQueryParameter(query, name), parseQueryLeniently(query).get(name)?.join(',') ?? '', query);
	}
});

queries.run();

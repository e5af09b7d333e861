/** The ordered list of header fields. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { HeaderList, isSameFieldName } from '../../../compiler/exchange/header-list.ts';

const list = suite('header list');
const makeList = (): HeaderList => new HeaderList(['A', '1', 'b', '2', 'a', '3', 'C', '4']);

list('get ignores the case of names', () => {
	const headers = makeList();
	assert.is(headers.size, 4);
	assert.is(headers.get('a'), '1');
	assert.is(headers.get('x'), undefined);
	assert.equal(headers.getAll('a'), ['1', '3']);
	assert.equal(headers.getAll('x'), []);
	assert.is(headers.getCombined('a'), '1, 3');
	assert.is(headers.getCombined('x'), undefined);
	assert.ok(headers.has('c'));
	assert.not.ok(headers.has('x'));
	assert.is(headers.nameAt(3), 'C');
	assert.is(headers.valueAt(3), '4');
});

list('order and spelling are kept', () => {
	assert.equal(
		[...makeList()],
		[
			['A', '1'],
			['b', '2'],
			['a', '3'],
			['C', '4'],
		],
	);
});

list('set replaces all fields of a name at the place of the first', () => {
	const headers = makeList();
	headers.set('a', '9');
	headers.set('D', '5');
	assert.equal(
		[...headers],
		[
			['a', '9'],
			['b', '2'],
			['C', '4'],
			['D', '5'],
		],
	);
});

list('delete reports whether the field existed', () => {
	const headers = makeList();
	assert.ok(headers.delete('a'));
	assert.not.ok(headers.delete('a'));
	assert.equal(
		[...headers],
		[
			['b', '2'],
			['C', '4'],
		],
	);
});

list('filter, map, clear and clone', () => {
	const headers = makeList();
	const copy = headers.clone();
	headers.filter((name, value) => name !== 'A' && value !== '4');
	headers.map((name, value) => name + value);
	assert.equal(
		[...headers],
		[
			['b', 'b2'],
			['a', 'a3'],
		],
	);
	headers.clear();
	headers.add('Z', '0');
	assert.equal([...headers], [['Z', '0']]);
	assert.is(copy.size, 4);
});

list('an empty list has no fields', () => {
	const headers = new HeaderList();
	assert.is(headers.size, 0);
	assert.not.ok(headers.delete('a'));
	headers.set('A', '1');
	assert.is(headers.get('a'), '1');
});

list('names are compared in lower case', () => {
	assert.ok(isSameFieldName('ETag', 'etag'));
	assert.not.ok(isSameFieldName('ETag', 'etags'));
	assert.not.ok(isSameFieldName('ETag', 'edag'));
});
list.run();

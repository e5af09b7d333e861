/** The line difference of `fmt --diff`. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { firstDifference, formatDifference } from '../../../compiler/syntax/format-difference.ts';

const difference = suite('formatDifference');
difference('marks every line', () => {
	assert.is(
		formatDifference('a.com {\n  respond   "x"\n\n\n}\n', 'a.com {\n\trespond "x"\n}\n'),
		'  a.com {\n-   respond   "x"\n- \n- \n+ \trespond "x"\n  }\n',
	);
	assert.is(formatDifference('a\n', 'a\n'), '  a\n');
	assert.is(formatDifference('', 'a\n'), '+ a\n');
	assert.is(formatDifference('', ''), '');
});
difference('holds both texts, for any two texts', () => {
	let seed = 11;
	const random = (limit: number) => {
		seed = (seed * 48271) % 2147483647;
		return seed % limit;
	};
	const text = () => Array.from({ length: random(30) }, () => `${'abcde'[random(5)]}\n`).join('');
	for (let round = 0; round < 300; round++) {
		const before = text();
		const after = text();
		const lines = formatDifference(before, after).split('\n').slice(0, -1);
		const of = (mark: string) =>
			lines.filter(line => line[0] === ' ' || line[0] === mark).map(line => `${line.slice(2)}\n`);
		assert.is(of('-').join(''), before);
		assert.is(of('+').join(''), after);
	}
});
difference('keeps what is common in large texts without the memory of their product', () => {
	const before = Array.from({ length: 40_000 }, (_, index) => `line ${index}\n  same\n`).join('');
	const after = before.replaceAll('  same', '\tsame');
	const kept = formatDifference(before, after)
		.split('\n')
		.filter(line => line.startsWith('  line')).length;
	assert.is(kept, 40_000);
});
difference.run();

const first = suite('firstDifference');
first('is the number of the line, CRLF aside', () => {
	assert.is(firstDifference('a\nb\nc\n', 'a\nb\nd\n'), 3);
	assert.is(firstDifference('a\r\nb\r\n', 'a\nb\n'), undefined);
	assert.is(firstDifference('a', 'a\n'), 1);
	assert.is(firstDifference('a\n\n\nb\n', 'a\n\nb\n'), 3);
});
first.run();

/** Parse-time substitution of environment variables, and mapping offsets back to the original text. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { substituteEnvironment } from '../../../compiler/source/environment.ts';

const variables: { readonly [name: string]: string } = {
	HOST: 'example.com',
	EMPTY: '',
	NESTED: '{$HOST}',
	TWO: 'a\nb',
};
const substitute = (text: string) => substituteEnvironment(text, name => variables[name]);

const values = suite('environment values');
for (const [text, result] of [
	['{$HOST}', 'example.com'],
	['{$MISSING}', ''],
	['{$MISSING:a:b}', 'a:b'],
	['{$EMPTY:default}', ''],
	['{$HOST:default} {$HOST}', 'example.com example.com'],
	['{$}', '{$}'],
	['{$HOST', '{$HOST'],
	['{$NESTED}', '{$HOST}'],
	['\\{$HOST}', '\\example.com'],
	['# {$HOST} "{$TWO}"', '# example.com "a\nb"'],
	['{env.HOST}', '{env.HOST}'],
] as const) {
	values(`${JSON.stringify(text)} becomes ${JSON.stringify(result)}`, () => {
		assert.is(substitute(text).text, result);
	});
}
values.run();

const offsets = suite('environment offsets');
offsets('outside of values offsets are those of the original', () => {
	const original = 'ab {$HOST} cd {$MISSING} ef';
	const replaced = substitute(original);
	for (const word of ['ab', 'cd', 'ef']) {
		const at = replaced.text.indexOf(word);
		assert.is(replaced.originalStart(at), original.indexOf(word));
		assert.is(replaced.originalEnd(at + 2), original.indexOf(word) + 2);
	}
});
offsets('inside of a value they are those of its whole span', () => {
	const original = 'x {$HOST} y';
	const replaced = substitute(original);
	assert.is(replaced.originalStart(2), 2);
	assert.is(replaced.originalStart(5), 2);
	assert.is(replaced.originalEnd(5), 9);
	assert.is(replaced.originalEnd(2 + 'example.com'.length), 9);
});
offsets('a span next to another keeps to its own', () => {
	const replaced = substitute('{$HOST}{$HOST}');
	const size = 'example.com'.length;
	assert.equal([replaced.originalStart(0), replaced.originalEnd(size)], [0, 7]);
	assert.equal([replaced.originalStart(size), replaced.originalEnd(2 * size)], [7, 14]);
});
offsets.run();

/** The memory of password verdicts: it is limited in size, and does not contain the passwords. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { VerdictMemory } from '../../../runtime/passwords/verdict-memory.ts';

const memory = suite('remembered verdicts');

memory('the least recently used verdict is evicted first, and wrong passwords never evict right ones', () => {
	const verdicts = new VerdictMemory(2, 3);
	verdicts.rememberVerdict('right', true);
	for (const wrong of ['a', 'b', 'c']) verdicts.rememberVerdict(wrong, false);
	assert.is(verdicts.recallVerdict('a'), false);
	verdicts.rememberVerdict('d', false);
	assert.equal(
		['a', 'b', 'c', 'd', 'right'].map(key => verdicts.recallVerdict(key)),
		[false, undefined, false, false, true],
	);
	verdicts.rememberVerdict('more', true);
	verdicts.rememberVerdict('most', true);
	assert.is(verdicts.recallVerdict('right'), undefined);
});

memory(
	'keys do not reveal the password, differ between tables, and depend on user, hash and password separately',
	() => {
		const [one, other] = [new VerdictMemory(), new VerdictMemory()];
		assert.is(one.keyOf('bob', 'hash', 'secret'), one.keyOf('bob', 'hash', 'secret'));
		assert.is.not(one.keyOf('bob', 'hash', 'secret'), other.keyOf('bob', 'hash', 'secret'));
		assert.is.not(one.keyOf('bo', 'hash', 'bsecret'), one.keyOf('bob', 'hash', 'secret'));
		assert.is.not(one.keyOf('bob', 'hashs', 'ecret'), one.keyOf('bob', 'hash', 'secret'));
		assert.is(Buffer.from(one.keyOf('bob', 'hash', 'secret'), 'binary').length, 32);
		assert.not.match(one.keyOf('bob', 'hash', 'secret'), /secret/);
	},
);

memory.run();

/** Password checks on a worker thread: which checks are remembered, coalesced and refused. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Exchange } from '../../../compiler/exchange/exchange.ts';
import { HttpError } from '../../../compiler/exchange/http-error.ts';
import type { PasswordHash } from '../../../compiler/modules/directives/basic-auth/password-hash.ts';
import type { PasswordAnswer, PasswordCheck } from '../../../runtime/passwords/password-check.ts';
import { ThreadPasswords } from '../../../runtime/passwords/thread-passwords.ts';
import { fakeExchange } from '../../compiler/fake-exchange.ts';

const HASH: PasswordHash = {
	algorithm: 'bcrypt',
	text: '$2b$04$dn9tFKKjjviJcZyNIh9.FegXvwX0ahZVruFNmM.efvz3DjFl884fW',
	cost: 4,
};

/** Creates the password checks of a worker thread. The test answers in place of the main thread. */
function createChecks() {
	const asked: { check: PasswordCheck; answer(answer: PasswordAnswer): void }[] = [];
	const withdrawnPasswords: string[] = [];
	const counts = { refused: 0 };
	const passwords = new ThreadPasswords({
		sendCheck: check => new Promise(answer => asked.push({ check, answer })),
		withdraw: id => withdrawnPasswords.push(id),
		clientOf: x => x.connection.remoteAddress,
		countRefusal: () => counts.refused++,
	});
	return { passwords, asked, withdrawn: withdrawnPasswords, counts };
}

const from = (address: string): Exchange => fakeExchange({ connection: { remoteAddress: address } });

async function refusalOf(verdict: boolean | Promise<boolean>): Promise<HttpError> {
	try {
		await verdict;
	} catch (error) {
		assert.instance(error, HttpError);
		return error as HttpError;
	}
	return assert.unreachable() as never;
}

const thread = suite('password checks of a worker thread');

thread('a verdict is remembered, right or wrong, for that user, hash and password only', async () => {
	const { passwords, asked } = createChecks();
	const x = from('192.0.2.1');
	for (const [password, verdict] of [
		['right', true],
		['wrong', false],
	] as const) {
		const first = passwords.verify(x, 'bob', HASH, password);
		asked.pop()!.answer(verdict);
		assert.is(await first, verdict);
		assert.is(passwords.verify(x, 'bob', HASH, password), verdict);
	}
	assert.instance(passwords.verify(x, 'ann', HASH, 'right'), Promise);
	assert.instance(passwords.verify(x, 'bo', HASH, 'bright'), Promise);
	assert.instance(passwords.verify(x, 'bob', { ...HASH, text: `${HASH.text.slice(0, -1)}X` }, 'right'), Promise);
});

thread('concurrent equal checks are coalesced', async () => {
	const { passwords, asked } = createChecks();
	const verdicts = [1, 2, 3].map(() => passwords.verify(from('192.0.2.1'), 'bob', HASH, 'x'));
	assert.is(asked.length, 1);
	asked[0]!.answer(true);
	assert.equal(await Promise.all(verdicts), [true, true, true]);
	assert.is(passwords.pendingCount, 0);
});

thread('a client with many pending guesses is refused without asking the main thread; others are not', async () => {
	const { passwords, asked, counts } = createChecks();
	const guesses = Array.from({ length: 100 }, (_, i) => passwords.verify(from('192.0.2.1'), 'bob', HASH, `guess ${i}`));
	assert.is(asked.length, 16);
	const refused = await refusalOf(guesses[16]!);
	assert.is(refused.status, 429);
	assert.equal(refused.headers, [['Retry-After', '1']]);
	for (const guess of guesses.slice(17)) assert.is((await refusalOf(guess)).status, 429);
	assert.is(counts.refused, 84);
	void passwords.verify(from('192.0.2.2'), 'bob', HASH, 'x');
	assert.is(asked.length, 17, "another client's check is passed on");
	for (const { answer } of asked.splice(0)) answer(false);
	assert.equal(await Promise.all(guesses.slice(0, 16)), Array(16).fill(false));
	void passwords.verify(from('192.0.2.1'), 'bob', HASH, 'one more');
	assert.is(asked.length, 1, 'answered checks no longer count');
});

thread('the main thread sees all IPv6 addresses of one /64 as one client', () => {
	const { passwords, asked } = createChecks();
	for (const address of [
		'2001:db8:1:2::1',
		'2001:db8:1:2:ffff::',
		'2001:db8:1:3::1',
		'192.0.2.1',
		'::ffff:192.0.2.1',
	]) {
		void passwords.verify(from(address), 'bob', HASH, address);
	}
	const [first, sameNetwork, otherNetwork, v4, mapped] = asked.map(({ check }) => check.client);
	assert.is(first, sameNetwork);
	assert.is.not(first, otherNetwork);
	assert.not.equal(v4, first);
	assert.ok(mapped !== first && mapped !== otherNetwork);
});

thread(
	'a refusal by the main thread becomes 429 or 503, and the client is refused here until Retry-After',
	async () => {
		const { passwords, asked } = createChecks();
		for (const [address, refusal, status] of [
			['192.0.2.1', { refused: 'client', retryAfter: 7 }, 429],
			['192.0.2.2', { refused: 'all', retryAfter: 60 }, 503],
		] as const) {
			const verdict = passwords.verify(from(address), 'bob', HASH, 'x');
			asked.pop()!.answer(refusal);
			const errors = [await refusalOf(verdict), await refusalOf(passwords.verify(from(address), 'bob', HASH, 'y'))];
			for (const error of errors) {
				assert.is(error.status, status);
				assert.equal(error.headers, [['Retry-After', String(refusal.retryAfter)]]);
			}
			assert.is(asked.length, 0);
		}
		void passwords.verify(from('192.0.2.3'), 'bob', HASH, 'x');
		assert.is(asked.length, 1);
	},
);

thread('a check is withdrawn when its last client disconnects', async () => {
	const { passwords, asked, withdrawn } = createChecks();
	const leavers = [from('192.0.2.3'), from('192.0.2.3')];
	const verdicts = leavers.map(x => passwords.verify(x, 'bob', HASH, 'x'));
	(leavers[0] as ReturnType<typeof fakeExchange>).markGone();
	assert.equal(withdrawn, [], 'withdrawn although one client still waits');
	(leavers[1] as ReturnType<typeof fakeExchange>).markGone();
	assert.equal(withdrawn, [asked[0]!.check.id]);
	assert.equal(await Promise.all(verdicts), [false, false]);
	assert.is(passwords.pendingCount, 0);
	const again = passwords.verify(from('192.0.2.3'), 'bob', HASH, 'x');
	asked[0]!.answer(null);
	asked[1]!.answer(true);
	assert.is(await again, true, 'the answer to a withdrawn check is ignored');
});

thread('a failed verification gives 503 and is not remembered', async () => {
	const { passwords, asked } = createChecks();
	const verdict = passwords.verify(from('192.0.2.1'), 'bob', HASH, 'x');
	asked[0]!.answer(null);
	assert.is((await refusalOf(verdict)).status, 503);
	assert.instance(passwords.verify(from('192.0.2.1'), 'bob', HASH, 'x'), Promise);
});

thread.run();

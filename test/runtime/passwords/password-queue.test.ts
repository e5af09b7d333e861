/** The queue of passwords on one thread: what is remembered, what is asked once, and what is turned away. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { PasswordHash } from '../../../compiler/directives/basic-auth/password-hash.ts';
import type { Exchange } from '../../../compiler/exchange/exchange.ts';
import { HttpError } from '../../../compiler/exchange/http-error.ts';
import { PasswordQueue } from '../../../runtime/passwords/password-queue.ts';
import type { PasswordTask, PasswordVerdict } from '../../../runtime/passwords/password-thread.ts';
import { PasswordThreads } from '../../../runtime/passwords/password-threads.ts';
import { fakeExchange } from '../../compiler/fake-exchange.ts';

const HASH: PasswordHash = {
	algorithm: 'bcrypt',
	text: '$2b$04$dn9tFKKjjviJcZyNIh9.FegXvwX0ahZVruFNmM.efvz3DjFl884fW',
	cost: 4,
};

/** A queue whose questions are answered by the test. */
function asking() {
	const asked: { task: PasswordTask; answer(verdict: PasswordVerdict): void }[] = [];
	const queue = new PasswordQueue(
		task => new Promise(answer => asked.push({ task, answer })),
		x => x.connection.remoteAddress,
	);
	return { queue, asked };
}

const from = (address: string): Exchange => fakeExchange({ connection: { remoteAddress: address } });
const turn = () => new Promise(resolve => setImmediate(resolve));

const queues = suite('password queue');

queues('a verdict is remembered, right or wrong, for that user, hash and password only', async () => {
	const { queue, asked } = asking();
	const x = from('192.0.2.1');
	for (const [password, verdict] of [
		['right', true],
		['wrong', false],
	] as const) {
		const first = queue.verify(x, 'bob', HASH, password);
		await turn();
		asked.pop()!.answer(verdict);
		assert.is(await first, verdict);
		assert.is(queue.verify(x, 'bob', HASH, password), verdict);
	}
	assert.instance(queue.verify(x, 'ann', HASH, 'right'), Promise);
	assert.instance(queue.verify(x, 'bo', HASH, 'bright'), Promise);
	assert.instance(queue.verify(x, 'bob', { ...HASH, text: `${HASH.text.slice(0, -1)}X` }, 'right'), Promise);
});

queues('equal questions that come together are asked once', async () => {
	const { queue, asked } = asking();
	const verdicts = [1, 2, 3].map(() => queue.verify(from('192.0.2.1'), 'bob', HASH, 'x'));
	await turn();
	assert.is(asked.length, 1);
	asked[0]!.answer(true);
	assert.equal(await Promise.all(verdicts), [true, true, true]);
	assert.is(queue.pending, 0);
});

queues('guessing is bounded for one client and for all', async () => {
	const { queue, asked } = asking();
	let refused = 0;
	const guess = (address: string, i: number) => {
		try {
			void queue.verify(from(address), 'bob', HASH, `${address} ${i}`);
		} catch (error) {
			assert.instance(error, HttpError);
			assert.is((error as HttpError).status, 503);
			refused++;
		}
	};
	for (let i = 0; i < 100; i++) guess('192.0.2.1', i);
	assert.is(refused, 92);
	for (let i = 0; i < 4; i++) guess('192.0.2.2', i);
	assert.is(refused, 92, 'another client still gets its turn');
	for (let client = 3; client < 100; client++) guess(`192.0.2.${client}`, 0);
	assert.is(queue.pending, 32);
	await turn();
	assert.is(asked.length, 2, 'few are under way at once');
	while (asked.length > 0) {
		asked.shift()!.answer(false);
		await turn();
	}
	assert.is(queue.pending, 0);
	guess('192.0.2.1', 1000);
	assert.is(queue.pending, 1, 'the client is counted no more');
});

queues('what a client that has left wanted to know is not asked', async () => {
	const { queue, asked } = asking();
	for (const address of ['192.0.2.1', '192.0.2.2']) void queue.verify(from(address), 'bob', HASH, address);
	const leaver = from('192.0.2.3');
	const verdict = queue.verify(leaver, 'bob', HASH, 'x');
	await turn();
	leaver.gone();
	assert.is(await verdict, false);
	assert.is(queue.pending, 2);
	asked[0]!.answer(false);
	asked[1]!.answer(false);
	await turn();
	assert.is(asked.length, 2);
});

queues('no verdict is 503 and is not remembered', async () => {
	const { queue, asked } = asking();
	const verdict = queue.verify(from('192.0.2.1'), 'bob', HASH, 'x') as Promise<boolean>;
	await turn();
	asked[0]!.answer(null);
	try {
		await verdict;
		assert.unreachable();
	} catch (error) {
		assert.is((error as HttpError).status, 503);
	}
	assert.instance(queue.verify(from('192.0.2.1'), 'bob', HASH, 'x'), Promise);
});

queues('remembers a bounded number, the least used goes first', async () => {
	const queue = new PasswordQueue(
		() => Promise.resolve(false),
		x => x.connection.remoteAddress,
	);
	const x = from('192.0.2.1');
	for (let i = 0; i < 1030; i++) {
		await queue.verify(x, 'bob', HASH, String(i));
		assert.is(queue.verify(x, 'bob', HASH, '0'), false);
	}
	assert.instance(queue.verify(x, 'bob', HASH, '1'), Promise);
});

queues.run();

const threads = suite('password threads');

threads('verify, and give up what costs too much, after which the next is verified', async () => {
	const reasons: string[] = [];
	const passwords = new PasswordThreads(reason => reasons.push(reason), 700);
	try {
		assert.is(await passwords.verify({ hash: HASH, password: 'hiccup' }), true);
		assert.is(await passwords.verify({ hash: HASH, password: 'other' }), false);
		const costly: PasswordHash = { ...HASH, text: HASH.text.replace('$04$', '$20$'), cost: 20 };
		assert.is(await passwords.verify({ hash: costly, password: 'hiccup' }), null);
		assert.match(reasons[0]!, /costs too much/);
		assert.is(await passwords.verify({ hash: HASH, password: 'hiccup' }), true);
		const impossible = { ...HASH, algorithm: 'argon2id' } as unknown as PasswordHash;
		assert.is(await passwords.verify({ hash: impossible, password: 'x' }), null);
	} finally {
		await passwords.end();
	}
	assert.is(await passwords.verify({ hash: HASH, password: 'hiccup' }), null);
});

threads('a user that does not exist takes as long as one that does', async () => {
	const { decoyOf } = await import('../../../compiler/directives/basic-auth/password-hash.ts');
	const { verifyPassword } = await import('../../../runtime/passwords/verify-password.ts');
	const hash: PasswordHash = { ...HASH, text: HASH.text.replace('$04$', '$08$'), cost: 8 };
	const time = (of: PasswordHash) => {
		const times = Array.from({ length: 9 }, () => {
			const begin = performance.now();
			verifyPassword(of, 'some password');
			return performance.now() - begin;
		});
		return times.sort((a, b) => a - b)[2]!;
	};
	time(hash);
	const known = time(hash);
	const unknown = time(decoyOf(hash));
	assert.ok(unknown > known / 2 && unknown < known * 2, `${known} ms and ${unknown} ms`);
});

threads.run();

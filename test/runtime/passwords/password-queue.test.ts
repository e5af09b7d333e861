/** The queue of passwords of the whole process: turns of clients, bounds, and verdicts that all threads share. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { PasswordHash } from '../../../compiler/modules/directives/basic-auth/password-hash.ts';
import type { PasswordAnswer, PasswordRefusal } from '../../../runtime/passwords/password-check.ts';
import { PasswordQueue } from '../../../runtime/passwords/password-queue.ts';
import type { PasswordVerdict } from '../../../runtime/passwords/password-thread.ts';
import { ThreadPasswords } from '../../../runtime/passwords/thread-passwords.ts';
import { fakeExchange } from '../../compiler/fake-exchange.ts';

const HASH: PasswordHash = {
	algorithm: 'bcrypt',
	text: '$2b$04$dn9tFKKjjviJcZyNIh9.FegXvwX0ahZVruFNmM.efvz3DjFl884fW',
	cost: 4,
};

const turn = () => new Promise(resolve => setImmediate(resolve));

/** A queue before as many threads, each verification of which ends when the test says so. */
function queueOf(threads: number) {
	const running: { password: string; end(verdict: PasswordVerdict): void }[] = [];
	const queue = new PasswordQueue({
		most: threads,
		verify: ({ password }) => new Promise(end => running.push({ password, end })),
		end: async () => true,
	});
	let last = 0;
	const ask = (client: string, password: string): { id: string; answer: Promise<PasswordAnswer> } => {
		const id = String(++last);
		return { id, answer: queue.verify({ id, client, user: 'bob', task: { hash: HASH, password } }) };
	};
	/** Ends the oldest verification. */
	const end = async (verdict: PasswordVerdict = false): Promise<void> => {
		running.shift()!.end(verdict);
		await turn();
	};
	return { queue, running, ask, end };
}

/** Passwords in the order in which they are verified. */
async function orderOf({ running, end }: ReturnType<typeof queueOf>): Promise<string[]> {
	const order: string[] = [];
	while (running.length > 0) {
		order.push(running[0]!.password);
		await end();
	}
	return order;
}

const queues = suite('password queue');

queues('one thread: whoever comes second waits for no more than what is running', async () => {
	const parts = queueOf(1);
	for (let i = 0; i < 16; i++) parts.ask('flood', `guess ${i}`);
	parts.ask('second', 'login');
	assert.equal((await orderOf(parts)).slice(0, 3), ['guess 0', 'login', 'guess 1']);
});

queues('one thread: clients that all have many take turns', async () => {
	const parts = queueOf(1);
	for (const client of ['a', 'b', 'c']) for (let i = 0; i < 3; i++) parts.ask(client, `${client}${i}`);
	assert.equal((await orderOf(parts)).join(' '), 'a0 b0 c0 a1 b1 c1 a2 b2 c2');
});

queues('a client that has waited is not overtaken by ones that come later, however many', async () => {
	const parts = queueOf(1);
	for (let i = 0; i < 3; i++) parts.ask('office', `office ${i}`);
	const order: string[] = [];
	for (let i = 0; parts.running.length > 0; i++) {
		if (i < 20) parts.ask(`new ${i}`, `new ${i}`);
		order.push(parts.running[0]!.password);
		await parts.end();
	}
	assert.equal(order.filter(password => password.startsWith('office')).length, 3);
	assert.ok(order.indexOf('office 1') <= 2, order.join(', '));
	assert.ok(order.indexOf('office 2') <= 5, order.join(', '));
});

queues('several threads: one client leaves one free, and the others get it at once', async () => {
	const parts = queueOf(4);
	for (let i = 0; i < 10; i++) parts.ask('flood', `guess ${i}`);
	assert.is(parts.running.length, 3);
	parts.ask('second', 'login');
	parts.ask('third', 'login of third');
	assert.equal(parts.running.map(({ password }) => password).slice(3), ['login']);
	await parts.end();
	assert.is(parts.running.at(-1)!.password, 'login of third', 'whoever has fewest running is next');
});

queues('one client has 16 at most; what it is told to wait grows with what waits and with what one takes', async () => {
	const { queue, ask } = queueOf(1);
	for (let i = 0; i < 16; i++) ask('flood', `guess ${i}`);
	assert.equal(await ask('flood', 'one more').answer, { refused: 'client', retryAfter: 16 });
	assert.is(queue.pending, 16);
});

queues(
	'in all there are 64 at most; a client with few is taken in place of the last of the one with most',
	async () => {
		const { queue, ask } = queueOf(1);
		const flood = Array.from({ length: 16 }, (_, i) => ask('flood', `guess ${i}`));
		for (let client = 0; client < 48; client++) ask(`client ${client}`, `login ${client}`);
		assert.is(queue.pending, 64);
		ask('late', 'login of late');
		assert.is(queue.pending, 64);
		assert.is(((await flood[15]!.answer) as PasswordRefusal).refused, 'client');
		for (let client = 0; client < 14; client++) ask(`more ${client}`, `login of more ${client}`);
		assert.equal(await ask('too late', 'login').answer, { refused: 'all', retryAfter: 60 });
		assert.is(queue.pending, 64);
	},
);

queues('equal credentials are verified once, at the turn of whichever client comes first', async () => {
	const parts = queueOf(1);
	for (let i = 0; i < 5; i++) parts.ask('flood', `guess ${i}`);
	const mine = parts.ask('second', 'guess 4');
	const order = await orderOf(parts);
	assert.equal(order, ['guess 0', 'guess 4', 'guess 1', 'guess 2', 'guess 3']);
	assert.is(await mine.answer, false);
	assert.is(parts.queue.pending, 0);
});

queues('what nobody waits for any more is not verified', async () => {
	const parts = queueOf(1);
	const [, second, third] = ['a', 'b', 'c'].map(client => parts.ask(client, client));
	const alsoThird = parts.ask('d', 'c');
	parts.queue.withdraw(second!.id);
	parts.queue.withdraw(third!.id);
	parts.queue.withdraw('never asked');
	assert.equal(await orderOf(parts), ['a', 'c'], 'one still waits for c');
	assert.is(await alsoThird.answer, false);
	assert.is(parts.queue.pending, 0);
});

queues('no verdict is passed on and not remembered', async () => {
	const parts = queueOf(1);
	const first = parts.ask('a', 'x');
	await parts.end(null);
	assert.is(await first.answer, null);
	parts.ask('a', 'x');
	assert.is(parts.running.length, 1);
});

queues('what one data-plane thread has learned the others know, without verifying again', async () => {
	const { queue, running, end } = queueOf(2);
	const threads = [1, 2].map(
		() =>
			new ThreadPasswords({
				ask: check => queue.verify(check),
				withdraw: id => queue.withdraw(id),
				clientOf: x => x.connection.remoteAddress,
				refused: () => {},
			}),
	);
	const login = (thread: number, password: string) => threads[thread]!.verify(fakeExchange(), 'bob', HASH, password);
	for (const [password, verdict] of [
		['right', true],
		['wrong', false],
	] as const) {
		const first = [login(0, password), login(1, password)];
		await turn();
		assert.is(running.length, 1, 'both threads ask, one password is verified');
		await end(verdict);
		assert.equal(await Promise.all(first), [verdict, verdict]);
	}
	const known = login(0, 'once');
	await turn();
	await end(true);
	assert.is(await known, true);
	assert.is(await login(1, 'once'), true, 'the other thread never asked before');
	assert.is(running.length, 0);
});

queues.run();

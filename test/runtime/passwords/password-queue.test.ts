/** The password queue of the process: fairness between clients, limits, and verdicts that all threads share. */
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

/** Creates a queue for the given number of threads; the test decides when each verification ends. */
function queueOf(threads: number) {
	const running: { password: string; end(verdict: PasswordVerdict): void }[] = [];
	const queue = new PasswordQueue({
		maxThreads: threads,
		verify: ({ password }) => new Promise(end => running.push({ password, end })),
		end: async () => true,
	});
	let last = 0;
	const ask = (client: string, password: string): { id: string; answer: Promise<PasswordAnswer> } => {
		const id = String(++last);
		return { id, answer: queue.verify({ id, client, user: 'bob', task: { hash: HASH, password } }) };
	};
	/** Ends the oldest verification in progress. */
	const end = async (verdict: PasswordVerdict = false): Promise<void> => {
		running.shift()!.end(verdict);
		await turn();
	};
	return { queue, running, ask, end };
}

/** Ends all verifications. Returns the passwords in the order in which they were verified. */
async function orderOf({ running, end }: ReturnType<typeof queueOf>): Promise<string[]> {
	const order: string[] = [];
	while (running.length > 0) {
		order.push(running[0]!.password);
		await end();
	}
	return order;
}

const queues = suite('password queue');

queues('one thread: a second client waits only for the verification in progress', async () => {
	const parts = queueOf(1);
	for (let i = 0; i < 16; i++) parts.ask('flood', `guess ${i}`);
	parts.ask('second', 'login');
	assert.equal((await orderOf(parts)).slice(0, 3), ['guess 0', 'login', 'guess 1']);
});

queues('one thread: clients with many checks take turns', async () => {
	const parts = queueOf(1);
	for (const client of ['a', 'b', 'c']) for (let i = 0; i < 3; i++) parts.ask(client, `${client}${i}`);
	assert.equal((await orderOf(parts)).join(' '), 'a0 b0 c0 a1 b1 c1 a2 b2 c2');
});

queues('a waiting client is not starved by later clients, however many', async () => {
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

queues('several threads: one client cannot occupy the last one, which another client gets at once', async () => {
	const parts = queueOf(4);
	for (let i = 0; i < 10; i++) parts.ask('flood', `guess ${i}`);
	assert.is(parts.running.length, 3);
	parts.ask('second', 'login');
	parts.ask('third', 'login of third');
	assert.equal(parts.running.map(({ password }) => password).slice(3), ['login']);
	await parts.end();
	assert.is(parts.running.at(-1)!.password, 'login of third', 'the client with the fewest running checks is next');
});

queues('a client may have 16 pending checks; further ones get a Retry-After that reflects the queue', async () => {
	const { queue, ask } = queueOf(1);
	for (let i = 0; i < 16; i++) ask('flood', `guess ${i}`);
	assert.equal(await ask('flood', 'one more').answer, { refused: 'client', retryAfter: 16 });
	assert.is(queue.pendingCount, 16);
});

queues(
	'at most 64 checks are pending in total; a client with few replaces the last check of the client with the most',
	async () => {
		const { queue, ask } = queueOf(1);
		const flood = Array.from({ length: 16 }, (_, i) => ask('flood', `guess ${i}`));
		for (let client = 0; client < 48; client++) ask(`client ${client}`, `login ${client}`);
		assert.is(queue.pendingCount, 64);
		ask('late', 'login of late');
		assert.is(queue.pendingCount, 64);
		assert.is(((await flood[15]!.answer) as PasswordRefusal).refused, 'client');
		for (let client = 0; client < 14; client++) ask(`more ${client}`, `login of more ${client}`);
		assert.equal(await ask('too late', 'login').answer, { refused: 'all', retryAfter: 60 });
		assert.is(queue.pendingCount, 64);
	},
);

queues('equal credentials are verified once, at the turn of the first client to come up', async () => {
	const parts = queueOf(1);
	for (let i = 0; i < 5; i++) parts.ask('flood', `guess ${i}`);
	const mine = parts.ask('second', 'guess 4');
	const order = await orderOf(parts);
	assert.equal(order, ['guess 0', 'guess 4', 'guess 1', 'guess 2', 'guess 3']);
	assert.is(await mine.answer, false);
	assert.is(parts.queue.pendingCount, 0);
});

queues('a check that nobody waits for any longer is not verified', async () => {
	const parts = queueOf(1);
	const [, second, third] = ['a', 'b', 'c'].map(client => parts.ask(client, client));
	const alsoThird = parts.ask('d', 'c');
	parts.queue.withdraw(second!.id);
	parts.queue.withdraw(third!.id);
	parts.queue.withdraw('never asked');
	assert.equal(await orderOf(parts), ['a', 'c'], 'c must still be verified, because one client waits for it');
	assert.is(await alsoThird.answer, false);
	assert.is(parts.queue.pendingCount, 0);
});

queues('a failed verification is passed on and not remembered', async () => {
	const parts = queueOf(1);
	const first = parts.ask('a', 'x');
	await parts.end(null);
	assert.is(await first.answer, null);
	parts.ask('a', 'x');
	assert.is(parts.running.length, 1);
});

queues('a verdict obtained by one worker thread is known to the others without another verification', async () => {
	const { queue, running, end } = queueOf(2);
	const threads = [1, 2].map(
		() =>
			new ThreadPasswords({
				sendCheck: check => queue.verify(check),
				withdraw: id => queue.withdraw(id),
				clientOf: x => x.connection.remoteAddress,
				countRefusal: () => {},
			}),
	);
	const login = (thread: number, password: string) => threads[thread]!.verify(fakeExchange(), 'bob', HASH, password);
	for (const [password, verdict] of [
		['right', true],
		['wrong', false],
	] as const) {
		const first = [login(0, password), login(1, password)];
		await turn();
		assert.is(running.length, 1, 'two threads asked, and the password is verified once');
		await end(verdict);
		assert.equal(await Promise.all(first), [verdict, verdict]);
	}
	const known = login(0, 'once');
	await turn();
	await end(true);
	assert.is(await known, true);
	assert.is(await login(1, 'once'), true, 'known without asking before');
	assert.is(running.length, 0);
});

queues.run();

/** Expensive template functions: their results, the thread they run on, queue limits, and name lookups. */
import { createPrivateKey, createPublicKey, sign, verify } from 'node:crypto';
import { performance } from 'node:perf_hooks';
import { compareSync } from 'bcryptjs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { HttpError } from '../../../compiler/exchange/http-error.ts';
import { runPageTask } from '../../../runtime/page-work/do-page-task.ts';
import { PageWorkQueue } from '../../../runtime/page-work/page-work-queue.ts';
import { ThreadPageWork } from '../../../runtime/page-work/thread-page-work.ts';

const work = suite('page work');

work('bcrypt hashes and scrypt derivations are valid and salted', () => {
	const hash = runPageTask({ task: 'bcrypt', password: 'sécret' });
	assert.match(hash, /^\$2a\$10\$[./A-Za-z0-9]{53}$/);
	assert.ok(compareSync('sécret', hash));
	assert.not.ok(compareSync('secret', hash));
	assert.is.not(runPageTask({ task: 'bcrypt', password: 'sécret' }), hash);
	const derived = runPageTask({ task: 'scrypt', password: 'p', salt: 's\xff' });
	assert.match(derived, /^[0-9a-f]{128}$/);
	assert.is.not(runPageTask({ task: 'scrypt', password: 'p', salt: 's' }), derived);
});

for (const [kind, title] of [
	['rsa', 'RSA PRIVATE KEY'],
	['ecdsa', 'EC PRIVATE KEY'],
	['ed25519', 'PRIVATE KEY'],
	['dsa', 'DSA PRIVATE KEY'],
] as const) {
	work(`a generated ${kind} key has the right format and can sign`, () => {
		const pem = runPageTask({ task: 'key', kind });
		assert.ok(pem.startsWith(`-----BEGIN ${title}-----\n`), pem.slice(0, 40));
		assert.ok(pem.endsWith(`-----END ${title}-----\n`));
		const key = createPrivateKey(pem);
		const algorithm = kind === 'ed25519' ? null : 'sha256';
		const message = Buffer.from('a message');
		assert.ok(verify(algorithm, message, createPublicKey(key), sign(algorithm, message, key)));
		const { modulusLength, divisorLength, namedCurve } = key.asymmetricKeyDetails ?? {};
		const expected = { rsa: [4096], ecdsa: ['prime256v1'], ed25519: [], dsa: [2048, 256] }[kind];
		assert.equal(
			[modulusLength, divisorLength, namedCurve].filter(fact => fact !== undefined),
			expected,
		);
	});
}

work('tasks run on another thread, and tasks beyond a queue of 64 are refused', async () => {
	const reasons: string[] = [];
	const queue = new PageWorkQueue(reason => reasons.push(reason));
	try {
		const first = await queue.run({ task: 'bcrypt', password: 'a' });
		assert.ok(first && 'result' in first && compareSync('a', first.result));
		const before = performance.eventLoopUtilization();
		const waiting = Array.from({ length: 65 }, (_, i) => queue.run({ task: 'bcrypt', password: String(i) }));
		assert.is(await waiting[64], null);
		const answers = await Promise.all(waiting.slice(0, 8));
		const { active, utilization } = performance.eventLoopUtilization(before);
		assert.ok(answers.every(answer => answer && 'result' in answer));
		// Eight hashes take half a second. This thread should be idle during this time.
		assert.ok(utilization < 0.5, `busy for ${active} ms, ${Math.round(utilization * 100)} %`);
	} finally {
		assert.is(await queue.end(), true);
	}
	assert.equal(reasons, []);
	assert.equal(await queue.run({ task: 'bcrypt', password: 'late' }), { failure: 'the task was canceled' });
});

work("a worker thread gets the result, the task's error, or 503 if the queue is full", async () => {
	const answers = [{ result: 'hash' }, { failure: 'no memory' }, null];
	const thread = new ThreadPageWork(async () => answers.shift()!);
	const task = { task: 'bcrypt', password: 'x' } as const;
	assert.is(await thread.run(task), 'hash');
	await thread.run(task).then(
		() => assert.unreachable(),
		error => assert.is(error.message, 'no memory'),
	);
	await thread.run(task).then(
		() => assert.unreachable(),
		error => {
			assert.instance(error, HttpError);
			assert.equal([error.status, error.headers], [503, [['Retry-After', '5']]]);
		},
	);
});

work('names are resolved by the system, a limited number at a time', async () => {
	const thread = new ThreadPageWork(() => Promise.reject(new Error('unexpected task for the main thread')));
	const addresses = (host: string) => thread.run({ task: 'addresses', host });
	assert.is(await addresses('127.0.0.1'), '127.0.0.1');
	assert.is(await addresses('::1'), '::1');
	assert.match(await addresses('localhost'), /(^| )(127\.0\.0\.1|::1)( |$)/);
	const outcomes = await Promise.allSettled(Array.from({ length: 12 }, (_, i) => addresses(`${i}.host.invalid`)));
	const messages = outcomes.map(outcome => (outcome.status === 'rejected' ? outcome.reason.message : 'found'));
	assert.is(
		messages.filter(message => message === 'Too many pages are waiting for expensive template functions.').length,
		4,
	);
	assert.ok(
		messages.slice(0, 8).every(message => /^lookup \d\.host\.invalid: /.test(message)),
		messages.join('\n'),
	);
	assert.is(await addresses('127.0.0.1'), '127.0.0.1');
});

work.run();

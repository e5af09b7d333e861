/** A machine's connection to Redis. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { RedisConnection } from '../../../runtime/cluster/redis-connection.ts';
import { ScriptedRedis } from './scripted-redis.ts';

const connection = suite('connection to Redis');

/** Milliseconds within which Redis must answer. Redis, which is in this process, answers in time even on a busy machine. */
const LIMIT_MS = 1500;

connection(
	'a reply that has arrived in time counts, even if the process is busy until after the time limit',
	async () => {
		const redis = new ScriptedRedis(([name]) => {
			// By the time this callback runs, the reply has been sent, but not yet read.
			if (name === 'GET') setImmediate(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LIMIT_MS));
			return '+reply\r\n';
		});
		const failures: string[] = [];
		const deps = { onConnected: () => {}, onFailed: (cause: string) => failures.push(cause) };
		const client = new RedisConnection({ address: await redis.start() }, deps);
		try {
			// Waits for the connection.
			await client.sendCommand(['PING'], 60_000);
			assert.is(String(await client.sendCommand(['GET', 'a'], LIMIT_MS)), 'reply');
			assert.equal(failures, []);
		} finally {
			client.close();
			redis.close();
		}
	},
);

connection('a command without a reply is rejected after its time limit', async () => {
	const redis = new ScriptedRedis(([name]) => (name === 'GET' ? '' : '+reply\r\n'));
	const client = new RedisConnection({ address: await redis.start() }, { onConnected: () => {}, onFailed: () => {} });
	try {
		await client.sendCommand(['PING'], 60_000);
		const message = await client.sendCommand(['GET', 'a'], 50).then(
			() => 'a reply',
			(error: Error) => error.message,
		);
		assert.is(message, 'no answer within 50 ms');
	} finally {
		client.close();
		redis.close();
	}
});

connection.run();

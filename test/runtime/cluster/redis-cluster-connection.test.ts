/** Commands whose keys a Redis Cluster is moving: what is named as the cause if they fail. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Cluster } from '../../../runtime/cluster/cluster.ts';
import { ClusterError } from '../../../runtime/cluster/cluster-error.ts';
import { ScriptedRedis } from './scripted-redis.ts';

const test = suite('a command whose keys are being moved');

const TRY_AGAIN = '-TRYAGAIN Multiple keys request during rehashing of slot\r\n';

/** Sends a command to a Redis Cluster with one node, which gives the answers of `answer` to it. Returns the cause of the failure. */
async function causeOf(answer: (attempt: number, redis: ScriptedRedis) => string, limitMs: number): Promise<string> {
	let attempts = 0;
	const redis: ScriptedRedis = new ScriptedRedis(([name]) => {
		const [host, port] = address.split(':') as [string, string];
		const node = `*2\r\n$${host.length}\r\n${host}\r\n:${port}\r\n`;
		return name === 'CLUSTER'
			? `*1\r\n*3\r\n:0\r\n:16383\r\n${node}`
			: name === 'PING'
				? '+PONG\r\n'
				: answer(++attempts, redis);
	});
	const address = await redis.start();
	const cluster = new Cluster({ address, mode: 'cluster' }, { log: () => {} });
	try {
		await cluster.sendCommand(['PING'], 30_000);
		const error = await cluster.sendCommand(['EXISTS', 'a', 'b'], limitMs).catch(failure => failure);
		assert.instance(error, ClusterError);
		return error.message;
	} finally {
		cluster.close();
		redis.close();
	}
}

test('fails because of the move if it takes too long', async () => {
	assert.is(await causeOf(() => TRY_AGAIN, 300), 'keys are being moved to another node of the Redis Cluster');
});

test('fails because the node does not answer if it then does not answer', async () => {
	assert.match(await causeOf(attempt => (attempt === 1 ? TRY_AGAIN : ''), 1000), /^no answer within \d+ ms$/);
});

test('fails because the connection has ended if it then ends', async () => {
	const answer = (attempt: number, redis: ScriptedRedis): string => {
		if (attempt > 1) redis.close();
		return attempt === 1 ? TRY_AGAIN : '';
	};
	assert.match(await causeOf(answer, 1000), /^connection closed$/);
});

test.run();

/** Responses that the machines of a cluster share, after Redis was restored from a copy. */
import { renameSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { until } from '../harness.ts';
import { type Machine, withMachines } from './caching-machine.ts';

const test = suite('responses in a restored copy');

test('are no longer served, also by a machine that starts later, once their host is purged', async () => {
	await withMachines(
		2,
		async (machines, redis, application) => {
			const [first, second] = machines as [Machine, Machine];
			await second.purge({ tag: 'other' });
			assert.is((await first.ask('/page')).body, 'version 1');
			await until('the response in Redis', () => redis.cli('keys', 'svc:cache:url:*').trim() !== '');
			renameSync(redis.dump(), path.join(redis.folder, 'dump.rdb'));
			application.version = 2;
			await second.purge({ tag: 'news' });
			assert.is((await first.ask('/page')).body, 'version 2');
			// The machine that has purged the response cannot repeat the purge, which the copy lacks.
			await second.server!.stop();
			await redis.kill();
			await redis.start();
			await until(
				'the loss to be noticed',
				async () => (await first.metric('svc_cluster_complete_purges_total')) === 1,
			);
			await until(
				'the purge to be accepted',
				async () => (await first.purge({ host: 'shop.test', prefix: '/' })).status === 200,
			);
			await second.start();
			await until('both to be members', async () => (await second.cluster()).members?.length === 2);
			assert.is((await second.ask('/page')).body, 'version 2');
		},
		{ store: 'shared', timeout: '4s' },
	);
});

test.run();

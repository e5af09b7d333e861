/** `svc publish` with a real redis-server whose answers are lost, or which cannot be reached for a while. */
import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { SharedRollout } from '../../runtime/cluster/shared-rollout.ts';
import { type CommandResult, runCommand, startServer, temporaryFolder, until, waitForClock } from '../harness.ts';
import { RedisRelay } from './redis-relay.ts';
import { RedisServer } from './redis-server.ts';

const publishing = suite('publishing over a Redis that fails');

const KEY = randomBytes(32).toString('base64');
const env = { NO_COLOR: '1' };
/** Milliseconds for which `publish --wait` tolerates that Redis cannot be reached. */
const TOLERATED_OUTAGE_MS = 60_000;

interface Setup {
	readonly redis: RedisServer;
	readonly rollouts: SharedRollout;
	/** Returns a relay, and the path of a configuration that reaches Redis through it. */
	addRelay(): Promise<{ readonly relay: RedisRelay; readonly file: string }>;
}

/** Runs a test with an empty Redis. */
async function withRedis(test: (setup: Setup) => Promise<void>): Promise<void> {
	const redis = await RedisServer.start();
	const cluster = redis.cluster({ keys: [KEY] });
	const relays: RedisRelay[] = [];
	const addRelay: Setup['addRelay'] = async () => {
		const relay = await RedisRelay.start(redis.port);
		relays.push(relay);
		const file = path.join(temporaryFolder(), 'Configfile');
		writeFileSync(
			file,
			`{\n\tcluster redis://${relay.address} {\n\t\tkey ${KEY}\n\t}\n}\n\nhttp://:80 {\n\trespond "hello"\n}\n`,
		);
		return { relay, file };
	};
	try {
		const rollouts = new SharedRollout(cluster, cluster.sealedValues!);
		await test({ redis, rollouts, addRelay });
	} finally {
		for (const relay of relays) relay.close();
		cluster.close();
		await redis.kill();
	}
}

/** Ends the rollout in Redis, as the machines would. */
async function completeRollout(rollouts: SharedRollout): Promise<void> {
	const { revision, rollout } = await rollouts.read();
	const completed = { ...rollout!, phase: 'completed', admittedRank: 1 } as const;
	assert.ok(await rollouts.replace(revision, completed));
}

const publish = (file: string): Promise<CommandResult> => runCommand(['publish', file], { env });

publishing('a publication whose answer is lost is found in Redis and not published twice', async () => {
	await withRedis(async ({ redis, rollouts, addRelay }) => {
		const { relay, file } = await addRelay();
		relay.loseNext('answer', 'svc:publication:');
		const { status, stdout, stderr } = await publish(file);
		assert.is(status, 0, stderr);
		assert.match(stdout, /Configfile is publication 1\. To see how far it is: svc rollout status\n$/);
		assert.is(relay.lossCount, 1);
		assert.is((await rollouts.read()).rollout?.publication, 1);
		assert.is(redis.cli('exists', 'svc:publication:1', 'svc:publication:2').trim(), '1');
	});
});

publishing('a publication that never reaches Redis is reported as a failure, and nothing is published', async () => {
	await withRedis(async ({ rollouts, addRelay }) => {
		const { relay, file } = await addRelay();
		relay.loseNext('command', 'svc:publication:');
		const { status, stdout, stderr } = await publish(file);
		assert.is(status, 1);
		assert.is(stdout, '');
		assert.match(stderr, /\nerror: Redis at \S+ cannot be used: .+\.\n$/);
		assert.is(relay.lossCount, 1);
		assert.is((await rollouts.read()).rollout, undefined);
	});
});

publishing('if Redis stays away after the answer is lost, the command says that the outcome is unknown', async () => {
	await withRedis(async ({ rollouts, addRelay }) => {
		const { relay, file } = await addRelay();
		relay.loseNext('answer', 'svc:publication:', { isUnreachableAfter: true });
		const { status, stderr } = await publish(file);
		assert.is(status, 1);
		assert.match(stderr, /may have been published or not\. To see which: svc rollout status\n$/);
		assert.is((await rollouts.read()).rollout?.publication, 1);
	});
});

publishing('with --wait, the command survives an outage of less than a minute, and gives up after that', async () => {
	await withRedis(async ({ rollouts, addRelay }) => {
		const [short, long] = [await addRelay(), await addRelay()];
		/** Publishes, and makes Redis unreachable once the command waits. */
		const publishUntilOutage = async ({ relay, file }: typeof short) => {
			const command = startServer(['publish', file, '--wait'], { env });
			await until('the command to wait', () => command.output().includes('No machine reports.'));
			relay.setReachable(false);
			return command;
		};
		const givingUp = await publishUntilOutage(long);
		const outageBeganAt = performance.now();
		await completeRollout(rollouts);
		const waiting = await publishUntilOutage(short);
		await completeRollout(rollouts);
		// The outage lasts longer than the pauses between attempts to connect, so that some attempts fail.
		await waitForClock(5000);
		assert.is(waiting.child.exitCode, null, waiting.output());
		short.relay.setReachable(true);
		await until('the end of the command', () => waiting.child.exitCode !== null);
		assert.is(waiting.child.exitCode, 0, waiting.output());
		assert.match(waiting.output(), /is publication 2\.\n(?:.*\n)*All machines serve it\.\n$/);
		await waitForClock(TOLERATED_OUTAGE_MS - (performance.now() - outageBeganAt) - 5000);
		assert.is(givingUp.child.exitCode, null, givingUp.output());
		await until('the command to give up', () => givingUp.child.exitCode !== null);
		assert.is(givingUp.child.exitCode, 1);
		assert.match(
			givingUp.output(),
			/error: Publication 1 is published, but its rollout can no longer be watched: .+\. To see how far it is: svc rollout status\n$/,
		);
	});
});

publishing.run();

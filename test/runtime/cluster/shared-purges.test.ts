/**
 * Purges of all machines, with a stream that the test fills: which purges are applied to the caches of this machine, and how
 * often.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Cluster } from '../../../runtime/cluster/cluster.ts';
import { ClusterMembers } from '../../../runtime/cluster/cluster-members.ts';
import type { RedisReply } from '../../../runtime/cluster/redis-connection.ts';
import { SharedPurges } from '../../../runtime/cluster/shared-purges.ts';
import { until, waitForClock } from '../../harness.ts';

const purges = suite('shared purges');

/** An entry of the stream. */
interface Entry {
	readonly id: string;
	readonly number: number;
	readonly from: string;
	readonly selection: string;
}

const orderOf = (id: string): number => Number.parseInt(id, 10);

/** A fake of the Redis commands that purges use, over one stream in memory. */
class MemoryStream {
	readonly #entries: Entry[] = [];
	readonly #acceptedEntries = new Map<string, { readonly id: string; readonly number: number }>();
	#wake: () => void = () => {};
	/** Number of reads that have waited because there was no further entry. */
	waits = 0;
	/** True if each read returns no entries immediately, as a Redis would that does not wait for one. */
	answersAtOnce = false;
	reads = 0;

	add(from: string, selection: string): { id: string; number: number } {
		const number = this.#entries.length + 1;
		const entry = { id: `${number}-0`, number, from, selection };
		this.#entries.push(entry);
		this.#wake();
		return entry;
	}

	/** Adds a purge as the script does, unless its number is known. */
	runScript([, , , , accepted]: readonly string[], [from, selection]: readonly (string | Buffer)[]): RedisReply {
		const known = this.#acceptedEntries.get(accepted!);
		const entry = known ?? this.add(String(from), String(selection));
		this.#acceptedEntries.set(accepted!, entry);
		return [Buffer.from(entry.id), entry.number, []];
	}

	async command(args: readonly string[]): Promise<RedisReply> {
		const reply = (entries: readonly Entry[]): RedisReply =>
			entries.map(({ id, number, from, selection }) => [
				Buffer.from(id),
				['number', String(number), 'from', from, 'selection', selection].map(text => Buffer.from(text)),
			]);
		if (args[0] === 'EVAL') return this.runScript(args.slice(3, 8), args.slice(8));
		if (args[0] === 'XRANGE')
			return reply(
				this.#entries.filter(({ id }) => (args[3] === '+' ? orderOf(id) >= orderOf(args[2]!) : id === args[2])),
			);
		if (args[0] === 'XREVRANGE') return reply(this.#entries.slice(-1));
		assert.is(args[0], 'XREAD');
		this.reads++;
		if (this.answersAtOnce) return null;
		const after = Number.parseInt(args.at(-2)!, 10);
		if (this.#entries.length === after) {
			this.waits++;
			await new Promise<void>(resolve => {
				this.#wake = resolve;
			});
		}
		return [[Buffer.from('purges'), reply(this.#entries.slice(after))]];
	}
}

/**
 * Runs a test with the purges of one member of a cluster. `applied` lists the selections that the member's caches were asked to
 * purge.
 */
async function withPurges(
	run: (shared: SharedPurges, stream: MemoryStream, applied: readonly string[], positions: string[]) => Promise<void>,
): Promise<void> {
	const stream = new MemoryStream();
	const connection = { sendCommand: (args: readonly string[]) => stream.command(args), close: () => {} };
	const cluster = {
		address: 'redis.test:6379',
		redisKey: (name: string) => name,
		sealedValues: undefined,
		openConnection: async () => connection,
		async runScript(_text: string, keys: readonly string[], args: readonly (string | Buffer)[]): Promise<RedisReply> {
			return keys[0] === 'purges' ? stream.runScript(keys, args) : null;
		},
	} as unknown as Cluster;
	const members = new ClusterMembers(cluster, { version: () => 'test', generation: () => 1 });
	const applied: string[] = [];
	const positions: string[] = [];
	const shared = new SharedPurges(
		cluster,
		members,
		{
			purge: async selection => applied.push(JSON.stringify(selection)),
			purgePositions: async () => positions,
			recordPurgePosition: () => {},
		},
		() => {},
	);
	const ended = shared.start();
	try {
		await until('the first read waits', () => stream.waits === 1);
		await run(shared, stream, applied, positions);
	} finally {
		shared.close();
		stream.answersAtOnce = false;
		stream.add('another', '');
		await ended;
	}
}

purges('of this machine are applied once, and those of others when they are read', async () => {
	await withPurges(async (shared, stream, applied) => {
		await shared.purge({ tag: 'own' });
		await until('its entry has been read', () => stream.waits === 2);
		assert.equal(applied, ['{"tag":"own"}']);
		stream.add('another', '{"tag":"other"}');
		await until('the other entry has been read', () => stream.waits === 3);
		assert.equal(applied, ['{"tag":"own"}', '{"tag":"other"}']);
		assert.is(shared.counts.received, 1);
	});
});

purges('of this machine are applied again for a disk cache that is opened later and has missed them', async () => {
	await withPurges(async (shared, stream, applied, positions) => {
		await shared.purge({ tag: 'first' });
		await shared.purge({ tag: 'second' });
		await until('both entries have been read', () => stream.waits >= 2 && applied.length === 2);
		positions.push('{"log":"redis.test:6379 purges","id":"2-0","number":2}');
		shared.onDiskOpened();
		stream.add('another', '{"tag":"other"}');
		await until('all have been applied', () => applied.includes('{"tag":"other"}'));
		assert.equal(applied.slice(2), ['{"tag":"second"}', '{"tag":"other"}']);
	});
});

purges('whose selection cannot be read purge everything', async () => {
	await withPurges(async (shared, stream, applied) => {
		stream.add('another', 'not JSON');
		await until('everything is purged', () => applied.length === 1);
		assert.equal(applied, ['{"prefix":"/"}']);
		assert.is(shared.counts.complete, 0);
	});
});

purges('are looked for with pauses if Redis answers at once with nothing', async () => {
	await withPurges(async (_shared, stream, applied) => {
		stream.answersAtOnce = true;
		stream.add('another', '{"tag":"first"}');
		await until('the first purge', () => applied.length === 1);
		const readsBefore = stream.reads;
		await waitForClock(1000);
		// With a pause after each read, there is one read every 200 ms. Without it, there would be thousands.
		assert.ok(stream.reads - readsBefore <= 6, String(stream.reads - readsBefore));
		stream.answersAtOnce = false;
		stream.add('another', '{"tag":"second"}');
		await until('the second purge', () => applied.length === 2);
	});
});

purges.run();

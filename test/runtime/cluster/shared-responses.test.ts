/** Responses that machines share through Redis, with a Redis whose replies the test gives: leases, and replies that are not valid. */
import { randomBytes } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { CachedHead, ClusterAnswer, ClusterIntent } from '../../../compiler/exchange/response-cache.ts';
import { CacheMemory } from '../../../runtime/cache/cache-memory.ts';
import { cacheLayout } from '../../../runtime/cache/memory-layout.ts';
import { SharedCache } from '../../../runtime/cache/shared-cache.ts';
import type { Cluster } from '../../../runtime/cluster/cluster.ts';
import type { RedisReply } from '../../../runtime/cluster/redis-connection.ts';
import { SealedValues } from '../../../runtime/cluster/sealed-values.ts';
import type { SharedPurges } from '../../../runtime/cluster/shared-purges.ts';
import { decodeRecord, encodeRecord } from '../../../runtime/cluster/shared-record.ts';
import { SharedResponses } from '../../../runtime/cluster/shared-responses.ts';

const test = suite('shared responses');

const KEY = randomBytes(32).toString('base64');
const CEILING = 1024 * 1024;
const THREAD = 2;
const SETTINGS = { maxBytes: 65_536, keepMs: 60_000, waitMs: 5000 };
const POSITION = Buffer.from('1-0');

/** A Lua script that the tier runs in Redis. The test recognizes each by the number of its keys. */
type ScriptName = 'consult' | 'store' | 'release' | 'other';
const SCRIPTS_BY_KEY_COUNT: { readonly [count: string]: ScriptName } = { 5: 'consult', 4: 'store', 2: 'release' };

interface Tier {
	readonly responses: SharedResponses;
	/** The scripts that were run, with their arguments. */
	readonly runs: { readonly script: ScriptName; readonly args: readonly string[] }[];
	readonly logged: string[];
	/** The time limits of the consultations, in milliseconds. */
	readonly limits: number[];
	consult(intent?: ClusterIntent): Promise<ClusterAnswer>;
}

/** Returns one machine's cache tier in Redis. `reply` returns the reply of Redis to a script with the arguments `args`. */
function openTier(reply: (script: ScriptName, args: readonly string[]) => RedisReply | Promise<RedisReply>): Tier {
	const layout = cacheLayout(CEILING, 3);
	const buffer = new SharedArrayBuffer(layout.words * 4);
	CacheMemory.prepare(buffer, undefined);
	const cache = new SharedCache({ buffer, ceiling: CEILING, rows: 3, thread: 3, count: () => {} });
	const runs: { script: ScriptName; args: readonly string[] }[] = [];
	const logged: string[] = [];
	const limits: number[] = [];
	const cluster = {
		address: 'redis.test:6379',
		timeoutMs: 200,
		redisKey: (name: string) => name,
		async sendCommand(
			[command, , keyCount, ...rest]: readonly (string | Buffer)[],
			limitMs: number,
		): Promise<RedisReply> {
			if (command !== 'EVALSHA') return [];
			const script = SCRIPTS_BY_KEY_COUNT[String(keyCount)] ?? 'other';
			const args = rest.slice(Number(keyCount)).map(String);
			runs.push({ script, args });
			if (script === 'consult') limits.push(limitMs);
			return reply(script, args);
		},
	} as unknown as Cluster;
	const purges = { unsharedSelections: [] } as unknown as SharedPurges;
	const responses = new SharedResponses(cluster, purges, new SealedValues([KEY]), KEY, (_level, message) =>
		logged.push(message),
	);
	const url = { host: 'shop.test', path: '/', query: undefined };
	const consult = (intent: ClusterIntent = 'join'): Promise<ClusterAnswer> =>
		responses.consult({ key: 'k', url, intent, knownVersions: [], thread: THREAD }, cache, SETTINGS);
	return { responses, runs, logged, limits, consult };
}

const stateReply = (state: string, ...rest: readonly RedisReply[]): RedisReply => [
	Date.now(),
	POSITION,
	Buffer.from(state),
	...rest,
];
const countOf = ({ runs }: Tier, script: ScriptName): number => runs.filter(run => run.script === script).length;

test("a request that finds the ending lease of its own process takes the lease after that one's end", async () => {
	const { promise: released, resolve: release } = Promise.withResolvers<void>();
	let holder: string | undefined;
	const tier = openTier(async (script, args) => {
		if (script === 'release') {
			await released;
			holder = undefined;
			return 1;
		}
		if (holder !== undefined) return stateReply('own', Buffer.from(holder));
		holder = args[2]!.split(' ').at(-1)!;
		return stateReply('lead');
	});
	const first = (await tier.consult()) as { outcome: 'lead'; leaseId: number };
	assert.is(first.outcome, 'lead');
	// A request of the same machine that consults Redis during the fetch does not wait for it, but fetches alone.
	assert.is((await tier.consult()).outcome, 'alone');
	const ending = tier.responses.endFetch({ leaseId: first.leaseId, outcome: 'failed', stored: undefined });
	const second = tier.consult();
	const third = tier.consult('lead');
	release();
	await ending;
	assert.equal(
		(await Promise.all([second, third])).map(({ outcome }) => outcome),
		['lead', 'alone'],
	);
	await tier.responses.close();
});

test('several slow replies to one request together take no longer than the time limit of one', async () => {
	let version = 0;
	// A response that cannot be decrypted makes the machine ask Redis again.
	const tier = openTier(async script => {
		if (script !== 'consult') return 1;
		await pause(120);
		return stateReply('found', Buffer.from('variant'), Buffer.from(`${++version}:unreadable`));
	});
	assert.is((await tier.consult('lead')).outcome, 'alone');
	assert.ok(tier.limits[0]! > 150 && tier.limits[0]! <= 200, String(tier.limits));
	assert.ok(tier.limits[1]! <= 80, String(tier.limits));
	assert.is(tier.limits.length, 2);
	await tier.responses.close();
});

test('a lease that is granted to a thread that has died in the meantime ends at once', async () => {
	const { promise: granted, resolve: grant } = Promise.withResolvers<void>();
	const tier = openTier(async script => {
		if (script !== 'consult') return 1;
		await granted;
		return stateReply('lead');
	});
	const answer = tier.consult();
	tier.responses.onThreadEnded(THREAD);
	grant();
	assert.is((await answer).outcome, 'alone');
	assert.is(countOf(tier, 'release'), 1);
	// The thread that has replaced the dead thread gets a lease.
	assert.is((await tier.consult()).outcome, 'lead');
	assert.is(countOf(tier, 'release'), 1);
	await tier.responses.close();
});

for (const [name, value] of [
	['without a version', 'garbage'],
	['that is empty', ''],
	['whose version is not ASCII', 'v\u00e9rsion:garbage'],
	['that cannot be decrypted', 'version:garbage'],
] as const) {
	test(`a value in Redis ${name} is not asked for again and again`, async () => {
		const tier: Tier = openTier(script => {
			if (script !== 'consult') return 1;
			if (tier.runs.length > 20) throw new Error('the value is asked for again and again');
			return stateReply('found', Buffer.from('variant'), Buffer.from(value));
		});
		assert.is((await tier.consult()).outcome, 'alone');
		assert.equal(tier.logged, []);
		await tier.responses.close();
	});
}

for (const [name, reply] of [
	['nothing', null],
	['a text', Buffer.from('PONG')],
	['no elements', []],
	['only the time', [1]],
	['an unknown state', [1, POSITION, Buffer.from('none')]],
	['a state without its values', [1, POSITION, Buffer.from('wait')]],
	['nothing in place of a value', [1, POSITION, Buffer.from('found'), Buffer.from('variant'), null]],
] as readonly (readonly [string, RedisReply])[]) {
	test(`after a reply with ${name}, requests are answered without Redis, which is logged once`, async () => {
		const tier = openTier(() => reply);
		assert.is((await tier.consult()).outcome, 'alone');
		assert.is((await tier.consult()).outcome, 'alone');
		assert.equal(tier.logged, ['responses are not shared']);
		await tier.responses.close();
	});
}

test('a sealed record in another form is not read, and no error quotes it', async () => {
	const sealedValues = new SealedValues([KEY]);
	const seal = (metadata: string): Buffer => {
		const header = Buffer.alloc(6);
		header.writeUInt8(1, 0);
		header.writeUInt32LE(metadata.length, 2);
		return sealedValues.seal('name', Buffer.concat([header, Buffer.from(metadata)]));
	};
	for (const metadata of ['{"secret', 'null', '[]', '{"head":{},"position":"1-0","length":0}'])
		assert.is(await decodeRecord(seal(metadata), 'name', sealedValues), undefined, metadata);
	const head = { fields: [], selecting: [], tags: [], storedAt: 1 } as unknown as CachedHead;
	const record = await encodeRecord({ head, position: '1-0', body: Buffer.from('body') }, 'name', sealedValues);
	assert.is(String((await decodeRecord(record, 'name', sealedValues))?.body), 'body');
});

test.run();

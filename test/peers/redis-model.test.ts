/**
 * The model of Redis in the simulation of a large cluster, compared with a real redis-server: random commands, and the scripts of the
 * product. In the scripts, only the time is replaced, so that both sides see the same time.
 */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Cluster } from '../../runtime/cluster/cluster.ts';
import { HEARTBEAT_SCRIPT } from '../../runtime/cluster/cluster-members.ts';
import type { RedisReply } from '../../runtime/cluster/redis-connection.ts';
import { REPORT_SCRIPT } from '../../runtime/cluster/shared-limits.ts';
import { CONFIRM_SCRIPT, PUBLISH_SCRIPT } from '../../runtime/cluster/shared-purges.ts';
import { until } from '../harness.ts';
import { RedisModel, WAITING } from '../simulation/redis-model.ts';
import { commandBytes, replyBytes } from '../simulation/wire-size.ts';
import { seededRandom } from '../zipf-trace.ts';
import { RedisServer } from './redis-server.ts';

const test = suite('the model of Redis');
type Args = readonly (string | Buffer)[];

/** A real server and a model that have executed the same commands. */
class Pair {
	readonly server: RedisServer;
	readonly cluster: Cluster;
	readonly model = new RedisModel(() => this.#now);
	readonly random = seededRandom(1);
	#now = 0;
	/** IDs of the entries that replies contained. */
	readonly entryIds: string[] = ['0-0'];

	private constructor(server: RedisServer) {
		this.server = server;
		this.cluster = server.cluster();
	}

	static async start(): Promise<Pair> {
		const pair = new Pair(await RedisServer.start());
		await pair.cluster.sendCommand(['PING'], 30_000);
		return pair;
	}

	async stop(): Promise<void> {
		this.cluster.close();
		await this.server.kill();
	}

	/** Runs a script on both sides, with the same time, and compares the replies. */
	async runScript(source: string, keys: readonly string[], args: Args): Promise<RedisReply> {
		this.#now = Math.floor((performance.timeOrigin + performance.now()) * 1000);
		const milliseconds = Math.floor(this.#now / 1000);
		const time = ['time:seconds', Math.floor(this.#now / 1e6), 'time:rest', this.#now % 1e6].map(String);
		time.push('time:milliseconds', String(milliseconds));
		// Commands of one connection are executed in the order in which they were sent.
		const timeSet = this.cluster.sendCommand(['MSET', ...time], 5000);
		const timeless = source
			.replaceAll("redis.call('TIME')", "{redis.call('GET', 'time:seconds'), redis.call('GET', 'time:rest')}")
			.replaceAll("'*'", "(redis.call('GET', 'time:milliseconds') .. '-*')")
			// Keys must not expire while a busy machine is between two commands. Their members expire by the replaced time.
			.replaceAll("'PEXPIRE', KEYS[1], expiry", "'PEXPIRE', KEYS[1], expiry + 3600000");
		const [, real] = await Promise.all([timeSet, this.cluster.runScript(timeless, keys, args, 5000)]);
		const modeled = this.model.execute(['EVAL', source, String(keys.length), ...keys, ...args]);
		return this.#assertSame(real, modeled, args);
	}

	/** Sends a command to both sides, and compares the replies. */
	async sendCommand(args: readonly string[]): Promise<RedisReply> {
		const real = await this.cluster.sendCommand(args, 5000);
		const modeled = this.model.execute(args);
		return this.#assertSame(real, modeled === WAITING ? null : modeled, args);
	}

	#assertSame(real: RedisReply, modeled: RedisReply | typeof WAITING, args: Args): RedisReply {
		assert.equal(textOf(modeled as RedisReply), textOf(real), args.join(' '));
		const newId = Array.isArray(real) ? String(real[0]) : '';
		if (/^\d{13}-\d+$/.test(newId)) this.entryIds.push(newId);
		return real;
	}

	/** Returns the ID of a random entry. */
	entryId(): string {
		return this.entryIds[this.integer(this.entryIds.length)]!;
	}

	integer(limit: number): number {
		return Math.floor(this.random() * limit);
	}
}

function textOf(reply: RedisReply): unknown {
	if (Array.isArray(reply)) return reply.map(textOf);
	return Buffer.isBuffer(reply) ? reply.toString('latin1') : reply;
}

test('counts limits as the script does, also repeated reports, full zones, refunds and expired keys', async () => {
	const pair = await Pair.start();
	try {
		const lastNumbers = [0, 0, 0];
		let repeated = 0;
		for (let step = 0; step < 2000; step++) {
			const [zone, process] = [`zone-${pair.integer(2)}`, pair.integer(3)];
			if (pair.random() < 0.1) repeated++;
			else lastNumbers[process]!++;
			const args: (string | Buffer)[] = [String(lastNumbers[process]), '12'];
			for (let key = pair.integer(4); key >= 0; key--) {
				const name = Buffer.of(255 - pair.integer(30), 0, 13, 10);
				const amount = pair.integer(200_000) - 20_000;
				args.push(name, String(amount), String(500_000), pair.random() < 0.2 ? '1' : '0');
			}
			await pair.runScript(REPORT_SCRIPT.source, [zone, `${zone}:${process}`], args);
			if (step % 50 !== 0) continue;
			const listed = pair.server.cli('--no-raw', 'zrange', zone, '0', '-1', 'withscores');
			assert.is(listed.match(/^ *\d+\) /gm)?.length ?? 0, 2 * pair.model.scoresOf(zone).size);
		}
		assert.ok(repeated > 50);
	} finally {
		await pair.stop();
	}
});

test('keeps members, purges, confirmations and their positions as Redis does', async () => {
	const pair = await Pair.start();
	try {
		const members = ['members', 'facts', 'missing'];
		for (let step = 0; step < 2000; step++) {
			const member = `machine-${pair.integer(20)}`;
			const kind = pair.integer(6);
			if (kind === 0) await pair.runScript(HEARTBEAT_SCRIPT, members, [member, '20', `{"id":"${member}"}`, '50']);
			else if (kind === 1) {
				// Some purges are sent again, as after a lost reply.
				const keys = ['purges', 'last', 'members', 'missing', `accepted-${step - (step % 20)}`];
				await pair.runScript(PUBLISH_SCRIPT, keys, [member, `{"tag":"${step}"}`, '10000', '60000']);
			} else if (kind === 2) await pair.runScript(CONFIRM_SCRIPT, ['confirmed'], [`purge ${step}`, member, '60000']);
			else if (kind === 3) await pair.sendCommand(['XREVRANGE', 'purges', '+', '-', 'COUNT', '1']);
			else {
				const [first, second] = [pair.entryId(), pair.entryId()];
				if (kind === 4) await pair.sendCommand(['XRANGE', 'purges', first, first]);
				else
					await pair.sendCommand([
						...['XREAD', 'COUNT', '5', 'BLOCK', '1', 'STREAMS'],
						...['purges', 'confirmed', first, second],
					]);
			}
		}
		assert.ok(pair.entryIds.length > 200, `${pair.entryIds.length} entries`);
	} finally {
		await pair.stop();
	}
});

test('wakes a waiting read with the entry that was added', async () => {
	const pair = await Pair.start();
	const waiting = await pair.cluster.openConnection();
	try {
		const read = ['XREAD', 'COUNT', '100', 'BLOCK', '10000', 'STREAMS', 'purges', 'confirmed', '0-0', '0-0'];
		const real = waiting.sendCommand(read, 20_000);
		assert.is(pair.model.execute(read), WAITING);
		await until('the read waits', () => pair.server.cli('info', 'clients').includes('blocked_clients:1'));
		await pair.runScript(
			PUBLISH_SCRIPT,
			['purges', 'last', 'members', 'missing', 'accepted'],
			['one', 'x', '10000', '60000'],
		);
		assert.equal([...pair.model.takeExtendedStreams()], ['purges']);
		assert.equal(textOf(pair.model.read(read)!), textOf(await real));
	} finally {
		waiting.close();
		await pair.stop();
	}
});

test('forgets a zone when Redis does', async () => {
	const pair = await Pair.start();
	try {
		await pair.cluster.sendCommand(['PING'], 30_000);
		for (const [number, amount] of [60_000_000, 90_000_000, 10_000_000].entries()) {
			const args = ['EVAL', REPORT_SCRIPT.source, '2', 'zone', 'zone:1', String(number), '9', 'client', `${amount}`];
			await pair.cluster.sendCommand([...args, '100000000', '0'], 5000);
			pair.model.execute([...args, '100000000', '0']);
			const [real, modeled] = [Number(pair.server.cli('pttl', 'zone')), pair.model.remainingMs('zone')];
			assert.ok(Math.abs(real - modeled) < 15_000, `it expires in ${real} ms, in the model in ${modeled} ms`);
		}
	} finally {
		await pair.stop();
	}
});

test('counts the bytes of commands and replies as Redis does', async () => {
	const pair = await Pair.start();
	const traffic = (): [received: number, sent: number] => {
		const text = pair.server.cli('info', 'stats');
		return ['input', 'output'].map(name => Number(new RegExp(`total_net_${name}_bytes:(\\d+)`).exec(text)![1])) as [
			number,
			number,
		];
	};
	try {
		const [first, second] = [traffic(), traffic()];
		let [received, sent] = [0, 0];
		for (let count = 1; count <= 100; count++) {
			const keys = Array.from({ length: 3 * count }, (_, key) => [Buffer.alloc(12, key), '600000', '60000000', '0']);
			const args = ['EVAL', REPORT_SCRIPT.source, '2', 'zone', 'zone:1', String(count), '1000', ...keys.flat()];
			const reply = await pair.cluster.sendCommand(args, 5000);
			received += commandBytes(args);
			sent += replyBytes(reply);
		}
		const third = traffic();
		const own = [second[0] - first[0], second[1] - first[1]] as const;
		assert.ok(Math.abs(third[0] - second[0] - own[0] - received) < 100, `${received} bytes were received`);
		assert.ok(Math.abs(third[1] - second[1] - own[1] - sent) < 100, `${sent} bytes were sent`);
	} finally {
		await pair.stop();
	}
});

test.run();

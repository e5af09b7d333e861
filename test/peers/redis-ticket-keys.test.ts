/** TLS sessions that one machine of a cluster began are resumed at another one, because machines share their ticket keys. */
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { type AddressInfo, connect as connectTcp, createServer } from 'node:net';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { SealedValues } from '../../runtime/cluster/sealed-values.ts';
import { quicSupport } from '../../runtime/sockets/quic/quic-library.ts';
import { TestAuthority } from '../certificates.ts';
import { freePorts, type ServerProcess, serve, temporaryFolder, until } from '../harness.ts';
import { tlsGet } from '../runtime/tls/tls-client.ts';
import { RedisServer } from './redis-server.ts';

const tickets = suite('session tickets of several machines');
const CLUSTER_KEY = randomBytes(32).toString('base64');
const PERIOD_SECONDS = 12 * 3600;
const REDIS_KEY = `svc:ticket_keys:${PERIOD_SECONDS * 1000}`;
const VERSIONS = ['TLSv1.2', 'TLSv1.3'] as const;
type Version = (typeof VERSIONS)[number];
const { certificate, key } = await (await TestAuthority.make()).issue({ names: ['localhost'] });

class Machine {
	readonly port: number;
	readonly #file: string;
	readonly #environment: Record<string, string>;
	server: ServerProcess | undefined;

	constructor(port: number, redis: string, environment: Record<string, string>, keys = '{$CLUSTER_KEY}') {
		this.port = port;
		this.#environment = { CLUSTER_KEY, ...environment };
		const folder = temporaryFolder();
		this.#file = path.join(folder, 'Configfile');
		writeFileSync(path.join(folder, 'c.pem'), certificate);
		writeFileSync(path.join(folder, 'k.pem'), key);
		writeFileSync(
			this.#file,
			`{
	admin off
	threads 2
	auto_https disable_redirects
	cluster redis://${redis} {
		key ${keys}
	}
}
https://localhost:${port} {
	bind 127.0.0.1
	tls ${folder}/c.pem ${folder}/k.pem
	respond "{http.request.tls.resumed}"
}
`,
		);
	}

	async start(): Promise<void> {
		this.server = await serve(['-c', this.#file], this.port, { env: this.#environment });
	}

	/** Requests the page. Returns whether the session was resumed, and the client's newest session. */
	async get(version: Version, session?: Buffer): Promise<{ resumed: boolean; session: Buffer }> {
		const options = { servername: 'localhost', maxVersion: version, ...(session ? { session } : {}) };
		const answer = await tlsGet(this.port, options);
		assert.is(answer.body, String(answer.reused));
		return { resumed: answer.reused, session: answer.session ?? session! };
	}
}

/** A proxy between machines and Redis that replaces the time in scripts, because a test cannot set the clock of Redis itself. */
class RedisClock {
	/** Seconds by which the clock of Redis is ahead of the real one. */
	aheadSeconds = 0;
	readonly #server = createServer();

	static async start(redis: RedisServer): Promise<RedisClock> {
		const clock = new RedisClock();
		clock.#server.on('connection', machine => {
			const toRedis = connectTcp(redis.port, '127.0.0.1');
			machine.on('data', (bytes: Buffer) => {
				// The replacement has the same length, so that the lengths in the protocol remain right.
				const time = `{${Math.floor(Date.now() / 1000) + clock.aheadSeconds},00000}`;
				toRedis.write(Buffer.from(bytes.toString('latin1').replaceAll("redis.call('TIME')", time), 'latin1'));
			});
			toRedis.on('data', (bytes: Buffer) => machine.write(bytes));
			for (const socket of [machine, toRedis]) {
				socket.on('error', () => {});
				socket.on('close', () => {
					machine.destroy();
					toRedis.destroy();
				});
			}
		});
		clock.#server.listen(0, '127.0.0.1');
		await once(clock.#server, 'listening');
		return clock;
	}

	get address(): string {
		return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
	}

	close(): void {
		this.#server.close();
	}
}

async function withMachines(
	count: number,
	test: (machines: readonly Machine[], redis: RedisServer) => Promise<void>,
	environment: Record<string, string> = {},
): Promise<void> {
	const redis = await RedisServer.start();
	const ports = await freePorts(count);
	const machines = ports.map(port => new Machine(port, redis.address, environment));
	try {
		await Promise.all(machines.map(machine => machine.start()));
		await whenKeysAreShared(machines, redis);
		await test(machines, redis);
	} finally {
		await Promise.all(machines.map(({ server }) => server?.stop()));
		await redis.kill();
	}
}

/** Returns the decrypted keys in Redis, by period. */
function storedKeys(redis: RedisServer): Map<number, Buffer> {
	const sealedValues = new SealedValues([CLUSTER_KEY]);
	const fields = redis.cli('hkeys', REDIS_KEY).trim().split('\n').filter(Boolean);
	return new Map(
		fields.map(period => {
			// redis-cli ends its output with a line break.
			const sealed = Buffer.from(redis.cli('hget', REDIS_KEY, period).slice(0, -1), 'latin1');
			return [Number(period), sealedValues.open(`session ticket key ${period}`, sealed)!];
		}),
	);
}

/** Reports whether a ticket of a session was encrypted with a key. */
const isOfKey = (session: Buffer, ticketKey: Buffer): boolean => session.includes(ticketKey.subarray(0, 16));

/** Waits until each machine uses the keys in Redis. A machine whose first read took too long starts with keys of its own. */
function whenKeysAreShared(machines: readonly Machine[], redis: RedisServer): Promise<void> {
	return until('every machine encrypts tickets with the current key in Redis', async () => {
		const keys = storedKeys(redis);
		const current = keys.get(Math.min(...keys.keys()));
		if (current === undefined) return false;
		const answers = await Promise.all(machines.map(machine => machine.get('TLSv1.3')));
		return answers.every(({ session }) => isOfKey(session, current));
	});
}

for (const io of ['direct', 'node']) {
	tickets(
		`begun at one machine are accepted at the other one with ${io} I/O, and Redis has no readable key`,
		async () => {
			await withMachines(
				2,
				async ([first, second], redis) => {
					const sessions: Buffer[] = [];
					for (const version of VERSIONS) {
						const begun = await first!.get(version);
						assert.not(begun.resumed);
						const resumed = await second!.get(version, begun.session);
						assert.ok(resumed.resumed, `${version} at the second machine`);
						assert.ok((await first!.get(version, resumed.session)).resumed, `${version} back at the first machine`);
						sessions.push(begun.session);
					}
					const keys = [...storedKeys(redis)].sort(([a], [b]) => a - b).map(([, ticketKey]) => ticketKey);
					assert.is(keys.length, 2, 'the current key and the next one');
					assert.ok(sessions.every(session => isOfKey(session, keys[0]!)));
					const dump = readFileSync(redis.dump());
					assert.ok(dump.includes(REDIS_KEY));
					for (const ticketKey of keys) {
						for (const secret of [ticketKey.subarray(16, 32), ticketKey.subarray(32, 48)]) {
							assert.not.ok(dump.includes(secret));
							for (const encoding of ['hex', 'base64'] as const)
								for (const { server } of [first!, second!])
									assert.not.ok(server!.output().includes(secret.toString(encoding).slice(0, 20)));
						}
					}
				},
				{ SVC_IO: io },
			);
		},
	);
}

if (quicSupport().missing === undefined) {
	tickets('of QUIC connections are accepted at the other machine', async () => {
		const { connect, freeSession } = await import('../runtime/protocols/http3/quic-client.ts');
		const { headers, openControlStream, response } = await import('../runtime/protocols/http3/frames.ts');
		await withMachines(2, async ([first, second]) => {
			let session: bigint | undefined;
			for (const [machine, expected] of [
				[first!, 'false'],
				[second!, 'true'],
				[first!, 'true'],
			] as const) {
				const client = await connect(machine.port, session === undefined ? {} : { session });
				openControlStream(client);
				assert.is((await response(client, client.open().write(headers(), true))).body, expected);
				if (session !== undefined) freeSession(session);
				session = client.session();
				client.close();
			}
			freeSession(session!);
		});
	});
}

tickets('are accepted everywhere while the keys are replaced under load', async () => {
	const redis = await RedisServer.start();
	const clock = await RedisClock.start(redis);
	const machines = (await freePorts(2)).map(port => new Machine(port, clock.address, {}));
	let isLoading = true;
	try {
		await Promise.all(machines.map(machine => machine.start()));
		await whenKeysAreShared(machines, redis);
		const period = Math.min(...storedKeys(redis).keys());
		const failures: string[] = [];
		let resumptions = 0;
		const load = VERSIONS.map(async version => {
			let { session } = await machines[0]!.get(version);
			for (let i = 1; isLoading; i++) {
				const answer = await machines[i % 2]!.get(version, session);
				if (answer.resumed) resumptions++;
				else failures.push(`${version}, request ${i}`);
				session = answer.session;
			}
		});
		const oldSessions = await Promise.all(machines.map(machine => machine.get('TLSv1.3')));
		for (const rotation of [1, 2]) {
			const nextKey = storedKeys(redis).get(period + rotation)!;
			clock.aheadSeconds = rotation * PERIOD_SECONDS;
			// A machine notices that the clock of Redis was changed when it reads the keys again.
			for (const machine of machines) {
				await until('the next key to encrypt', async () => isOfKey((await machine.get('TLSv1.3')).session, nextKey));
				// These sessions were begun in the period before the current one.
				for (const { session } of rotation === 1 ? oldSessions : [])
					assert.ok((await machine.get('TLSv1.3', session)).resumed, 'a session of the period before');
			}
			await until('a key for the period after', async () => storedKeys(redis).has(period + rotation + 1));
		}
		isLoading = false;
		await Promise.all(load);
		assert.equal(failures, []);
		assert.ok(resumptions > 20, `${resumptions} resumptions`);
		assert.equal(
			[...storedKeys(redis).keys()].sort((a, b) => a - b),
			[period + 1, period + 2, period + 3],
		);
		for (const machine of machines)
			assert.not((await machine.get('TLSv1.3', oldSessions[0]!.session)).resumed, 'after two rotations');
	} finally {
		isLoading = false;
		await Promise.all(machines.map(({ server }) => server?.stop()));
		clock.close();
		await redis.kill();
	}
});

tickets('are accepted after Redis was away at the start, and after it has lost its data', async () => {
	const redis = await RedisServer.start();
	await redis.kill();
	const machines = (await freePorts(2)).map(port => new Machine(port, redis.address, {}));
	const [first, second] = machines as [Machine, Machine];
	try {
		await Promise.all(machines.map(machine => machine.start()));
		const begun = await Promise.all(machines.map(machine => machine.get('TLSv1.3')));
		assert.ok((await first.get('TLSv1.3', begun[0]!.session)).resumed, 'without Redis, at the machine itself');
		assert.not((await second.get('TLSv1.3', begun[0]!.session)).resumed, 'without Redis, at the other machine');
		await redis.start();
		const sharesSessions = async (): Promise<boolean> => {
			const { session } = await first.get('TLSv1.3');
			return (await second.get('TLSv1.3', session)).resumed;
		};
		await until('shared keys', sharesSessions);
		for (const [index, machine] of machines.entries())
			assert.ok((await machine.get('TLSv1.3', begun[index]!.session)).resumed, 'a session from before');
		const keys = storedKeys(redis);
		const { session } = await first.get('TLSv1.3');
		await redis.kill();
		await redis.start();
		await until('the same keys again', () => storedKeys(redis).size >= 2);
		for (const [period, ticketKey] of storedKeys(redis)) assert.equal(ticketKey, keys.get(period));
		assert.ok((await second.get('TLSv1.3', session)).resumed);
	} finally {
		await Promise.all(machines.map(({ server }) => server?.stop()));
		await redis.kill();
	}
});

tickets('are not shared with a machine that has another key of the cluster, which says so', async () => {
	await withMachines(1, async ([first], redis) => {
		const [port] = await freePorts(1);
		const other = new Machine(port!, redis.address, { CLUSTER_KEY: randomBytes(32).toString('base64') });
		await other.start();
		try {
			const { session } = await first!.get('TLSv1.3');
			const answer = await other.get('TLSv1.3', session);
			assert.not(answer.resumed);
			assert.ok((await other.get('TLSv1.3', answer.session)).resumed);
			await until('the entry', () =>
				other.server!.output().includes('session ticket keys in Redis cannot be decrypted'),
			);
			assert.is(storedKeys(redis).size, 2, 'its keys do not replace those in Redis');
		} finally {
			await other.server?.stop();
		}
	});
});

tickets('are encrypted with the new key of the cluster while it is replaced', async () => {
	await withMachines(1, async ([first], redis) => {
		const newKey = randomBytes(32).toString('base64');
		const [port] = await freePorts(1);
		const other = new Machine(port!, redis.address, { NEW_KEY: newKey }, '{$NEW_KEY} {$CLUSTER_KEY}');
		const sealedBefore = redis.cli('hgetall', REDIS_KEY);
		await other.start();
		try {
			const { session } = await first!.get('TLSv1.3');
			assert.ok((await other.get('TLSv1.3', session)).resumed);
			assert.is.not(redis.cli('hgetall', REDIS_KEY), sealedBefore);
			assert.ok([...storedKeys(redis).values()].every(ticketKey => ticketKey === undefined));
		} finally {
			await other.server?.stop();
		}
	});
});

tickets.run();

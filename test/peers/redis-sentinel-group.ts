/** A real redis-server with a replica, and Sentinels that make the replica the master if the first one fails. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type { ClusterSettings } from '../../compiler/document/cluster-settings.ts';
import { freePorts, temporaryFolder, until, waitForPort } from '../harness.ts';
import { type RedisCertificate, RedisServer } from './redis-server.ts';

const SENTINEL_COUNT = 3;
const MASTER_NAME = 'mymaster';

/** A user who may ask the Sentinels for the master, and may do nothing else. */
export const SENTINEL_USER = 'machine';
export const SENTINEL_PASSWORD = 'canary-of-the-sentinels';
/** The password with which the Sentinels authenticate to each other. */
const PEER_PASSWORD = 'password-of-the-peers';

interface SentinelGroupOptions {
	/** Present if the servers and the Sentinels accept only TLS. */
	readonly certificate?: RedisCertificate;
	/** Password of the servers. */
	readonly password?: string;
}

/** A master, its replica, and three Sentinels. */
export class SentinelGroup {
	readonly servers: readonly [RedisServer, RedisServer];
	readonly sentinelPorts: readonly number[];
	readonly #sentinels: ChildProcess[] = [];
	readonly #options: SentinelGroupOptions;

	private constructor(
		servers: readonly [RedisServer, RedisServer],
		sentinelPorts: readonly number[],
		options: SentinelGroupOptions,
	) {
		this.servers = servers;
		this.sentinelPorts = sentinelPorts;
		this.#options = options;
	}

	static async start(options: SentinelGroupOptions = {}): Promise<SentinelGroup> {
		const { certificate, password } = options;
		const args = password === undefined ? [] : ['--requirepass', password, '--masterauth', password];
		const master = await RedisServer.start(['--repl-diskless-sync-delay', '0', ...args], undefined, certificate);
		const replicaArgs = ['--replicaof', '127.0.0.1', String(master.port), ...args];
		const replica = await RedisServer.start(replicaArgs, undefined, certificate);
		await replica.untilAnswer('master_link_status:up', 'info', 'replication');
		const group = new SentinelGroup([master, replica], await freePorts(SENTINEL_COUNT), options);
		await Promise.all(group.sentinelPorts.map(port => group.#startSentinel(port)));
		await until('the Sentinels to know each other and the replica', () =>
			group.sentinelPorts.every(port => {
				const facts = group.#askSentinel(port, 'master', MASTER_NAME).split('\n');
				const fact = (name: string) => facts[facts.indexOf(name) + 1];
				return fact('num-slaves') === '1' && fact('num-other-sentinels') === String(SENTINEL_COUNT - 1);
			}),
		);
		return group;
	}

	get settings(): ClusterSettings {
		const [address, ...others] = this.sentinelPorts.map(port => `127.0.0.1:${port}`) as [string, ...string[]];
		const sentinel = { master: MASTER_NAME, user: SENTINEL_USER, password: SENTINEL_PASSWORD };
		return { address, other_addresses: others, sentinel };
	}

	/** The arguments of the option `cluster`, and the lines in its block. */
	get configuration(): { readonly addresses: string; readonly lines: readonly string[] } {
		return {
			addresses: this.sentinelPorts.map(port => `redis://127.0.0.1:${port}`).join(' '),
			lines: [`sentinel ${MASTER_NAME}`, `sentinel_user ${SENTINEL_USER}`, 'sentinel_password {$SENTINEL_PASSWORD}'],
		};
	}

	/** Kills the master, after the replica has all writes. Resolves once every Sentinel names the replica as the master. */
	async failover(): Promise<void> {
		const [master] = this.servers;
		await master.untilReplicated();
		await master.kill();
		await this.untilReplaced();
	}

	/** Resolves once every Sentinel names the second server as the master. */
	async untilReplaced(): Promise<void> {
		const [, replica] = this.servers;
		await until('the failover', () =>
			this.sentinelPorts.every(port =>
				this.#askSentinel(port, 'get-master-addr-by-name', MASTER_NAME).includes(String(replica.port)),
			),
		);
	}

	async close(): Promise<void> {
		for (const sentinel of this.#sentinels) {
			sentinel.kill('SIGKILL');
			if (sentinel.exitCode === null && sentinel.signalCode === null) await once(sentinel, 'exit');
		}
		for (const server of this.servers) await server.kill();
	}

	#askSentinel(port: number, ...command: readonly string[]): string {
		const login = ['-p', String(port), '-a', PEER_PASSWORD, '--no-auth-warning'];
		return this.servers[1].cli(...login, 'sentinel', ...command);
	}

	async #startSentinel(port: number): Promise<void> {
		const { certificate, password } = this.#options;
		const file = path.join(temporaryFolder(), 'sentinel.conf');
		const portOptions = certificate?.serverOptions(port) ?? [['port', String(port)]];
		writeFileSync(
			file,
			`${portOptions.map(option => option.join(' ')).join('\n')}
bind 127.0.0.1
requirepass ${PEER_PASSWORD}
user ${SENTINEL_USER} on >${SENTINEL_PASSWORD} +sentinel|master +sentinel|get-master-addr-by-name
sentinel sentinel-pass ${PEER_PASSWORD}
sentinel monitor ${MASTER_NAME} 127.0.0.1 ${this.servers[0].port} 2
${password === undefined ? '' : `sentinel auth-pass ${MASTER_NAME} ${password}`}
sentinel down-after-milliseconds ${MASTER_NAME} 1000
sentinel failover-timeout ${MASTER_NAME} 6000
`,
		);
		const sentinel = spawn('redis-server', [file, '--sentinel'], { stdio: 'ignore' });
		process.on('exit', () => sentinel.kill('SIGKILL'));
		this.#sentinels.push(sentinel);
		await waitForPort(port);
	}
}

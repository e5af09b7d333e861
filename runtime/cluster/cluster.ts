/** The cluster as this process sees it: its settings, the connection to Redis, and the encryption of private values. */
import {
	type ClusterSettings,
	DEFAULT_CLUSTER_PREFIX,
	DEFAULT_CLUSTER_TIMEOUT,
} from '../../compiler/document/cluster-settings.ts';
import type { RedisConnection, RedisReply } from './redis-connection.ts';
import { SealedValues } from './sealed-values.ts';

/** Dependencies of {@link Cluster}. */
export interface ClusterDeps {
	log(level: 'info' | 'warn', logger: string, message: string, fields?: { readonly [name: string]: unknown }): void;
}

/** The cluster of the option `cluster`. Nothing is loaded or connected before the first command. */
export class Cluster {
	readonly #settings: ClusterSettings;
	readonly #deps: ClusterDeps;
	#redis: Promise<RedisConnection> | undefined;
	#connection: RedisConnection | undefined;
	#sealed: SealedValues | undefined;
	/** The state that was logged last. */
	#loggedState: 'none' | 'connected' | 'failed' = 'none';
	#isClosed = false;

	constructor(settings: ClusterSettings, deps: ClusterDeps) {
		this.#settings = settings;
		this.#deps = deps;
	}

	/** The server, for log entries. */
	get address(): string {
		return this.#settings.address;
	}

	/** Returns a name of a key in Redis. */
	key(name: string): string {
		return `${this.#settings.prefix ?? DEFAULT_CLUSTER_PREFIX}:${name}`;
	}

	/** Maximum milliseconds that a request may wait for Redis. */
	get timeout(): number {
		return this.#settings.timeout ?? DEFAULT_CLUSTER_TIMEOUT;
	}

	/** Encrypts and decrypts private values; undefined if the settings contain no key. */
	get sealed(): SealedValues | undefined {
		const { keys } = this.#settings;
		this.#sealed ??= keys && new SealedValues(keys);
		return this.#sealed;
	}

	get isConnected(): boolean {
		return this.#connection?.isConnected === true;
	}

	/** Sends a command. Rejects with ClusterError, at the latest after `limitMs`. */
	async command(args: readonly (string | Buffer)[], limitMs: number = this.timeout): Promise<RedisReply> {
		this.#redis ??= this.#connect();
		const connection = this.#connection ?? (await this.#redis);
		return connection.command(args, limitMs);
	}

	/** Runs a Lua script. Rejects like {@link command}. */
	script(
		text: string,
		keys: readonly string[],
		args: readonly (string | Buffer)[],
		limitMs?: number,
	): Promise<RedisReply> {
		return this.command(['EVAL', text, String(keys.length), ...keys, ...args], limitMs);
	}

	close(): void {
		this.#isClosed = true;
		this.#connection?.close();
	}

	async #connect(): Promise<RedisConnection> {
		const { RedisConnection } = await import('./redis-connection.ts');
		this.#connection = new RedisConnection(this.#settings, {
			onConnected: () => this.#report('connected', 'info', 'connected to Redis', {}),
			onFailed: cause =>
				this.#report('failed', 'warn', 'Redis is unavailable; the server continues without it', { cause }),
		});
		if (this.#isClosed) this.#connection.close();
		return this.#connection;
	}

	/** Logs a change of the connection's state, once. */
	#report(
		state: 'connected' | 'failed',
		level: 'info' | 'warn',
		message: string,
		fields: { readonly cause?: string },
	): void {
		if (this.#loggedState === state) return;
		this.#loggedState = state;
		this.#deps.log(level, 'cluster', message, { address: this.address, ...fields });
	}
}

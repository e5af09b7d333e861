/** The cluster as this process sees it: its settings, the connection to Redis, and the encryption of private values. */
import {
	type ClusterSettings,
	DEFAULT_CLUSTER_PREFIX,
	DEFAULT_CLUSTER_TIMEOUT_MS,
} from '../../compiler/document/cluster-settings.ts';
import type { ClusterMember, ClusterMembers, MemberFacts } from './cluster-members.ts';
import type { RedisConnection, RedisConnectionDeps, RedisReply } from './redis-connection.ts';
import { SealedValues } from './sealed-values.ts';
import { type LimitCounts, SharedLimits } from './shared-limits.ts';
import type { PurgeCounts, PurgedCaches, SharedPurges } from './shared-purges.ts';

export interface ClusterDeps {
	log(
		level: 'info' | 'warn' | 'error',
		logger: string,
		message: string,
		fields?: { readonly [name: string]: unknown },
	): void;
}

/** Dependencies of {@link Cluster.join}. */
export interface MembershipDeps extends MemberFacts {
	readonly caches: PurgedCaches;
}

/** The cluster as `GET /cluster` and the metrics show it. */
export interface ClusterReport {
	/** `host:port` of Redis. */
	readonly address: string;
	readonly isConnected: boolean;
	/** Number of members in the latest list that Redis returned. */
	readonly members: number;
	readonly purges: PurgeCounts;
	readonly limits: LimitCounts;
}

const NO_LIMITS: LimitCounts = { reports: 0, keys: 0, failures: 0 };
const NO_PURGES: PurgeCounts = { sent: 0, received: 0, unconfirmed: 0, complete: 0 };

/** The cluster that the option `cluster` configures. Nothing is loaded or connected before the first command. */
export class Cluster {
	readonly #settings: ClusterSettings;
	readonly #deps: ClusterDeps;
	#connectionPromise: Promise<RedisConnection> | undefined;
	#connection: RedisConnection | undefined;
	#sealedValues: SealedValues | undefined;
	/** The state of the connection that was logged last. */
	#loggedState: 'none' | 'connected' | 'failed' = 'none';
	#isClosed = false;
	#members: ClusterMembers | undefined;
	#purges: SharedPurges | undefined;
	#purgesPromise: Promise<SharedPurges> | undefined;
	#limits: SharedLimits | undefined;

	constructor(settings: ClusterSettings, deps: ClusterDeps) {
		this.#settings = settings;
		this.#deps = deps;
	}

	/** Address of Redis, for log entries. */
	get address(): string {
		return this.#settings.address;
	}

	/** Returns a name of a key in Redis. */
	redisKey(name: string): string {
		return `${this.#settings.prefix ?? DEFAULT_CLUSTER_PREFIX}:${name}`;
	}

	/** Maximum milliseconds that a request may wait for Redis. */
	get timeoutMs(): number {
		return this.#settings.timeout ?? DEFAULT_CLUSTER_TIMEOUT_MS;
	}

	/** Encrypts and decrypts private values; undefined if the settings contain no key. */
	get sealedValues(): SealedValues | undefined {
		const { keys } = this.#settings;
		this.#sealedValues ??= keys && new SealedValues(keys);
		return this.#sealedValues;
	}

	/** The rate limits that the machines share; undefined if the settings contain no key. */
	get limits(): SharedLimits | undefined {
		const key = this.#settings.keys?.[0];
		if (key !== undefined) this.#limits ??= new SharedLimits(this, key);
		return this.#limits;
	}

	get isConnected(): boolean {
		return this.#connection?.isConnected === true;
	}

	/** Makes this process a member, and lets it receive purges. */
	join(deps: MembershipDeps): void {
		this.#purgesPromise ??= this.#joinCluster(deps);
	}

	/** Purges of all machines; undefined before {@link join}. */
	get purges(): Promise<SharedPurges> | undefined {
		return this.#purgesPromise;
	}

	/** Looks for purges that a newly opened disk cache has missed. */
	onDiskOpened(): void {
		this.#purges?.onDiskOpened();
	}

	/** The ID of this process among the members; undefined before it has joined. */
	get ownId(): string | undefined {
		return this.#members?.ownId;
	}

	/** Returns all members. Rejects with ClusterError. */
	async listMembers(): Promise<readonly ClusterMember[]> {
		return (await this.#members?.list()) ?? [];
	}

	report(): ClusterReport {
		const { address, isConnected } = this;
		return {
			address,
			isConnected,
			members: this.#members?.memberCount ?? 0,
			purges: this.#purges?.counts ?? NO_PURGES,
			limits: this.#limits?.counts ?? NO_LIMITS,
		};
	}

	/** Leaves the cluster before the process ends. Never rejects. */
	async leave(): Promise<void> {
		this.#purges?.close();
		await Promise.all([this.#limits?.close(), this.#members?.leave()]);
	}

	/** Opens another connection, for commands that wait in Redis. Its failures are not logged. */
	async openConnection(): Promise<RedisConnection> {
		const { RedisConnection } = await import('./redis-connection.ts');
		const deps: RedisConnectionDeps = { onConnected: () => {}, onFailed: () => {} };
		return new RedisConnection(this.#settings, deps);
	}

	/** Sends a command. Rejects with ClusterError, after at most `limitMs` milliseconds. */
	async sendCommand(args: readonly (string | Buffer)[], limitMs: number = this.timeoutMs): Promise<RedisReply> {
		this.#connectionPromise ??= this.#connect();
		const connection = this.#connection ?? (await this.#connectionPromise);
		return connection.sendCommand(args, limitMs);
	}

	/** Runs a Lua script. Rejects like {@link sendCommand}. */
	runScript(
		text: string,
		keys: readonly string[],
		args: readonly (string | Buffer)[],
		limitMs?: number,
	): Promise<RedisReply> {
		return this.sendCommand(['EVAL', text, String(keys.length), ...keys, ...args], limitMs);
	}

	close(): void {
		this.#isClosed = true;
		this.#purges?.close();
		this.#connection?.close();
	}

	async #joinCluster({ caches, ...facts }: MembershipDeps): Promise<SharedPurges> {
		const [{ ClusterMembers }, { SharedPurges }] = await Promise.all([
			import('./cluster-members.ts'),
			import('./shared-purges.ts'),
		]);
		this.#members = new ClusterMembers(this, facts);
		this.#purges = new SharedPurges(this, this.#members, caches, (...entry) => this.#deps.log(...entry));
		if (this.#isClosed) this.#purges.close();
		else {
			void this.#members.start();
			void this.#purges.start();
		}
		return this.#purges;
	}

	async #connect(): Promise<RedisConnection> {
		const { RedisConnection } = await import('./redis-connection.ts');
		this.#connection = new RedisConnection(this.#settings, {
			onConnected: () => this.#logStateChange('connected', 'info', 'connected to Redis', {}),
			onFailed: cause =>
				this.#logStateChange('failed', 'warn', 'Redis is unavailable; the server continues without it', { cause }),
		});
		if (this.#isClosed) this.#connection.close();
		return this.#connection;
	}

	/** Logs a change of the connection's state, once. */
	#logStateChange(
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

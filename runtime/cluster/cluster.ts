/** The cluster as this process sees it: its settings, the connection to Redis, and the encryption of private values. */
import {
	type ClusterSettings,
	DEFAULT_CLUSTER_PREFIX,
	DEFAULT_CLUSTER_TIMEOUT_MS,
} from '../../compiler/document/cluster-settings.ts';
import { ClusterError } from './cluster-error.ts';
import type { ClusterMember, ClusterMembers, MemberFacts } from './cluster-members.ts';
import { OutageLog } from './outage-log.ts';
import type { RedisAccess, WaitingConnection } from './redis-access.ts';
import type { RedisConnectionDeps, RedisReply } from './redis-connection.ts';
import type { MachineFailure, RolloutPhase } from './rollout-decision.ts';
import { SealedValues } from './sealed-values.ts';
import type { SentinelLocator } from './sentinel-locator.ts';
import { type LimitCounts, SharedLimits } from './shared-limits.ts';
import type { PurgeableCaches, PurgeCounts, SharedPurges } from './shared-purges.ts';
import type { SharedResponseCounts, SharedResponses } from './shared-responses.ts';

export interface ClusterDeps {
	log(
		level: 'info' | 'warn' | 'error',
		logger: string,
		message: string,
		fields?: { readonly [name: string]: unknown },
	): void;
}

/** A connection to Redis that reconnects by itself. Redis can be a single server or several. */
interface ReconnectingConnection extends WaitingConnection {
	readonly isConnected: boolean;
}

/** Dependencies of {@link Cluster.join}. */
export interface MembershipDeps extends MemberFacts {
	readonly caches: PurgeableCaches;
}

/** What this machine serves, and what it knows about the latest rollout. */
export interface FollowedRollout {
	/** Number of the publication that the machine serves; 0 for the configuration in its own file. */
	readonly serves: number;
	/** Number of the publication that the machine should serve; equal to `serves` if it knows of no rollout. */
	readonly wanted: number;
	/** Number and phase of the latest publication; undefined if the machine knows of no rollout. */
	readonly latest: { readonly publication: number; readonly phase: RolloutPhase } | undefined;
	/** Seconds since the served publication was published; undefined for the machine's own file and for a publication on trial. */
	readonly ageSeconds: number | undefined;
	/** True if the machine read the publication from its disk and has had no answer from Redis since its process started. */
	readonly isFromDisk: boolean;
	/** How often this process has failed to serve a publication, by kind of failure. */
	readonly failures: Readonly<Record<MachineFailure['kind'], number>>;
}

/** The cluster as `GET /cluster` and the metrics show it. */
export interface ClusterReport {
	/** See {@link Cluster.address}. */
	readonly address: string;
	readonly isConnected: boolean;
	/** Number of members according to the last reply of Redis. */
	readonly members: number;
	readonly purges: PurgeCounts;
	readonly limits: LimitCounts;
	/** Seconds since Redis has last answered a command; if it never has, since the connection was first needed. */
	readonly contactAgeSeconds: number;
	/** The rollout as this process follows it; undefined if the process does not take its configuration from the cluster. */
	readonly rollout: FollowedRollout | undefined;
	/** Counters of the responses that the machines share; undefined if they share none. */
	readonly responses: (SharedResponseCounts & { readonly isAvailable: boolean }) | undefined;
}

const CONNECTION_MESSAGES = {
	lost: 'Redis is unavailable; the server continues without it',
	regained: 'connected to Redis',
};
const NO_LIMITS: LimitCounts = { reports: 0, keys: 0, failures: 0 };
const NO_PURGES: PurgeCounts = { sent: 0, received: 0, unconfirmed: 0, complete: 0 };

/** The cluster that the option `cluster` configures. Nothing is loaded or connected before the first command. */
export class Cluster implements RedisAccess {
	readonly #settings: ClusterSettings;
	readonly #deps: ClusterDeps;
	#connectionPromise: Promise<ReconnectingConnection> | undefined;
	#connection: ReconnectingConnection | undefined;
	#sentinelLocator: SentinelLocator | undefined;
	#sealedValues: SealedValues | undefined;
	readonly #outageLog: OutageLog;
	#isClosed = false;
	#members: ClusterMembers | undefined;
	#purges: SharedPurges | undefined;
	#purgesPromise: Promise<SharedPurges> | undefined;
	#limits: SharedLimits | undefined;
	#responses: SharedResponses | undefined;
	#responsesPromise: Promise<SharedResponses | undefined> | undefined;
	/** Time of the last reply of Redis, by `performance.now()`; see {@link ClusterReport.contactAgeSeconds}. */
	#lastReplyAt: number | undefined;
	/** The component that loads configurations published in the cluster; undefined if this process does not load them. */
	publications: { readonly rolloutReport: FollowedRollout } | undefined;

	constructor(settings: ClusterSettings, deps: ClusterDeps) {
		this.#settings = settings;
		this.#deps = deps;
		this.#outageLog = new OutageLog(CONNECTION_MESSAGES, (level, message, fields) =>
			deps.log(level, 'cluster', message, { address: this.address, ...fields }),
		);
	}

	/** Address of Redis, for log entries: `host:port`, `sentinel` and the name of the master, or `cluster` and `host:port` of a node. */
	get address(): string {
		const { address, sentinel, mode } = this.#settings;
		if (sentinel) return `sentinel ${sentinel.master}`;
		return mode === 'cluster' ? `cluster ${address}` : address;
	}

	redisKey(name: string, group?: string): string {
		const prefix = this.#settings.prefix ?? DEFAULT_CLUSTER_PREFIX;
		if (this.#settings.mode !== 'cluster') return `${prefix}:${name}`;
		// Redis Cluster chooses the node of a key by the text in braces alone.
		return group === undefined ? `{${prefix}}:${name}` : `{${prefix}:${group}}:${name}`;
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

	/** The publishers whose signatures this machine trusts; undefined if publications need no signature. */
	get publishers(): readonly string[] | undefined {
		return this.#settings.publishers;
	}

	/** The rate limits that the machines share; undefined if the settings contain no key. */
	get limits(): SharedLimits | undefined {
		const key = this.#settings.keys?.[0];
		if (key !== undefined) this.#limits ??= new SharedLimits(this, key);
		return this.#limits;
	}

	/** The responses that the machines share; undefined before {@link join}, and if the settings contain no key. */
	get responses(): Promise<SharedResponses | undefined> | undefined {
		if (this.#purgesPromise !== undefined) this.#responsesPromise ??= this.#openResponses(this.#purgesPromise);
		return this.#responsesPromise;
	}

	get isConnected(): boolean {
		return this.#connection?.isConnected === true;
	}

	/** Makes this process a member, and lets it receive purges. */
	join(deps: MembershipDeps): void {
		this.#purgesPromise ??= this.#joinCluster(deps);
	}

	/** The purges that the machines of the cluster share; undefined before {@link join}. */
	get purges(): Promise<SharedPurges> | undefined {
		return this.#purgesPromise;
	}

	/** Applies the cluster's purges that a disk cache missed before it was opened. */
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
			contactAgeSeconds: this.#lastReplyAt === undefined ? 0 : (performance.now() - this.#lastReplyAt) / 1000,
			rollout: this.publications?.rolloutReport,
			responses: this.#responses && { ...this.#responses.counts, isAvailable: this.#responses.isAvailable },
		};
	}

	/** Leaves the cluster before the process ends. Never rejects. */
	async leave(): Promise<void> {
		this.#purges?.close();
		await Promise.all([this.#limits?.close(), this.#responses?.close(), this.#members?.leave()]);
	}

	/** Opens another connection, for commands that block in Redis. Its failures are not logged. */
	openConnection(): Promise<WaitingConnection> {
		return this.#createConnection({ onConnected: () => {}, onFailed: () => {} });
	}

	/** Sends a command. Rejects with ClusterError, after at most `limitMs` milliseconds. */
	async sendCommand(args: readonly (string | Buffer)[], limitMs: number = this.timeoutMs): Promise<RedisReply> {
		this.#connectionPromise ??= this.#connect();
		this.#lastReplyAt ??= performance.now();
		const connection = this.#connection ?? (await this.#connectionPromise);
		try {
			const reply = await connection.sendCommand(args, limitMs);
			this.#lastReplyAt = performance.now();
			return reply;
		} catch (error) {
			// A command that Redis refused was also answered.
			if (error instanceof ClusterError && error.code === 'cluster/refused') this.#lastReplyAt = performance.now();
			throw error;
		}
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
		this.#outageLog.close();
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

	async #openResponses(purgesPromise: Promise<SharedPurges>): Promise<SharedResponses | undefined> {
		const { sealedValues } = this;
		const key = this.#settings.keys?.[0];
		if (sealedValues === undefined || key === undefined) return undefined;
		const [purges, { SharedResponses }] = await Promise.all([purgesPromise, import('./shared-responses.ts')]);
		this.#responses = new SharedResponses(this, purges, sealedValues, key, (level, message, fields) =>
			this.#deps.log(level, 'http.cache', message, fields),
		);
		if (this.#isClosed) void this.#responses.close();
		return this.#responses;
	}

	async #createConnection(deps: RedisConnectionDeps): Promise<ReconnectingConnection> {
		const { sentinel, mode } = this.#settings;
		if (mode === 'cluster') {
			const { RedisClusterConnection } = await import('./redis-cluster-connection.ts');
			return new RedisClusterConnection(this.#settings, deps, this.redisKey('members'));
		}
		const { RedisConnection } = await import('./redis-connection.ts');
		if (!sentinel) return new RedisConnection(this.#settings, deps);
		const { SentinelLocator } = await import('./sentinel-locator.ts');
		this.#sentinelLocator ??= new SentinelLocator(this.#settings, sentinel.master);
		return new RedisConnection(this.#settings, deps, this.#sentinelLocator);
	}

	async #connect(): Promise<ReconnectingConnection> {
		this.#connection = await this.#createConnection({
			onConnected: () => {
				this.#outageLog.onAvailable();
				this.#members?.onConnected();
			},
			onFailed: cause => this.#outageLog.onLost(cause),
		});
		if (this.#isClosed) this.#connection.close();
		return this.#connection;
	}
}

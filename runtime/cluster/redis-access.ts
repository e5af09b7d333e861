/** The interface to the cluster's Redis. `Cluster` implements it; a simulation of many machines has its own implementation. */
import type { RedisReply } from './redis-connection.ts';
import type { SealedValues } from './sealed-values.ts';

/** A connection for commands that block in Redis. */
export interface WaitingConnection {
	/**
	 * Number of connections to servers that have been established. Undefined if there is never more than one. If the number has
	 * changed, Redis may lack the latest writes.
	 */
	readonly connectionNumber?: number;
	/** Sends a command. Rejects with ClusterError after at most `limitMs` milliseconds. */
	sendCommand(args: readonly (string | Buffer)[], limitMs: number): Promise<RedisReply>;
	close(): void;
}

/** The cluster's Redis, as one process sees it. */
export interface RedisAccess {
	/** Address of Redis, for log entries. */
	readonly address: string;
	/** Encrypts and decrypts private values; undefined if the settings contain no key. */
	readonly sealedValues: SealedValues | undefined;
	/**
	 * Returns the name in Redis of a key of this cluster. All keys of a command must have the same group, or all no group: a Redis
	 * Cluster keeps the keys of each group, and the keys without a group, on one node.
	 */
	redisKey(name: string, group?: string): string;
	/** Sends a command. Rejects with ClusterError, after at most `limitMs` milliseconds. */
	sendCommand(args: readonly (string | Buffer)[], limitMs?: number): Promise<RedisReply>;
	/** Runs a Lua script. Rejects like {@link sendCommand}. */
	runScript(
		text: string,
		keys: readonly string[],
		args: readonly (string | Buffer)[],
		limitMs?: number,
	): Promise<RedisReply>;
	/** Opens another connection, for commands that block in Redis. */
	openConnection(): Promise<WaitingConnection>;
}

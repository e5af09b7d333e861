/** A Lua script that Redis caches, so that usually only its hash is sent. */
import { createHash } from 'node:crypto';
import { ClusterError } from './cluster-error.ts';
import type { RedisAccess } from './redis-access.ts';
import type { RedisReply } from './redis-connection.ts';

export class RedisScript {
	readonly source: string;
	/** See {@link hash}. Computed when it is needed, because scripts are created at each start, but few servers use Redis. */
	#hash: string | undefined;

	constructor(source: string) {
		this.source = source;
	}

	/** The SHA-1 hash by which Redis knows the script, in hexadecimal. */
	get hash(): string {
		this.#hash ??= createHash('sha1').update(this.source).digest('hex');
		return this.#hash;
	}

	/** Runs the script. Rejects with ClusterError after at most `limitMs` milliseconds. */
	async run(
		redis: RedisAccess,
		keys: readonly string[],
		args: readonly (string | Buffer)[],
		limitMs: number,
	): Promise<RedisReply> {
		const startedAt = performance.now();
		const keysAndArgs = [String(keys.length), ...keys, ...args];
		try {
			return await redis.sendCommand(['EVALSHA', this.hash, ...keysAndArgs], limitMs);
		} catch (error) {
			if (!(error instanceof ClusterError) || error.reply !== 'NOSCRIPT') throw error;
			const remainingMs = Math.max(1, limitMs - (performance.now() - startedAt));
			return redis.sendCommand(['EVAL', this.source, ...keysAndArgs], remainingMs);
		}
	}
}

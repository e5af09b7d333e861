/** A Lua script that Redis caches, so that usually only its hash is sent. */
import { createHash } from 'node:crypto';
import { ClusterError } from './cluster-error.ts';
import type { RedisAccess } from './redis-access.ts';
import type { RedisReply } from './redis-connection.ts';

export class RedisScript {
	readonly source: string;
	/** The SHA-1 hash by which Redis knows the script, in hexadecimal. */
	readonly hash: string;

	constructor(source: string) {
		this.source = source;
		this.hash = createHash('sha1').update(source).digest('hex');
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

/** A Lua script that Redis keeps, so that only its hash is sent. */
import { createHash } from 'node:crypto';
import type { Cluster } from './cluster.ts';
import { ClusterError } from './cluster-error.ts';
import type { RedisReply } from './redis-connection.ts';

export class RedisScript {
	readonly #text: string;
	readonly #hash: string;

	constructor(text: string) {
		this.#text = text;
		this.#hash = createHash('sha1').update(text).digest('hex');
	}

	/** Runs the script. Rejects with ClusterError after at most twice `limitMs`. */
	async run(
		cluster: Cluster,
		keys: readonly string[],
		args: readonly (string | Buffer)[],
		limitMs: number,
	): Promise<RedisReply> {
		const rest = [String(keys.length), ...keys, ...args];
		try {
			return await cluster.command(['EVALSHA', this.#hash, ...rest], limitMs);
		} catch (error) {
			if (!(error instanceof ClusterError) || error.reply !== 'NOSCRIPT') throw error;
			return cluster.command(['EVAL', this.#text, ...rest], limitMs);
		}
	}
}

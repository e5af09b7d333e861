/**
 * Locks in Redis. A holder renews its lock regularly, and each holder has a higher fencing token than all holders before it.
 * Redis rejects writes with any token but the latest, even if their sender does not know yet that it has lost the lock.
 */
import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cluster } from '../cluster/cluster.ts';
import { ClusterError } from '../cluster/cluster-error.ts';
import type { StoreLock } from './store.ts';

/** Milliseconds after which a lock that is not renewed is free. */
const LOCK_LIFETIME_MS = 15_000;
/** Milliseconds between two renewals. */
const RENEWAL_INTERVAL_MS = 3000;
/** Milliseconds for which Redis remembers the last token of a lock. */
const TOKEN_LIFETIME_MS = 7 * 86_400_000;
/** Milliseconds between two attempts to take a lock that is held: initially, and at most. */
const FIRST_POLL_MS = 50;
const MAX_POLL_MS = 500;
/** Maximum milliseconds that one command may take. Requests of clients do not wait for these commands. */
const COMMAND_TIMEOUT_MS = 5000;

/**
 * Takes the lock and returns its token; returns 0 if the lock is held. A token is at least the current time in microseconds, so
 * that tokens increase even if Redis has lost its data.
 */
const TAKE_SCRIPT = `
local held = redis.call('GET', KEYS[1])
local last = redis.call('GET', KEYS[2])
if held then
	if last and held == ARGV[1] .. ' ' .. last then
		redis.call('PEXPIRE', KEYS[1], ARGV[2])
		return last
	end
	return 0
end
local now = redis.call('TIME')
local token = string.format('%.0f', math.max(now[1] * 1000000 + now[2], tonumber(last or '0') + 1))
redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. token, 'PX', ARGV[2])
redis.call('SET', KEYS[2], token, 'PX', ARGV[3])
return token`;

/** Renews the lock, even if it has expired or Redis lost its data, unless another process has taken it since. */
const RENEW_SCRIPT = `
local held = redis.call('GET', KEYS[1])
local last = redis.call('GET', KEYS[2])
local mine = ARGV[1] .. ' ' .. ARGV[2]
if (held and held ~= mine) or (last and last ~= ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], mine, 'PX', ARGV[3])
redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[4])
return 1`;

const RELEASE_SCRIPT = `if redis.call('GET', KEYS[1]) == ARGV[1] .. ' ' .. ARGV[2] then redis.call('DEL', KEYS[1]) end`;

/** The name of the Redis key with the last token of a lock. */
export function tokenKey(cluster: Cluster, name: string): string {
	return cluster.redisKey(`lock_token:${name}`);
}

/** The locks of a cluster. All methods reject with ClusterError. */
export class RedisLocks {
	readonly #cluster: Cluster;

	constructor(cluster: Cluster) {
		this.#cluster = cluster;
	}

	/** Takes the lock as soon as it is free. Rejects with the signal's reason if it aborts first. */
	async take(name: string, signal?: AbortSignal): Promise<StoreLock> {
		const owner = randomBytes(12).toString('hex');
		for (let pauseMs = FIRST_POLL_MS; ; pauseMs = Math.min(pauseMs * 1.3, MAX_POLL_MS)) {
			signal?.throwIfAborted();
			const lock = await this.tryTake(name, owner);
			if (lock) return lock;
			await sleep(pauseMs * (0.75 + Math.random() / 2), undefined, signal ? { signal } : {}).catch(error => {
				throw signal?.aborted ? signal.reason : error;
			});
		}
	}

	/** Takes the lock if it is free. Resolves to undefined otherwise. */
	async tryTake(name: string, owner: string = randomBytes(12).toString('hex')): Promise<StoreLock | undefined> {
		const redisKeys = [this.#cluster.redisKey(`lock:${name}`), tokenKey(this.#cluster, name)];
		const sentAt = performance.now();
		const args = [owner, String(LOCK_LIFETIME_MS), String(TOKEN_LIFETIME_MS)];
		const token = await this.#cluster.runScript(TAKE_SCRIPT, redisKeys, args, COMMAND_TIMEOUT_MS);
		return Buffer.isBuffer(token) ? new RedisLock(this.#cluster, name, owner, token.toString(), sentAt) : undefined;
	}
}

/** A held lock. It is considered lost when its lifetime ends without a renewal, because another process may then hold it. */
export class RedisLock implements StoreLock {
	readonly name: string;
	/** The fencing token. */
	readonly token: string;
	readonly #cluster: Cluster;
	readonly #owner: string;
	readonly #lostController = new AbortController();
	readonly #renewalTimer: NodeJS.Timeout;
	/** The time, by `performance.now()`, when the last successful renewal was sent. */
	#renewedAt: number;
	#isRenewing = false;

	constructor(cluster: Cluster, name: string, owner: string, token: string, sentAt: number) {
		this.#cluster = cluster;
		this.name = name;
		this.#owner = owner;
		this.token = token;
		this.#renewedAt = sentAt;
		this.#renewalTimer = setInterval(() => void this.#renew(), RENEWAL_INTERVAL_MS);
		this.#renewalTimer.unref();
	}

	get lost(): AbortSignal {
		return this.#lostController.signal;
	}

	async release(): Promise<void> {
		clearInterval(this.#renewalTimer);
		if (this.#lostController.signal.aborted) return;
		// If the release fails, Redis frees the lock at the end of its lifetime.
		await this.#cluster
			.runScript(RELEASE_SCRIPT, this.#redisKeys.slice(0, 1), [this.#owner, this.token], COMMAND_TIMEOUT_MS)
			.catch(() => {});
	}

	get #redisKeys(): string[] {
		return [this.#cluster.redisKey(`lock:${this.name}`), tokenKey(this.#cluster, this.name)];
	}

	async #renew(): Promise<void> {
		if (performance.now() - this.#renewedAt >= LOCK_LIFETIME_MS) return this.#markLost();
		if (this.#isRenewing) return;
		this.#isRenewing = true;
		const sentAt = performance.now();
		try {
			const args = [this.#owner, this.token, String(LOCK_LIFETIME_MS), String(TOKEN_LIFETIME_MS)];
			const reply = await this.#cluster.runScript(RENEW_SCRIPT, this.#redisKeys, args, COMMAND_TIMEOUT_MS);
			if (reply === 1) this.#renewedAt = sentAt;
			else this.#markLost();
		} catch (error) {
			if (!(error instanceof ClusterError)) throw error;
		} finally {
			this.#isRenewing = false;
		}
	}

	#markLost(): void {
		clearInterval(this.#renewalTimer);
		if (!this.#lostController.signal.aborted)
			this.#lostController.abort(new Error('Another process took over the lock.'));
	}
}

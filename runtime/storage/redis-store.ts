/** The store in Redis: encrypted values, an index of their keys, and locks. Redis itself checks who holds a lock. */
import type { Cluster } from '../cluster/cluster.ts';
import { ClusterError } from '../cluster/cluster-error.ts';
import type { SealedValues } from '../cluster/sealed-values.ts';
import { lockLostError } from './fenced-store.ts';
import { type RedisLock, RedisLocks, tokenKey } from './redis-locks.ts';
import { checkKey, type Store, type StoreEntry, StoreError, type StoreKey, type StoreLock } from './store.ts';

/** Maximum milliseconds that one command may take if no client's request waits for it. */
const COMMAND_TIMEOUT_MS = 5000;
/** Maximum bytes of a value. Keys and certificate chains have a few thousand bytes. */
const MAX_VALUE_BYTES: number = 16 * 1024 * 1024;
/** The first word of the error with which Redis rejects a write under a lock that has been lost. */
const FENCED_REPLY = 'FENCED';

/**
 * Lua code that rejects the script if the token in the argument is not the latest one of its lock. An empty token means that no
 * lock is needed.
 */
const CHECK_TOKEN_LUA = `
if ARGV[1] ~= '' then
	local last = redis.call('GET', KEYS[2])
	if last and last ~= ARGV[1] then return redis.error_reply('${FENCED_REPLY} lock lost') end
end`;

const WRITE_SCRIPT = `${CHECK_TOKEN_LUA}
redis.call('HSET', KEYS[3], 'value', ARGV[2], 'size', ARGV[3], 'modified', ARGV[4])
redis.call('ZADD', KEYS[1], 0, ARGV[5])
return 1`;

/** Removes a value and everything below its key. */
const REMOVE_SCRIPT = `${CHECK_TOKEN_LUA}
local names = redis.call('ZRANGEBYLEX', KEYS[1], '[' .. ARGV[2] .. '/', '(' .. ARGV[2] .. '0')
names[#names + 1] = ARGV[2]
for _, name in ipairs(names) do
	redis.call('DEL', ARGV[3] .. name)
	redis.call('ZREM', KEYS[1], name)
end
return #names`;

/** Opens the store of a cluster. Throws StoreError if the cluster has no key to encrypt with. */
export function openRedisStore(cluster: Cluster): Store {
	const { sealedValues } = cluster;
	if (!sealedValues)
		throw new StoreError('store/unreadable', '`storage redis` needs the `key` of the option `cluster`.');
	return new RedisStore(cluster, sealedValues, new RedisLocks(cluster));
}

class RedisStore implements Store {
	readonly description: string;
	readonly isRemote = true;
	readonly #cluster: Cluster;
	readonly #sealedValues: SealedValues;
	readonly #locks: RedisLocks;
	/** The lock that must be held for writes to succeed; undefined if none is needed. */
	readonly #fencingLock: RedisLock | undefined;

	constructor(cluster: Cluster, sealedValues: SealedValues, locks: RedisLocks, fencingLock?: RedisLock) {
		this.#cluster = cluster;
		this.#sealedValues = sealedValues;
		this.#locks = locks;
		this.#fencingLock = fencingLock;
		this.description = `redis ${cluster.address}`;
	}

	async read(key: StoreKey, urgent?: boolean): Promise<Buffer | undefined> {
		checkKey(key);
		let sealedValue: Buffer | null;
		try {
			const limitMs = urgent ? this.#cluster.timeoutMs : COMMAND_TIMEOUT_MS;
			sealedValue = (await this.#cluster.sendCommand(['HGET', this.#valueKey(key), 'value'], limitMs)) as Buffer | null;
		} catch (error) {
			throw unreadableError(key, error);
		}
		if (sealedValue === null) return undefined;
		const value = this.#sealedValues.open(key, sealedValue);
		if (value) return value;
		const message = `\`${key}\` in the store cannot be decrypted: it was written with another \`key\` of \`cluster\`.`;
		throw new StoreError('store/unreadable', message);
	}

	async write(key: StoreKey, value: string | Uint8Array): Promise<void> {
		checkKey(key);
		const bytes = Buffer.from(value);
		if (bytes.length > MAX_VALUE_BYTES) {
			throw new StoreError('store/unwritable', `\`${key}\` is too large for the store.`);
		}
		const args = [this.#sealedValues.seal(key, bytes), String(bytes.length), String(Date.now()), key];
		await this.#changeValues(key, WRITE_SCRIPT, [this.#valueKey(key)], args);
	}

	async remove(key: StoreKey): Promise<void> {
		checkKey(key);
		await this.#changeValues(key, REMOVE_SCRIPT, [], [key, this.#valueKey('')]);
	}

	async list(prefix: StoreKey): Promise<StoreKey[]> {
		if (prefix !== '') checkKey(prefix);
		const range = prefix === '' ? ['-', '+'] : [`[${prefix}/`, `(${prefix}0`];
		try {
			const storedKeys = await this.#cluster.sendCommand(['ZRANGEBYLEX', this.#indexKey, ...range], COMMAND_TIMEOUT_MS);
			return (storedKeys as readonly Buffer[]).map(name => name.toString()).sort();
		} catch (error) {
			throw unreadableError(prefix, error);
		}
	}

	async stat(key: StoreKey): Promise<StoreEntry | undefined> {
		checkKey(key);
		try {
			const fields = await this.#cluster.sendCommand(
				['HMGET', this.#valueKey(key), 'size', 'modified'],
				COMMAND_TIMEOUT_MS,
			);
			const [size, modified] = fields as readonly (Buffer | null)[];
			return size && modified ? { key, size: Number(size), modified: Number(modified) } : undefined;
		} catch (error) {
			throw unreadableError(key, error);
		}
	}

	lock(name: string, signal?: AbortSignal): Promise<StoreLock> {
		return this.#locks.take(name, signal).catch(lockFailure);
	}

	tryLock(name: string): Promise<StoreLock | undefined> {
		return this.#locks.tryTake(name).catch(lockFailure);
	}

	fenced(lock: StoreLock): Store {
		return new RedisStore(this.#cluster, this.#sealedValues, this.#locks, lock as RedisLock);
	}

	async close(): Promise<void> {
		this.#cluster.close();
	}

	get #indexKey(): string {
		return this.#cluster.redisKey('store_keys');
	}

	#valueKey(key: StoreKey): string {
		return this.#cluster.redisKey(`store:${key}`);
	}

	/** Runs a script that changes values, unless the lock of this store has been lost. */
	async #changeValues(
		key: StoreKey,
		script: string,
		keys: readonly string[],
		args: readonly (string | Buffer)[],
	): Promise<void> {
		const fencingLock = this.#fencingLock;
		if (fencingLock?.lost.aborted) throw lockLostError();
		const lockKey = fencingLock ? tokenKey(this.#cluster, fencingLock.name) : this.#indexKey;
		try {
			await this.#cluster.runScript(
				script,
				[this.#indexKey, lockKey, ...keys],
				[fencingLock?.token ?? '', ...args],
				COMMAND_TIMEOUT_MS,
			);
		} catch (error) {
			if (error instanceof ClusterError && error.reply === FENCED_REPLY) throw lockLostError();
			throw unwritableError(key, error);
		}
	}
}

function unreadableError(key: StoreKey, error: unknown): unknown {
	if (!(error instanceof ClusterError)) return error;
	const subject = key === '' ? 'The store' : `\`${key}\` in the store`;
	return new StoreError('store/unreadable', `${subject} cannot be read from Redis: ${error.message}.`);
}

function unwritableError(key: StoreKey, error: unknown): unknown {
	if (!(error instanceof ClusterError)) return error;
	return new StoreError('store/unwritable', `\`${key}\` cannot be written to Redis: ${error.message}.`);
}

function lockFailure(error: unknown): never {
	if (!(error instanceof ClusterError)) throw error;
	throw new StoreError('store/unwritable', `The store cannot be locked in Redis: ${error.message}.`);
}

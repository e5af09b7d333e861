/**
 * Responses that the machines of a cluster share through Redis: the tier of a response cache below memory and disk.
 *
 * Each key of a cache has two values in Redis: a hash with its responses, and a lease, which the machine that fetches a response
 * holds. The other machines wait until the lease has ended, and then find the response in Redis. A response is accepted only from
 * the holder of the lease, so that a machine that was slow or cut off cannot replace a newer response.
 *
 * Each response has a position: the last purge of the cluster before it was requested. A machine that finds a response first makes
 * sure that it knows all purges in Redis, and ignores the response if a purge after its position selects it. A purge therefore
 * affects all responses that were requested before it, even if they are stored after it.
 */
import { createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { isStream } from '../../compiler/exchange/body.ts';
import type {
	CachedHead,
	ClusterAnswer,
	ClusterTierSettings,
	FetchOutcome,
	RequestedUrl,
} from '../../compiler/exchange/response-cache.ts';
import type { ClusterConsultation, FetchResult } from '../cache/cluster-messages.ts';
import { urlText } from '../cache/key-hash.ts';
import { LockLost } from '../cache/memory-lock.ts';
import { compileSelection } from '../cache/purging.ts';
import { waitAtMost } from '../cache/request-coalescer.ts';
import type { SharedCache } from '../cache/shared-cache.ts';
import type { Cluster } from './cluster.ts';
import { ClusterError } from './cluster-error.ts';
import { OutageLog } from './outage-log.ts';
import { PurgeHistory } from './purge-history.ts';
import { withinLimit } from './redis-client.ts';
import type { RedisReply } from './redis-connection.ts';
import { RedisScript } from './redis-script.ts';
import { ResponseLoader } from './response-loader.ts';
import { ResponseMailbox } from './response-mailbox.ts';
import type { SealedValues } from './sealed-values.ts';
import { purgeStreamKey, type SharedPurges } from './shared-purges.ts';
import { decodeRecord, encodeRecord, type SharedRecord } from './shared-record.ts';

/** Milliseconds after which a lease expires if its holder does not renew it, and milliseconds between renewals. */
const LEASE_MS = 3000;
const RENEWAL_INTERVAL_MS = 1000;
/** Maximum milliseconds for which a lease is renewed. No request waits for longer. */
const MAX_RENEWAL_MS = 60_000;
/** Milliseconds after the expiry of a lease before a waiting machine tries to take it. */
const EXTRA_EXPIRY_MS = 20;
/** Milliseconds for which machines do not wait for each other's fetches of a key after its response could not be shared. */
const UNSHARED_MS = 10_000;
/** Milliseconds between attempts to reach Redis after a command has failed. No request waits for these attempts. */
const PROBE_INTERVAL_MS = 500;
const SHARING_MESSAGES = {
	lost: 'responses are not shared, because Redis does not answer; each machine uses its own cache',
	regained: 'responses are shared again',
};
/**
 * Maximum number of stored responses per key. There is a maximum because clients choose the request fields that select a response.
 */
const MAX_VARIANTS = 8;
/** Milliseconds after which Redis deletes the notifications to a process that no longer reads them. */
const MAILBOX_LIFETIME_MS = 60_000;
/** Maximum milliseconds of a command that no request waits for. */
const BACKGROUND_TIMEOUT_MS = 2000;
/**
 * Maximum number of consultations of one request that find responses but load none, because they are purged, invalidated or not
 * readable, or that find the lease of a fetch which is ending in this process.
 */
const MAX_FUTILE_ATTEMPTS = 3;
/** Bytes of names in Redis that are derived from keys, URLs and variants. */
const NAME_BYTES = 16;

const ALONE: ClusterAnswer = { outcome: 'alone' };

/** Lua code of a function that notifies the processes that wait for the fetch of a key. */
const LUA_WAKE = `local function wake(waiters, lease, outcome)
	for _, mailbox in ipairs(redis.call('SMEMBERS', waiters)) do
		redis.pcall('XADD', mailbox, 'MAXLEN', '~', '10000', '*', 'lease', lease, 'outcome', outcome)
		redis.pcall('PEXPIRE', mailbox, ${MAILBOX_LIFETIME_MS})
	end
	redis.call('DEL', waiters)
end
`;

/** Lua code of a function that extends the lifetime of a key to at least the given milliseconds. */
const LUA_EXTEND = `local function extend(key, milliseconds)
	if redis.call('PTTL', key) < milliseconds then redis.call('PEXPIRE', key, milliseconds) end
end
`;

/**
 * Lua code of a function that reports whether a lease has the given token. The value of a lease also contains the time at which it
 * was taken.
 */
const LUA_HOLDS = `local function holds(lease, token)
	local value = redis.call('GET', lease)
	return value and string.sub(value, 1, #token + 1) == token .. '|'
end
`;

/**
 * Looks for responses, and takes or awaits the lease. `KEYS`: the responses, the lease, the waiting processes, the keys of the
 * URL, and the stream of purges. `ARGV`: the intent, the mailbox of the process, the token of a new lease, the maximum
 * milliseconds to wait for a fetch, and the versions of known responses. Returns the time of Redis in milliseconds, the ID of the
 * last purge, a state, and its data: for `found`, variants and stored values; for `own`, which means that this process has the
 * lease, the ID of the lease; for `wait`, the milliseconds until the lease expires.
 */
const CONSULT_SCRIPT = new RedisScript(`${LUA_EXTEND}
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local last = redis.call('XREVRANGE', KEYS[5], '+', '-', 'COUNT', '1')[1]
if not last then return {now, '', 'alone'} end
local position = last[1]
local intent = ARGV[1]
if intent ~= 'reload' then
	local known = {}
	for i = 5, #ARGV do known[ARGV[i]] = true end
	local answer = {now, position, 'found'}
	local fields = redis.call('HGETALL', KEYS[1])
	for i = 1, #fields, 2 do
		local version = string.match(fields[i + 1], '^[^:]+')
		if not known[version] then
			answer[#answer + 1] = fields[i]
			answer[#answer + 1] = fields[i + 1]
		end
	end
	if #answer > 3 then return answer end
end
if intent == 'load' then return {now, position, 'alone'} end
local holder = redis.call('GET', KEYS[2])
if not holder then
	redis.call('SET', KEYS[2], ARGV[3] .. '|' .. string.format('%.0f', now), 'PX', ${LEASE_MS})
	redis.call('SADD', KEYS[4], KEYS[1])
	extend(KEYS[4], ${MAX_RENEWAL_MS + LEASE_MS})
	return {now, position, 'lead'}
end
if holder == 'private' then return {now, position, 'private'} end
if holder == 'unshared' then return {now, position, 'alone'} end
if string.sub(holder, 1, #ARGV[2]) == ARGV[2] then return {now, position, 'own', string.match(holder, '(%d+)|%d+$')} end
if intent ~= 'join' then return {now, position, 'busy'} end
if now - tonumber(string.match(holder, '%d+$')) >= tonumber(ARGV[4]) then return {now, position, 'alone'} end
redis.call('SADD', KEYS[3], ARGV[2])
extend(KEYS[3], ${MAX_RENEWAL_MS})
return {now, position, 'wait', redis.call('PTTL', KEYS[2])}`);

/**
 * Stores a response and ends its lease. `KEYS`: the responses, the lease, the waiting processes, and the keys of the URL. `ARGV`: the
 * token of the lease, the variant, the version and the record of the response, and for how many milliseconds it is kept.
 */
const STORE_SCRIPT = new RedisScript(`${LUA_WAKE}${LUA_EXTEND}${LUA_HOLDS}
if not holds(KEYS[2], ARGV[1]) then return 0 end
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 and redis.call('HLEN', KEYS[1]) >= ${MAX_VARIANTS} then
	redis.call('HDEL', KEYS[1], redis.call('HKEYS', KEYS[1])[1])
end
redis.call('HSET', KEYS[1], ARGV[2], ARGV[3] .. ':' .. ARGV[4])
extend(KEYS[1], tonumber(ARGV[5]))
redis.call('SADD', KEYS[4], KEYS[1])
extend(KEYS[4], tonumber(ARGV[5]))
redis.call('DEL', KEYS[2])
wake(KEYS[3], KEYS[2], 'stored')
return 1`);

/**
 * Ends a lease without a response. `KEYS`: the lease and the waiting processes. `ARGV`: the token of the lease, the outcome, and
 * the reason why machines will not wait for each other for a while, or '' if they will.
 */
const RELEASE_SCRIPT = new RedisScript(`${LUA_WAKE}${LUA_HOLDS}
if not holds(KEYS[1], ARGV[1]) then return 0 end
if ARGV[3] == '' or not redis.pcall('SET', KEYS[1], ARGV[3], 'PX', ${UNSHARED_MS}).ok then redis.call('DEL', KEYS[1]) end
wake(KEYS[2], KEYS[1], ARGV[2])
return 1`);

/** Renews a lease. `KEYS`: the lease. `ARGV`: its token. */
const RENEW_SCRIPT = new RedisScript(`${LUA_HOLDS}
if not holds(KEYS[1], ARGV[1]) then return 0 end
return redis.call('PEXPIRE', KEYS[1], ${LEASE_MS})`);

/** Removes the responses of a URL, and ends the leases of fetches that have already begun. `KEYS`: the keys of the URL. */
const INVALIDATE_SCRIPT = new RedisScript(`${LUA_WAKE}
for _, key in ipairs(redis.call('SMEMBERS', KEYS[1])) do
	redis.call('DEL', key, key .. ':lease')
	wake(key .. ':waiters', key .. ':lease', 'failed')
end
return redis.call('DEL', KEYS[1])`);

/** Counters since the process started. */
export interface SharedResponseCounts {
	/** Numbers of consultations that found a response, that found none, and that failed because Redis was not available. */
	readonly found: number;
	readonly absent: number;
	readonly unavailable: number;
	/** Number of times that a request waited for the fetch of another machine. */
	readonly waits: number;
	/**
	 * Numbers of responses that were stored (`stored`), not stored because their lease had ended (`fenced`), and not stored because
	 * Redis failed (`failed`).
	 */
	readonly stored: number;
	readonly fenced: number;
	readonly failed: number;
	/** Number of responses that were found, but that a purge had made invalid. */
	readonly purged: number;
}

/** The names of the values in Redis that belong to one key of a cache. */
interface RedisNames {
	readonly responses: string;
	readonly lease: string;
	readonly waiters: string;
	/** Name of the set that contains the keys of the requested URL. */
	readonly url: string;
}

interface Lease {
	readonly id: number;
	/** The thread that fetches the response. */
	readonly thread: number;
	readonly token: string;
	readonly names: RedisNames;
	readonly key: string;
	readonly position: string;
	/** Milliseconds to add to a time by this machine's clock. The result is the time by the clock of Redis, or slightly earlier. */
	readonly clockOffset: number;
	readonly cache: SharedCache;
	readonly settings: ClusterTierSettings;
	readonly takenAt: number;
	timer: NodeJS.Timeout | undefined;
}

const CONSULT_STATES = ['found', 'lead', 'wait', 'busy', 'private', 'own', 'alone'] as const;

/** A reply of {@link CONSULT_SCRIPT}. */
interface ConsultReply {
	readonly position: string;
	readonly state: (typeof CONSULT_STATES)[number];
	/** When Redis replied, in milliseconds since 1970 by its own clock. */
	readonly redisTime: number;
	/** The minimum and maximum milliseconds by which Redis' clock may be ahead of this machine's. */
	readonly minClockOffset: number;
	readonly maxClockOffset: number;
	/** For `wait`: milliseconds after which the lease of the other machine expires if it does not renew the lease. */
	readonly holderMs: number;
	/** For `found`: alternating variants and stored values. For `own`: the ID of the lease. */
	readonly rest: readonly Buffer[];
}

export class SharedResponses {
	readonly #cluster: Cluster;
	readonly #purges: SharedPurges;
	readonly #log: (
		level: 'info' | 'warn' | 'error',
		message: string,
		fields: { readonly [name: string]: unknown },
	) => void;
	readonly #outageLog: OutageLog;
	readonly #sealedValues: SealedValues;
	readonly #nameKey: Buffer;
	readonly #history: PurgeHistory;
	readonly #mailbox: ResponseMailbox;
	readonly #leases = new Map<number, Lease>();
	/** Promises that resolve when fetches have ended in Redis, by the IDs of their leases. */
	readonly #endingFetches = new Map<number, Promise<void>>();
	/** For each thread number, how many threads with it have ended. A new thread takes over the number of an ended one. */
	readonly #endCounts = new Map<number, number>();
	#lastLease = 0;
	/** True while Redis does not answer. Requests then do not wait for it. */
	#isAway = false;
	#probeTimer: NodeJS.Timeout | undefined;
	/** The last logged reason why a response could not be shared; undefined after a response was stored. */
	#loggedReason: string | undefined;
	#isClosed = false;
	readonly #counts = { found: 0, absent: 0, unavailable: 0, waits: 0, stored: 0, fenced: 0, failed: 0, purged: 0 };

	/** @param key The cluster's key, in base64. */
	constructor(
		cluster: Cluster,
		purges: SharedPurges,
		sealedValues: SealedValues,
		key: string,
		log: (level: 'info' | 'warn' | 'error', message: string, fields: { readonly [name: string]: unknown }) => void,
	) {
		this.#cluster = cluster;
		this.#purges = purges;
		this.#log = log;
		this.#outageLog = new OutageLog(SHARING_MESSAGES, (level, message, fields) =>
			log(level, message, { address: cluster.address, ...fields }),
		);
		this.#sealedValues = sealedValues;
		this.#nameKey = Buffer.from(
			hkdfSync('sha256', Buffer.from(key, 'base64'), '', 'svc names of shared responses', 32),
		);
		this.#history = new PurgeHistory(cluster);
		this.#mailbox = new ResponseMailbox(cluster, cluster.redisKey(`cache:mailbox:${randomBytes(8).toString('hex')}`));
	}

	get counts(): SharedResponseCounts {
		return this.#counts;
	}

	get isAvailable(): boolean {
		return !this.#isAway;
	}

	/**
	 * Answers a request that has missed the cache. All waits for Redis together take at most the cluster's timeout. With the intent
	 * `join`, the request also waits for fetches of other machines, for at most the maximum wait.
	 */
	async consult(
		{ key, url, intent, knownVersions, thread }: ClusterConsultation,
		cache: SharedCache,
		settings: ClusterTierSettings,
	): Promise<ClusterAnswer> {
		const names = this.#namesOf(key, url);
		const startedAt = performance.now();
		const deadline = startedAt + settings.waitMs;
		/** Milliseconds for which the request has waited for other fetches. */
		let waitedMs = 0;
		const remainingRedisMs = (): number => startedAt + this.#cluster.timeoutMs + waitedMs - performance.now();
		const known = new Set(knownVersions);
		const loader = new ResponseLoader(cache, url);
		const endCount = this.#endCounts.get(thread);
		for (let futileAttempts = 0; futileAttempts < MAX_FUTILE_ATTEMPTS; ) {
			const limitMs = remainingRedisMs();
			if (this.#isAway || this.#isClosed || limitMs <= 0) {
				this.#counts.unavailable++;
				return ALONE;
			}
			const token = `${this.#mailbox.key} ${++this.#lastLease}`;
			const lease = this.#lastLease;
			// Prepared before the command is sent, because the notification can arrive before the reply.
			const preparedWait = intent === 'join' ? this.#mailbox.prepare(names.lease) : undefined;
			try {
				loader.readEpochs();
				const reply = await this.#sendConsultation(names, intent, token, settings.waitMs, known, limitMs);
				if (reply.state === 'found') {
					const historyRead = this.#history.readUpTo(reply.position);
					await withinLimit(historyRead, remainingRedisMs(), 'no answer about purges in time');
					const result = await this.#loadResponses(reply, names, loader, known);
					if (result === 'loaded') {
						this.#counts.found++;
						return { outcome: 'loaded', versions: [...known] };
					}
					futileAttempts++;
					continue;
				}
				if (reply.state === 'own') {
					const leaseId = Number(String(reply.rest[0]));
					// This process is still fetching the response. A request that gets here has already waited long enough for that fetch.
					if (this.#leases.has(leaseId)) return ALONE;
					const endLimitMs = intent === 'join' ? deadline - performance.now() : remainingRedisMs();
					const waitStartedAt = performance.now();
					await waitAtMost(this.#endingFetches.get(leaseId) ?? Promise.resolve(), Math.max(0, endLimitMs));
					if (intent === 'join') waitedMs += performance.now() - waitStartedAt;
					futileAttempts++;
					continue;
				}
				if (reply.state === 'wait' && preparedWait) {
					const remainingMs = deadline - performance.now();
					if (remainingMs <= 0) return ALONE;
					this.#counts.waits++;
					const waitLimitMs = Math.min(remainingMs, reply.holderMs + EXTRA_EXPIRY_MS);
					const waitStartedAt = performance.now();
					const outcome = await preparedWait.wait(waitLimitMs, reply.redisTime);
					if (outcome === 'private') return { outcome: 'private' };
					waitedMs += performance.now() - waitStartedAt;
					continue;
				}
				this.#counts.absent++;
				if (reply.state !== 'lead') return { outcome: reply.state as 'busy' | 'private' | 'alone' };
				this.#keepLease({
					...{ id: lease, thread, token, names, key, cache, settings },
					...{ position: reply.position, clockOffset: reply.minClockOffset },
					...{ takenAt: performance.now(), timer: undefined },
				});
				// If the thread has died in the meantime, nobody else would end the lease, and the other machines would wait in vain.
				if (this.#endCounts.get(thread) === endCount && !this.#isClosed) return { outcome: 'lead', leaseId: lease };
				void this.endFetch({ leaseId: lease, outcome: 'failed', stored: undefined });
				return ALONE;
			} catch (error) {
				// If earlier commands have taken most of the time, a missing answer does not mean that Redis is unavailable.
				const isOutOfTime = error instanceof ClusterError && error.code === 'cluster/unavailable';
				if (!isOutOfTime || limitMs > this.#cluster.timeoutMs / 2) this.#onFailure(error);
				this.#counts.unavailable++;
				return ALONE;
			} finally {
				preparedWait?.cancel();
			}
		}
		return ALONE;
	}

	/** Ends a fetch: stores its response in Redis, if there is one, and lets the other machines continue. Never rejects. */
	async endFetch({ leaseId, outcome, stored }: FetchResult): Promise<void> {
		const lease = this.#leases.get(leaseId);
		if (!lease) return;
		this.#leases.delete(leaseId);
		clearInterval(lease.timer);
		const ending = this.#endInRedis(lease, outcome, stored);
		this.#endingFetches.set(leaseId, ending);
		await ending;
		this.#endingFetches.delete(leaseId);
	}

	/** Stores the response of a fetch in Redis, if there is one, and ends the lease. Never rejects. */
	async #endInRedis(lease: Lease, outcome: FetchOutcome, stored: FetchResult['stored']): Promise<void> {
		try {
			const isStored = outcome === 'stored' && stored !== undefined;
			const response = isStored ? await this.#readStored(lease, stored.entry, stored.serial) : undefined;
			if (response === undefined || !(await this.#storeInRedis(lease, response)))
				await this.#releaseLease(lease, outcome, response !== undefined);
		} catch (error) {
			this.#counts.failed++;
			this.#onFailure(error);
			// Lets the other machines continue if Redis is full and accepts no responses.
			if (error instanceof ClusterError && error.code === 'cluster/refused')
				await this.#releaseLease(lease, outcome, true).catch(() => {});
		}
	}

	/** Ends the fetches of a thread that has ended. */
	onThreadEnded(thread: number): void {
		this.#endCounts.set(thread, (this.#endCounts.get(thread) ?? 0) + 1);
		for (const lease of this.#leases.values())
			if (lease.thread === thread) void this.endFetch({ leaseId: lease.id, outcome: 'failed', stored: undefined });
	}

	/** Removes the responses of a URL. If Redis is not available, they are removed as soon as it is. Never rejects. */
	async invalidateUrl(url: RequestedUrl): Promise<void> {
		try {
			if (this.#isAway) throw new ClusterError('cluster/unavailable', 'Redis does not answer');
			await INVALIDATE_SCRIPT.run(this.#cluster, [this.#urlKeyOf(url)], [], this.#cluster.timeoutMs);
		} catch (error) {
			this.#onFailure(error);
			const { host, path, query } = url;
			this.#purges.purgeElsewhereLater({ host, path: query === undefined ? path : `${path}?${query}` });
		}
	}

	/** Removes the responses of a key, which the origin has shown to be obsolete. */
	removeKey(key: string): void {
		if (this.#isAway) return;
		const { responses } = this.#namesOf(key, { host: '', path: '', query: undefined });
		this.#cluster.sendCommand(['DEL', responses], BACKGROUND_TIMEOUT_MS).catch(error => this.#onFailure(error));
	}

	/** Ends all leases of this process, and all its waits for other machines. */
	async close(): Promise<void> {
		this.#isClosed = true;
		clearInterval(this.#probeTimer);
		this.#mailbox.close();
		this.#outageLog.close();
		const results = [...this.#leases.keys()].map(
			leaseId => ({ leaseId, outcome: 'failed', stored: undefined }) as const,
		);
		if (this.#isAway) for (const { timer } of this.#leases.values()) clearInterval(timer);
		else await Promise.all(results.map(result => this.endFetch(result)));
	}

	async #sendConsultation(
		{ responses, lease, waiters, url }: RedisNames,
		intent: string,
		token: string,
		waitMs: number,
		known: ReadonlySet<string>,
		limitMs: number,
	): Promise<ConsultReply> {
		const keys = [responses, lease, waiters, url, purgeStreamKey(this.#cluster)];
		const args = [intent, this.#mailbox.key, token, String(waitMs), ...known];
		const sentAt = Date.now();
		const reply = await CONSULT_SCRIPT.run(this.#cluster, keys, args, limitMs);
		const receivedAt = Date.now();
		const [redisTime, position, stateBytes, ...rest] = (Array.isArray(reply) ? reply : []) as readonly RedisReply[];
		const state = CONSULT_STATES.find(known => known === String(stateBytes));
		const [holderMs] = rest;
		const isRestValid = state === 'wait' ? typeof holderMs === 'number' : rest.every(value => Buffer.isBuffer(value));
		if (typeof redisTime !== 'number' || !Buffer.isBuffer(position) || state === undefined || !isRestValid)
			throw new ClusterError('cluster/refused', 'the reply of Redis about responses is not valid', 'invalid reply');
		return {
			position: String(position),
			state,
			redisTime,
			minClockOffset: redisTime - receivedAt,
			maxClockOffset: redisTime - sentAt,
			holderMs: state === 'wait' ? Math.max(0, holderMs as number) : 0,
			rest: state === 'wait' ? [] : (rest as readonly Buffer[]),
		};
	}

	/**
	 * Loads responses into the cache, and adds their versions to `known`. All purges up to the reply must have been read. Returns
	 * 'overtaken' if Redis must be asked again because of a purge or an invalidation on this machine, and 'unusable' if no response
	 * could be loaded.
	 */
	async #loadResponses(
		{ rest, maxClockOffset }: ConsultReply,
		{ responses }: RedisNames,
		loader: ResponseLoader,
		known: Set<string>,
	): Promise<'loaded' | 'overtaken' | 'unusable'> {
		let isLoaded = false;
		for (let i = 0; i < rest.length; i += 2) {
			const [variant, value] = [String(rest[i]), rest[i + 1]!];
			const separator = value.indexOf(0x3a);
			const version = value.toString('latin1', 0, separator);
			const name = recordName(responses, variant);
			const record = await decodeRecord(value.subarray(separator + 1), name, this.#sealedValues);
			if (record !== undefined && !this.#isPurged(record)) {
				const head = { ...record.head, storedAt: record.head.storedAt - maxClockOffset };
				const result = loader.load(head, record.body);
				if (result === 'overtaken') return 'overtaken';
				isLoaded ||= result;
			}
			known.add(version);
		}
		return isLoaded ? 'loaded' : 'unusable';
	}

	#isPurged({ head, position }: SharedRecord): boolean {
		const isPurged =
			this.#history.isPurged(head, position) ||
			this.#purges.unsharedSelections.some(selection => compileSelection(selection)(head));
		if (isPurged) this.#counts.purged++;
		return isPurged;
	}

	#keepLease(lease: Lease): void {
		this.#leases.set(lease.id, lease);
		lease.timer = setInterval(() => {
			if (this.#isAway) return;
			if (performance.now() - lease.takenAt > MAX_RENEWAL_MS) {
				clearInterval(lease.timer);
				this.#leases.delete(lease.id);
				return;
			}
			RENEW_SCRIPT.run(this.#cluster, [lease.names.lease], [lease.token], BACKGROUND_TIMEOUT_MS).catch(error =>
				this.#onFailure(error),
			);
		}, RENEWAL_INTERVAL_MS).unref();
	}

	/** Reads a response from the cache's shared memory. Returns undefined if it has been evicted or purged. */
	async #readStored(
		{ key, cache }: Lease,
		entry: number,
		serial: number,
	): Promise<{ readonly head: CachedHead; readonly body: Buffer | undefined } | undefined> {
		try {
			const response = cache.responseAt(key, entry, serial);
			if (response === undefined) return undefined;
			const { head, length } = response;
			const body = length === 0 ? null : cache.body(response, 0, length);
			if (body === undefined) return undefined;
			if (!isStream(body)) return { head, body: body === null ? Buffer.alloc(0) : Buffer.from(body as Uint8Array) };
			const chunks: Buffer[] = [];
			for (let chunk = await body.pull(); chunk !== null; chunk = await body.pull()) chunks.push(Buffer.from(chunk));
			return { head, body: Buffer.concat(chunks) };
		} catch (error) {
			if (error instanceof LockLost) return undefined;
			throw error;
		}
	}

	/**
	 * Stores a response and ends its lease. Returns false, without doing either, if the response is evicted, expired or too large.
	 */
	async #storeInRedis(
		{ names, token, position, clockOffset, settings }: Lease,
		{ head, body }: { readonly head: CachedHead; readonly body: Buffer | undefined },
	): Promise<boolean> {
		const keepMs = Math.min(settings.keepMs, usableMs(head));
		if (body === undefined || keepMs <= 0 || body.byteLength > settings.maxBytes) return false;
		const variant = this.#deriveName(`variant ${head.selecting.join('\n')}`);
		const sharedHead = { ...head, storedAt: head.storedAt + clockOffset };
		const record = await encodeRecord(
			{ head: sharedHead, position, body },
			recordName(names.responses, variant),
			this.#sealedValues,
		);
		if (record.byteLength > settings.maxBytes) return false;
		const keys = [names.responses, names.lease, names.waiters, names.url];
		const args = [token, variant, randomBytes(8).toString('hex'), record, String(Math.ceil(keepMs))];
		const isAccepted = (await STORE_SCRIPT.run(this.#cluster, keys, args, BACKGROUND_TIMEOUT_MS)) === 1;
		if (isAccepted) this.#counts.stored++;
		else this.#counts.fenced++;
		this.#loggedReason = undefined;
		return true;
	}

	/** Ends a lease without a response. `isUnshared` is true if there is a response, but only this machine has it. */
	async #releaseLease({ names, token }: Lease, outcome: FetchOutcome, isUnshared: boolean): Promise<void> {
		const [notifiedOutcome, reason] =
			outcome === 'private' ? ['private', 'private'] : isUnshared ? ['failed', 'unshared'] : ['failed', ''];
		await RELEASE_SCRIPT.run(
			this.#cluster,
			[names.lease, names.waiters],
			[token, notifiedOutcome, reason],
			BACKGROUND_TIMEOUT_MS,
		);
	}

	/** Handles a failed command. If Redis did not answer, requests proceed without Redis until it answers again. */
	#onFailure(error: unknown): void {
		if (this.#isClosed) return;
		if (!(error instanceof ClusterError)) {
			const { message } = error as Error;
			if (this.#hasNewReason(message)) this.#log('error', `sharing responses failed: ${message}`, {});
			return;
		}
		if (this.#isAway) return;
		if (error.code === 'cluster/refused') {
			const { message, reply } = error;
			const fields = { address: this.#cluster.address, cause: message };
			if (this.#hasNewReason(reply)) this.#log('warn', 'responses are not shared', fields);
			return;
		}
		this.#isAway = true;
		this.#mailbox.wakeAll();
		this.#outageLog.onLost(error.message);
		this.#probeTimer = setInterval(() => void this.#probe(), PROBE_INTERVAL_MS).unref();
	}

	/** Reports whether a failure differs from the one that was logged last. Each request can cause one, so repetitions are not logged. */
	#hasNewReason(reason: string | undefined): boolean {
		if (this.#loggedReason === reason) return false;
		this.#loggedReason = reason;
		return true;
	}

	async #probe(): Promise<void> {
		try {
			await this.#cluster.sendCommand(['PING']);
		} catch {
			return;
		}
		if (!this.#isAway || this.#isClosed) return;
		this.#isAway = false;
		clearInterval(this.#probeTimer);
		this.#outageLog.onAvailable();
	}

	#namesOf(key: string, url: RequestedUrl): RedisNames {
		const responses = this.#cluster.redisKey(`cache:${this.#deriveName(`key ${key}`)}`);
		return { responses, lease: `${responses}:lease`, waiters: `${responses}:waiters`, url: this.#urlKeyOf(url) };
	}

	#urlKeyOf({ host, path, query }: RequestedUrl): string {
		return this.#cluster.redisKey(`cache:url:${this.#deriveName(`url ${urlText(host, path, query)}`)}`);
	}

	/** Returns a name that reveals nothing about the text without the cluster's key, because URLs and fields may contain secrets. */
	#deriveName(text: string): string {
		return createHmac('sha256', this.#nameKey).update(text).digest().subarray(0, NAME_BYTES).toString('base64url');
	}
}

/** Returns the name under which a response is encrypted. */
function recordName(responses: string, variant: string): string {
	return `${responses} ${variant}`;
}

/** Returns for how many milliseconds a response can be served, stale or not. */
function usableMs(head: CachedHead): number {
	const { storedAt, initialAge, lifetime, staleWhileRevalidate, staleIfError } = head;
	return storedAt - initialAge + lifetime + Math.max(staleWhileRevalidate, staleIfError) - Date.now();
}

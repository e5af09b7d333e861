/** The commands by which the machines of a cluster look for, fetch, store and remove shared responses: Lua scripts in Redis. */
import { randomBytes } from 'node:crypto';
import { ClusterError } from './cluster-error.ts';
import type { RedisAccess } from './redis-access.ts';
import type { RedisReply } from './redis-connection.ts';
import { RedisScript } from './redis-script.ts';
import type { KeyNames } from './response-names.ts';
import { purgeStreamKey } from './shared-purges.ts';

/** Milliseconds after which a lease expires if its holder does not renew it. */
const LEASE_MS = 3000;
/** Maximum milliseconds for which a lease is renewed. No request waits for longer. */
export const MAX_RENEWAL_MS = 60_000;
/** Milliseconds for which machines do not wait for each other's fetches of a key after its response could not be shared. */
const UNSHARED_MS = 10_000;
/**
 * Maximum number of stored responses per key. There is a maximum because clients choose the request fields that select a response.
 */
const MAX_VARIANTS = 8;
/** Milliseconds after which Redis deletes the notifications to a process that no longer reads them. */
const MAILBOX_LIFETIME_MS = 60_000;
/** Maximum milliseconds of a command that no request waits for. */
export const BACKGROUND_TIMEOUT_MS = 2000;

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

const CONSULT_STATES = ['found', 'lead', 'wait', 'busy', 'private', 'own', 'alone'] as const;

/** A reply of {@link CONSULT_SCRIPT}. */
export interface ConsultReply {
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

/** What a request asks for; see {@link CONSULT_SCRIPT}. */
export interface Consultation {
	readonly intent: string;
	/** Name in Redis of the mailbox of this process. */
	readonly mailbox: string;
	/** The token of a new lease. */
	readonly token: string;
	/** Maximum milliseconds to wait for a fetch of another machine. */
	readonly waitMs: number;
	/** The versions of the responses that the machine knows. */
	readonly known: ReadonlySet<string>;
}

/** Looks for responses, and takes or awaits the lease. Rejects with ClusterError after at most `limitMs` milliseconds. */
export async function sendConsultation(
	redis: RedisAccess,
	{ responses, lease, waiters, url }: KeyNames,
	{ intent, mailbox, token, waitMs, known }: Consultation,
	limitMs: number,
): Promise<ConsultReply> {
	const keys = [responses, lease, waiters, url, purgeStreamKey(redis)];
	const args = [intent, mailbox, token, String(waitMs), ...known];
	const sentAt = Date.now();
	const reply = await CONSULT_SCRIPT.run(redis, keys, args, limitMs);
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
 * Stores a response, which is kept for `keepMs` milliseconds, and ends its lease. Resolves to false if the lease has already ended.
 */
export async function storeResponse(
	redis: RedisAccess,
	names: KeyNames,
	token: string,
	{ variant, record, keepMs }: { readonly variant: string; readonly record: Buffer; readonly keepMs: number },
): Promise<boolean> {
	const keys = [names.responses, names.lease, names.waiters, names.url];
	const args = [token, variant, randomBytes(8).toString('hex'), record, String(Math.ceil(keepMs))];
	return (await STORE_SCRIPT.run(redis, keys, args, BACKGROUND_TIMEOUT_MS)) === 1;
}

/**
 * Ends a lease without a response.
 * @param outcome The outcome of which the waiting machines are notified.
 * @param reason Why machines will not wait for each other for a while; '' if they will.
 */
export async function releaseLease(
	redis: RedisAccess,
	{ lease, waiters }: KeyNames,
	token: string,
	outcome: string,
	reason: string,
): Promise<void> {
	await RELEASE_SCRIPT.run(redis, [lease, waiters], [token, outcome, reason], BACKGROUND_TIMEOUT_MS);
}

export async function renewLease(redis: RedisAccess, { lease }: KeyNames, token: string): Promise<void> {
	await RENEW_SCRIPT.run(redis, [lease], [token], BACKGROUND_TIMEOUT_MS);
}

/** Removes the responses of a URL, and ends the leases of fetches that have already begun. `urlKey` is the set of the URL's keys. */
export async function removeUrl(redis: RedisAccess, urlKey: string, limitMs: number): Promise<void> {
	await INVALIDATE_SCRIPT.run(redis, [urlKey], [], limitMs);
}

/**
 * The members of a cluster: the running processes of all machines. Each process regularly announces itself in Redis. A process that
 * stops doing so is no longer a member after {@link MEMBER_LIFETIME_MS} milliseconds.
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { type Clock, SYSTEM_CLOCK } from '../clock/clock.ts';
import { ClusterError } from './cluster-error.ts';
import type { RedisAccess } from './redis-access.ts';

/** A running process of the cluster. */
export interface ClusterMember {
	/** The ID of the process: the host's name and a random part. */
	readonly id: string;
	readonly host: string;
	readonly pid: number;
	readonly version: string;
	/** Number of the generation that the process serves: it grows with each configuration that the process loads. */
	readonly generation: number;
	/** When the process joined the cluster, in seconds since the epoch, by the process's own clock. */
	readonly since: number;
}

/** The facts that this process announces about itself. They are functions, because the values may change while it runs. */
export interface MemberFacts {
	version(): string;
	generation(): number;
}

/** Milliseconds between heartbeats, and milliseconds without a heartbeat after which a process is no longer a member. */
const HEARTBEAT_INTERVAL_MS = 5000;
const MEMBER_LIFETIME_MS = 15_000;
/** Timeout, in milliseconds, of heartbeats. It may be long, because no request waits for them. */
const HEARTBEAT_TIMEOUT_MS = 2000;
/** Milliseconds for which Redis remembers a process that stopped announcing itself without leaving: a day. */
const MISSING_LIFETIME_MS = 86_400_000;

/** Lua code that sets `now` to the time of Redis in milliseconds, so that the clocks of the machines do not matter. */
export const LUA_SET_NOW = "local time = redis.call('TIME') local now = time[1] * 1000 + math.floor(time[2] / 1000) ";

export const HEARTBEAT_SCRIPT: string = `${LUA_SET_NOW}
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
redis.call('ZREM', KEYS[3], ARGV[1])
for _, missing in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now)) do
	redis.call('ZREM', KEYS[1], missing)
	redis.call('HDEL', KEYS[2], missing)
	redis.call('ZADD', KEYS[3], now + ARGV[4], missing)
end
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
return redis.call('ZCARD', KEYS[1])`;
const LIST_SCRIPT = `${LUA_SET_NOW}
local found = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. now, '+inf')) do
	found[#found + 1] = redis.call('HGET', KEYS[2], id)
end
return found`;
const LEAVE_SCRIPT =
	"redis.call('ZREM', KEYS[1], ARGV[1]) redis.call('ZREM', KEYS[3], ARGV[1]) return redis.call('HDEL', KEYS[2], ARGV[1])";

/** Keeps this process a member, and lists all members. */
export class ClusterMembers {
	/** The ID of this process among the members. */
	readonly ownId: string;
	readonly #redis: RedisAccess;
	readonly #clock: Clock;
	readonly #host: string;
	readonly #facts: MemberFacts;
	readonly #joinedAtSeconds = Date.now() / 1000;
	#stopTimer: (() => void) | undefined;
	#isSendingHeartbeat = false;
	/**
	 * True if the connection was established while a heartbeat was on its way. The heartbeat may have been lost with the previous
	 * connection.
	 */
	#hasConnectedMeanwhile = false;
	#hasLeft = false;
	/** Number of members according to the last reply of Redis. */
	memberCount = 0;

	/** @param host Name of the machine. */
	constructor(redis: RedisAccess, facts: MemberFacts, clock: Clock = SYSTEM_CLOCK, host: string = hostname()) {
		this.#redis = redis;
		this.#facts = facts;
		this.#clock = clock;
		this.#host = host;
		this.ownId = `${host}-${randomBytes(4).toString('hex')}`;
	}

	/**
	 * Names of the keys in Redis: the expiry times of members by ID, the descriptions of members by ID, and the IDs of processes
	 * that stopped announcing themselves without leaving. Such processes may still serve requests, without a connection to Redis.
	 */
	get redisKeys(): [string, string, string] {
		return [
			this.#redis.redisKey('members'),
			this.#redis.redisKey('members:facts'),
			this.#redis.redisKey('members:missing'),
		];
	}

	/** Joins the cluster. Resolves after the first heartbeat, even if it failed. */
	async start(): Promise<void> {
		await this.#sendHeartbeat();
	}

	/**
	 * Announces this process immediately, because Redis may have been unreachable for so long that it no longer lists the process
	 * as a member.
	 */
	onConnected(): void {
		if (this.#hasLeft) return;
		if (this.#isSendingHeartbeat) this.#hasConnectedMeanwhile = true;
		else {
			this.#stopTimer?.();
			void this.#sendHeartbeat();
		}
	}

	/** Returns all members, this process among them. Rejects with ClusterError. */
	async list(): Promise<ClusterMember[]> {
		const descriptions = await this.#redis.runScript(LIST_SCRIPT, this.redisKeys, []);
		const members = (Array.isArray(descriptions) ? descriptions : []).flatMap(text => memberOf(String(text)) ?? []);
		if (members.every(({ id }) => id !== this.ownId)) members.push(this.#description());
		this.memberCount = members.length;
		return members.sort((a, b) => (a.id < b.id ? -1 : 1));
	}

	/** Leaves the cluster, so that the other members need not wait until {@link MEMBER_LIFETIME_MS} has passed. Never rejects. */
	async leave(): Promise<void> {
		this.#hasLeft = true;
		this.#stopTimer?.();
		await this.#redis.runScript(LEAVE_SCRIPT, this.redisKeys, [this.ownId]).catch(() => {});
	}

	async #sendHeartbeat(): Promise<void> {
		let isMissed = false;
		this.#isSendingHeartbeat = true;
		this.#hasConnectedMeanwhile = false;
		try {
			const description = JSON.stringify(this.#description());
			const memberCount = await this.#redis.runScript(
				HEARTBEAT_SCRIPT,
				this.redisKeys,
				[this.ownId, String(MEMBER_LIFETIME_MS), description, String(MISSING_LIFETIME_MS)],
				HEARTBEAT_TIMEOUT_MS,
			);
			if (typeof memberCount === 'number') this.memberCount = memberCount;
		} catch (error) {
			if (!(error instanceof ClusterError)) throw error;
			isMissed = this.#hasConnectedMeanwhile;
		}
		this.#isSendingHeartbeat = false;
		if (this.#hasLeft) return;
		const delayMs = isMissed ? 0 : HEARTBEAT_INTERVAL_MS;
		this.#stopTimer = this.#clock.startTimer(() => void this.#sendHeartbeat(), delayMs, false);
	}

	#description(): ClusterMember {
		return {
			id: this.ownId,
			host: this.#host,
			pid: process.pid,
			version: this.#facts.version(),
			generation: this.#facts.generation(),
			since: Math.round(this.#joinedAtSeconds),
		};
	}
}

/** Parses the description of a member. Returns undefined if another release wrote it in another form. */
function memberOf(text: string): ClusterMember | undefined {
	try {
		const { id, host, pid, version, generation, since } = JSON.parse(text) as ClusterMember;
		const isKnown = [id, host, version].every(value => typeof value === 'string');
		if (!isKnown || ![pid, generation, since].every(value => typeof value === 'number')) return undefined;
		return { id, host, pid, version, generation, since };
	} catch {
		return undefined;
	}
}

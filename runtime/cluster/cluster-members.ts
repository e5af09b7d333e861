/**
 * The members of a cluster: the running processes of all machines. Each process regularly announces itself in Redis. A process that
 * stops doing so is no longer a member after {@link MEMBER_LIFETIME_MS} milliseconds.
 */
import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import type { Cluster } from './cluster.ts';
import { ClusterError } from './cluster-error.ts';

/** A running process. */
export interface ClusterMember {
	/** The host's name and a random part. Every process has a different ID. */
	readonly id: string;
	readonly host: string;
	readonly pid: number;
	readonly version: string;
	/** Number of the configuration's generation that the process serves. */
	readonly generation: number;
	/** When the process joined the cluster, in seconds since the epoch, by the process's own clock. */
	readonly since: number;
}

/** Facts about this process that change. */
export interface MemberFacts {
	version(): string;
	generation(): number;
}

/** Milliseconds between heartbeats, and milliseconds without a heartbeat after which a process is no longer a member. */
const HEARTBEAT_INTERVAL_MS = 5000;
const MEMBER_LIFETIME_MS = 15_000;
/** Timeout, in milliseconds, of commands whose results no request is waiting for. */
const HEARTBEAT_TIMEOUT_MS = 2000;

/** Lua code that sets `now` to the time of Redis in milliseconds, so that the clocks of the machines do not matter. */
export const LUA_SET_NOW = "local time = redis.call('TIME') local now = time[1] * 1000 + math.floor(time[2] / 1000) ";

const HEARTBEAT_SCRIPT = `${LUA_SET_NOW}
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now)) do
	redis.call('ZREM', KEYS[1], gone)
	redis.call('HDEL', KEYS[2], gone)
end
return redis.call('ZCARD', KEYS[1])`;
const LIST_SCRIPT = `${LUA_SET_NOW}
local found = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. now, '+inf')) do
	found[#found + 1] = redis.call('HGET', KEYS[2], id)
end
return found`;
const LEAVE_SCRIPT = "redis.call('ZREM', KEYS[1], ARGV[1]) return redis.call('HDEL', KEYS[2], ARGV[1])";

/** Keeps this process a member, and lists all members. */
export class ClusterMembers {
	/** The ID of this process among the members. */
	readonly ownId: string = `${hostname()}-${randomBytes(4).toString('hex')}`;
	readonly #cluster: Cluster;
	readonly #facts: MemberFacts;
	readonly #joinedAtSeconds = Date.now() / 1000;
	#timer: NodeJS.Timeout | undefined;
	#hasLeft = false;
	/** Number of members in the latest list that Redis returned. */
	memberCount = 0;

	constructor(cluster: Cluster, facts: MemberFacts) {
		this.#cluster = cluster;
		this.#facts = facts;
	}

	/** Names of the keys in Redis: the expiry times of members by ID, and the descriptions of members by ID. */
	get redisKeys(): [string, string] {
		return [this.#cluster.redisKey('members'), this.#cluster.redisKey('members:facts')];
	}

	/** Joins. Resolves after the first heartbeat, even if it failed. */
	async start(): Promise<void> {
		await this.#sendHeartbeat();
	}

	/** Returns all members, this process among them. Rejects with ClusterError. */
	async list(): Promise<ClusterMember[]> {
		const descriptions = await this.#cluster.runScript(LIST_SCRIPT, this.redisKeys, []);
		const members = (Array.isArray(descriptions) ? descriptions : []).flatMap(text => memberOf(String(text)) ?? []);
		if (members.every(({ id }) => id !== this.ownId)) members.push(this.#description());
		this.memberCount = members.length;
		return members.sort((a, b) => (a.id < b.id ? -1 : 1));
	}

	/** Leaves the cluster, so that the others need not wait until {@link MEMBER_LIFETIME_MS} has passed. Never rejects. */
	async leave(): Promise<void> {
		this.#hasLeft = true;
		clearTimeout(this.#timer);
		await this.#cluster.runScript(LEAVE_SCRIPT, this.redisKeys, [this.ownId]).catch(() => {});
	}

	async #sendHeartbeat(): Promise<void> {
		try {
			const description = JSON.stringify(this.#description());
			this.memberCount = Number(
				await this.#cluster.runScript(
					HEARTBEAT_SCRIPT,
					this.redisKeys,
					[this.ownId, String(MEMBER_LIFETIME_MS), description],
					HEARTBEAT_TIMEOUT_MS,
				),
			);
		} catch (error) {
			if (!(error instanceof ClusterError)) throw error;
		}
		if (this.#hasLeft) return;
		this.#timer = setTimeout(() => void this.#sendHeartbeat(), HEARTBEAT_INTERVAL_MS);
		this.#timer.unref();
	}

	#description(): ClusterMember {
		return {
			id: this.ownId,
			host: hostname(),
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

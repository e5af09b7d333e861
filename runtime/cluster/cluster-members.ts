/**
 * The members of a cluster: the running processes of all machines. Each process regularly announces itself in Redis. A process that
 * stops doing so is no longer a member after {@link LIFETIME} milliseconds.
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
const INTERVAL = 5000;
const LIFETIME = 15_000;
/** Maximum milliseconds of a command for whose result no request waits. */
const LIMIT = 2000;

/** Lua code that sets `now` to the time of Redis in milliseconds, so that the clocks of the machines do not matter. */
export const LUA_NOW = "local time = redis.call('TIME') local now = time[1] * 1000 + math.floor(time[2] / 1000) ";

const BEAT = `${LUA_NOW}
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], ARGV[3])
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now)) do
	redis.call('ZREM', KEYS[1], gone)
	redis.call('HDEL', KEYS[2], gone)
end
return redis.call('ZCARD', KEYS[1])`;
const LIST = `${LUA_NOW}
local found = {}
for _, id in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. now, '+inf')) do
	found[#found + 1] = redis.call('HGET', KEYS[2], id)
end
return found`;
const LEAVE = "redis.call('ZREM', KEYS[1], ARGV[1]) return redis.call('HDEL', KEYS[2], ARGV[1])";

/** Keeps this process a member, and lists all members. */
export class ClusterMembers {
	/** The ID of this process among the members. */
	readonly self: string = `${hostname()}-${randomBytes(4).toString('hex')}`;
	readonly #cluster: Cluster;
	readonly #facts: MemberFacts;
	readonly #since = Date.now() / 1000;
	#timer: NodeJS.Timeout | undefined;
	#hasLeft = false;
	/** Number of members in the latest list that Redis returned. */
	count = 0;

	constructor(cluster: Cluster, facts: MemberFacts) {
		this.#cluster = cluster;
		this.#facts = facts;
	}

	/** Names of the keys in Redis: the expiry times of members by ID, and the descriptions of members by ID. */
	get keys(): [string, string] {
		return [this.#cluster.key('members'), this.#cluster.key('members:facts')];
	}

	/** Joins. Resolves after the first heartbeat, even if it failed. */
	async start(): Promise<void> {
		await this.#beat();
	}

	/** Returns all members, this process among them. Rejects with ClusterError. */
	async list(): Promise<ClusterMember[]> {
		const listed = await this.#cluster.script(LIST, this.keys, []);
		const members = (Array.isArray(listed) ? listed : []).flatMap(text => memberOf(String(text)) ?? []);
		if (members.every(({ id }) => id !== this.self)) members.push(this.#description());
		this.count = members.length;
		return members.sort((a, b) => (a.id < b.id ? -1 : 1));
	}

	/** Leaves the cluster, so that the others need not wait until {@link LIFETIME} has passed. Never rejects. */
	async leave(): Promise<void> {
		this.#hasLeft = true;
		clearTimeout(this.#timer);
		await this.#cluster.script(LEAVE, this.keys, [this.self]).catch(() => {});
	}

	async #beat(): Promise<void> {
		try {
			const text = JSON.stringify(this.#description());
			this.count = Number(await this.#cluster.script(BEAT, this.keys, [this.self, String(LIFETIME), text], LIMIT));
		} catch (error) {
			if (!(error instanceof ClusterError)) throw error;
		}
		if (this.#hasLeft) return;
		this.#timer = setTimeout(() => void this.#beat(), INTERVAL);
		this.#timer.unref();
	}

	#description(): ClusterMember {
		return {
			id: this.self,
			host: hostname(),
			pid: process.pid,
			version: this.#facts.version(),
			generation: this.#facts.generation(),
			since: Math.round(this.#since),
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

/** What the commands of a cluster cost a redis-server, as measured by measure-redis.ts. */
import { readFileSync } from 'node:fs';
import path from 'node:path';

/** A cost in microseconds: a part for each command, and a part for each unit that the command handles. */
export interface CommandCost {
	readonly each: number;
	readonly perUnit: number;
}

/** Processor time of redis-server's main thread in microseconds, including receiving the command and sending the reply. */
export interface RedisCosts {
	/** The day of the measurement, such as `2026-11-28`, and the redis-server and machine that were measured. */
	readonly date: string;
	readonly redis: string;
	readonly machine: string;
	/** A report of usage by a rate limiter. A unit is one of the keys in it. */
	readonly report: CommandCost;
	readonly heartbeat: CommandCost;
	/** Adding a purge. A unit is a member of the cluster: the reply lists all members. */
	readonly publish: CommandCost;
	readonly confirm: CommandCost;
	/** A read, which either waits for an entry or returns entries immediately. A unit is an entry. */
	readonly read: CommandCost;
	/** Waking a client that waits for an entry. */
	readonly wake: CommandCost;
	readonly range: CommandCost;
	/** The part of `report` that the script itself takes, according to `INFO commandstats`. The rest is input and output. */
	readonly reportScript: CommandCost;
}

/** Returns the costs in redis-costs.json. */
export function readRedisCosts(): RedisCosts {
	return JSON.parse(readFileSync(path.join(import.meta.dirname, 'redis-costs.json'), 'utf8')) as RedisCosts;
}

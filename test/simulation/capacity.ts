/** What one Redis can do for a cluster, computed from the measured costs of its commands. */
import type { RedisCosts } from './redis-costs.ts';

/** The fraction of time that Redis may be busy. Above it, the queue of Redis grows quickly. */
export const BUSY_SHARE = 0.7;
/** Milliseconds from the first usage that a machine has to report until it can send the next report. */
const REPORT_CYCLE_MS = 5.6;
const HEARTBEATS_PER_SECOND = 0.2;
const READS_PER_SECOND = 1;

/** Returns the fraction of time that Redis is busy with the heartbeats and reads of all machines, without limits and purges. */
export function baseRedisLoad(machines: number, costs: RedisCosts): number {
	return (machines * (HEARTBEATS_PER_SECOND * costs.heartbeat.each + READS_PER_SECOND * costs.read.each)) / 1e6;
}

/** Returns the fraction of time that Redis is busy if all machines together report `keyRate` keys per second. */
export function limitBusyShare(machines: number, keyRate: number, costs: RedisCosts): number {
	const keysOfMachine = keyRate / machines;
	const reportsOfMachine = 1 / (1 / keysOfMachine + REPORT_CYCLE_MS / 1000);
	const { each, perUnit } = costs.report;
	return baseRedisLoad(machines, costs) + (machines * reportsOfMachine * each + keyRate * perUnit) / 1e6;
}

/** Returns the number of keys per second that all machines together can report before Redis is busier than {@link BUSY_SHARE}. */
export function maxKeyRate(machines: number, costs: RedisCosts): number {
	let [low, high] = [0, 1e6];
	for (let step = 0; step < 60; step++) {
		const middle = (low + high) / 2;
		if (limitBusyShare(machines, middle, costs) > BUSY_SHARE) high = middle;
		else low = middle;
	}
	return low;
}

/** Returns the number of purges per second that are possible before Redis is busier than {@link BUSY_SHARE}. */
export function maxPurgeRate(machines: number, costs: RedisCosts): number {
	const { publish, wake, read, confirm } = costs;
	// Each machine is woken, confirms, and waits again. The machine that purges reads many confirmations at a time.
	const perPurge = publish.each + machines * (publish.perUnit + wake.each + read.each + confirm.each);
	return ((BUSY_SHARE - baseRedisLoad(machines, costs)) * 1e6) / perPurge;
}

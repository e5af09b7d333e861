/**
 * The rollout in Redis: its state, the reports of the machines, and the publications. The state and the reports are encrypted like
 * all private values. The state is replaced only if nobody else has replaced it since it was read.
 */
import { randomBytes } from 'node:crypto';
import type { Cluster } from './cluster.ts';
import { LUA_SET_NOW } from './cluster-members.ts';
import type { RedisReply } from './redis-connection.ts';
import { RedisScript } from './redis-script.ts';
import { COORDINATOR_LEASE_MS, type MachineReport, type PublicationNumber, type Rollout } from './rollout-decision.ts';
import type { SealedValues } from './sealed-values.ts';

/** Timeout of a command in milliseconds. It may be long, because no request waits for the commands. */
const COMMAND_TIMEOUT_MS = 5000;
/** Milliseconds without a report after which a machine is forgotten. */
const FORGET_MACHINE_AFTER_MS = 600_000;
/** Milliseconds between two searches for machines that are to be forgotten, by any machine. */
const FORGET_INTERVAL_MS = 60_000;
/** Number of publications that are kept, including the latest one. */
const KEPT_PUBLICATIONS = 20;
/** Number of bytes at the end of an encrypted report, in the authentication tag, by which a process recognizes its own report. */
const REPORT_END_BYTES = 16;
/** The name under which the state is encrypted. */
const STATE_NAME = 'rollout';
/** The revision of a state that does not exist. */
export const NO_REVISION = '';

/** A machine's report, with additional facts that are shown to operators. */
export interface FleetReport extends MachineReport {
	readonly host: string;
	readonly pid: number;
	/**
	 * A random token of the process, because processes on different hosts can have the same PID. Earlier releases do not report
	 * it.
	 */
	readonly process?: string | undefined;
	readonly version: string;
	/** Another process that reports with the same machine ID. */
	readonly sameIdAs?: ProcessIdentity | undefined;
}

/** The host on which a process runs, and its PID there. */
export interface ProcessIdentity {
	readonly host: string;
	readonly pid: number;
}

/** A report as a machine sends it. Redis adds the time of receipt. */
export type SentReport = Omit<FleetReport, 'reportedAt'>;

/** The state of the rollout and the machines' reports, as read from Redis at one time. */
export interface RolloutReading {
	/** The time of Redis, in milliseconds since 1970. */
	readonly now: number;
	/** A random text that identifies the state; {@link NO_REVISION} if there is no rollout. */
	readonly revision: string;
	readonly rollout: Rollout | undefined;
	readonly reports: readonly FleetReport[];
}

export interface ReportAnswer {
	readonly now: number;
	readonly revision: string;
	/** The state, if its revision is not the one that the machine knows. */
	readonly changed: { readonly rollout: Rollout | undefined } | undefined;
	/** The reports of all machines, if this machine is the coordinator. */
	readonly reports: readonly FleetReport[] | undefined;
	/** Another process that has reported with this machine's ID since this process reported last. */
	readonly otherProcess?: ProcessIdentity | undefined;
}

/** The error for a rollout whose state in Redis cannot be decrypted. */
export class RolloutUnreadable extends Error {
	constructor() {
		super('The rollout in Redis has been altered, or was encrypted with another `key` of `cluster`.');
		this.name = 'RolloutUnreadable';
	}
}

/**
 * Stores the report of a machine. Returns the state if it has changed, and all reports if the machine is the coordinator. `KEYS`:
 * the state; the reports; the coordinator's lease; and the key that limits how often machines search for machines to forget.
 *
 * `ARGV`: the machine; its report; the revision that it knows; 1 if it is willing to be the coordinator; the milliseconds of the
 * lease; the milliseconds without a report after which a machine is forgotten; the milliseconds between two searches for such machines
 * (empty if this machine does not search); and the last bytes of this process's previous report, which no other report has (empty for
 * its first one).
 *
 * Also returns the report that this one replaces, if this process has reported before and the replaced report is not its previous
 * one. Machines search even while no rollout runs, because the reports of machines that were replaced by others would otherwise
 * accumulate. A report whose time is far in the future was made before Redis's clock was set back, so its machine is forgotten as
 * well.
 */
const REPORT_SCRIPT = new RedisScript(`${LUA_SET_NOW}
local before = redis.call('HGET', KEYS[2], ARGV[1])
redis.call('HSET', KEYS[2], ARGV[1], string.format('%.0f', now) .. ':' .. ARGV[2])
local replaced = ARGV[8] ~= '' and before and string.sub(before, -#ARGV[8]) ~= ARGV[8] and before
local revision = redis.call('HGET', KEYS[1], 'revision') or ''
local state = revision ~= ARGV[3] and redis.call('HGET', KEYS[1], 'state')
local reports = false
if ARGV[4] == '1' then
	local holder = redis.call('GET', KEYS[3])
	if not holder or holder == ARGV[1] then
		redis.call('SET', KEYS[3], ARGV[1], 'PX', ARGV[5])
		reports = redis.call('HGETALL', KEYS[2])
	end
end
if ARGV[7] ~= '' and redis.call('SET', KEYS[4], '1', 'PX', ARGV[7], 'NX') then
	local all = reports or redis.call('HGETALL', KEYS[2])
	for i = 1, #all, 2 do
		local reportedAt = tonumber(string.match(all[i + 1], '^%d+')) or 0
		if math.abs(now - reportedAt) > tonumber(ARGV[6]) then redis.call('HDEL', KEYS[2], all[i]) end
	end
end
return { now, revision, state, reports, replaced }`);

const READ_SCRIPT = `${LUA_SET_NOW}
local revision = redis.call('HGET', KEYS[1], 'revision') or ''
return { now, revision, redis.call('HGET', KEYS[1], 'state'), redis.call('HGETALL', KEYS[2]) }`;

/** Replaces the state if its revision is the expected one. `ARGV`: the expected revision, the new revision, and the new state. */
const REPLACE_SCRIPT = `
if (redis.call('HGET', KEYS[1], 'revision') or '') ~= ARGV[1] then return 0 end
redis.call('HSET', KEYS[1], 'revision', ARGV[2], 'state', ARGV[3])
return 1`;

/** Like {@link REPLACE_SCRIPT}. Also stores the publication `ARGV[4]` under `KEYS[2]`, and deletes the keys from `KEYS[3]` on. */
const PUBLISH_SCRIPT = `
if (redis.call('HGET', KEYS[1], 'revision') or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[2], ARGV[4])
redis.call('HSET', KEYS[1], 'revision', ARGV[2], 'state', ARGV[3])
for i = 3, #KEYS do redis.call('DEL', KEYS[i]) end
return 1`;

/** Reads and changes the rollout of a cluster. All methods reject with ClusterError if Redis fails. */
export class SharedRollout {
	readonly #cluster: Cluster;
	readonly #sealedValues: SealedValues;
	/** Time, by `performance.now()`, from which this machine searches again for machines that are to be forgotten. */
	#nextForgetAt = 0;
	/** The last bytes of the previous report of each machine for which this process reports (usually one). */
	readonly #lastReports = new Map<string, Buffer>();

	/** @param sealedValues The sealed values of the cluster, whose settings must contain a key. */
	constructor(cluster: Cluster, sealedValues: SealedValues) {
		this.#cluster = cluster;
		this.#sealedValues = sealedValues;
	}

	/** Reads the state and all reports. Rejects with {@link RolloutUnreadable}. */
	async read(): Promise<RolloutReading> {
		const keys = [this.#stateKey, this.#reportsKey];
		const reply = await this.#cluster.runScript(READ_SCRIPT, keys, [], COMMAND_TIMEOUT_MS);
		const [now, revision, state, reports] = reply as RedisReply[];
		return {
			now: Number(now),
			revision: String(revision),
			rollout: this.#openState(state as Buffer | null),
			reports: this.#openReports(reports as RedisReply[]),
		};
	}

	/**
	 * Sends the report of a machine, and returns what has changed. Rejects with {@link RolloutUnreadable}.
	 * @param knownRevision The revision of the state that the machine knows.
	 * @param wouldCoordinate True if the machine is willing to decide for all machines, should no other machine do so.
	 */
	async report(report: SentReport, knownRevision: string, wouldCoordinate: boolean): Promise<ReportAnswer> {
		const sealedReport = this.#sealedValues.seal(reportName(report.machine), Buffer.from(JSON.stringify(report)));
		const coordinatorKey = this.#cluster.redisKey('rollout:coordinator');
		const searches = performance.now() >= this.#nextForgetAt;
		if (searches) this.#nextForgetAt = performance.now() + FORGET_INTERVAL_MS;
		const reply = await REPORT_SCRIPT.run(
			this.#cluster,
			[this.#stateKey, this.#reportsKey, coordinatorKey, this.#cluster.redisKey('rollout:search')],
			[
				report.machine,
				sealedReport,
				knownRevision,
				wouldCoordinate ? '1' : '0',
				String(COORDINATOR_LEASE_MS),
				String(FORGET_MACHINE_AFTER_MS),
				searches ? String(FORGET_INTERVAL_MS) : '',
				this.#lastReports.get(report.machine) ?? '',
			],
			COMMAND_TIMEOUT_MS,
		);
		const [now, revisionBytes, state, reports, replaced = null] = reply as RedisReply[];
		this.#lastReports.set(report.machine, sealedReport.subarray(-REPORT_END_BYTES));
		const revision = String(revisionBytes);
		const hasChanged = revision !== knownRevision;
		return {
			now: Number(now),
			revision,
			changed: hasChanged ? { rollout: this.#openState(state as Buffer | null) } : undefined,
			reports: reports === null ? undefined : this.#openReports(reports as RedisReply[]),
			otherProcess: replaced === null ? undefined : this.#processOf(replaced as Buffer, report),
		};
	}

	/** Replaces the state if its revision is the expected one. Returns the new revision; undefined if the state has changed. */
	async replace(expectedRevision: string, rollout: Rollout): Promise<string | undefined> {
		const revision = newRevision();
		const args = [expectedRevision, revision, this.#sealState(rollout)];
		const reply = await this.#cluster.runScript(REPLACE_SCRIPT, [this.#stateKey], args, COMMAND_TIMEOUT_MS);
		return reply === 1 ? revision : undefined;
	}

	/**
	 * Like {@link replace}, for a rollout that begins. Also adds the rollout's publication, and deletes old publications.
	 * @param replaced The rollout before it, or undefined for the first one.
	 */
	async publish(
		expectedRevision: string,
		rollout: Rollout,
		sealedPublication: Buffer,
		replaced: Rollout | undefined,
	): Promise<string | undefined> {
		const { publication, previous } = rollout;
		const revision = newRevision();
		const outdated = publication - KEPT_PUBLICATIONS;
		const keys = [this.#stateKey, this.#publicationKey(publication)];
		if (outdated > 0 && outdated !== previous) keys.push(this.#publicationKey(outdated));
		// The previous publication of the replaced rollout was kept, even if outdated, because machines could have returned to it.
		const formerPrevious = replaced?.previous ?? 0;
		if (formerPrevious > 0 && formerPrevious < outdated && formerPrevious !== previous)
			keys.push(this.#publicationKey(formerPrevious));
		const args = [expectedRevision, revision, this.#sealState(rollout), sealedPublication];
		const reply = await this.#cluster.runScript(PUBLISH_SCRIPT, keys, args, COMMAND_TIMEOUT_MS);
		return reply === 1 ? revision : undefined;
	}

	/** Returns an encrypted publication; undefined if Redis does not have it. */
	async readPublication(number: PublicationNumber): Promise<Buffer | undefined> {
		const reply = await this.#cluster.sendCommand(['GET', this.#publicationKey(number)], COMMAND_TIMEOUT_MS);
		return (reply as Buffer | null) ?? undefined;
	}

	/** Deletes the report of a machine whose process is stopped. */
	async removeReport(machine: string): Promise<void> {
		await this.#cluster.sendCommand(['HDEL', this.#reportsKey, machine]);
	}

	/**
	 * Returns the process that sent the replaced report; undefined if the report cannot be decrypted, or if this process sent it
	 * itself (without receiving the answer, so that it did not remember the report as its last one).
	 */
	#processOf(replaced: Buffer, own: SentReport): ProcessIdentity | undefined {
		const [other] = this.#openReports([Buffer.from(own.machine), replaced]);
		if (!other) return undefined;
		const { host, pid, process } = other;
		return host === own.host && pid === own.pid && process === own.process ? undefined : { host, pid };
	}

	get #stateKey(): string {
		return this.#cluster.redisKey('rollout');
	}

	get #reportsKey(): string {
		return this.#cluster.redisKey('rollout:reports');
	}

	#publicationKey(number: PublicationNumber): string {
		return this.#cluster.redisKey(`publication:${number}`);
	}

	#sealState(rollout: Rollout): Buffer {
		return this.#sealedValues.seal(STATE_NAME, Buffer.from(JSON.stringify(rollout)));
	}

	#openState(sealed: Buffer | null): Rollout | undefined {
		if (sealed === null) return undefined;
		const state = this.#sealedValues.open(STATE_NAME, sealed);
		if (!state) throw new RolloutUnreadable();
		return JSON.parse(state.toString()) as Rollout;
	}

	/** Decrypts reports. Ignores those that were altered or encrypted with a key that this machine does not have. */
	#openReports(fields: readonly RedisReply[]): FleetReport[] {
		const reports: FleetReport[] = [];
		for (let i = 0; i + 1 < fields.length; i += 2) {
			const machine = String(fields[i]);
			const value = fields[i + 1] as Buffer;
			const colon = value.indexOf(':');
			const report = this.#sealedValues.open(reportName(machine), value.subarray(colon + 1));
			if (!report) continue;
			const reportedAt = Number(value.subarray(0, colon));
			reports.push({ ...(JSON.parse(report.toString()) as SentReport), reportedAt });
		}
		return reports.sort((a, b) => (a.machine < b.machine ? -1 : 1));
	}
}

function newRevision(): string {
	return randomBytes(8).toString('hex');
}

function reportName(machine: string): string {
	return `rollout report ${machine}`;
}

/**
 * Rate limits that the machines of a cluster share. For each key of a zone, Redis keeps one timestamp, from which the used part
 * of the limit is computed; each machine's own tables do the same (see `LimitTable`). Each process admits up to a batch of
 * requests of a key by itself, then reports them, and gets the usage on all machines in reply. The machines together therefore
 * never admit more than the limit plus one batch per machine.
 *
 * One report is under way at a time. It contains the usage of many keys, so that the number of commands does not depend on the
 * number of requests. A report that may have been lost is repeated with the same number, by which Redis recognizes it.
 */
import { createHmac, hkdfSync, randomBytes } from 'node:crypto';
import type { RateLimiterSettings } from '../../compiler/modules/directives/rate-limit/rate-limiter.ts';
import { type Clock, SYSTEM_CLOCK } from '../clock/clock.ts';
import { type KeyReport, LimitTable } from '../rate-limits/limit-table.ts';
import type { SharedTables } from '../rate-limits/limit-tables.ts';
import { ClusterError } from './cluster-error.ts';
import type { RedisAccess } from './redis-access.ts';
import { RedisScript } from './redis-script.ts';

/** Milliseconds for which usage is collected before it is reported, if no request waits. */
const COLLECT_DELAY_MS = 5;
/** Milliseconds before a report that failed is repeated. */
const RETRY_DELAY_MS = 200;
/** Maximum milliseconds that a report may take. Requests do not wait that long. */
const REPORT_TIMEOUT_MS = 5000;
/** Maximum number of keys in a report. Redis takes about a millisecond for that many. */
const MAX_REPORT_KEYS = 500;
/** Maximum number of keys whose usage is still reported after their table was closed. */
const MAX_CLOSING_KEYS = 20_000;
/** Maximum milliseconds for the last reports when the process ends. */
const CLOSE_TIMEOUT_MS = 1000;
/** Bytes of a key's name in Redis. */
const KEY_NAME_BYTES = 12;
/** Bytes of the secret with which the tables hash keys. */
const SECRET_BYTES = 8;

/**
 * Adds usage in microseconds to the keys of a zone, and returns their usage on all machines. `KEYS` are the zone's sorted set,
 * whose scores are times of Redis' clock, and the number of the process's last report. `ARGV` has the number of the report, the
 * maximum number of keys, and for each key its name, its usage, the whole burst, and 1 if the report must not raise the usage
 * beyond the burst. If there are too many keys, a new key replaces the one with the least usage and takes over its timestamp, as
 * in `LimitTable`.
 */
export const REPORT_SCRIPT: RedisScript = new RedisScript(`
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local isRepeated = redis.call('GET', KEYS[2]) == ARGV[1]
redis.call('SET', KEYS[2], ARGV[1], 'PX', 600000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
local longest = 0
local usage = {}
for i = 3, #ARGV, 4 do
	local full = redis.call('ZSCORE', KEYS[1], ARGV[i])
	full = full and tonumber(full) or now
	if not isRepeated then
		if full == now and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then
			full = math.min(tonumber(redis.call('ZPOPMIN', KEYS[1])[2]), math.max(now, now + ARGV[i + 2] - ARGV[i + 1]))
		end
		local counted = full + ARGV[i + 1]
		if ARGV[i + 3] == '1' then counted = math.min(counted, math.max(full, now + ARGV[i + 2])) end
		full = math.min(counted, now + 4e15)
		if full > now then
			redis.call('ZADD', KEYS[1], string.format('%.0f', full), ARGV[i])
		else
			redis.call('ZREM', KEYS[1], ARGV[i])
		end
	end
	local used = math.max(0, full - now)
	longest = math.max(longest, used)
	usage[#usage + 1] = used
end
local expiry = math.ceil(longest / 1000)
if expiry > redis.call('PTTL', KEYS[1]) then redis.call('PEXPIRE', KEYS[1], expiry) end
return usage`);

/** Counters since the process started. */
export interface LimitCounts {
	/** Number of reports that Redis has answered; `keys` is the number of keys in these reports. */
	readonly reports: number;
	readonly keys: number;
	/** Number of reports that failed. Every failed report is repeated. */
	readonly failures: number;
}

interface OpenTable {
	readonly zone: string;
	readonly maxKeys: number;
	readonly table: LimitTable;
}

/** A report to Redis: the usage of keys of one table. */
interface ZoneReport extends OpenTable {
	readonly reportNumber: number;
	readonly keyReports: readonly KeyReport[];
}

/** Reports the usage of all shared tables of this process. */
export class SharedLimits implements SharedTables {
	readonly #redis: RedisAccess;
	readonly #clock: Clock;
	/** The secret with which the tables hash keys. It is the same on all machines, so that a key has the same hash everywhere. */
	readonly secret: Buffer;
	readonly #nameKey: Buffer;
	readonly #processId = randomBytes(8).toString('hex');
	readonly #openTables = new Map<string, OpenTable>();
	/** For each table, the indices (places) of keys whose usage must be reported at once, because requests wait for it. */
	readonly #urgentPlaces = new Map<OpenTable, Set<number>>();
	/** Usage of closed tables that has not been reported yet. */
	#closedTableUsage: { readonly openTable: OpenTable; readonly keyReports: KeyReport[] }[] = [];
	/** Reports that Redis has not answered. They are sent before all others. */
	#unansweredReports: ZoneReport[] = [];
	#lastReportNumber = 0;
	/** Milliseconds that the previous report took. */
	#lastReportMs = 0;
	#waitingSince: number | 'away' | undefined;
	#sendInProgress: Promise<void> | undefined;
	#stopSendTimer: (() => void) | undefined;
	#isSendScheduled = false;
	/** Callbacks to call when the reports that are being sent have ended; `#nextWaiters` are called when the next ones have. */
	#currentWaiters: (() => void)[] = [];
	#nextWaiters: (() => void)[] = [];
	readonly #counts = { reports: 0, keys: 0, failures: 0 };
	#isClosed = false;

	/** @param key The cluster's key, in base64. */
	constructor(redis: RedisAccess, key: string, clock: Clock = SYSTEM_CLOCK) {
		this.#redis = redis;
		this.#clock = clock;
		const derive = (purpose: string, bytes: number): Buffer =>
			Buffer.from(hkdfSync('sha256', Buffer.from(key, 'base64'), '', purpose, bytes));
		this.secret = derive('svc hash of rate limits', SECRET_BYTES);
		// A table treats a word of 0 as a missing secret, and would replace it.
		for (const wordOffset of [0, 4])
			if (this.secret.readInt32LE(wordOffset) === 0) this.secret.writeInt32LE(1, wordOffset);
		this.#nameKey = derive('svc names of rate limits', 32);
	}

	get counts(): LimitCounts {
		return this.#counts;
	}

	/** Adds a table. Must be called before the table is used. */
	onTableOpened(key: string, { zone, maxKeys }: RateLimiterSettings, buffer: SharedArrayBuffer): void {
		const table = new LimitTable(buffer, maxKeys, true);
		table.unreported!.setWaitingSince(this.#waitingSince);
		this.#openTables.set(key, { zone, maxKeys, table });
	}

	/** Removes a table that no thread uses any longer. Usage in it that has not been reported yet is still reported. */
	onTableClosed(key: string): void {
		const openTable = this.#openTables.get(key);
		if (!openTable) return;
		this.#openTables.delete(key);
		this.#urgentPlaces.delete(openTable);
		const keyReports = openTable.table.takeAllReports(this.#clock.monotonicNow(), MAX_CLOSING_KEYS);
		if (keyReports.length === 0) return;
		this.#closedTableUsage.push({ openTable, keyReports });
		this.#scheduleSend(COLLECT_DELAY_MS);
	}

	/**
	 * Schedules a report of a table's unreported usage. If `place`, the index of a key in the table, is given, reports that key's
	 * usage at once, and resolves when Redis has counted it or is unavailable.
	 */
	reportUsage(key: string, place: number | undefined): Promise<void> {
		const openTable = this.#openTables.get(key);
		if (!openTable || this.#waitingSince === 'away' || this.#isClosed) return Promise.resolve();
		if (place === undefined) {
			this.#scheduleSend(COLLECT_DELAY_MS);
			return Promise.resolve();
		}
		return new Promise(resolve => {
			if (this.#sendInProgress && openTable.table.unreported!.isReporting(place)) {
				this.#currentWaiters.push(resolve);
				return;
			}
			this.#nextWaiters.push(resolve);
			const places = this.#urgentPlaces.get(openTable);
			if (places) places.add(place);
			else this.#urgentPlaces.set(openTable, new Set([place]));
			this.#scheduleSend(0);
		});
	}

	/** Reports all unreported usage, for at most {@link CLOSE_TIMEOUT_MS}, and stops. Never rejects. */
	async close(): Promise<void> {
		for (const key of [...this.#openTables.keys()]) this.onTableClosed(key);
		const { promise: timeout, resolve } = Promise.withResolvers<void>();
		const stopTimer = this.#clock.startTimer(resolve, CLOSE_TIMEOUT_MS);
		await Promise.race([this.#sendRemaining(), timeout]);
		stopTimer();
		this.#stopSendTimer?.();
		this.#isClosed = true;
	}

	async #sendRemaining(): Promise<void> {
		await this.#sendInProgress;
		while (this.#waitingSince !== 'away' && this.#closedTableUsage.length > 0 && !this.#isClosed)
			await this.#sendPending();
	}

	/** Sends a report after `delayMs` milliseconds; as soon as possible if it is 0. */
	#scheduleSend(delayMs: number): void {
		if (this.#isClosed || this.#sendInProgress || this.#isSendScheduled) return;
		if (delayMs === 0) {
			this.#isSendScheduled = true;
			this.#stopSendTimer?.();
			this.#clock.callSoon(() => this.#sendScheduled());
		} else {
			this.#stopSendTimer ??= this.#clock.startTimer(() => this.#sendScheduled(), delayMs, false);
		}
	}

	#sendScheduled(): void {
		this.#stopSendTimer?.();
		this.#stopSendTimer = undefined;
		this.#isSendScheduled = false;
		if (!this.#isClosed) void this.#sendPending();
	}

	/** Sends one report for each table. Resolves when all are answered or have failed. */
	async #sendPending(): Promise<void> {
		this.#sendInProgress ??= this.#sendReports();
		await this.#sendInProgress;
	}

	async #sendReports(): Promise<void> {
		this.#stopSendTimer?.();
		this.#stopSendTimer = undefined;
		this.#currentWaiters = this.#nextWaiters;
		this.#nextWaiters = [];
		const reports = this.#unansweredReports.length > 0 ? this.#unansweredReports : this.#collectReports();
		this.#unansweredReports = [];
		const sentAt = this.#clock.monotonicNow();
		// Reports are expected to take as long as the previous ones, so that requests do not wait in vain while all replies are late.
		if (this.#waitingSince !== 'away' && reports.length > 0) this.#setWaitingSince(sentAt - this.#lastReportMs);
		const sendResults = await Promise.allSettled(reports.map(report => this.#sendReport(report)));
		this.#unansweredReports = reports.filter((_, index) => sendResults[index]!.status === 'rejected');
		const hasFailed = this.#unansweredReports.length > 0;
		if (reports.length > 0) this.#lastReportMs = this.#clock.monotonicNow() - sentAt;
		this.#setWaitingSince(hasFailed ? 'away' : undefined);
		for (const resolve of this.#currentWaiters.splice(0)) resolve();
		this.#sendInProgress = undefined;
		if (hasFailed) {
			this.#counts.failures += this.#unansweredReports.length;
			for (const resolve of this.#nextWaiters.splice(0)) resolve();
			this.#scheduleSend(RETRY_DELAY_MS);
		} else if (this.#nextWaiters.length > 0) this.#scheduleSend(0);
		// There may be more usage to report: some that was counted in the meantime, or some that did not fit into this report.
		else if (reports.length > 0) this.#scheduleSend(COLLECT_DELAY_MS);
	}

	async #sendReport(report: ZoneReport): Promise<void> {
		const { zone, maxKeys, table, reportNumber, keyReports } = report;
		const key = this.#redis.redisKey(`limits:${zone}`, zone);
		const args: (string | Buffer)[] = [String(reportNumber), String(maxKeys)];
		for (const { first, second, amountMs, capacityMs, isBeyondBatch } of keyReports) {
			const [amount, capacity] = [amountMs, capacityMs].map(time => String(Math.round(time * 1000))) as [
				string,
				string,
			];
			args.push(this.#redisNameOf(zone, first, second), amount, capacity, isBeyondBatch ? '1' : '0');
		}
		const reply = await REPORT_SCRIPT.run(this.#redis, [key, `${key}:${this.#processId}`], args, REPORT_TIMEOUT_MS);
		if (!Array.isArray(reply) || reply.length !== keyReports.length || !reply.every(Number.isFinite))
			throw new ClusterError('cluster/unavailable', 'the reply about rate limits is not valid');
		const now = this.#clock.monotonicNow();
		(reply as readonly number[]).forEach((usage, index) => {
			table.confirmReport(keyReports[index]!, now, usage / 1000);
		});
		this.#counts.reports++;
		this.#counts.keys += keyReports.length;
	}

	/** Returns the reports of all tables, with at most {@link MAX_REPORT_KEYS} keys in total, apart from urgent ones. */
	#collectReports(): ZoneReport[] {
		const now = this.#clock.monotonicNow();
		const reports: ZoneReport[] = [];
		let remainingKeys = MAX_REPORT_KEYS;
		const addReport = (openTable: OpenTable, keyReports: readonly KeyReport[]): void => {
			remainingKeys -= keyReports.length;
			if (keyReports.length > 0) reports.push({ ...openTable, reportNumber: ++this.#lastReportNumber, keyReports });
		};
		for (const openTable of this.#openTables.values()) {
			const unreported = openTable.table.unreported!;
			const keyReports: KeyReport[] = [];
			for (const place of this.#urgentPlaces.get(openTable) ?? []) {
				const report = openTable.table.takeReport(place, now);
				if (report) keyReports.push(report);
			}
			unreported.allowNotification();
			while (keyReports.length < remainingKeys) {
				const place = unreported.takeListedPlace();
				if (place === -1) break;
				const report = openTable.table.takeReport(place, now);
				if (report) keyReports.push(report);
			}
			addReport(openTable, keyReports);
		}
		this.#urgentPlaces.clear();
		for (const { openTable, keyReports } of this.#closedTableUsage)
			addReport(openTable, keyReports.splice(0, Math.max(0, remainingKeys)));
		this.#closedTableUsage = this.#closedTableUsage.filter(({ keyReports }) => keyReports.length > 0);
		return reports;
	}

	/** Returns the name in Redis of a zone's key. Without the cluster's secret key, it does not reveal the zone's key. */
	#redisNameOf(zone: string, first: number, second: number): Buffer {
		const id = Buffer.allocUnsafe(8);
		id.writeInt32LE(first);
		id.writeInt32LE(second, 4);
		return createHmac('sha256', this.#nameKey)
			.update(zone)
			.update('\0')
			.update(id)
			.digest()
			.subarray(0, KEY_NAME_BYTES);
	}

	#setWaitingSince(waitingSince: number | 'away' | undefined): void {
		this.#waitingSince = waitingSince;
		for (const { table } of this.#openTables.values()) table.unreported!.setWaitingSince(waitingSince);
	}
}

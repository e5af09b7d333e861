/**
 * Rate limits that the machines of a cluster share. Redis keeps one time for each key of a zone, as the tables of the machines do (see
 * `LimitTable`). Each process admits up to a batch of requests of a key by itself, then reports them, and gets the usage on all
 * machines in reply. The machines therefore never admit more than the limit and a batch each.
 *
 * One report is under way at a time. It contains the usage of many keys, so that the number of commands does not depend on the number
 * of requests. A report that may have been lost is repeated with the same number, by which Redis recognizes it.
 */
import { createHmac, hkdfSync, randomBytes } from 'node:crypto';
import type { RateLimiterSettings } from '../../compiler/modules/directives/rate-limit/rate-limiter.ts';
import { type KeyReport, LimitTable } from '../rate-limits/limit-table.ts';
import { monotonicNow, type SharedTables } from '../rate-limits/limit-tables.ts';
import type { Cluster } from './cluster.ts';
import { RedisScript } from './redis-script.ts';

/** Milliseconds for which usage is collected before it is reported, if no request waits. */
const COLLECT_MS = 5;
/** Milliseconds before a report that failed is repeated. */
const RETRY_MS = 200;
/** Maximum milliseconds of a report. Requests wait for less. */
const REPORT_LIMIT_MS = 5000;
/** Maximum number of keys in a report. Redis takes about a millisecond for them. */
const MAX_KEYS = 500;
/** Maximum number of keys of a closed table that are reported. */
const MAX_CLOSING_KEYS = 20_000;
/** Maximum milliseconds for the last reports when the process ends. */
const CLOSE_LIMIT_MS = 1000;
/** Bytes of a key's name in Redis. */
const NAME_BYTES = 12;
/** Bytes of the secret of the tables' hash. */
const SECRET_BYTES = 8;

/**
 * Adds usage in microseconds to the keys of a zone, and returns their usage on all machines. `KEYS` are the zone's sorted set, whose
 * scores are times of Redis' clock, and the number of the process's last report. `ARGV` has the number of the report, the maximum
 * number of keys, and for each key its name, its usage, the whole burst, and 1 if the report must not raise the usage beyond the burst.
 * If there are too many keys, a new one takes the place of the one that has used least, and continues with its time, as in `LimitTable`.
 */
const REPORT = new RedisScript(`
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

/** Counters since the start. */
export interface LimitCounts {
	/** Number of reports that Redis has answered, and of the keys in them. */
	readonly reports: number;
	readonly keys: number;
	/** Number of reports that failed. Each is repeated. */
	readonly failures: number;
}

interface OpenTable {
	readonly zone: string;
	readonly maxKeys: number;
	readonly table: LimitTable;
}

/** Usage of keys of one table. */
interface ZoneReport extends OpenTable {
	readonly number: number;
	readonly keys: readonly KeyReport[];
}

/** Reports the usage of all shared tables of this process. */
export class SharedLimits implements SharedTables {
	readonly #cluster: Cluster;
	/** Secret of the tables' hash. It is the same on all machines, so that a key has the same hash. */
	readonly secret: Buffer;
	readonly #nameKey: Buffer;
	readonly #process = randomBytes(8).toString('hex');
	readonly #tables = new Map<string, OpenTable>();
	/** Places whose usage requests wait for. */
	readonly #urgent = new Map<OpenTable, Set<number>>();
	/** Usage of tables that have been closed. */
	#closing: { readonly open: OpenTable; readonly keys: KeyReport[] }[] = [];
	/** Reports that Redis has not answered. They are sent before all others. */
	#unanswered: ZoneReport[] = [];
	#lastNumber = 0;
	#since: number | 'away' | undefined;
	#sending: Promise<void> | undefined;
	#timer: NodeJS.Timeout | undefined;
	#isUrgent = false;
	/** Calls back at the end of the current report, and of the next one. */
	#currentWaiters: (() => void)[] = [];
	#waiters: (() => void)[] = [];
	readonly #counts = { reports: 0, keys: 0, failures: 0 };
	#isClosed = false;

	/** @param key The cluster's key, in base64. */
	constructor(cluster: Cluster, key: string) {
		this.#cluster = cluster;
		const derive = (purpose: string, bytes: number): Buffer =>
			Buffer.from(hkdfSync('sha256', Buffer.from(key, 'base64'), '', purpose, bytes));
		this.secret = derive('svc hash of rate limits', SECRET_BYTES);
		// A table replaces words of 0, which mean that it has no secret yet.
		for (const at of [0, 4]) if (this.secret.readInt32LE(at) === 0) this.secret.writeInt32LE(1, at);
		this.#nameKey = derive('svc names of rate limits', 32);
	}

	get counts(): LimitCounts {
		return this.#counts;
	}

	/** Adds a table, before it is used. */
	opened(key: string, { zone, maxKeys }: RateLimiterSettings, buffer: SharedArrayBuffer): void {
		const table = new LimitTable(buffer, maxKeys, true);
		table.unreported!.setWaitingSince(this.#since);
		this.#tables.set(key, { zone, maxKeys, table });
	}

	/** Removes a table that no thread uses any longer. What it has counted is still reported. */
	closed(key: string): void {
		const open = this.#tables.get(key);
		if (!open) return;
		this.#tables.delete(key);
		this.#urgent.delete(open);
		const keys = open.table.takeAllReports(monotonicNow(), MAX_CLOSING_KEYS);
		if (keys.length === 0) return;
		this.#closing.push({ open, keys });
		this.#schedule(COLLECT_MS);
	}

	/**
	 * Reports the listed usage of a table soon. With a place, reports its usage at once, and resolves when Redis has counted it or is
	 * unavailable.
	 */
	report(key: string, place: number | undefined): Promise<void> {
		const open = this.#tables.get(key);
		if (!open || this.#since === 'away' || this.#isClosed) return Promise.resolve();
		if (place === undefined) {
			this.#schedule(COLLECT_MS);
			return Promise.resolve();
		}
		return new Promise(resolve => {
			if (this.#sending && open.table.unreported!.isReporting(place)) {
				this.#currentWaiters.push(resolve);
				return;
			}
			this.#waiters.push(resolve);
			const places = this.#urgent.get(open);
			if (places) places.add(place);
			else this.#urgent.set(open, new Set([place]));
			this.#schedule(0);
		});
	}

	/** Reports what is unreported, for at most {@link CLOSE_LIMIT_MS}, and ends. Never rejects. */
	async close(): Promise<void> {
		for (const key of [...this.#tables.keys()]) this.closed(key);
		const { promise: timeout, resolve } = Promise.withResolvers<void>();
		const timer = setTimeout(resolve, CLOSE_LIMIT_MS);
		await Promise.race([this.#sendRest(), timeout]);
		clearTimeout(timer);
		clearTimeout(this.#timer);
		this.#isClosed = true;
	}

	async #sendRest(): Promise<void> {
		await this.#sending;
		while (this.#since !== 'away' && this.#closing.length > 0 && !this.#isClosed) await this.#send();
	}

	/** Sends a report after `delayMs` milliseconds; as soon as possible if it is 0. */
	#schedule(delayMs: number): void {
		if (this.#isClosed || this.#sending || this.#isUrgent) return;
		if (delayMs === 0) {
			this.#isUrgent = true;
			clearTimeout(this.#timer);
			setImmediate(() => this.#sendScheduled());
		} else {
			this.#timer ??= setTimeout(() => this.#sendScheduled(), delayMs).unref();
		}
	}

	#sendScheduled(): void {
		clearTimeout(this.#timer);
		this.#timer = undefined;
		this.#isUrgent = false;
		if (!this.#isClosed) void this.#send();
	}

	/** Sends one report for each table. Resolves when all are answered or have failed. */
	async #send(): Promise<void> {
		this.#sending ??= this.#sendReports();
		await this.#sending;
	}

	async #sendReports(): Promise<void> {
		clearTimeout(this.#timer);
		this.#timer = undefined;
		this.#currentWaiters = this.#waiters;
		this.#waiters = [];
		const reports = this.#unanswered.length > 0 ? this.#unanswered : this.#collect();
		this.#unanswered = [];
		if (this.#since !== 'away' && reports.length > 0) this.#setWaitingSince(monotonicNow());
		const results = await Promise.allSettled(reports.map(report => this.#sendReport(report)));
		this.#unanswered = reports.filter((_, index) => results[index]!.status === 'rejected');
		const hasFailed = this.#unanswered.length > 0;
		this.#setWaitingSince(hasFailed ? 'away' : undefined);
		for (const resolve of this.#currentWaiters.splice(0)) resolve();
		this.#sending = undefined;
		if (hasFailed) {
			this.#counts.failures += this.#unanswered.length;
			for (const resolve of this.#waiters.splice(0)) resolve();
			this.#schedule(RETRY_MS);
		} else if (this.#waiters.length > 0) this.#schedule(0);
		// Usage may have been listed in the meantime, or may not have fitted into the report.
		else if (reports.length > 0) this.#schedule(COLLECT_MS);
	}

	async #sendReport(report: ZoneReport): Promise<void> {
		const { zone, maxKeys, table, number, keys } = report;
		const key = this.#cluster.key(`limits:${zone}`);
		const args: (string | Buffer)[] = [String(number), String(maxKeys)];
		for (const { first, second, amountMs, capacityMs, isBeyondBatch } of keys) {
			const [amount, capacity] = [amountMs, capacityMs].map(time => String(Math.round(time * 1000))) as [
				string,
				string,
			];
			args.push(this.#nameOf(zone, first, second), amount, capacity, isBeyondBatch ? '1' : '0');
		}
		const reply = await REPORT.run(this.#cluster, [key, `${key}:${this.#process}`], args, REPORT_LIMIT_MS);
		const now = monotonicNow();
		(reply as readonly number[]).forEach((usage, index) => {
			table.confirmReport(keys[index]!, now, usage / 1000);
		});
		this.#counts.reports++;
		this.#counts.keys += keys.length;
	}

	/** Returns the reports of all tables, with at most {@link MAX_KEYS} keys in total. */
	#collect(): ZoneReport[] {
		const now = monotonicNow();
		const reports: ZoneReport[] = [];
		let room = MAX_KEYS;
		const add = (open: OpenTable, keys: readonly KeyReport[]): void => {
			room -= keys.length;
			if (keys.length > 0) reports.push({ ...open, number: ++this.#lastNumber, keys });
		};
		for (const open of this.#tables.values()) {
			const unreported = open.table.unreported!;
			const keys: KeyReport[] = [];
			for (const place of this.#urgent.get(open) ?? []) {
				const report = open.table.takeReport(place, now);
				if (report) keys.push(report);
			}
			unreported.startList();
			while (keys.length < room) {
				const place = unreported.nextListed();
				if (place === -1) break;
				const report = open.table.takeReport(place, now);
				if (report) keys.push(report);
			}
			add(open, keys);
		}
		this.#urgent.clear();
		for (const { open, keys } of this.#closing) add(open, keys.splice(0, Math.max(0, room)));
		this.#closing = this.#closing.filter(({ keys }) => keys.length > 0);
		return reports;
	}

	/** Returns the name of a key in Redis. It cannot be traced back to the key without the cluster's key. */
	#nameOf(zone: string, first: number, second: number): Buffer {
		const id = Buffer.allocUnsafe(8);
		id.writeInt32LE(first);
		id.writeInt32LE(second, 4);
		return createHmac('sha256', this.#nameKey).update(zone).update('\0').update(id).digest().subarray(0, NAME_BYTES);
	}

	#setWaitingSince(since: number | 'away' | undefined): void {
		this.#since = since;
		for (const { table } of this.#tables.values()) table.unreported!.setWaitingSince(since);
	}
}

/** One running server of a simulation: the product's own limits, membership and purges, with simulated time and network. */
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import { type Rate, UNAVAILABLE, UNDECIDED } from '../../compiler/modules/directives/rate-limit/rate-limiter.ts';
import type { PurgeSelection } from '../../runtime/cache/purging.ts';
import { ClusterMembers } from '../../runtime/cluster/cluster-members.ts';
import { REPORT_SCRIPT, SharedLimits } from '../../runtime/cluster/shared-limits.ts';
import { type PurgeOutcome, SharedPurges } from '../../runtime/cluster/shared-purges.ts';
import { LimitTable, limitTableWords } from '../../runtime/rate-limits/limit-table.ts';
import { LimitTables } from '../../runtime/rate-limits/limit-tables.ts';
import { ThreadRateLimiter } from '../../runtime/rate-limits/thread-rate-limiter.ts';
import type { SimulatedNetwork } from './simulated-redis.ts';
import { SimulatedClock, type SimulatedTime } from './simulated-time.ts';

/** Receives what a process reports to the simulation. */
export interface ProcessObserver {
	/** Called when Redis has counted usage, `milliseconds` after a thread asked for its report. */
	onReported(milliseconds: number): void;
	onPurged(selection: PurgeSelection): void;
	/** Called when a request has waited for Redis. */
	onWaited(milliseconds: number): void;
}

/** What stays on a machine when its process ends: the position up to which purges were applied to the disk cache. */
export interface MachineDisk {
	purgePosition: string | undefined;
}

/** Milliseconds that a message between two threads of a process takes, and that a purge of the caches of all threads takes. */
const THREAD_MESSAGE_MS = 0.05;
const CACHE_PURGE_MS = 1;

const ZONE = 'api';
const TABLE = 'table';

/** A server process on a simulated machine. */
export class SimulatedProcess {
	readonly network: SimulatedNetwork;
	readonly #time: SimulatedTime;
	readonly #clock: SimulatedClock;
	readonly #limiter: ThreadRateLimiter;
	readonly #rate: Rate;
	readonly #observer: ProcessObserver;
	readonly #members: ClusterMembers;
	readonly #purges: SharedPurges;
	/** Time at which a thread asked for a report that has not been sent yet; undefined if no report is due. */
	#askedAt: number | undefined;

	constructor(
		host: string,
		time: SimulatedTime,
		network: SimulatedNetwork,
		key: string,
		{ rate, maxKeys }: { readonly rate: Rate; readonly maxKeys: number },
		disk: MachineDisk,
		observer: ProcessObserver,
	) {
		this.network = network;
		this.#time = time;
		this.#rate = rate;
		this.#observer = observer;
		const clock = new SimulatedClock(time);
		this.#clock = clock;
		const limits = new SharedLimits(network, key, clock);
		const buffer = new SharedArrayBuffer(4 * limitTableWords(maxKeys, true));
		new LimitTables(undefined, () => limits).onLimitsOpened(TABLE, { zone: ZONE, maxKeys, isShared: true }, buffer);
		const reportUsage = (place: number | undefined): Promise<void> => {
			this.#askedAt ??= time.now;
			return new Promise(resolve => {
				clock.startTimer(
					() =>
						void limits.reportUsage(TABLE, place).then(() => {
							clock.startTimer(resolve, THREAD_MESSAGE_MS);
						}),
					THREAD_MESSAGE_MS,
				);
			});
		};
		const counter = { add: () => {} };
		this.#limiter = new ThreadRateLimiter(
			new LimitTable(buffer, maxKeys, true),
			{ counterOf: () => counter, reportUsage },
			clock,
		);
		network.onCommand = args => {
			if (String(args[1]) !== REPORT_SCRIPT.hash || this.#askedAt === undefined) return () => {};
			const askedAt = this.#askedAt;
			this.#askedAt = undefined;
			return () => observer.onReported(time.now - askedAt);
		};
		this.#members = new ClusterMembers(network, { version: () => '0.2.2', generation: () => 1 }, clock, host);
		const caches = {
			purge: (selection: PurgeSelection) =>
				new Promise<number>(resolve => {
					clock.startTimer(() => {
						observer.onPurged(selection);
						resolve(1);
					}, CACHE_PURGE_MS);
				}),
			purgePositions: async () => [disk.purgePosition],
			recordPurgePosition: (position: string) => {
				if (!this.#clock.isStopped) disk.purgePosition = position;
			},
		};
		this.#purges = new SharedPurges(network, this.#members, caches, () => {}, clock);
		void this.#members.start();
		void this.#purges.start();
	}

	get isRunning(): boolean {
		return !this.#clock.isStopped;
	}

	/** Ends the process, as a crash does. */
	kill(): void {
		this.#clock.stop();
		this.network.stop();
	}

	/**
	 * Handles a request of a client. Calls `onDecided` once it is known whether the request is admitted: immediately, unless the
	 * request waits for Redis.
	 * @returns True if the request waits.
	 */
	request(client: string, onDecided: (isAdmitted: boolean) => void): boolean {
		const startedAt = this.#time.now;
		const exchange = { startedAt, isGone: false, onGone: () => {} } as unknown as Exchange;
		const excessMs = this.#limiter.take(exchange, client, this.#rate, 1);
		if (excessMs !== UNDECIDED) {
			onDecided(excessMs <= 0 && excessMs !== UNAVAILABLE);
			return false;
		}
		void this.#limiter.takeAfterReport(exchange, client, this.#rate, 1).then(laterExcessMs => {
			this.#observer.onWaited(this.#time.now - startedAt);
			onDecided(laterExcessMs <= 0);
		});
		return true;
	}

	/** Purges on all machines. */
	purge(selection: PurgeSelection): Promise<PurgeOutcome> {
		return this.#purges.purge(selection);
	}
}

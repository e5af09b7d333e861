/** Whether the machines of a cluster can share responses: what follows from failed commands, and the search for Redis after it. */
import { ClusterError } from './cluster-error.ts';
import { OutageLog } from './outage-log.ts';
import type { RedisAccess } from './redis-access.ts';

/** Milliseconds between attempts to reach Redis after a command has failed. No request waits for these attempts. */
const PROBE_INTERVAL_MS = 500;
const SHARING_MESSAGES = {
	lost: 'responses are not shared, because Redis does not answer; each machine uses its own cache',
	regained: 'responses are shared again',
};

/** Writes a log entry about shared responses. */
export type SharingLog = (
	level: 'info' | 'warn' | 'error',
	message: string,
	fields: { readonly [name: string]: unknown },
) => void;

/** Decides whether requests may wait for Redis, and logs why responses are not shared. */
export class SharingAvailability {
	readonly #redis: Pick<RedisAccess, 'address' | 'sendCommand'>;
	readonly #log: SharingLog;
	readonly #outageLog: OutageLog;
	readonly #onLost: () => void;
	/** False while Redis does not answer. Requests then do not wait for it. */
	#isAvailable = true;
	#probeTimer: NodeJS.Timeout | undefined;
	/** The last logged reason why a response could not be shared; undefined after a response was stored. */
	#loggedReason: string | undefined;
	#isClosed = false;

	/** @param onLost Called when Redis no longer answers. */
	constructor(redis: Pick<RedisAccess, 'address' | 'sendCommand'>, log: SharingLog, onLost: () => void) {
		this.#redis = redis;
		this.#log = log;
		this.#onLost = onLost;
		this.#outageLog = new OutageLog(SHARING_MESSAGES, (level, message, fields) =>
			log(level, message, { address: redis.address, ...fields }),
		);
	}

	get isAvailable(): boolean {
		return this.#isAvailable;
	}

	/** Must be called when Redis has answered a command that stores a response. */
	onStored(): void {
		this.#loggedReason = undefined;
	}

	/** Handles a failed command. If Redis did not answer, requests proceed without Redis until it answers again. */
	onFailure(error: unknown): void {
		if (this.#isClosed) return;
		if (!(error instanceof ClusterError)) {
			const { message } = error as Error;
			if (this.#hasNewReason(message)) this.#log('error', `sharing responses failed: ${message}`, {});
			return;
		}
		if (!this.#isAvailable) return;
		if (error.code === 'cluster/refused') {
			const { message, reply } = error;
			const fields = { address: this.#redis.address, cause: message };
			if (this.#hasNewReason(reply)) this.#log('warn', 'responses are not shared', fields);
			return;
		}
		this.#isAvailable = false;
		this.#onLost();
		this.#outageLog.onLost(error.message);
		this.#probeTimer = setInterval(() => void this.#probe(), PROBE_INTERVAL_MS).unref();
	}

	/** Stops the search for Redis. Failures are ignored from then on. */
	close(): void {
		this.#isClosed = true;
		clearInterval(this.#probeTimer);
		this.#outageLog.close();
	}

	/** Reports whether a failure differs from the one that was logged last. Each request can cause one, so repetitions are not logged. */
	#hasNewReason(reason: string | undefined): boolean {
		if (this.#loggedReason === reason) return false;
		this.#loggedReason = reason;
		return true;
	}

	async #probe(): Promise<void> {
		try {
			await this.#redis.sendCommand(['PING']);
		} catch {
			return;
		}
		if (this.#isAvailable || this.#isClosed) return;
		this.#isAvailable = true;
		clearInterval(this.#probeTimer);
		this.#outageLog.onAvailable();
	}
}

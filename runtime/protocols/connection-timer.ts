/** The timer that all connections of a server share on one thread. At each tick, they handle deadlines that have expired. */
import type { ProtocolLimits } from './protocol.ts';

/** Maximum number of milliseconds between two ticks. */
const MAX_PERIOD_MS = 500;
/** Minimum number of milliseconds between two ticks. */
const MIN_PERIOD_MS = 10;

/** A timer that runs only while there are connections. */
export class ConnectionTimer {
	readonly #onTick: () => boolean;
	#periodMs: number;
	#interval: NodeJS.Timeout | undefined = undefined;

	/** @param onTick Handles expired deadlines. Returns whether there are connections. */
	constructor(limits: ProtocolLimits, onTick: () => boolean) {
		this.#periodMs = periodFor(limits);
		this.#onTick = onTick;
	}

	/** Milliseconds between two ticks. */
	get periodMs(): number {
		return this.#periodMs;
	}

	/** Must be called for each new connection. */
	start(): void {
		this.#interval ??= this.#startInterval();
	}

	/** Adapts the period to new limits. Returns false if it stays the same. */
	adapt(limits: ProtocolLimits): boolean {
		const periodMs = periodFor(limits);
		if (periodMs === this.#periodMs) return false;
		this.#periodMs = periodMs;
		if (this.#interval !== undefined) {
			clearInterval(this.#interval);
			this.#interval = this.#startInterval();
		}
		return true;
	}

	/**
	 * The first tick without connections stops the timer. If the end of the last connection stopped it, connections that come one
	 * at a time would each need a new timer.
	 */
	#startInterval(): NodeJS.Timeout {
		return setInterval(() => {
			if (this.#onTick()) return;
			clearInterval(this.#interval);
			this.#interval = undefined;
		}, this.#periodMs).unref();
	}
}

/** Returns the milliseconds between two ticks: a quarter of the shortest timeout, so that timeouts are precise enough. */
function periodFor(limits: ProtocolLimits): number {
	let shortestMs = MAX_PERIOD_MS * 4;
	const { headTimeout, idleTimeout, bodyTimeout, bodyIdleTimeout, writeTimeout, writeIdleTimeout } = limits;
	for (const timeoutMs of [headTimeout, idleTimeout, bodyTimeout, bodyIdleTimeout, writeTimeout, writeIdleTimeout]) {
		if (timeoutMs > 0 && timeoutMs < shortestMs) shortestMs = timeoutMs;
	}
	return Math.max(MIN_PERIOD_MS, shortestMs / 4);
}

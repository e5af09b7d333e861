/** The end of a running server: it stops, finishes its connections after a handover, is killed, or abandons a failed start. */

import type { Settings } from '../../compiler/document/document.ts';
import { ROW_SLOT } from '../metrics/counter-row.ts';
import { NO_WAIT, type RequestWaits } from '../protocols/protocol.ts';
import { CONTROL_STOPS_AT } from '../threads/control-words.ts';
import { MAX_TIMER_MS, withTimeLimit } from '../threads/within.ts';
import type { RuntimeComponents } from './runtime-components.ts';
import { HANDOVER_WAITS } from './thread-pools.ts';

/**
 * Milliseconds that idle connections may wait for another request before a stop, if a service manager holds the listening
 * sockets. The manager probably starts the server again, and clients that reconnect must wait until the server has started.
 */
const RESTART_WAITS: RequestWaits = { nextRequestMs: 1000, firstRequestMs: 1000 };
/** Maximum milliseconds for writing the last log lines when the server stops. */
const FLUSH_TIMEOUT_MS = 1000;
/** Maximum milliseconds for exporting the last spans when the server stops. */
const EXPORT_TIMEOUT_MS = 3000;

/** The components that a shutdown uses or closes. */
type ShutdownComponents = Pick<
	RuntimeComponents,
	| 'cacheRegistry'
	| 'cluster'
	| 'compiler'
	| 'controlWords'
	| 'listenerSockets'
	| 'logSinks'
	| 'pageWork'
	| 'passwords'
	| 'processLog'
	| 'runningExchange'
	| 'spanExport'
	| 'threadPools'
	| 'threadTotals'
	| 'tlsControl'
	| 'upstreamPools'
>;

/** What a shutdown needs from the running server. */
export interface ShutdownDeps {
	/** Returns the settings of the running document. */
	settings(): Settings;
	/** Resolves once all requested loads have succeeded or failed. */
	whenLoadsSettled(): Promise<void>;
	/** Ends the activities that run only while the process serves. Called when a shutdown begins, and again on a kill. */
	onBegin(): void;
}

/** Ends the server, once. After the end has begun, only {@link kill} still has an effect: it cuts a graceful stop short. */
export class Shutdown {
	readonly #components: ShutdownComponents;
	readonly #deps: ShutdownDeps;
	/** Settles when the end is complete; undefined before it begins. */
	#completion: Promise<void> | undefined;
	#threadsEnded: Promise<boolean> | undefined;

	constructor(components: ShutdownComponents, deps: ShutdownDeps) {
		this.#components = components;
		this.#deps = deps;
	}

	/** True once the end has begun, or the start has failed. */
	get hasBegun(): boolean {
		return this.#completion !== undefined;
	}

	/**
	 * Resolves to true once every thread has ended after a stop or kill, and to false if a thread cannot be ended without ending the
	 * process.
	 */
	get threadsEnded(): Promise<boolean> {
		return this.#threadsEnded ?? Promise.resolve(true);
	}

	/** Stops gracefully. Resolves when the last exchange has ended or the grace period has expired. */
	stop(): Promise<void> {
		this.#completion ??= this.#stop(undefined);
		return this.#completion;
	}

	/**
	 * Finishes the open connections, while a successor serves new connections.
	 * @param abandonedKeys Keys of the listeners whose sockets the successor does not use.
	 */
	drainAfterHandover(abandonedKeys: readonly string[]): void {
		this.#completion ??= this.#stop(abandonedKeys);
	}

	/** Ends everything at once, without waiting for exchanges. */
	kill(): void {
		const { cluster, listenerSockets, processLog, tlsControl, upstreamPools } = this.#components;
		this.#deps.onBegin();
		this.#completion ??= Promise.resolve();
		upstreamPools.close();
		void this.#endThreads();
		void tlsControl.close();
		cluster?.close();
		listenerSockets.close();
		processLog.close();
	}

	/**
	 * Records that the start has failed, so that the loads that wait for it fail. The caller must then call
	 * {@link abandonStart}.
	 */
	markStartFailed(): void {
		this.#completion ??= Promise.resolve();
	}

	/** Closes what a failed start has opened. Resolves once that is done. */
	async abandonStart(): Promise<void> {
		const { cluster, listenerSockets, logSinks, processLog, tlsControl, upstreamPools } = this.#components;
		this.#deps.onBegin();
		this.#completion ??= Promise.resolve();
		upstreamPools.close();
		listenerSockets.close();
		await Promise.all([this.#endThreads(), tlsControl.close()]);
		cluster?.close();
		processLog.close();
		await logSinks.flush(FLUSH_TIMEOUT_MS);
	}

	/** @param abandonedKeys As in {@link drainAfterHandover}; undefined if no successor serves new connections. */
	async #stop(abandonedKeys: readonly string[] | undefined): Promise<void> {
		const hasSuccessor = abandonedKeys !== undefined;
		const { cacheRegistry, listenerSockets, processLog, threadPools } = this.#components;
		const settings = this.#deps.settings();
		this.#deps.onBegin();
		if (hasSuccessor) listenerSockets.leaveFiles();
		else await this.#announceStop(settings.shutdown_delay);
		const message = hasSuccessor ? 'handed over; finishing open connections' : 'stopping';
		processLog.log('info', 'runtime', message, { grace_period_ms: settings.grace_period ?? null });
		const requestWaits = hasSuccessor ? HANDOVER_WAITS : listenerSockets.hasPassedSockets ? RESTART_WAITS : NO_WAIT;
		const abandoned = listenerSockets.findOwned(abandonedKeys ?? []);
		this.#components.upstreamPools.close();
		// From here on, the system refuses new connections, unless a successor or a service manager holds the listening sockets, too.
		listenerSockets.close();
		// The successor waits until this process has released the folders of disk caches.
		if (hasSuccessor) void cacheRegistry.close();
		const hasDrained = await withTimeLimit(threadPools.drain(requestWaits, abandoned), settings.grace_period);
		if (!hasDrained) this.#reportCut(settings.grace_period);
		await Promise.all([
			// The process leaves the cluster only after the threads have ended, because what they counted last is reported to the
			// cluster.
			this.#endThreads().then(() => {
				this.#components.runningExchange.finish();
				return this.#components.cluster?.leave();
			}),
			this.#components.spanExport.close(EXPORT_TIMEOUT_MS),
			withTimeLimit(cacheRegistry.close(), FLUSH_TIMEOUT_MS),
			this.#components.tlsControl.close(),
		]);
		this.#components.cluster?.close();
		if (!hasSuccessor) await this.#deps.whenLoadsSettled();
		processLog.log('info', 'runtime', hasSuccessor ? 'ended after a handover' : 'stopped');
		processLog.close();
		await this.#components.logSinks.flush(FLUSH_TIMEOUT_MS);
	}

	/**
	 * Waits `delayMs`, the setting `shutdown_delay`. Meanwhile the server serves as usual and its placeholders announce the stop, so
	 * that load balancers have time to notice that it is no longer ready.
	 */
	async #announceStop(delayMs: number | undefined): Promise<void> {
		if (delayMs === undefined || delayMs === 0) return;
		const { controlWords, processLog } = this.#components;
		processLog.log('info', 'runtime', 'stopping after a delay', { delay_ms: delayMs });
		Atomics.store(controlWords, CONTROL_STOPS_AT, Math.ceil((Date.now() + delayMs) / 1000));
		await new Promise(resolve => setTimeout(resolve, Math.min(delayMs, MAX_TIMER_MS)));
	}

	/** Logs how much is still open at the end of the grace period. */
	#reportCut(gracePeriodMs: number | undefined): void {
		const { processLog, threadTotals } = this.#components;
		processLog.log('warn', 'runtime', 'the grace period has ended: open connections are closed', {
			grace_period_ms: gracePeriodMs,
			connections: threadTotals.slotTotal(ROW_SLOT.connections),
			requests: threadTotals.slotTotal(ROW_SLOT.inFlight),
		});
	}

	#endThreads(): Promise<boolean> {
		const { compiler, pageWork, passwords, threadPools } = this.#components;
		this.#threadsEnded ??= Promise.all([threadPools.terminate(), compiler.end(), passwords.end(), pageWork.end()]).then(
			ended => !ended.includes(false),
		);
		return this.#threadsEnded;
	}
}

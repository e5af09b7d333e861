/** Manages the worker threads: starts and counts them, sends them their work, and replaces those that die or hang. */
import { closeSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { Worker } from 'node:worker_threads';
import { divertFromAbandoned, whenHandshakesEnd } from '../listeners/abandoned-sockets.ts';
import { withBranches } from '../listeners/datagram-branches.ts';
import { addressesForThread } from '../listeners/inherited-sockets.ts';
import type { ListenerAddress } from '../listeners/listener-address.ts';
import { WorkerSockets } from '../listeners/worker-sockets.ts';
import type { LogEntry } from '../logs/log-entry.ts';
import type { RequestWaits } from '../protocols/protocol.ts';
import { type BequeathedDatagrams, channelsOf } from '../sockets/bequeathed-sockets.ts';
import { endThread } from '../sockets/end-thread.ts';
import { OwnedDescriptors } from '../sockets/owned-descriptors.ts';
import { MAX_THREADS } from '../threads/control-words.ts';
import type { SharedRows } from '../threads/shared-rows.ts';
import { CHECK_INTERVAL_MS } from '../threads/stall-clock.ts';
import type { StallKind } from '../threads/stop-answering.ts';
import { startThread } from '../threads/thread-source.ts';
import { THREAD_END_LIMIT_MS, ThreadWatch } from '../threads/thread-watch.ts';
import { withTimeLimit } from '../threads/within.ts';
import type { MessageFromWorker, MessageToWorker, WorkerStartData } from '../worker/worker-messages.ts';
import {
	BuildRefused,
	type GenerationBuildRequest,
	NoResponsiveThread,
	WorkerLostError,
	type WorkerPoolHost,
} from './worker-pool-host.ts';
import { WorkerServices } from './worker-services.ts';

/** Maximum milliseconds that a thread may take to build a generation. */
const BUILD_TIMEOUT_MS = 60_000;
/**
 * A thread that dies within this many milliseconds of its start probably died of a cause that will recur, so its replacement is
 * delayed.
 */
const SHORT_LIFE_MS = 10_000;
/** Milliseconds before a replacement is started, by the number of consecutive threads that died soon after their start. */
const RESTART_DELAYS_MS = [0, 100, 500, 2000, 5000, 10_000];
/**
 * If a dead thread's replacement starts within this many milliseconds, new connections wait for it in the queues of the dead
 * thread's sockets. If it starts later, these sockets are closed, so that other threads accept the connections.
 */
const MAX_SOCKET_WAIT_MS = 500;

interface PendingStep {
	readonly stepNumber: number;
	readonly resolve: () => void;
	readonly reject: (error: Error) => void;
}

interface WorkerSlot {
	/** Index of the thread's row in shared memory, which identifies the thread in all messages. */
	readonly index: number;
	/** Position of the thread within the pool, starting at 0. */
	readonly position: number;
	thread: Worker | undefined;
	watch: ThreadWatch;
	/** True from when the thread is found unresponsive until it responds again, or until its replacement serves. */
	isUnresponsive: boolean;
	/** Timer that is set while the thread is being terminated because it does not respond. */
	terminationTimer: NodeJS.Timeout | undefined;
	/** True once the thread serves a generation of the configuration. From then on it takes part in reloads. */
	isServing: boolean;
	/** Time when the thread was started, in milliseconds since the epoch. */
	startedAt: number;
	/** Number of consecutive threads of this slot that died soon after their start. */
	shortLives: number;
	/** The step that the thread is performing; undefined if there is none. */
	pendingStep: PendingStep | undefined;
	isDrained: boolean;
	restartTimer: NodeJS.Timeout | undefined;
	readonly services: WorkerServices;
	/** Callbacks that wait for the thread's reply to a ping, by the ping's number. */
	readonly pongCallbacks: Map<number, () => void>;
}

export class WorkerPool {
	/** Number of threads that died or stopped responding, and were replaced. */
	restartCount = 0;
	/** Number of times that a thread stopped responding. */
	stallCount = 0;
	readonly #host: WorkerPoolHost;
	readonly #controlMemory: SharedArrayBuffer;
	/** UDP sockets for a successor, by listener. */
	#bequeathedDatagrams = new Map<string, readonly BequeathedDatagrams[]>();
	/** Channels between threads that have not been duplicated yet; see `withBranches`. */
	readonly #openChannels: number[] = [];
	readonly #controlWords: Int32Array;
	readonly #slots: WorkerSlot[] = [];
	readonly #sharedRows: SharedRows;
	/** True once the threads serve a generation. */
	#hasGeneration = false;
	/** Threads that take part in the current start or reload. */
	#buildingSlots: WorkerSlot[] = [];
	readonly #workerSockets = new WorkerSockets();
	/** Keys of the listeners that are being served. */
	#servedKeys: ReadonlySet<string> = new Set();
	/** Keys of the listeners in the configuration that is being loaded. */
	#loadingKeys: ReadonlySet<string> = new Set();
	/** Threads that have not ended, including those that were abandoned because they could not be terminated. */
	readonly #runningThreads = new Set<Worker>();
	#lastCheckAt = performance.now();
	readonly #checkTimer: NodeJS.Timeout;
	/** Called when a thread has been started, and when the pool stops. */
	#startCallbacks: (() => void)[] = [];
	#lastStepNumber = 0;
	#lastPingNumber = 0;
	#isStopping = false;
	readonly #drainCompletion = Promise.withResolvers<void>();

	/** @param sharedRows The memory that the threads of all pools share. Must have a free row for each thread. */
	constructor(threadCount: number, sharedRows: SharedRows, control: SharedArrayBuffer, host: WorkerPoolHost) {
		this.#host = host;
		this.#controlMemory = control;
		this.#controlWords = new Int32Array(control);
		this.#sharedRows = sharedRows;
		for (const [position, index] of sharedRows.claimRows(threadCount).entries()) {
			const slot: WorkerSlot = {
				index,
				position,
				thread: undefined,
				watch: new ThreadWatch(),
				isUnresponsive: false,
				terminationTimer: undefined,
				isServing: false,
				startedAt: 0,
				shortLives: 0,
				pendingStep: undefined,
				isDrained: false,
				restartTimer: undefined,
				services: new WorkerServices(index, host, sharedRows, this.#controlWords),
				pongCallbacks: new Map(),
			};
			this.#slots.push(slot);
		}
		// Threads start only after all slots exist, because each thread is told how many there are.
		for (const slot of this.#slots) this.#startThread(slot);
		this.#checkTimer = setInterval(() => this.#checkThreads(), CHECK_INTERVAL_MS).unref();
	}

	/** Number of threads in the pool, including dead ones. */
	get size(): number {
		return this.#slots.length;
	}

	/** Indices of the threads that are unresponsive, or whose replacements do not serve yet. */
	get unresponsiveThreads(): number[] {
		return this.#slots.filter(slot => slot.isUnresponsive).map(slot => slot.index);
	}

	/** Whether any thread serves requests. */
	get serves(): boolean {
		return this.#slots.some(slot => slot.isServing && !slot.terminationTimer);
	}

	/**
	 * Makes every thread build the generation. Rejects with BuildRefused or WorkerLostError if one cannot; the caller must then call
	 * `discardAll`. A thread that does not respond is left out and terminated, because it would keep serving its old generation.
	 * Rejects with `NoResponsiveThread` if no thread responds.
	 */
	async prepareAll(request: GenerationBuildRequest): Promise<void> {
		const preparingSlots = this.#slots.filter(
			slot => (slot.isServing || !this.#hasGeneration) && !slot.terminationTimer,
		);
		if (preparingSlots.length === 0) {
			throw this.unresponsiveThreads.length > 0
				? new NoResponsiveThread()
				: new WorkerLostError('No worker thread is running.');
		}
		this.#loadingKeys = new Set(request.listeners.map(listener => listener.key));
		this.#buildingSlots = preparingSlots;
		const { listeners: allListeners, channels } = withBranches(request.listeners, this.size);
		this.#openChannels.push(...channels);
		const preparation = Promise.all(
			preparingSlots.map(slot => {
				const listeners = addressesForThread(allListeners, slot.position, this.size);
				return this.#prepareThread(slot, { ...request, listeners });
			}),
		);
		for (const slot of preparingSlots) if (slot.isUnresponsive) this.#terminateUnresponsive(slot);
		await preparation;
		if (this.#buildingSlots.length === 0) throw new NoResponsiveThread();
	}

	/** Makes every thread check that each of its listeners answers a request. Rejects with BuildRefused or WorkerLostError. */
	async checkAll(): Promise<void> {
		await Promise.all(this.#slots.map(slot => this.#runStep(slot, attempt => ({ type: 'check', attempt }))));
	}

	/**
	 * Makes every thread accept connections on the addresses whose listening was deferred. Rejects with BuildRefused or
	 * WorkerLostError.
	 */
	async acceptAll(): Promise<void> {
		const acceptSteps = this.#slots.map(slot => this.#runStep(slot, attempt => ({ type: 'accept', attempt })));
		await Promise.all(acceptSteps);
		this.#closeChannels();
	}

	#closeChannels(): void {
		for (const channel of this.#openChannels.splice(0)) closeSync(channel);
	}

	/** Returns the file descriptors of all threads' sockets for a listener. Another process may inherit them. */
	descriptorsOf(key: string): number[] {
		return this.#workerSockets.descriptorsOf(key);
	}

	/**
	 * Makes every thread open channels for a successor. Resolves to the UDP sockets of all threads that answer, by listener. The
	 * caller must close their `relay` descriptors.
	 */
	async bequeathAll(): Promise<ReadonlyMap<string, readonly BequeathedDatagrams[]>> {
		this.#bequeathedDatagrams = new Map();
		const servingSlots = this.#slots.filter(slot => slot.isServing && !slot.isUnresponsive);
		await Promise.allSettled(servingSlots.map(slot => this.#runStep(slot, attempt => ({ type: 'bequeath', attempt }))));
		return this.#bequeathedDatagrams;
	}

	/**
	 * Waits until at least one started thread does not serve yet. Resolves to the indices of all such threads; to none if the pool
	 * stops.
	 */
	async whenStarted(): Promise<number[]> {
		const startedSlots = () => this.#slots.filter(slot => slot.thread && !slot.isServing && !slot.terminationTimer);
		while (!this.#isStopping && startedSlots().length === 0) {
			await new Promise<void>(resolve => this.#startCallbacks.push(resolve));
		}
		return startedSlots().map(slot => slot.index);
	}

	/**
	 * Makes a replacement thread build the current generation and accept connections. Resolves to false if the thread does so
	 * already. Rejects like `prepareAll`.
	 */
	async bringUp(index: number, request: GenerationBuildRequest): Promise<boolean> {
		const slot = this.#slotOf(index);
		if (!slot || slot.isServing) return false;
		await this.#prepareThread(slot, {
			...request,
			listeners: this.#workerSockets.withInherited(index, request.listeners),
		});
		slot.isServing = true;
		slot.isUnresponsive = false;
		this.#postMessage(slot, { type: 'activate' });
		return true;
	}

	/** Tells all threads that the generation has been activated. */
	activateAll(): void {
		this.#hasGeneration = true;
		for (const slot of this.#buildingSlots.splice(0)) {
			slot.isServing = slot.thread !== undefined;
			this.#postMessage(slot, { type: 'activate' });
		}
		this.#servedKeys = this.#loadingKeys;
		this.#workerSockets.keepOnly(this.#servedKeys);
	}

	/** Discards the generation being built. */
	discardAll(): void {
		this.#closeChannels();
		for (const slot of this.#buildingSlots.splice(0)) {
			// Rejecting the step also ends its timer, which would otherwise keep the process alive even after a failed start.
			slot.pendingStep?.reject(new WorkerLostError('The load was canceled.'));
			this.#postMessage(slot, { type: 'discard' });
		}
		this.#workerSockets.keepOnly(this.#servedKeys);
	}

	/**
	 * Makes every thread finish its exchanges. Resolves when all of them have finished. A repeated call changes how long idle
	 * connections wait.
	 * @param abandoned The listeners whose sockets nobody else has. The threads also serve the connections that wait there.
	 */
	drain(requestWaits: RequestWaits, abandoned: readonly ListenerAddress[] = []): Promise<void> {
		if (abandoned.length > 0) this.#abandon(abandoned);
		const abandonedKeys = abandoned.map(({ key }) => key);
		this.#beginStop();
		for (const slot of this.#slots) {
			slot.pendingStep?.reject(new WorkerLostError('The server is stopping.'));
			this.#postMessage(slot, { type: 'drain', waits: requestWaits, abandoned: abandonedKeys });
			if (slot.isUnresponsive) this.#terminateUnresponsive(slot);
		}
		this.#checkDrained();
		return this.#drainCompletion.promise;
	}

	/** Keeps new connections away from the sockets of listeners. The threads close them once their handshakes have ended. */
	#abandon(listeners: readonly ListenerAddress[]): void {
		const tcpListeners = listeners.filter(({ host }) => !host.includes('/'));
		divertFromAbandoned(tcpListeners.flatMap(({ key }) => this.descriptorsOf(key)));
		const ports = new Set(tcpListeners.map(({ port }) => port));
		void whenHandshakesEnd(ports).then(() => this.broadcast({ type: 'close_abandoned' }));
	}

	/** Terminates every thread. Resolves to false if one of them cannot be terminated. */
	async terminate(): Promise<boolean> {
		this.#beginStop();
		clearInterval(this.#checkTimer);
		await withTimeLimit(
			Promise.all([...this.#runningThreads].map(endThread)).then(() => {}),
			THREAD_END_LIMIT_MS,
		);
		return this.#runningThreads.size === 0;
	}

	#beginStop(): void {
		if (this.#isStopping) return;
		this.#isStopping = true;
		for (const slot of this.#slots) {
			clearTimeout(slot.restartTimer);
			if (!slot.thread) this.#sharedRows.releaseRow(slot.index);
		}
		// The system refuses new connections only once all descriptors of the listening sockets are closed, including these
		// duplicates.
		this.#workerSockets.close();
		for (const resolve of this.#startCallbacks.splice(0)) resolve();
	}

	/** Sends a message to every thread. Returns the indices of those that received it. */
	broadcast(message: MessageToWorker): number[] {
		const receivers = this.#slots.filter(slot => slot.thread);
		for (const slot of receivers) this.#postMessage(slot, message);
		return receivers.map(slot => slot.index);
	}

	/** Terminates one thread, as a crash would. */
	async killThread(index: number): Promise<void> {
		const thread = this.#slotOf(index)?.thread;
		if (thread) await endThread(thread);
	}

	/** Makes a thread throw an error outside any request, or hang. */
	failThread(index: number, kind: 'crash' | StallKind): void {
		const slot = this.#slotOf(index);
		if (slot) this.#postMessage(slot, { type: kind });
	}

	/** Resolves once every thread has replied to a ping, or has been terminated because it did not reply. */
	async whenResponsive(): Promise<void> {
		const pingNumber = ++this.#lastPingNumber;
		await Promise.all(
			this.#slots.map(slot => {
				if (!slot.thread) return undefined;
				this.#postMessage(slot, { type: 'ping', number: pingNumber });
				return new Promise<void>(resolve => slot.pongCallbacks.set(pingNumber, resolve));
			}),
		);
	}

	/** Terminates a new thread that could not load the configuration. A replacement is started later. */
	giveUp(index: number): void {
		const slot = this.#slotOf(index);
		if (!slot) return;
		slot.pendingStep = undefined;
		if (slot.thread) void endThread(slot.thread);
	}

	#slotOf(index: number): WorkerSlot | undefined {
		return this.#slots.find(slot => slot.index === index);
	}

	#startThread(slot: WorkerSlot): void {
		slot.watch = new ThreadWatch();
		const descriptors = new OwnedDescriptors();
		const startData: WorkerStartData = {
			index: slot.index,
			rows: this.#sharedRows.rowCount,
			threads: this.size,
			control: this.#controlMemory,
			counters: slot.services.begin(),
			activity: slot.watch.activity.memory,
			descriptors: descriptors.memory,
			sharePorts: CAN_SHARE_PORTS,
			...this.#host.deps,
		};
		const thread = startThread('worker', startData);
		slot.thread = thread;
		this.#runningThreads.add(thread);
		slot.startedAt = Date.now();
		slot.isServing = false;
		let cause = 'ended';
		for (const message of this.#host.introductoryMessages()) thread.postMessage(message);
		thread.on('message', (message: MessageFromWorker) => {
			// Messages of a thread that has been abandoned or replaced are ignored.
			if (slot.thread === thread) this.#onMessage(slot, thread, message);
		});
		thread.on('error', error => {
			cause = error instanceof Error ? (error.stack ?? error.message) : String(error);
		});
		thread.on('exit', () => {
			this.#runningThreads.delete(thread);
			descriptors.closeAll();
			if (slot.thread === thread) this.#onThreadEnd(slot, cause);
		});
		for (const resolve of this.#startCallbacks.splice(0)) resolve();
	}

	/** Checks every thread that serves or drains. */
	#checkThreads(): void {
		const now = performance.now();
		const elapsedMs = now - this.#lastCheckAt;
		this.#lastCheckAt = now;
		for (const slot of this.#slots) {
			if (!slot.thread || slot.terminationTimer || !(slot.isServing || this.#isStopping)) continue;
			slot.watch.check(elapsedMs);
			if (slot.watch.isUnresponsive) this.#onStall(slot);
			else if (slot.isUnresponsive) this.#onRecovery(slot);
		}
	}

	#onStall(slot: WorkerSlot): void {
		const { watch, index } = slot;
		if (!slot.isUnresponsive) {
			slot.isUnresponsive = true;
			this.stallCount++;
			this.#logEntry('warn', 'a worker thread does not respond', { thread: index, ...watch.logFields });
		}
		// While a thread builds, only the time limit of the load applies.
		if (slot.pendingStep && watch.isBuilding) return;
		if (slot.pendingStep || this.#isStopping || watch.isOverdue) this.#terminateUnresponsive(slot);
	}

	#onRecovery(slot: WorkerSlot): void {
		slot.isUnresponsive = false;
		this.#logEntry('info', 'a worker thread responds again', { thread: slot.index });
	}

	/** Terminates an unresponsive thread. A reload in progress continues without it. */
	#terminateUnresponsive(slot: WorkerSlot): void {
		const { thread } = slot;
		if (!thread || slot.terminationTimer) return;
		// A thread that does not end in time is abandoned. Its termination is pending, so it will never run any of our code again.
		slot.terminationTimer = setTimeout(() => this.#onThreadEnd(slot, ''), THREAD_END_LIMIT_MS);
		this.#buildingSlots = this.#buildingSlots.filter(building => building !== slot);
		slot.pendingStep?.resolve();
		this.#workerSockets.detach(slot.index);
		void endThread(thread);
	}

	#onThreadEnd(slot: WorkerSlot, cause: string): void {
		const { terminationTimer } = slot;
		clearTimeout(terminationTimer);
		slot.terminationTimer = undefined;
		slot.thread = undefined;
		slot.isServing = false;
		slot.services.end();
		for (const onPong of slot.pongCallbacks.values()) onPong();
		slot.pongCallbacks.clear();
		const { pendingStep } = slot;
		slot.pendingStep = undefined;
		if (this.#isStopping) {
			this.#sharedRows.releaseRow(slot.index);
			pendingStep?.reject(new WorkerLostError('The server is stopping.'));
			this.#checkDrained();
			return;
		}
		// Only threads that died by themselves soon after their start delay their replacement. Threads that hung do not.
		if (!terminationTimer) slot.shortLives = Date.now() - slot.startedAt < SHORT_LIFE_MS ? slot.shortLives + 1 : 0;
		const delayMs = terminationTimer
			? 0
			: (RESTART_DELAYS_MS[Math.min(slot.shortLives, RESTART_DELAYS_MS.length) - 1] ?? 0);
		if (delayMs > MAX_SOCKET_WAIT_MS) this.#workerSockets.release(slot.index);
		this.restartCount++;
		const fields = terminationTimer ? slot.watch.logFields : { cause, after_ms: delayMs };
		const problem = terminationTimer ? 'stopped responding' : 'died';
		this.#logEntry('error', `a worker thread ${problem} and is being replaced`, { thread: slot.index, ...fields });
		slot.restartTimer = setTimeout(() => {
			this.#startThread(slot);
			this.#host.onThreadReplaced(slot.index);
		}, delayMs);
		const [firstLine] = cause.split('\n');
		pendingStep?.reject(
			new WorkerLostError(`A worker thread died while it was building the configuration: ${firstLine}.`),
		);
	}

	#prepareThread(slot: WorkerSlot, request: GenerationBuildRequest): Promise<void> {
		return this.#runStep(slot, attempt => ({ type: 'prepare', attempt, ...request }));
	}

	/**
	 * Sends a message that starts a step, and waits until the thread replies that it has completed or refused the step.
	 */
	#runStep(slot: WorkerSlot, createMessage: (attempt: number) => MessageToWorker): Promise<void> {
		if (!slot.thread) return Promise.reject(new WorkerLostError('A worker thread has died.'));
		const stepNumber = ++this.#lastStepNumber;
		return new Promise((resolve, reject) => {
			const settleStep = (finish: () => void) => {
				clearTimeout(stepTimer);
				if (slot.pendingStep?.stepNumber === stepNumber) slot.pendingStep = undefined;
				finish();
			};
			const stepTimer = setTimeout(
				() => settleStep(() => reject(new WorkerLostError('A worker thread did not build the configuration in time.'))),
				BUILD_TIMEOUT_MS,
			);
			slot.pendingStep = {
				stepNumber,
				resolve: () => settleStep(resolve),
				reject: error => settleStep(() => reject(error)),
			};
			this.#postMessage(slot, createMessage(stepNumber));
		});
	}

	#onMessage(slot: WorkerSlot, thread: Worker, message: MessageFromWorker): void {
		switch (message.type) {
			case 'listening':
				this.#workerSockets.add(slot.index, message.key, message.sockets);
				return;
			case 'prepared':
				if (slot.pendingStep?.stepNumber === message.attempt) slot.pendingStep.resolve();
				return;
			case 'bequeathed':
				for (const [key, datagrams] of message.datagrams) {
					if (slot.pendingStep?.stepNumber === message.attempt) {
						this.#bequeathedDatagrams.set(key, [...(this.#bequeathedDatagrams.get(key) ?? []), ...datagrams]);
					} else for (const socket of datagrams) for (const channel of channelsOf(socket)) closeSync(channel);
				}
				if (slot.pendingStep?.stepNumber === message.attempt) slot.pendingStep.resolve();
				return;
			case 'refused':
				if (slot.pendingStep?.stepNumber !== message.attempt) return;
				slot.pendingStep.reject(new BuildRefused(message.code, message.message, message.pointer));
				return;
			case 'pong':
				slot.pongCallbacks.get(message.number)?.();
				slot.pongCallbacks.delete(message.number);
				return;
			case 'drained':
				slot.isDrained = true;
				this.#checkDrained();
				return;
			default:
				slot.services.handle(message, thread);
		}
	}

	#checkDrained(): void {
		if (this.#isStopping && this.#slots.every(slot => !slot.thread || slot.isDrained)) this.#drainCompletion.resolve();
	}

	#logEntry(level: LogEntry['level'], message: string, fields: { readonly [name: string]: unknown }): void {
		this.#host.log({ level, logger: 'runtime', message, fields });
	}

	#postMessage(slot: WorkerSlot, message: MessageToWorker): void {
		slot.thread?.postMessage(message);
	}
}

/** Returns the number of worker threads: `requested`, up to a maximum; 1 if the kernel does not distribute connections. */
export function workerThreadCount(requested: number = availableParallelism()): number {
	return CAN_SHARE_PORTS ? Math.max(1, Math.min(requested, MAX_THREADS)) : 1;
}

/** Whether this platform's kernel distributes connections among sockets that share a port. */
export const CAN_SHARE_PORTS: boolean = process.platform === 'linux' || process.platform === 'freebsd';

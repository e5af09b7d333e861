/** The interface between the pool of worker threads and the runtime. */
import type { LogOutput } from '../../compiler/document/log-settings.ts';
import type { ListenerAddress } from '../listeners/listener-address.ts';
import type { LogEntry } from '../logs/log-entry.ts';
import type { PostedLines } from '../logs/log-segment.ts';
import type { ThreadTotals } from '../metrics/thread-totals.ts';
import type { CacheWatcher, ConcurrencyWatcher, LimitsWatcher, PoolWatcher } from '../threads/shared-rows.ts';
import type { MainThreadRequest } from '../worker/main-thread-requests.ts';
import type { GenerationDelta, MessageToWorker, WorkerStartData } from '../worker/worker-messages.ts';

/** Thrown when a thread reports that it cannot build the configuration. */
export class BuildRefused extends Error {
	readonly code: string;
	readonly pointer: string | undefined;

	constructor(code: string, message: string, pointer?: string) {
		super(message);
		this.name = 'BuildRefused';
		this.code = code;
		this.pointer = pointer;
	}
}

/** Thrown when a thread dies or stops responding although it should be building a generation. */
export class WorkerLostError extends Error {
	constructor(message: string) {
		super(message);
		this.name = 'WorkerLostError';
	}
}

/** Thrown when every thread that could build a generation is unresponsive. Their replacements are being started. */
export class NoResponsiveThread extends WorkerLostError {
	constructor() {
		super('No worker thread responds.');
	}
}

/** Describes a generation that the threads should build. */
export interface GenerationBuildRequest {
	readonly generation: number;
	readonly delta: GenerationDelta;
	readonly listeners: readonly ListenerAddress[];
}

/** What the pool needs from the runtime: data and callbacks. */
export interface WorkerPoolHost {
	readonly totals: ThreadTotals;
	/** Start parameters common to all threads. */
	readonly deps: Pick<WorkerStartData, 'terminal' | 'verbose' | 'workingDirectory' | 'environment'>;
	/**
	 * Watches the upstream pools that threads open. The next three members do the same for caches, rate limits and concurrency
	 * limits.
	 */
	readonly pools: PoolWatcher;
	readonly caches: CacheWatcher;
	readonly limits: LimitsWatcher;
	readonly concurrency: ConcurrencyWatcher;
	log(entry: LogEntry): void;
	/** Delivers lines for a log writer. If the lines are in a segment of shared memory, the receiver must return the segment. */
	writeAccessLines(sink: string, lines: PostedLines, entryCount: number): void;
	/** Called when a thread has dropped log entries. The thread itself counts them. */
	onAccessDropped(sink: string, entryCount: number): void;
	onSinkOpened(sink: string, output: LogOutput): void;
	onSinkReleased(sink: string): void;
	/** Called when a thread starts to create spans. */
	onTracingOpened(): void;
	/** Receives finished spans, as comma-separated JSON objects. */
	queueSpans(text: string, spans: number): void;
	/** Answers a request of a thread. Never rejects. */
	answer(question: MainThreadRequest): Promise<unknown>;
	/** Returns the messages that a new thread receives before all others. */
	introductoryMessages(): readonly MessageToWorker[];
	/** Called when a thread has received the ACME challenge responses of the update with this number. */
	onChallengesReceived(index: number, number: number): void;
	/** Called when a thread needs other threads to close idle connections of the listener with this key. */
	onRoomWanted(listener: string): void;
	/** Called when a thread has died. */
	onThreadEnded(index: number): void;
	/**
	 * Called when a thread has been started in place of a dead one. The new thread must receive the current state before it can
	 * serve.
	 */
	onThreadReplaced(index: number): void;
}

/** The interface between the pool of worker threads and the runtime. */
import type { LogOutput } from '../../compiler/modules/providers/log-writers/log-output.ts';
import type { PostedLines } from '../logs/log-segment.ts';
import type { ThreadTotals } from '../metrics/thread-totals.ts';
import type { MainThreadQuestion } from '../threads/main-thread-requests.ts';
import type { GenerationDelta, ListenerAddress, LogEntry, ToWorker, WorkerStart } from '../threads/messages.ts';
import type { CacheWatcher, PoolWatcher } from '../threads/shared-rows.ts';

/** A thread reported that the configuration cannot be built. */
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

/** A thread died or did not respond while it was to build. */
export class WorkerLost extends Error {
	constructor(message: string) {
		super(message);
		this.name = 'WorkerLost';
	}
}

/** No thread that could build a generation responds; their replacements are being started. */
export class NoThreadAnswers extends WorkerLost {
	constructor() {
		super('No worker thread responds.');
	}
}

/** A generation to build. */
export interface GenerationOrder {
	readonly generation: number;
	readonly delta: GenerationDelta;
	readonly listeners: readonly ListenerAddress[];
}

/** Callbacks of the pool, and what it needs from the runtime. */
export interface WorkerPoolHost {
	readonly totals: ThreadTotals;
	/** Start parameters common to all threads. */
	readonly deps: Pick<WorkerStart, 'terminal' | 'verbose' | 'workingDirectory' | 'environment'>;
	/** Notified of the upstream pools that threads open. */
	readonly pools: PoolWatcher;
	readonly caches: CacheWatcher;
	log(entry: LogEntry): void;
	/** Delivers lines for a log writer. A memory segment of lines must be returned. */
	access(sink: string, lines: PostedLines, entries: number): void;
	/** A thread has dropped log entries, and counted them. */
	accessDropped(sink: string, entries: number): void;
	sinkOpened(sink: string, output: LogOutput): void;
	sinkReleased(sink: string): void;
	/** A thread starts to create spans. */
	tracingOpened(): void;
	/** Finished spans, as comma-separated JSON objects. */
	spans(text: string, spans: number): void;
	/** Answers a request of a thread. Never rejects. */
	answer(question: MainThreadQuestion): Promise<unknown>;
	/** Returns the messages that a thread gets before any other. */
	introduction(): readonly ToWorker[];
	/** A thread has received the challenge answers with that number. */
	challengesTaken(index: number, number: number): void;
	/** A thread has died. */
	ended(index: number): void;
	/** A thread has been started in place of a dead one and waits for its state. */
	replaced(index: number): void;
}

/** What the pool of data-plane threads and the runtime need of each other. */
import type { LogOutput } from '../../compiler/modules/providers/log-writers/log-output.ts';
import type { PostedLines } from '../logs/log-segment.ts';
import type { ThreadTotals } from '../metrics/thread-totals.ts';
import type { MainThreadQuestion } from '../threads/main-thread-requests.ts';
import type { GenerationDelta, ListenerAddress, LogEntry, ToWorker, WorkerStart } from '../threads/messages.ts';
import type { CacheWatcher, PoolWatcher } from '../threads/shared-rows.ts';

/** The configuration cannot be built: a thread said so. */
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

/** A thread died or did not answer while it should have built. */
export class WorkerLost extends Error {
	constructor(message: string) {
		super(message);
		this.name = 'WorkerLost';
	}
}

/** No thread that could build a generation answers; successors are on their way. */
export class NoThreadAnswers extends WorkerLost {
	constructor() {
		super('No worker thread answers.');
	}
}

/** What a generation is for a thread. */
export interface GenerationOrder {
	readonly generation: number;
	readonly delta: GenerationDelta;
	readonly listeners: readonly ListenerAddress[];
}

/** What the pool tells and asks of the runtime. */
export interface WorkerPoolHost {
	readonly totals: ThreadTotals;
	/** The same for every thread. */
	readonly deps: Pick<WorkerStart, 'terminal' | 'verbose' | 'workingDirectory' | 'environment'>;
	/** Is told of the pools of upstreams that threads open. */
	readonly pools: PoolWatcher;
	readonly caches: CacheWatcher;
	log(entry: LogEntry): void;
	/** Lines for a log writer. */
	/** A segment of lines has to be given back. */
	access(sink: string, lines: PostedLines, entries: number): void;
	/** A thread has dropped entries for a log writer, and counted them. */
	accessDropped(sink: string, entries: number): void;
	sinkOpened(sink: string, output: LogOutput): void;
	sinkReleased(sink: string): void;
	/** A thread begins to make spans. */
	tracingOpened(): void;
	/** Spans that have ended, as JSON objects with commas between. */
	spans(text: string, spans: number): void;
	/** Answers a question of a thread. Never rejects. */
	answer(question: MainThreadQuestion): Promise<unknown>;
	/** What a thread is told before anything else. */
	introduction(): readonly ToWorker[];
	/** A thread has the answers to challenges of that number. */
	challengesTaken(index: number, number: number): void;
	/** A thread has died. */
	ended(index: number): void;
	/** A thread has been started in place of a dead one and waits for its state. */
	replaced(index: number): void;
}

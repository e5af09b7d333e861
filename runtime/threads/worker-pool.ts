/** The data-plane threads as the main thread sees them: started, fed, counted, replaced when they die. */
import type { Worker } from 'node:worker_threads';
import type { LogOutput } from '../../compiler/providers/log-writers/log-output.ts';
import type { PostedLines } from '../logs/log-segment.ts';
import type { ThreadTotals } from '../metrics/thread-totals.ts';
import { startThread } from '../thread-source.ts';
import type { MainThreadQuestion } from './main-thread-questions.ts';
import {
	CONTROL_OUTSTANDING,
	type FromWorker,
	type GenerationDelta,
	type ListenerAddress,
	LOG_ENTRY_WEIGHT,
	type LogEntry,
	type ToWorker,
	type WorkerStart,
} from './messages.ts';
import { type CacheWatcher, type PoolWatcher, SharedRows } from './shared-rows.ts';

/** Milliseconds that a thread may take to build a generation. */
const BUILD_LIMIT = 60_000;
/** A thread that lived for less than this many milliseconds died of something that will strike again: its successor waits. */
const SHORT_LIFE = 10_000;
/** Milliseconds before a successor, by the number of short lives in a row. */
const BACK_OFF = [0, 100, 500, 2000, 5000, 10_000];

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
	readonly surroundings: Pick<WorkerStart, 'terminal' | 'verbose' | 'workingDirectory' | 'environment'>;
	/** Is told of the pools of upstreams that threads open. */
	readonly pools: PoolWatcher;
	readonly caches: CacheWatcher;
	log(entry: LogEntry): void;
	/** Lines for a log writer. */
	/** A segment of lines has to be given back. */
	access(sink: string, lines: PostedLines, entries: number): void;
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

interface Attempt {
	readonly number: number;
	readonly resolve: () => void;
	readonly reject: (error: Error) => void;
}

interface Slot {
	readonly index: number;
	thread: Worker | undefined;
	/** True once it has a generation: it takes part in loads. */
	serving: boolean;
	startedAt: number;
	shortLives: number;
	attempt: Attempt | undefined;
	drained: boolean;
	timer: NodeJS.Timeout | undefined;
	/** Log writers that it uses. */
	readonly sinks: Set<string>;
	/** What waits for its answer to a ping, by number. */
	readonly pinged: Map<number, () => void>;
}

/** The threads. */
export class WorkerPool {
	/** Threads that died and were replaced. */
	restarts = 0;
	readonly #host: WorkerPoolHost;
	readonly #control: SharedArrayBuffer;
	readonly #outstanding: Int32Array;
	readonly #slots: Slot[] = [];
	readonly #memory: SharedRows;
	/** Threads that take part in the load under way. */
	#building: Slot[] = [];
	#attempts = 0;
	#pings = 0;
	#stopping = false;
	#allDrained: (() => void) | undefined;

	constructor(threads: number, control: SharedArrayBuffer, host: WorkerPoolHost) {
		this.#host = host;
		this.#control = control;
		this.#outstanding = new Int32Array(control);
		this.#memory = new SharedRows(threads, host.pools, host.caches);
		for (let index = 0; index < threads; index++) {
			const slot: Slot = {
				index,
				thread: undefined,
				serving: false,
				startedAt: 0,
				shortLives: 0,
				attempt: undefined,
				drained: false,
				timer: undefined,
				sinks: new Set(),
				pinged: new Map(),
			};
			this.#slots.push(slot);
		}
		// Only now: each thread is told how many there are, and shares memory with that many.
		for (const slot of this.#slots) this.#start(slot);
	}

	/** Threads of the pool, dead ones included. */
	get size(): number {
		return this.#slots.length;
	}

	/** Lets every thread build the generation. Rejects with BuildRefused or WorkerLost when one cannot; the others must be told to discard. */
	async prepareAll(order: GenerationOrder): Promise<void> {
		const slots = this.#slots.filter(slot => slot.serving || order.generation === 1);
		if (slots.length === 0) throw new WorkerLost('No worker thread is running.');
		this.#building = slots;
		await Promise.all(slots.map(slot => this.#prepare(slot, order)));
	}

	/** Lets a thread that replaces a dead one build what is being served, and accept connections. Rejects as prepareAll. */
	async bringUp(index: number, order: GenerationOrder): Promise<void> {
		const slot = this.#slots[index]!;
		if (slot.serving) return;
		await this.#prepare(slot, order);
		slot.serving = true;
		this.#post(slot, { type: 'activate' });
	}

	/** The generation has been flipped to. */
	activateAll(): void {
		for (const slot of this.#building.splice(0)) {
			slot.serving = slot.thread !== undefined;
			this.#post(slot, { type: 'activate' });
		}
	}

	/** Gives up what was being built. */
	discardAll(): void {
		for (const slot of this.#building.splice(0)) {
			// Its time would go on running, and keep a process that was refused its start.
			slot.attempt?.reject(new WorkerLost('The configuration was given up.'));
			this.#post(slot, { type: 'discard' });
		}
	}

	/** Lets every thread finish what it has begun; resolves when all have. */
	drain(): Promise<void> {
		this.#stopping = true;
		return new Promise(resolve => {
			this.#allDrained = resolve;
			for (const slot of this.#slots) {
				clearTimeout(slot.timer);
				slot.attempt?.reject(new WorkerLost('The server is stopping.'));
				this.#post(slot, { type: 'drain' });
			}
			this.#checkDrained();
		});
	}

	/** Ends every thread. */
	async terminate(): Promise<void> {
		this.#stopping = true;
		await Promise.all(
			this.#slots.map(slot => {
				clearTimeout(slot.timer);
				return slot.thread?.terminate();
			}),
		);
	}

	/** Tells every thread; gives the threads that were told. */
	tell(message: ToWorker): number[] {
		const told = this.#slots.filter(slot => slot.thread);
		for (const slot of told) this.#post(slot, message);
		return told.map(slot => slot.index);
	}

	/** Ends one thread as a crash would. */
	async kill(index: number): Promise<void> {
		await this.#slots[index]?.thread?.terminate();
	}

	/** Lets a thread throw outside any request, or get stuck. */
	fail(index: number, how: 'crash' | 'stall'): void {
		const slot = this.#slots[index];
		if (slot) this.#post(slot, { type: how });
	}

	/** Resolves once every thread has answered or has died, which is seen to by itself: never while one is stuck. */
	async answering(): Promise<void> {
		const number = ++this.#pings;
		await Promise.all(
			this.#slots.map(slot => {
				if (!slot.thread) return undefined;
				this.#post(slot, { type: 'ping', number });
				return new Promise<void>(resolve => slot.pinged.set(number, resolve));
			}),
		);
	}

	/** The thread could not be given its state: ended, and tried again later. */
	giveUp(index: number): void {
		const slot = this.#slots[index]!;
		slot.attempt = undefined;
		void slot.thread?.terminate();
	}

	#start(slot: Slot): void {
		const data: WorkerStart = {
			index: slot.index,
			rows: this.#slots.length,
			control: this.#control,
			counters: this.#host.totals.begin(slot.index),
			sharePorts: SHARED_PORTS,
			...this.#host.surroundings,
		};
		Atomics.store(this.#outstanding, CONTROL_OUTSTANDING + slot.index, 0);
		const thread = startThread('worker', data);
		slot.thread = thread;
		slot.startedAt = Date.now();
		slot.serving = false;
		let cause = 'ended';
		for (const message of this.#host.introduction()) thread.postMessage(message);
		thread.on('message', (message: FromWorker) => this.#take(slot, message));
		thread.on('error', error => {
			cause = error instanceof Error ? (error.stack ?? error.message) : String(error);
		});
		thread.on('exit', () => this.#ended(slot, cause));
	}

	#ended(slot: Slot, cause: string): void {
		slot.thread = undefined;
		slot.serving = false;
		this.#host.totals.end(slot.index);
		this.#host.ended(slot.index);
		for (const sink of slot.sinks) this.#host.sinkReleased(sink);
		slot.sinks.clear();
		for (const answered of slot.pinged.values()) answered();
		slot.pinged.clear();
		this.#memory.releaseAll(slot.index);
		const { attempt } = slot;
		slot.attempt = undefined;
		if (this.#stopping) {
			attempt?.reject(new WorkerLost('The server is stopping.'));
			this.#checkDrained();
			return;
		}
		slot.shortLives = Date.now() - slot.startedAt < SHORT_LIFE ? slot.shortLives + 1 : 0;
		const delay = BACK_OFF[Math.min(slot.shortLives, BACK_OFF.length) - 1] ?? 0;
		this.restarts++;
		this.#host.log({
			level: 'error',
			logger: 'runtime',
			message: 'a worker thread died and is being replaced',
			fields: { thread: slot.index, cause, after_ms: delay },
		});
		slot.timer = setTimeout(() => {
			this.#start(slot);
			this.#host.replaced(slot.index);
		}, delay);
		const [first] = cause.split('\n');
		attempt?.reject(new WorkerLost(`A worker thread died while it was building the configuration: ${first}.`));
	}

	#prepare(slot: Slot, order: GenerationOrder): Promise<void> {
		if (!slot.thread) return Promise.reject(new WorkerLost('A worker thread has died.'));
		const number = ++this.#attempts;
		return new Promise((resolve, reject) => {
			const settle = (then: () => void) => {
				clearTimeout(timer);
				if (slot.attempt?.number === number) slot.attempt = undefined;
				then();
			};
			const timer = setTimeout(
				() => settle(() => reject(new WorkerLost('A worker thread did not build the configuration in time.'))),
				BUILD_LIMIT,
			);
			slot.attempt = {
				number,
				resolve: () => settle(resolve),
				reject: error => settle(() => reject(error)),
			};
			this.#post(slot, { type: 'prepare', attempt: number, ...order });
		});
	}

	#take(slot: Slot, message: FromWorker): void {
		switch (message.type) {
			case 'prepared':
				if (slot.attempt?.number === message.attempt) slot.attempt.resolve();
				return;
			case 'refused':
				if (slot.attempt?.number !== message.attempt) return;
				slot.attempt.reject(new BuildRefused(message.code, message.message, message.pointer));
				return;
			case 'memory_wanted':
				this.#post(slot, {
					type: 'memory',
					key: message.key,
					buffer: this.#memory.take(message.key, message.wanted, slot.index),
				});
				return;
			case 'cache':
				this.#host.caches.takeNews(message.store, message.news);
				return;
			case 'memory_released':
				this.#memory.release(message.key, slot.index);
				return;
			case 'page':
				this.#host.totals.addPage(slot.index, message.buffer);
				return;
			case 'series':
				this.#host.totals.addSeries(slot.index, message.series);
				return;
			case 'sink_opened':
				slot.sinks.add(message.sink);
				this.#host.sinkOpened(message.sink, message.output);
				return;
			case 'sink_released':
				slot.sinks.delete(message.sink);
				this.#host.sinkReleased(message.sink);
				return;
			case 'access':
				Atomics.sub(this.#outstanding, CONTROL_OUTSTANDING + slot.index, message.text.length);
				this.#host.access(message.sink, message.text, message.entries);
				return;
			case 'access_segment':
				this.#host.access(message.sink, message.lines, message.entries);
				return;
			case 'tracing_opened':
				this.#host.tracingOpened();
				return;
			case 'spans':
				Atomics.sub(this.#outstanding, CONTROL_OUTSTANDING + slot.index, message.text.length);
				this.#host.spans(message.text, message.spans);
				return;
			case 'log':
				Atomics.sub(this.#outstanding, CONTROL_OUTSTANDING + slot.index, LOG_ENTRY_WEIGHT);
				this.#host.log(message.entry);
				return;
			case 'pong':
				slot.pinged.get(message.number)?.();
				slot.pinged.delete(message.number);
				return;
			case 'ask':
				this.#answer(slot.thread, message.id, message.question);
				return;
			case 'challenges_taken':
				this.#host.challengesTaken(slot.index, message.number);
				return;
			case 'drained':
				slot.drained = true;
				this.#checkDrained();
				return;
		}
	}

	/** To the thread that asked, not to one that has taken its place since. */
	#answer(thread: Worker | undefined, id: number, question: MainThreadQuestion): void {
		const send = (message: ToWorker): void => thread?.postMessage(message);
		this.#host.answer(question).then(
			answer => send({ type: 'answer', id, answer }),
			(error: Error) => {
				const fields = { about: question.about, error: error.message };
				this.#host.log({ level: 'error', logger: 'runtime', message: 'a question of a thread has no answer', fields });
				send({ type: 'answer', id, answer: undefined, failed: error.message });
			},
		);
	}

	#checkDrained(): void {
		if (!this.#allDrained || this.#slots.some(slot => slot.thread && !slot.drained)) return;
		this.#allDrained();
	}

	#post(slot: Slot, message: ToWorker): void {
		slot.thread?.postMessage(message);
	}
}

/** Platforms whose kernel spreads connections over the sockets that share a port. */
export const SHARED_PORTS: boolean = process.platform === 'linux' || process.platform === 'freebsd';

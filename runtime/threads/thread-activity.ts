/**
 * What a data-plane thread is doing, in memory that the main thread can read: a thread that has stopped answering can no
 * longer say so itself.
 */
import type { Exchange, Received } from '../../compiler/exchange/exchange.ts';
import { currentTask } from './current-task.ts';

/** Milliseconds between a thread's signs of life. */
const BEAT_INTERVAL = 500;
/** Float64 slots. Times are those of the thread's own clock. */
const BEAT = 0;
const REQUEST = 1;
const PHASE = 2;
const TASK = 3;
const METHOD_LENGTH = 4;
const HOST_LENGTH = 5;
const PATH_LENGTH = 6;
const SLOTS = 7;
/** Bytes of a request's method, host and path that are kept, one after the other behind the slots. */
const METHOD = 16;
const HOST = 64;
const PATH = 128;
/** Bytes before and behind, so that no other thread writes to the same cache lines (see counter-row.ts). */
const APART = 128;
const TEXT_AT = APART + SLOTS * Float64Array.BYTES_PER_ELEMENT;

/** What a log must not show as it is. */
const UNPRINTABLE = /[^!-~]/g;

/** `write` in one encoding: half the time of the method that chooses it by a name. */
type FastBuffer = Buffer & { latin1Write(text: string, offset: number, length: number): number };

/** What a thread can be at, apart from requests. */
const PHASES = ['requests', 'build', 'message'] as const;

/** One of {@link PHASES}. */
type Phase = (typeof PHASES)[number];

/** What the main thread reads. */
export interface ActivityReading {
	/** Changes with every sign of life; 0 until the first. */
	readonly beat: number;
	/** The operating system's number of the thread; 0 where it is unknown. */
	readonly task: number;
	readonly phase: Phase;
	/** Method, host and path of the last request, and whether it began after the last sign of life. */
	readonly request: string | undefined;
	readonly requestIsNew: boolean;
}

/** The memory of one thread. Its writers are a thread's only, and cost a few nanoseconds. */
export class ThreadActivity {
	readonly memory: SharedArrayBuffer;
	readonly #numbers: Float64Array;
	readonly #text: FastBuffer;
	/** What has been written last. */
	#received: Received | undefined;

	constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(TEXT_AT + METHOD + HOST + PATH + APART)) {
		this.memory = memory;
		this.#numbers = new Float64Array(memory, APART, SLOTS);
		this.#text = Buffer.from(memory, TEXT_AT) as unknown as FastBuffer;
	}

	/** Gives signs of life from now on, for as long as the event loop of the calling thread turns. */
	begin(): void {
		this.beat();
		setInterval(() => this.beat(), BEAT_INTERVAL).unref();
	}

	/** Gives one sign of life. */
	beat(): void {
		this.#numbers[TASK] ||= currentTask();
		this.#numbers[BEAT] = performance.now();
	}

	/** Notes what the thread begins to do. */
	enter(phase: Phase): void {
		this.#numbers[PHASE] = PHASES.indexOf(phase);
	}

	/** Notes that a thing is done, unless something else has been begun meanwhile. */
	leave(phase: Phase): void {
		if (this.#numbers[PHASE] === PHASES.indexOf(phase)) this.#numbers[PHASE] = 0;
	}

	/** Notes a request that begins. Neither fields nor query: both may carry secrets. */
	request({ received, startedAt }: Exchange): void {
		this.#numbers[REQUEST] = startedAt;
		// Heads that repeat give the same object.
		if (received !== this.#received) this.#write(received);
	}

	#write(received: Received): void {
		const { method, authority, path } = received;
		const before = this.#received;
		const numbers = this.#numbers;
		this.#received = received;
		if (method !== before?.method) numbers[METHOD_LENGTH] = this.#text.latin1Write(method, 0, METHOD);
		if (authority !== before?.authority) numbers[HOST_LENGTH] = this.#text.latin1Write(authority, METHOD, HOST);
		numbers[PATH_LENGTH] = this.#text.latin1Write(path, METHOD + HOST, PATH);
	}

	/** Reads what there is, for the main thread. */
	read(): ActivityReading {
		const numbers = this.#numbers;
		const text = (at: number, length: number): string =>
			this.#text.toString('latin1', at, at + length).replace(UNPRINTABLE, '?');
		const method = text(0, numbers[METHOD_LENGTH]!);
		const host = text(METHOD, numbers[HOST_LENGTH]!);
		const path = text(METHOD + HOST, numbers[PATH_LENGTH]!);
		return {
			beat: numbers[BEAT]!,
			task: numbers[TASK]!,
			phase: PHASES[numbers[PHASE]!] ?? 'requests',
			request: method === '' ? undefined : `${method} ${host}${path}`,
			requestIsNew: numbers[REQUEST]! > numbers[BEAT]!,
		};
	}
}

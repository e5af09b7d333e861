/** The current activity of a worker thread, in memory that the main thread can read even if the thread no longer responds. */
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import { currentThreadId } from './current-task.ts';

/** Milliseconds between two heartbeats. */
const BEAT_INTERVAL = 500;
/** Indices of Float64 slots. Times are measured by the thread's own clock. */
const BEAT = 0;
const REQUEST = 1;
const PHASE = 2;
const TASK = 3;
const METHOD_LENGTH = 4;
const HOST_LENGTH = 5;
const PATH_LENGTH = 6;
const SLOTS = 7;
/** Maximum bytes kept of a request's method, host and path, stored after the slots. */
const METHOD = 16;
const HOST = 64;
const PATH = 128;
/** Padding in bytes, so that no other thread writes to the same cache lines (see counter-row.ts). */
const APART = 128;
const TEXT_AT = APART + SLOTS * Float64Array.BYTES_PER_ELEMENT;

/** Characters that are removed from logged values. */
const UNPRINTABLE = /[^!-~]/g;

/** Up to this many characters, a loop is faster than the native call. */
const SHORT_TEXT = 48;

/** Buffer's `latin1Write`, which takes half the time of `write` with an encoding. */
type FastBuffer = Buffer & { latin1Write(text: string, offset: number, length: number): number };

/** The kinds of activity, of which serving requests is the usual one. */
const PHASES = ['requests', 'build', 'message'] as const;

/** One of {@link PHASES}. */
type Phase = (typeof PHASES)[number];

/** The activity as read by the main thread. */
export interface ThreadActivitySnapshot {
	/** Changes with every heartbeat; 0 before the first. */
	readonly beat: number;
	/** The operating system's ID of the thread; 0 if unknown. */
	readonly task: number;
	readonly phase: Phase;
	/** Method, host and path of the last request, and whether it started after the last heartbeat. */
	readonly request: string | undefined;
	readonly requestIsNew: boolean;
}

/** The memory of one thread. Only the thread writes to it, in a few nanoseconds. */
export class ThreadActivity {
	readonly memory: SharedArrayBuffer;
	readonly #numbers: Float64Array;
	readonly #text: FastBuffer;
	/** The last request written. */
	#method = '';
	#authority = '';
	#path = '';

	constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(TEXT_AT + METHOD + HOST + PATH + APART)) {
		this.memory = memory;
		this.#numbers = new Float64Array(memory, APART, SLOTS);
		this.#text = Buffer.from(memory, TEXT_AT) as unknown as FastBuffer;
	}

	/** Sends heartbeats as long as the calling thread's event loop runs. */
	begin(): void {
		this.beat();
		setInterval(() => this.beat(), BEAT_INTERVAL).unref();
	}

	/** Sends a heartbeat. */
	beat(): void {
		this.#numbers[TASK] ||= currentThreadId();
		this.#numbers[BEAT] = performance.now();
	}

	/** Records the start of an activity. */
	enter(phase: Phase): void {
		this.#numbers[PHASE] = PHASES.indexOf(phase);
	}

	/** Records the end of an activity, unless another one has started meanwhile. */
	leave(phase: Phase): void {
		if (this.#numbers[PHASE] === PHASES.indexOf(phase)) this.#numbers[PHASE] = 0;
	}

	/** Records the start of a request, without its header fields and query, which may contain secrets. */
	request({ received, startedAt }: Exchange): void {
		const numbers = this.#numbers;
		numbers[REQUEST] = startedAt;
		const { method, authority, path } = received;
		// Consecutive requests often have parts in common, even as the same string objects.
		if (method !== this.#method) {
			this.#method = method;
			numbers[METHOD_LENGTH] = this.#copy(method, 0, METHOD);
		}
		if (authority !== this.#authority) {
			this.#authority = authority;
			numbers[HOST_LENGTH] = this.#copy(authority, METHOD, HOST);
		}
		if (path !== this.#path) {
			this.#path = path;
			numbers[PATH_LENGTH] = this.#copy(path, METHOD + HOST, PATH);
		}
	}

	/** Returns the number of bytes written, at most `most`. */
	#copy(text: string, at: number, most: number): number {
		const { length } = text;
		const bytes = this.#text;
		if (length > SHORT_TEXT || length > most) return bytes.latin1Write(text, at, most);
		for (let i = 0; i < length; i++) bytes[at + i] = text.charCodeAt(i);
		return length;
	}

	/** Reads the state, for the main thread. */
	read(): ThreadActivitySnapshot {
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

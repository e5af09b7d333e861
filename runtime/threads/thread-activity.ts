/** The current activity of a worker thread, in memory that the main thread can read even if the thread no longer responds. */
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import { currentThreadId } from './current-task.ts';

/** Milliseconds between two heartbeats. */
const BEAT_INTERVAL_MS = 500;
/** Indices of Float64 slots. Times are measured by the thread's own clock. */
const BEAT_SLOT = 0;
const REQUEST_SLOT = 1;
const PHASE_SLOT = 2;
const TASK_SLOT = 3;
const METHOD_LENGTH_SLOT = 4;
const HOST_LENGTH_SLOT = 5;
const PATH_LENGTH_SLOT = 6;
const SLOTS = 7;
/** Maximum bytes kept of a request's method, host and path, stored after the slots. */
const METHOD_BYTES = 16;
const HOST_BYTES = 64;
const PATH_BYTES = 128;
/** Padding in bytes, so that no other thread writes to the same cache lines (see counter-row.ts). */
const PADDING_BYTES = 128;
const TEXT_OFFSET = PADDING_BYTES + SLOTS * Float64Array.BYTES_PER_ELEMENT;

/** Characters that are removed from logged values. */
const UNPRINTABLE = /[^!-~]/g;

/** Maximum number of characters for which a loop is faster than the native call. */
const SHORT_TEXT = 48;

/** Buffer's `latin1Write`, which takes half the time of `write` with an encoding. */
type FastBuffer = Buffer & { latin1Write(text: string, offset: number, length: number): number };

/** The kinds of activity. A thread is usually serving requests. */
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
	/** Method, host and path of the last request, and whether that request started after the last heartbeat. */
	readonly request: string | undefined;
	readonly requestIsNew: boolean;
}

/** The memory of one thread. Only the thread writes to it, in a few nanoseconds. */
export class ThreadActivity {
	readonly memory: SharedArrayBuffer;
	readonly #numbers: Float64Array;
	readonly #text: FastBuffer;
	/** The last request that was written to the memory. */
	#method = '';
	#authority = '';
	#path = '';

	constructor(
		memory: SharedArrayBuffer = new SharedArrayBuffer(
			TEXT_OFFSET + METHOD_BYTES + HOST_BYTES + PATH_BYTES + PADDING_BYTES,
		),
	) {
		this.memory = memory;
		this.#numbers = new Float64Array(memory, PADDING_BYTES, SLOTS);
		this.#text = Buffer.from(memory, TEXT_OFFSET) as unknown as FastBuffer;
	}

	/** Sends heartbeats as long as the calling thread's event loop runs. */
	begin(): void {
		this.beat();
		setInterval(() => this.beat(), BEAT_INTERVAL_MS).unref();
	}

	/** Sends a heartbeat. */
	beat(): void {
		this.#numbers[TASK_SLOT] ||= currentThreadId();
		this.#numbers[BEAT_SLOT] = performance.now();
	}

	/** Records the start of an activity. */
	enter(phase: Phase): void {
		this.#numbers[PHASE_SLOT] = PHASES.indexOf(phase);
	}

	/** Records the end of an activity, unless another one has started meanwhile. */
	leave(phase: Phase): void {
		if (this.#numbers[PHASE_SLOT] === PHASES.indexOf(phase)) this.#numbers[PHASE_SLOT] = 0;
	}

	/** Records the start of a request, without its header fields and query, which may contain secrets. */
	request({ received, startedAt }: Exchange): void {
		const numbers = this.#numbers;
		numbers[REQUEST_SLOT] = startedAt;
		const { method, authority, path } = received;
		// Consecutive requests often have parts in common, even as the same string objects.
		if (method !== this.#method) {
			this.#method = method;
			numbers[METHOD_LENGTH_SLOT] = this.#copy(method, 0, METHOD_BYTES);
		}
		if (authority !== this.#authority) {
			this.#authority = authority;
			numbers[HOST_LENGTH_SLOT] = this.#copy(authority, METHOD_BYTES, HOST_BYTES);
		}
		if (path !== this.#path) {
			this.#path = path;
			numbers[PATH_LENGTH_SLOT] = this.#copy(path, METHOD_BYTES + HOST_BYTES, PATH_BYTES);
		}
	}

	/** Writes text into the memory. Returns the number of bytes written, at most `maxBytes`. */
	#copy(text: string, offset: number, maxBytes: number): number {
		const { length } = text;
		const bytes = this.#text;
		if (length > SHORT_TEXT || length > maxBytes) return bytes.latin1Write(text, offset, maxBytes);
		for (let i = 0; i < length; i++) bytes[offset + i] = text.charCodeAt(i);
		return length;
	}

	/** Reads the state, for the main thread. */
	read(): ThreadActivitySnapshot {
		const numbers = this.#numbers;
		const readText = (at: number, length: number): string =>
			this.#text.toString('latin1', at, at + length).replace(UNPRINTABLE, '?');
		const method = readText(0, numbers[METHOD_LENGTH_SLOT]!);
		const host = readText(METHOD_BYTES, numbers[HOST_LENGTH_SLOT]!);
		const path = readText(METHOD_BYTES + HOST_BYTES, numbers[PATH_LENGTH_SLOT]!);
		return {
			beat: numbers[BEAT_SLOT]!,
			task: numbers[TASK_SLOT]!,
			phase: PHASES[numbers[PHASE_SLOT]!] ?? 'requests',
			request: method === '' ? undefined : `${method} ${host}${path}`,
			requestIsNew: numbers[REQUEST_SLOT]! > numbers[BEAT_SLOT]!,
		};
	}
}

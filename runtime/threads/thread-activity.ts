/** The current activity of a worker thread, in memory that the main thread can read even if the thread no longer responds. */
import { equalStrings } from '../../compiler/exchange/equal-strings.ts';
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import { currentThreadId } from './current-task.ts';

/** Milliseconds between two heartbeats. */
const HEARTBEAT_INTERVAL_MS = 500;
/** Indices of Float64 slots. Times are measured by the thread's own clock. */
const BEAT_SLOT = 0;
const REQUEST_SLOT = 1;
const PHASE_SLOT = 2;
const TASK_SLOT = 3;
const METHOD_LENGTH_SLOT = 4;
const HOST_LENGTH_SLOT = 5;
const PATH_LENGTH_SLOT = 6;
const SLOT_COUNT = 7;
/** Maximum bytes kept of a request's method, host and path, stored after the slots. */
const MAX_METHOD_BYTES = 16;
const MAX_HOST_BYTES = 64;
const MAX_PATH_BYTES = 128;
/** Padding in bytes, so that no other thread writes to the same cache lines (see counter-row.ts). */
const PADDING_BYTES = 128;
const TEXT_OFFSET = PADDING_BYTES + SLOT_COUNT * Float64Array.BYTES_PER_ELEMENT;

/** Characters that are removed from logged values. */
const UNPRINTABLE_CHARACTERS = /[^!-~]/g;

/** Maximum number of characters that a loop writes faster than the native `latin1Write`. */
const MAX_LOOP_CHARS = 48;

/** Buffer's `latin1Write`, which takes half the time of `write` with an encoding. */
type FastBuffer = Buffer & { latin1Write(text: string, offset: number, length: number): number };

/** The kinds of activity. A thread is usually serving requests. */
const PHASES = ['requests', 'build', 'message'] as const;

type Phase = (typeof PHASES)[number];

/** The activity as read by the main thread. */
export interface ThreadActivitySnapshot {
	/** Changes with every heartbeat; 0 before the first. */
	readonly beat: number;
	/** The operating system's ID of the thread; 0 if unknown. */
	readonly threadId: number;
	readonly phase: Phase;
	/** Method, host and path of the last request, and whether that request started after the last heartbeat. */
	readonly request: string | undefined;
	readonly isRequestNew: boolean;
}

/** The shared memory with the activity of one thread. Only that thread writes to it, which takes a few nanoseconds. */
export class ThreadActivity {
	readonly memory: SharedArrayBuffer;
	readonly #slots: Float64Array;
	readonly #textBytes: FastBuffer;
	/** The last request that was written to the memory. */
	#lastMethod = '';
	#lastAuthority = '';
	#lastPath = '';

	constructor(
		memory: SharedArrayBuffer = new SharedArrayBuffer(
			TEXT_OFFSET + MAX_METHOD_BYTES + MAX_HOST_BYTES + MAX_PATH_BYTES + PADDING_BYTES,
		),
	) {
		this.memory = memory;
		this.#slots = new Float64Array(memory, PADDING_BYTES, SLOT_COUNT);
		this.#textBytes = Buffer.from(memory, TEXT_OFFSET) as unknown as FastBuffer;
	}

	/** Sends heartbeats as long as the calling thread's event loop runs. */
	startHeartbeats(): void {
		this.sendHeartbeat();
		setInterval(() => this.sendHeartbeat(), HEARTBEAT_INTERVAL_MS).unref();
	}

	sendHeartbeat(): void {
		this.#slots[TASK_SLOT] ||= currentThreadId();
		this.#slots[BEAT_SLOT] = performance.now();
	}

	/** Records the start of an activity. */
	enterPhase(phase: Phase): void {
		this.#slots[PHASE_SLOT] = PHASES.indexOf(phase);
	}

	/** Records the end of an activity, unless another one has started meanwhile. */
	leavePhase(phase: Phase): void {
		if (this.#slots[PHASE_SLOT] === PHASES.indexOf(phase)) this.#slots[PHASE_SLOT] = 0;
	}

	/** Records the start of a request, without its header fields and query, which may contain secrets. */
	recordRequest({ received, startedAt }: Exchange): void {
		const numbers = this.#slots;
		numbers[REQUEST_SLOT] = startedAt;
		const { method, authority, path } = received;
		// Consecutive requests often have parts in common.
		if (method !== this.#lastMethod) {
			this.#lastMethod = method;
			numbers[METHOD_LENGTH_SLOT] = this.#writeText(method, 0, MAX_METHOD_BYTES);
		}
		if (!equalStrings(authority, this.#lastAuthority)) {
			this.#lastAuthority = authority;
			numbers[HOST_LENGTH_SLOT] = this.#writeText(authority, MAX_METHOD_BYTES, MAX_HOST_BYTES);
		}
		if (!equalStrings(path, this.#lastPath)) {
			this.#lastPath = path;
			numbers[PATH_LENGTH_SLOT] = this.#writeText(path, MAX_METHOD_BYTES + MAX_HOST_BYTES, MAX_PATH_BYTES);
		}
	}

	/** Writes text into the memory. Returns the number of bytes written, at most `maxBytes`. */
	#writeText(text: string, offset: number, maxBytes: number): number {
		const { length } = text;
		const bytes = this.#textBytes;
		if (length > MAX_LOOP_CHARS || length > maxBytes) return bytes.latin1Write(text, offset, maxBytes);
		for (let i = 0; i < length; i++) bytes[offset + i] = text.charCodeAt(i);
		return length;
	}

	/** Reads the state, for the main thread. */
	read(): ThreadActivitySnapshot {
		const numbers = this.#slots;
		const readText = (at: number, length: number): string =>
			this.#textBytes.toString('latin1', at, at + length).replace(UNPRINTABLE_CHARACTERS, '?');
		const method = readText(0, numbers[METHOD_LENGTH_SLOT]!);
		const host = readText(MAX_METHOD_BYTES, numbers[HOST_LENGTH_SLOT]!);
		const path = readText(MAX_METHOD_BYTES + MAX_HOST_BYTES, numbers[PATH_LENGTH_SLOT]!);
		return {
			beat: numbers[BEAT_SLOT]!,
			threadId: numbers[TASK_SLOT]!,
			phase: PHASES[numbers[PHASE_SLOT]!] ?? 'requests',
			request: method === '' ? undefined : `${method} ${host}${path}`,
			isRequestNew: numbers[REQUEST_SLOT]! > numbers[BEAT_SLOT]!,
		};
	}
}

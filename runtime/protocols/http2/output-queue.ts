/** Lets the streams of a connection send in turns, so that none must wait for another's whole response. */
import { MAX_CONCURRENT_STREAMS, MAX_FRAMES_PER_TURN } from './limits.ts';
import { type StreamOutput, TURN_MORE, TURN_STARVES } from './stream-output.ts';

/** What a queue needs from its connection. */
export interface QueueOwner {
	readonly frames: { readonly full: boolean };
	/** Runs the queue, and flushes what the streams have written. */
	sendPending(): void;
}

/** A round-robin queue of the streams that have something to send. */
export class OutputQueue {
	readonly #owner: QueueOwner;
	#readyStreams: StreamOutput[] = [];
	/** Streams that wait until the connection's window grows. */
	#starvingStreams: StreamOutput[] = [];
	#isScheduled = false;

	constructor(owner: QueueOwner) {
		this.#owner = owner;
	}

	add(output: StreamOutput): void {
		if (output.isQueued) return;
		output.isQueued = true;
		this.#readyStreams.push(output);
	}

	/** Must be called when the connection's window has grown. */
	onWindowGrown(): void {
		const starvingStreams = this.#starvingStreams;
		if (starvingStreams.length === 0) return;
		this.#starvingStreams = [];
		for (const output of starvingStreams) this.#readyStreams.push(output);
	}

	/** Schedules `sendPending` for the end of the current task. */
	schedule(): void {
		if (this.#isScheduled) return;
		this.#isScheduled = true;
		queueMicrotask(() => {
			this.#isScheduled = false;
			this.#owner.sendPending();
		});
	}

	/** Lets streams send in turns until none of them can send. After many frames, lets other connections run first. */
	run(): void {
		for (let frameCount = 0; this.#readyStreams.length > 0 && !this.#owner.frames.full; frameCount++) {
			if (frameCount === MAX_FRAMES_PER_TURN) {
				setImmediate(() => this.#owner.sendPending());
				return;
			}
			const output = this.#readyStreams.shift()!;
			output.isQueued = false;
			const result = output.takeTurn();
			if (result === TURN_MORE) this.add(output);
			else if (result === TURN_STARVES) {
				output.isQueued = true;
				this.#addStarving(output);
			}
		}
	}

	/**
	 * Adds a stream that waits for the connection's window. Also removes streams that were reset, because a client that never opens
	 * the window could make the list grow without limit.
	 */
	#addStarving(output: StreamOutput): void {
		this.#starvingStreams.push(output);
		if (this.#starvingStreams.length <= 2 * MAX_CONCURRENT_STREAMS) return;
		this.#starvingStreams = this.#starvingStreams.filter(({ active }) => active);
	}
}

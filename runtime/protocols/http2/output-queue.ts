/** Gives the streams of a connection turns at sending, so that none must wait for another's whole response. */
import { FRAMES_A_TURN, MAX_CONCURRENT_STREAMS } from './limits.ts';
import { MORE, STARVES, type StreamOutput } from './stream-output.ts';

/** The connection, for its queue. */
export interface QueueOwner {
	readonly frames: { readonly full: boolean };
	/** Runs the queue and sends the result. */
	settle(): void;
}

/** A round-robin queue of the streams that have something to send. */
export class OutputQueue {
	readonly #owner: QueueOwner;
	#waiting: StreamOutput[] = [];
	/** Streams that wait for the connection's window. */
	#starving: StreamOutput[] = [];
	#scheduled = false;

	constructor(owner: QueueOwner) {
		this.#owner = owner;
	}

	add(output: StreamOutput): void {
		if (output.queued) return;
		output.queued = true;
		this.#waiting.push(output);
	}

	/** Called when the connection's window has grown. */
	fed(): void {
		const starving = this.#starving;
		if (starving.length === 0) return;
		this.#starving = [];
		for (const output of starving) this.#waiting.push(output);
	}

	/** Runs asynchronously, after the current activity. */
	soon(): void {
		if (this.#scheduled) return;
		this.#scheduled = true;
		queueMicrotask(() => {
			this.#scheduled = false;
			this.#owner.settle();
		});
	}

	/** Gives turns until no stream can send; yields to other connections after many frames. */
	run(): void {
		for (let frames = 0; this.#waiting.length > 0 && !this.#owner.frames.full; frames++) {
			if (frames === FRAMES_A_TURN) {
				setImmediate(() => this.#owner.settle());
				return;
			}
			const output = this.#waiting.shift()!;
			output.queued = false;
			const result = output.turn();
			if (result === MORE) this.add(output);
			else if (result === STARVES) {
				output.queued = true;
				this.#starve(output);
			}
		}
	}

	/** Drops streams that were reset meanwhile; otherwise, a client that never raises the window would make us keep them all. */
	#starve(output: StreamOutput): void {
		this.#starving.push(output);
		if (this.#starving.length <= 2 * MAX_CONCURRENT_STREAMS) return;
		this.#starving = this.#starving.filter(({ active }) => active);
	}
}

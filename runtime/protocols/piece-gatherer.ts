/** Small pieces of a body that nobody reads yet, put together: as objects of their own they would take many times their size. */

/** Bytes below which pieces are gathered. */
const SMALL = 1024;
/** Bytes that they are gathered into. */
const BLOCK = 4096;

/** Gathers at the end of one queue. */
export class PieceGatherer {
	/** What the last of the queue is gathered in, if it is. */
	#block: Buffer | undefined = undefined;

	/** Puts a piece at the end of the queue, or into its last. Those that have left the queue stay what they were. */
	push(queue: Buffer[], piece: Buffer): void {
		if (piece.length >= SMALL || !this.#gather(queue, piece)) queue.push(piece);
	}

	#gather(queue: Buffer[], piece: Buffer): boolean {
		const at = queue.length - 1;
		const last = queue[at];
		if (last === undefined || last.length + piece.length > BLOCK) return false;
		if (this.#block === undefined || last.buffer !== this.#block.buffer) {
			if (last.length >= SMALL) return false;
			this.#block = Buffer.allocUnsafeSlow(BLOCK);
			this.#block.set(last);
		}
		this.#block.set(piece, last.length);
		queue[at] = this.#block.subarray(0, last.length + piece.length);
		return true;
	}
}

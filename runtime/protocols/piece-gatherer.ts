/** Joins small queued pieces of a body, which as separate objects would use many times their size. */

/** Pieces below this many bytes are joined. */
const SMALL = 1024;
/** Bytes of the buffer in which they are joined. */
const BLOCK = 4096;

/** Joins pieces at the end of one queue. */
export class PieceGatherer {
	/** The buffer of the last piece in the queue, if it was joined. */
	#block: Buffer | undefined = undefined;

	/** Appends a piece to the queue, or to its last piece. Pieces that have left the queue do not change. */
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

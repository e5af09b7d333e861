/** Joins small chunks of a body in a queue. As separate objects, they would need many times their size. */

/** Chunks of fewer bytes are joined. */
const SMALL = 1024;
/** Size, in bytes, of the buffer in which chunks are joined. */
const BLOCK = 4096;

/** Joins chunks at the end of one queue. */
export class PieceGatherer {
	/** The buffer of the last chunk in the queue, if that is a joined one. */
	#block: Buffer | undefined = undefined;

	/** Appends a chunk to the queue, or to the queue's last chunk. Chunks that have left the queue do not change. */
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

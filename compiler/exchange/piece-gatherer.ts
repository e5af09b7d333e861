/** Joins small chunks of a body in a queue. Kept as separate objects, they would take many times their size in memory. */

/** Chunks with fewer bytes than this are joined. */
const SMALL_PIECE_BYTES = 1024;
/** Size, in bytes, of the buffer in which chunks are joined. */
const BLOCK_BYTES = 4096;

/** Joins chunks at the end of one queue. */
export class PieceGatherer {
	/** The buffer of the last chunk in the queue; undefined if that is not a joined chunk. */
	#block: Buffer | undefined = undefined;

	/**
	 * Appends a chunk to the queue, or to the queue's last chunk. Chunks that have left the queue do not change. The chunk must not
	 * be shared, because it may become part of the queue.
	 */
	push(queue: Buffer[], piece: Buffer): void {
		if (piece.length >= SMALL_PIECE_BYTES || !this.#joinToLast(queue, piece)) queue.push(piece);
	}

	#joinToLast(queue: Buffer[], piece: Buffer): boolean {
		const lastIndex = queue.length - 1;
		const lastPiece = queue[lastIndex];
		if (lastPiece === undefined || lastPiece.length + piece.length > BLOCK_BYTES) return false;
		if (this.#block === undefined || lastPiece.buffer !== this.#block.buffer) {
			if (lastPiece.length >= SMALL_PIECE_BYTES) return false;
			this.#block = Buffer.allocUnsafeSlow(BLOCK_BYTES);
			this.#block.set(lastPiece);
		}
		this.#block.set(piece, lastPiece.length);
		queue[lastIndex] = this.#block.subarray(0, lastPiece.length + piece.length);
		return true;
	}
}

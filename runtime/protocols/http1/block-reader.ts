/** Reads large pieces of bodies directly into blocks that are passed on without copying. */
import type { SocketRelay } from '../../sockets/socket-relay.ts';
import { LARGE_PIECE, type PieceMemory } from './piece-memory.ts';

/** The source of the bytes. */
export interface BlockTaker {
	/** The socket's file descriptor; −1 if it has none. */
	readonly descriptor: number;
	/** Makes the next read only detect that there is more data. May be called while received bytes are being handled. */
	readLess(): void;
	/** False if it can read only into its own memory. */
	readonly takesMemory: boolean;
	/** Callable while bytes are received: sets the memory for the next read; undefined means its own. */
	readInto(memory: Buffer | undefined): void;
}

/** Reads one connection's bodies, one after another. */
export class BlockReader {
	/** The source. */
	readonly taker: BlockTaker;
	readonly #memory: PieceMemory;
	/** The block being read into instead of the source's memory. */
	#block: Buffer | undefined = undefined;

	/** Relays bytes from socket to socket; undefined if not available. */
	readonly relay: (() => SocketRelay | undefined) | undefined;

	constructor(taker: BlockTaker, memory: PieceMemory, relay?: () => SocketRelay | undefined) {
		this.taker = taker;
		this.#memory = memory;
		this.relay = relay;
	}

	/**
	 * Returns the bytes just received from `start` to `end` (exclusive). They belong to the caller, who must return them to the
	 * memory. `more` says whether another large piece may follow.
	 */
	piece(bytes: Buffer, start: number, end: number, more: boolean): Buffer {
		const block = this.#block;
		// Held-back bytes are in other memory.
		if (block === undefined || !this.taker.takesMemory || bytes.buffer !== block.buffer) {
			if (more && block === undefined && this.taker.takesMemory) this.#readInto(this.#memory.block());
			return this.#memory.copy(bytes, start, end);
		}
		if (end - start >= LARGE_PIECE) {
			this.#readInto(more ? this.#memory.block() : undefined);
			return end - start === block.length ? block : bytes.subarray(start, end);
		}
		const piece = this.#memory.copy(bytes, start, end);
		if (!more) {
			this.#readInto(undefined);
			this.#memory.giveBack(block);
		}
		return piece;
	}

	/** Returns memory given out by `piece`. */
	giveBack(piece: Uint8Array): void {
		this.#memory.giveBack(piece);
	}

	/** Callable while bytes are received: no more pieces are needed. */
	release(): void {
		const block = this.#block;
		if (block === undefined || !this.taker.takesMemory) return;
		this.#readInto(undefined);
		this.#memory.giveBack(block);
	}

	/** Ends reading. */
	end(): void {
		const block = this.#block;
		this.#block = undefined;
		if (block) this.#memory.giveBack(block);
	}

	#readInto(block: Buffer | undefined): void {
		this.#block = block;
		this.taker.readInto(block);
	}
}

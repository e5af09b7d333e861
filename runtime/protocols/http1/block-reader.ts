/** Large pieces of bodies without a copy: they are read into blocks that are handed on as they are. */
import type { SocketRelay } from '../../sockets/socket-relay.ts';
import { LARGE_PIECE, type PieceMemory } from './piece-memory.ts';

/** What is read. */
export interface BlockTaker {
	/** The system's number of the socket; −1 when it has none. */
	readonly descriptor: number;
	/** While bytes are received: the next read is to tell no more than that there are some. */
	readLess(): void;
	/** False where nothing but its own memory is read into. */
	readonly takesMemory: boolean;
	/** While bytes are received: what the next read goes into; its own memory if left out. */
	readInto(memory: Buffer | undefined): void;
}

/** The reading of one connection's bodies, one after another. */
export class BlockReader {
	/** What is read. */
	readonly taker: BlockTaker;
	readonly #memory: PieceMemory;
	/** What is read into in place of the taker's memory. */
	#block: Buffer | undefined = undefined;

	/** Moves bytes past this program; undefined where nothing does. */
	readonly relay: (() => SocketRelay | undefined) | undefined;

	constructor(taker: BlockTaker, memory: PieceMemory, relay?: () => SocketRelay | undefined) {
		this.taker = taker;
		this.#memory = memory;
		this.relay = relay;
	}

	/**
	 * The bytes just received from `start` up to but not including `end`, the caller's from now on; to be given back to the
	 * memory. `more` says whether a large piece may follow.
	 */
	piece(bytes: Buffer, start: number, end: number, more: boolean): Buffer {
		const block = this.#block;
		// Bytes that were held back stand elsewhere.
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

	/** What `piece` gave, when nobody looks at it any more. */
	giveBack(piece: Uint8Array): void {
		this.#memory.giveBack(piece);
	}

	/** While bytes are received: no piece is wanted any more. */
	release(): void {
		const block = this.#block;
		if (block === undefined || !this.taker.takesMemory) return;
		this.#readInto(undefined);
		this.#memory.giveBack(block);
	}

	/** Nothing is read any more. */
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

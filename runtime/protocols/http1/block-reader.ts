/** Reads large parts of bodies directly into blocks of memory, which are then passed on without copying. */
import type { SocketRelay } from '../../sockets/socket-relay.ts';
import { LARGE_PIECE_BYTES, type PieceMemory } from './piece-memory.ts';

/** The source of the bytes, usually a socket. */
export interface BlockSource {
	/** The socket's file descriptor; −1 if it has none. */
	readonly descriptor: number;
	/** Makes the next read only detect whether there is more data. May be called while received bytes are being handled. */
	readLess(): void;
	/** False if the source can read only into its own memory. */
	readonly takesMemory: boolean;
	/** Sets the memory for the next read; undefined means the source's own. May be called while received bytes are being handled. */
	readInto(memory: Buffer | undefined): void;
}

/** Reads the bodies of one connection, one after another. */
export class BlockReader {
	readonly taker: BlockSource;
	readonly #memory: PieceMemory;
	/** The block into which the source currently reads, if it does not read into its own memory. */
	#block: Buffer | undefined = undefined;

	/** Returns the relay that moves bytes between sockets inside the kernel; undefined if not available. */
	readonly relay: (() => SocketRelay | undefined) | undefined;

	constructor(taker: BlockSource, memory: PieceMemory, relay?: () => SocketRelay | undefined) {
		this.taker = taker;
		this.#memory = memory;
		this.relay = relay;
	}

	/**
	 * Returns the bytes just received, from `start` to `end` (exclusive). They belong to the caller, who must return them with
	 * `giveBack`. `more` says whether as many bytes may follow, so that the next read should use a block, too.
	 */
	piece(bytes: Buffer, start: number, end: number, more: boolean): Buffer {
		const block = this.#block;
		// Bytes that the socket held back are in other memory.
		if (block === undefined || !this.taker.takesMemory || bytes.buffer !== block.buffer) {
			if (more && block === undefined && this.taker.takesMemory) this.#readInto(this.#memory.block());
			return this.#memory.copy(bytes, start, end);
		}
		if (end - start >= LARGE_PIECE_BYTES) {
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

	/** Returns memory to the pool that was obtained from `piece`. */
	giveBack(piece: Uint8Array): void {
		this.#memory.giveBack(piece);
	}

	/** Releases the block, because no more large reads are expected. May be called while received bytes are being handled. */
	release(): void {
		const block = this.#block;
		if (block === undefined || !this.taker.takesMemory) return;
		this.#readInto(undefined);
		this.#memory.giveBack(block);
	}

	/** Ends reading, and releases the block. */
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

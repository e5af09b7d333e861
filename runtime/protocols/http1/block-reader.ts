/** Reads large parts of bodies directly into blocks of memory, which are then passed on without copying. */
import type { SocketRelay } from '../../sockets/socket-relay.ts';
import { LARGE_PIECE_BYTES, type PieceMemory } from './piece-memory.ts';

/** The source of the bytes that are read, usually a socket. */
export interface BlockSource {
	/** The socket's file descriptor; −1 if it has none. */
	readonly descriptor: number;
	/**
	 * Makes the next read a short one, because its only purpose is to detect whether there is more data. May be called while
	 * received bytes are being handled.
	 */
	shortenNextRead(): void;
	/** False if the source can read only into its own memory. */
	readonly acceptsMemory: boolean;
	/**
	 * Sets the memory for the next read; undefined means the source's own memory. May be called while received bytes are being
	 * handled.
	 */
	setReadMemory(memory: Buffer | undefined): void;
}

/** Reads the bodies of one connection, one after another. */
export class BlockReader {
	readonly source: BlockSource;
	readonly #pieceMemory: PieceMemory;
	/** The block into which the source currently reads, if it does not read into its own memory. */
	#block: Buffer | undefined = undefined;

	/** Returns the relay that moves bytes between sockets inside the kernel; undefined if not available. */
	readonly openRelay: (() => SocketRelay | undefined) | undefined;

	constructor(source: BlockSource, memory: PieceMemory, openRelay?: () => SocketRelay | undefined) {
		this.source = source;
		this.#pieceMemory = memory;
		this.openRelay = openRelay;
	}

	/**
	 * Returns the bytes just received, from `start` to `end` (exclusive). They belong to the caller, who must return
	 * them with `giveBack`. `moreFollows` means that many more bytes may follow, so that the next read should use a
	 * block.
	 */
	takePiece(bytes: Buffer, start: number, end: number, moreFollows: boolean): Buffer {
		const block = this.#block;
		// Bytes that the socket had buffered before the block was set are not in the block.
		if (block === undefined || !this.source.acceptsMemory || bytes.buffer !== block.buffer) {
			if (moreFollows && block === undefined && this.source.acceptsMemory)
				this.#setBlock(this.#pieceMemory.takeBlock());
			return this.#pieceMemory.copy(bytes, start, end);
		}
		if (end - start >= LARGE_PIECE_BYTES) {
			this.#setBlock(moreFollows ? this.#pieceMemory.takeBlock() : undefined);
			return end - start === block.length ? block : bytes.subarray(start, end);
		}
		const piece = this.#pieceMemory.copy(bytes, start, end);
		if (!moreFollows) {
			this.#setBlock(undefined);
			this.#pieceMemory.giveBack(block);
		}
		return piece;
	}

	/** Gives the memory of a chunk that came from `takePiece` back to the pool. */
	giveBack(piece: Uint8Array): void {
		this.#pieceMemory.giveBack(piece);
	}

	/** Releases the block, because no more large reads are expected. May be called while received bytes are being handled. */
	release(): void {
		const block = this.#block;
		if (block === undefined || !this.source.acceptsMemory) return;
		this.#setBlock(undefined);
		this.#pieceMemory.giveBack(block);
	}

	/** Ends reading, and releases the block. */
	end(): void {
		const block = this.#block;
		this.#block = undefined;
		if (block) this.#pieceMemory.giveBack(block);
	}

	#setBlock(block: Buffer | undefined): void {
		this.#block = block;
		this.source.setReadMemory(block);
	}
}

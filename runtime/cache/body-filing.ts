/**
 * Moves long, popular bodies from the blocks of the shared memory into in-memory files, which the kernel can send without copying.
 * The blocks stay allocated to the entry, so that its accounting is unchanged, but their memory is returned to the system. A file
 * is written once and never changed, so that data in socket buffers stays valid whatever happens to the entry.
 */

import { type MemoryFiles, memoryFiles, PAGE_BYTES } from '../sockets/memory-files.ts';
import type { CacheMemory } from './cache-memory.ts';
import { FiledBody } from './filed-body.ts';
import { BLOCK_BYTES, ENTRY_LIVE, ENTRY_WORD, HEADER_WORD } from './memory-layout.ts';

/** Minimum size, in bytes, of a body that is moved to a file. */
export const MIN_FILED_BODY_BYTES: number = 65_536;
/** Maximum size, in bytes, of a body that is moved to a file, because the file is written in one go. */
const MAX_FILED_BODY_BYTES = 8 * 1024 * 1024;
/** Maximum number of files of one store. Each file uses a file descriptor of the process. */
const MAX_STORE_FILES = 256;
/** Maximum number of contiguous runs of blocks in a body. Each run costs a system call. */
const MAX_BLOCK_RUNS = 64;
/** Maximum fraction of a store's blocks that may keep using memory although their contents are also in files. */
const MAX_LOOSE_SHARE = 1 / 40;

/** One thread's view of a store's files. */
export class BodyFiling {
	readonly #memory: CacheMemory;
	/** Functions for in-memory files: null before the first use; undefined if the system has no such files. */
	#files: MemoryFiles | undefined | null = null;

	constructor(memory: CacheMemory) {
		this.#memory = memory;
	}

	/**
	 * Returns a body from the file of a pinned entry; undefined if there is no file. With `createIfMissing`, tries to create the
	 * file first. If the result is undefined, the caller reads the blocks instead, and is counted as their reader until it calls
	 * {@link onReadEnded}.
	 */
	openBody(
		entry: number,
		start: number,
		length: number,
		createIfMissing: boolean,
		onRelease: () => void,
	): FiledBody | undefined {
		const { words } = this.#memory;
		const entryIndex = this.#memory.entryIndex(entry);
		// The reader is counted before the file is looked up, so that the memory of the blocks is not returned to the system in
		// between.
		Atomics.add(words, entryIndex + ENTRY_WORD.readers, 1);
		let file = Atomics.load(words, entryIndex + ENTRY_WORD.file);
		if (file === 0 && createIfMissing) file = this.#createFile(entry);
		if (file === 0) return undefined;
		this.onReadEnded(entry);
		if (words[entryIndex + ENTRY_WORD.memoryReturned] === 0) this.#returnMemory(entry);
		return new FiledBody(this.#openFiles()?.calls, file - 1, start, length, onRelease);
	}

	/** Records that a reader of the blocks has finished. The entry is still pinned. */
	onReadEnded(entry: number): void {
		Atomics.sub(this.#memory.words, this.#memory.entryIndex(entry) + ENTRY_WORD.readers, 1);
	}

	/** Creates a file with an entry's body. Returns the file's descriptor plus 1, or 0 on failure. */
	#createFile(entry: number): number {
		const memory = this.#memory;
		const { words, blocks } = memory;
		const entryIndex = memory.entryIndex(entry);
		const length = words[entryIndex + ENTRY_WORD.bodyLength]!;
		if (length > MAX_FILED_BODY_BYTES || words[HEADER_WORD.files]! >= MAX_STORE_FILES) return 0;
		const files = this.#openFiles();
		const blockRuns = files && blockRunsOf(memory, entry, files);
		if (files === undefined || blockRuns === undefined) return 0;
		const looseCount = looseBlockCount(length, blockRuns);
		if (words[HEADER_WORD.looseBlocks]! + looseCount > memory.layout.blocks * MAX_LOOSE_SHARE) return 0;
		const bodyParts = function* () {
			let bytesLeft = length;
			for (const { start, size } of blockRuns) {
				const partBytes = Math.min(size, bytesLeft);
				yield blocks.data.subarray(start, start + partBytes);
				bytesLeft -= partBytes;
			}
		};
		const file = files.create(bodyParts());
		if (file < 0) return 0;
		const usedFile = memory.withLock(() => {
			const existingFile = Atomics.load(words, entryIndex + ENTRY_WORD.file);
			if (existingFile !== 0 || words[entryIndex + ENTRY_WORD.state] !== ENTRY_LIVE || memory.isBroken)
				return existingFile;
			Atomics.store(words, entryIndex + ENTRY_WORD.file, file + 1);
			// Until their memory has been returned, all blocks of the body are counted, because they use memory in addition to the file.
			words[entryIndex + ENTRY_WORD.looseBlocks] = Math.ceil(length / BLOCK_BYTES);
			words[HEADER_WORD.looseBlocks]! += words[entryIndex + ENTRY_WORD.looseBlocks]!;
			words[HEADER_WORD.files]!++;
			return file + 1;
		});
		if (usedFile !== file + 1) files.close(file);
		return usedFile;
	}

	/**
	 * Gives the memory of a body's blocks back to the system after the file was created, unless a thread still reads the blocks.
	 */
	#returnMemory(entry: number): void {
		const memory = this.#memory;
		const { words } = memory;
		const entryIndex = memory.entryIndex(entry);
		memory.withLock(() => {
			if (
				words[entryIndex + ENTRY_WORD.memoryReturned] !== 0 ||
				words[entryIndex + ENTRY_WORD.file] === 0 ||
				words[entryIndex + ENTRY_WORD.state] !== ENTRY_LIVE
			)
				return;
			if (memory.isBroken || Atomics.load(words, entryIndex + ENTRY_WORD.readers) !== 0) return;
			const files = this.#openFiles();
			const blockRuns = files && blockRunsOf(memory, entry, files);
			if (blockRuns === undefined || files === undefined) return;
			words[entryIndex + ENTRY_WORD.memoryReturned] = 1;
			let looseCount = Math.ceil(words[entryIndex + ENTRY_WORD.bodyLength]! / BLOCK_BYTES);
			for (const { pageStart, pageEnd } of blockRuns) {
				if (pageEnd > pageStart && files.giveBack(memory.blocks.data, pageStart, pageEnd - pageStart))
					looseCount -= (pageEnd - pageStart) / BLOCK_BYTES;
			}
			words[HEADER_WORD.looseBlocks]! += looseCount - words[entryIndex + ENTRY_WORD.looseBlocks]!;
			words[entryIndex + ENTRY_WORD.looseBlocks] = looseCount;
		});
	}

	#openFiles(): MemoryFiles | undefined {
		if (this.#files === null) this.#files = memoryFiles();
		return this.#files;
	}
}

/** A contiguous run of blocks: its offset and size in bytes, and the bounds of the whole memory pages within the run. */
interface BlockRun {
	readonly start: number;
	readonly size: number;
	readonly pageStart: number;
	readonly pageEnd: number;
}

/** Returns the contiguous runs of an entry's body; undefined if there are too many. Requires a pin or the lock. */
function blockRunsOf(memory: CacheMemory, entry: number, files: MemoryFiles): readonly BlockRun[] | undefined {
	const { blocks } = memory;
	const offsetInPage = files.pageOffset(blocks.data);
	const runs: BlockRun[] = [];
	let block = memory.field(entry, ENTRY_WORD.bodyBlock);
	let bytesLeft = Math.ceil(memory.field(entry, ENTRY_WORD.bodyLength) / BLOCK_BYTES) * BLOCK_BYTES;
	while (bytesLeft > 0 && block !== 0) {
		const size = blocks.contiguousBytes(block, 0, bytesLeft).byteLength;
		const start = (block - 1) * BLOCK_BYTES;
		const pageStart = Math.ceil((start + offsetInPage) / PAGE_BYTES) * PAGE_BYTES - offsetInPage;
		const pageEnd = Math.floor((start + size + offsetInPage) / PAGE_BYTES) * PAGE_BYTES - offsetInPage;
		runs.push({ start, size, pageStart, pageEnd });
		if (runs.length > MAX_BLOCK_RUNS) return undefined;
		block = blocks.blockAfter(block, size);
		bytesLeft -= size;
	}
	return runs;
}

/** Returns the number of a body's blocks whose memory cannot be returned to the system, because they do not fill whole pages. */
function looseBlockCount(length: number, blockRuns: readonly BlockRun[]): number {
	return blockRuns.reduce(
		(bytesLeft, { pageStart, pageEnd }) => bytesLeft - Math.max(0, pageEnd - pageStart) / BLOCK_BYTES,
		Math.ceil(length / BLOCK_BYTES),
	);
}

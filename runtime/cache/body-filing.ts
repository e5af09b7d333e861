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
const MAX_FILED = 8 * 1024 * 1024;
/** Maximum files of one store: each is a file descriptor of the process. */
const MAX_FILES = 256;
/** Maximum contiguous runs of blocks of a body: each is a system call. */
const MAX_STRETCHES = 64;
/** Share of the maximum cache size that files may use in addition to the memory returned for them. */
const LOOSE_SHARE = 1 / 40;

/** One thread's view of a store's files. */
export class BodyFiling {
	readonly #memory: CacheMemory;
	#files: MemoryFiles | undefined | null = null;

	constructor(memory: CacheMemory) {
		this.#memory = memory;
	}

	/**
	 * Returns a body from the file of a pinned entry; undefined if there is no file. With `wanted`, tries to create the file first. If
	 * the result is undefined, the caller reads the blocks, and counts as their reader until it calls {@link read}.
	 */
	body(entry: number, start: number, length: number, wanted: boolean, release: () => void): FiledBody | undefined {
		const { words } = this.#memory;
		const at = this.#memory.at(entry);
		// The reader is counted before looking for the file, because a thread that creates a file leaves blocks with readers alone.
		Atomics.add(words, at + ENTRY_WORD.readers, 1);
		let file = Atomics.load(words, at + ENTRY_WORD.file);
		if (file === 0 && wanted) file = this.#make(entry);
		if (file === 0) return undefined;
		this.read(entry);
		if (words[at + ENTRY_WORD.given] === 0) this.#giveBack(entry);
		return new FiledBody(this.#calls()?.calls, file - 1, start, length, release);
	}

	/** Records that a reader of the blocks has finished. The entry is still pinned. */
	read(entry: number): void {
		Atomics.sub(this.#memory.words, this.#memory.at(entry) + ENTRY_WORD.readers, 1);
	}

	/** Creates a file for an entry's body. Returns its descriptor plus 1, or 0 on failure. */
	#make(entry: number): number {
		const memory = this.#memory;
		const { words, blocks } = memory;
		const at = memory.at(entry);
		const length = words[at + ENTRY_WORD.bodyLength]!;
		if (length > MAX_FILED || words[HEADER_WORD.files]! >= MAX_FILES) return 0;
		const files = this.#calls();
		const stretches = files && stretchesOf(memory, entry, files);
		if (files === undefined || stretches === undefined) return 0;
		const loose = looseBlocks(length, stretches);
		if (words[HEADER_WORD.looseBlocks]! + loose > memory.layout.blocks * LOOSE_SHARE) return 0;
		const all = function* () {
			let left = length;
			for (const { start, size } of stretches) {
				const taken = Math.min(size, left);
				yield blocks.data.subarray(start, start + taken);
				left -= taken;
			}
		};
		const file = files.make(all());
		if (file < 0) return 0;
		const kept = memory.locked(() => {
			const is = Atomics.load(words, at + ENTRY_WORD.file);
			if (is !== 0 || words[at + ENTRY_WORD.state] !== ENTRY_LIVE || memory.isBroken) return is;
			Atomics.store(words, at + ENTRY_WORD.file, file + 1);
			// Until their memory has been returned, all blocks count as used in addition to the file.
			words[at + ENTRY_WORD.loose] = Math.ceil(length / BLOCK_BYTES);
			words[HEADER_WORD.looseBlocks]! += words[at + ENTRY_WORD.loose]!;
			words[HEADER_WORD.files]!++;
			return file + 1;
		});
		if (kept !== file + 1) files.close(file);
		return kept;
	}

	/** Returns the memory of a filed body's blocks to the system, unless somebody still reads them. */
	#giveBack(entry: number): void {
		const memory = this.#memory;
		const { words } = memory;
		const at = memory.at(entry);
		memory.locked(() => {
			if (
				words[at + ENTRY_WORD.given] !== 0 ||
				words[at + ENTRY_WORD.file] === 0 ||
				words[at + ENTRY_WORD.state] !== ENTRY_LIVE
			)
				return;
			if (memory.isBroken || Atomics.load(words, at + ENTRY_WORD.readers) !== 0) return;
			const files = this.#calls();
			const stretches = files && stretchesOf(memory, entry, files);
			if (stretches === undefined || files === undefined) return;
			words[at + ENTRY_WORD.given] = 1;
			let loose = Math.ceil(words[at + ENTRY_WORD.bodyLength]! / BLOCK_BYTES);
			for (const { from, to } of stretches) {
				if (to > from && files.giveBack(memory.blocks.data, from, to - from)) loose -= (to - from) / BLOCK_BYTES;
			}
			words[HEADER_WORD.looseBlocks]! += loose - words[at + ENTRY_WORD.loose]!;
			words[at + ENTRY_WORD.loose] = loose;
		});
	}

	#calls(): MemoryFiles | undefined {
		if (this.#files === null) this.#files = memoryFiles();
		return this.#files;
	}
}

/** A contiguous run of blocks: its offset and size in bytes, and the bounds of the whole memory pages in it. */
interface Stretch {
	readonly start: number;
	readonly size: number;
	readonly from: number;
	readonly to: number;
}

/** Returns the contiguous runs of an entry's body; undefined if there are too many. Requires a pin or the lock. */
function stretchesOf(memory: CacheMemory, entry: number, files: MemoryFiles): readonly Stretch[] | undefined {
	const { blocks } = memory;
	const behind = files.behindPage(blocks.data);
	const found: Stretch[] = [];
	let block = memory.field(entry, ENTRY_WORD.bodyBlock);
	let left = Math.ceil(memory.field(entry, ENTRY_WORD.bodyLength) / BLOCK_BYTES) * BLOCK_BYTES;
	while (left > 0 && block !== 0) {
		const size = blocks.run(block, 0, left).byteLength;
		const start = (block - 1) * BLOCK_BYTES;
		const from = Math.ceil((start + behind) / PAGE_BYTES) * PAGE_BYTES - behind;
		const to = Math.floor((start + size + behind) / PAGE_BYTES) * PAGE_BYTES - behind;
		found.push({ start, size, from, to });
		if (found.length > MAX_STRETCHES) return undefined;
		block = blocks.forward(block, size);
		left -= size;
	}
	return found;
}

/** Returns the number of a body's blocks outside of whole pages. */
function looseBlocks(length: number, stretches: readonly Stretch[]): number {
	return stretches.reduce(
		(left, { from, to }) => left - Math.max(0, to - from) / BLOCK_BYTES,
		Math.ceil(length / BLOCK_BYTES),
	);
}

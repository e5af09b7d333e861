/**
 * Moves long bodies that are asked for again and again out of the blocks of the shared memory into files in memory, from
 * which the system sends them without copying. The blocks stay the entry's, so that the ceiling is reckoned as before, but
 * the memory behind them goes back to the system. A file is written once and never changed: what stands in a socket's
 * buffers stays right, whatever becomes of the entry.
 */

import { type MemoryFiles, memoryFiles, PAGE } from '../sockets/memory-files.ts';
import type { CacheMemory } from './cache-memory.ts';
import { FiledBody } from './filed-body.ts';
import { BLOCK, ENTRY, LIVE, WORD } from './memory-layout.ts';

/** Bytes of a body that is worth a file, at least; and at most, since it is written in one go. */
export const LEAST_FILED: number = 65_536;
const MOST_FILED = 8 * 1024 * 1024;
/** Files of one store: each is a descriptor of the process. */
const MOST_FILES = 256;
/** Stretches of blocks that a body may stand in: each is a call. */
const MOST_STRETCHES = 64;
/** Share of the ceiling that files may take beyond what goes back for them. */
const LOOSE_SHARE = 1 / 40;

/** The files of one store as one thread sees them. */
export class BodyFiling {
	readonly #memory: CacheMemory;
	#files: MemoryFiles | undefined | null = null;

	constructor(memory: CacheMemory) {
		this.#memory = memory;
	}

	/**
	 * A body from the file of a pinned entry, made if `wanted`; undefined when there is none. Then the caller reads blocks:
	 * it is counted as their reader, until {@link read}.
	 */
	body(entry: number, start: number, length: number, wanted: boolean, release: () => void): FiledBody | undefined {
		const { words } = this.#memory;
		const at = this.#memory.at(entry);
		// Before the file is looked for: who makes one leaves the blocks as they are while there are readers.
		Atomics.add(words, at + ENTRY.readers, 1);
		let file = Atomics.load(words, at + ENTRY.file);
		if (file === 0 && wanted) file = this.#make(entry);
		if (file === 0) return undefined;
		this.read(entry);
		if (words[at + ENTRY.given] === 0) this.#giveBack(entry);
		return new FiledBody(this.#calls()?.calls, file - 1, start, length, release);
	}

	/** A reader of the blocks has done with them. The entry is pinned still. */
	read(entry: number): void {
		Atomics.sub(this.#memory.words, this.#memory.at(entry) + ENTRY.readers, 1);
	}

	/** Makes a file of an entry's body; its descriptor and 1, 0 when there is none. */
	#make(entry: number): number {
		const memory = this.#memory;
		const { words, blocks } = memory;
		const at = memory.at(entry);
		const length = words[at + ENTRY.bodyLength]!;
		if (length > MOST_FILED || words[WORD.files]! >= MOST_FILES) return 0;
		const files = this.#calls();
		const stretches = files && stretchesOf(memory, entry, files);
		if (files === undefined || stretches === undefined) return 0;
		const loose = looseBlocks(length, stretches);
		if (words[WORD.looseBlocks]! + loose > memory.layout.blocks * LOOSE_SHARE) return 0;
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
			const is = Atomics.load(words, at + ENTRY.file);
			if (is !== 0 || words[at + ENTRY.state] !== LIVE || memory.isBroken) return is;
			Atomics.store(words, at + ENTRY.file, file + 1);
			// Until they are given back all of them are.
			words[at + ENTRY.loose] = Math.ceil(length / BLOCK);
			words[WORD.looseBlocks]! += words[at + ENTRY.loose]!;
			words[WORD.files]!++;
			return file + 1;
		});
		if (kept !== file + 1) files.close(file);
		return kept;
	}

	/** Gives the memory back that the blocks of a body had before it had a file, once nobody reads them. */
	#giveBack(entry: number): void {
		const memory = this.#memory;
		const { words } = memory;
		const at = memory.at(entry);
		memory.locked(() => {
			if (words[at + ENTRY.given] !== 0 || words[at + ENTRY.file] === 0 || words[at + ENTRY.state] !== LIVE) return;
			if (memory.isBroken || Atomics.load(words, at + ENTRY.readers) !== 0) return;
			const files = this.#calls();
			const stretches = files && stretchesOf(memory, entry, files);
			if (stretches === undefined || files === undefined) return;
			words[at + ENTRY.given] = 1;
			let loose = Math.ceil(words[at + ENTRY.bodyLength]! / BLOCK);
			for (const { from, to } of stretches) {
				if (to > from && files.giveBack(memory.blocks.data, from, to - from)) loose -= (to - from) / BLOCK;
			}
			words[WORD.looseBlocks]! += loose - words[at + ENTRY.loose]!;
			words[at + ENTRY.loose] = loose;
		});
	}

	#calls(): MemoryFiles | undefined {
		if (this.#files === null) this.#files = memoryFiles();
		return this.#files;
	}
}

/** Blocks side by side: where in the data, how many bytes, and the whole pages in them. */
interface Stretch {
	readonly start: number;
	readonly size: number;
	readonly from: number;
	readonly to: number;
}

/** The stretches of an entry's body; undefined when they are too many. Needs a pin, or the lock. */
function stretchesOf(memory: CacheMemory, entry: number, files: MemoryFiles): readonly Stretch[] | undefined {
	const { blocks } = memory;
	const behind = files.behindPage(blocks.data);
	const found: Stretch[] = [];
	let block = memory.field(entry, ENTRY.bodyBlock);
	let left = Math.ceil(memory.field(entry, ENTRY.bodyLength) / BLOCK) * BLOCK;
	while (left > 0 && block !== 0) {
		const size = blocks.run(block, 0, left).byteLength;
		const start = (block - 1) * BLOCK;
		const from = Math.ceil((start + behind) / PAGE) * PAGE - behind;
		const to = Math.floor((start + size + behind) / PAGE) * PAGE - behind;
		found.push({ start, size, from, to });
		if (found.length > MOST_STRETCHES) return undefined;
		block = blocks.forward(block, size);
		left -= size;
	}
	return found;
}

/** Blocks of a body that do not fill pages. */
function looseBlocks(length: number, stretches: readonly Stretch[]): number {
	return stretches.reduce((left, { from, to }) => left - Math.max(0, to - from) / BLOCK, Math.ceil(length / BLOCK));
}

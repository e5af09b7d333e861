/**
 * A 64-bit little-endian ELF executable in memory, with the few parts that the build edits: program headers, section
 * headers, dynamic entries, symbols and relocations. See elf(5) and the System V gABI.
 */

export const SEGMENT_TYPE = { load: 1, dynamic: 2, interpreter: 3, note: 4, table: 6 } as const;
export const SECTION_TYPE = { none: 0, note: 7, versionNeeds: 0x6ffffffe } as const;
export const DYNAMIC_TAG = {
	needed: 1,
	pltRelocationSize: 2,
	strings: 5,
	symbols: 6,
	relocations: 7,
	relocationSize: 8,
	pltRelocations: 23,
	versions: 0x6ffffff0,
	versionNeeds: 0x6ffffffe,
	versionNeedCount: 0x6fffffff,
} as const;
export const SEGMENT_FLAG_EXECUTE = 1;
export const SEGMENT_ENTRY_SIZE = 56;
const SYMBOL_SIZE = 24;
export const RELOCATION_SIZE = 24;

const MACHINE_BY_NUMBER: { readonly [machine: number]: 'x64' | 'arm64' } = { 62: 'x64', 183: 'arm64' };
const SECTION_HEADER_SIZE = 64;
const DYNAMIC_ENTRY_SIZE = 16;
const SECTION_FLAG_ALLOCATED = 2;

/** A program header: a range of the file, and where it is mapped. */
export interface Segment {
	type: number;
	flags: number;
	offset: number;
	address: number;
	fileSize: number;
	memorySize: number;
	alignment: number;
}

/** A section header. The system loads segments; sections are read only by debuggers and similar tools. */
export interface Section {
	nameOffset: number;
	type: number;
	flags: number;
	address: number;
	offset: number;
	size: number;
	link: number;
	info: number;
	alignment: number;
	entrySize: number;
}

/** An entry of the dynamic symbol table. */
export interface DynamicSymbol {
	readonly index: number;
	readonly name: string;
	readonly address: number;
	readonly size: number;
}

/**
 * An ELF executable. Edits of `bytes` take effect at once; edits of `segments` and `sections` are written by {@link
 * ElfImage.toExecutable}.
 */
export class ElfImage {
	readonly bytes: Buffer;
	readonly machine: 'x64' | 'arm64';
	readonly segments: Segment[] = [];
	/** The sections that are mapped into memory. Sections with debugging information and the static symbol table are left out. */
	readonly sections: Section[] = [];
	readonly #sectionNames: Buffer;

	/** Copies an executable and reads its headers. Throws if the build does not know how to edit this kind of executable. */
	constructor(executable: Buffer) {
		this.bytes = Buffer.from(executable);
		const { bytes } = this;
		if (bytes.readUInt32BE(0) !== 0x7f454c46 || bytes[4] !== 2 || bytes[5] !== 1) {
			throw new Error('The executable is not a 64-bit little-endian ELF file.');
		}
		const machine = MACHINE_BY_NUMBER[bytes.readUInt16LE(18)];
		if (machine === undefined) throw new Error('The executable is neither for x86-64 nor for AArch64.');
		this.machine = machine;
		const programHeadersOffset = readUInt64(bytes, 32);
		for (let i = 0; i < bytes.readUInt16LE(56); i++) {
			const headerOffset = programHeadersOffset + i * SEGMENT_ENTRY_SIZE;
			this.segments.push({
				type: bytes.readUInt32LE(headerOffset),
				flags: bytes.readUInt32LE(headerOffset + 4),
				offset: readUInt64(bytes, headerOffset + 8),
				address: readUInt64(bytes, headerOffset + 16),
				fileSize: readUInt64(bytes, headerOffset + 32),
				memorySize: readUInt64(bytes, headerOffset + 40),
				alignment: readUInt64(bytes, headerOffset + 48),
			});
		}
		const sections: Section[] = [];
		for (let i = 0; i < bytes.readUInt16LE(60); i++) {
			const headerOffset = readUInt64(bytes, 40) + i * SECTION_HEADER_SIZE;
			sections.push({
				nameOffset: bytes.readUInt32LE(headerOffset),
				type: bytes.readUInt32LE(headerOffset + 4),
				flags: readUInt64(bytes, headerOffset + 8),
				address: readUInt64(bytes, headerOffset + 16),
				offset: readUInt64(bytes, headerOffset + 24),
				size: readUInt64(bytes, headerOffset + 32),
				link: bytes.readUInt32LE(headerOffset + 40),
				info: bytes.readUInt32LE(headerOffset + 44),
				alignment: readUInt64(bytes, headerOffset + 48),
				entrySize: readUInt64(bytes, headerOffset + 56),
			});
		}
		const namesSection = sections[bytes.readUInt16LE(62)];
		if (namesSection === undefined) throw new Error('The executable has no section names.');
		this.#sectionNames = Buffer.from(bytes.subarray(namesSection.offset, namesSection.offset + namesSection.size));
		const mappedCount = sections.findLastIndex(section => section.flags & SECTION_FLAG_ALLOCATED) + 1;
		// Symbols refer to sections by number, so only sections after the last mapped one may be left out.
		this.sections = sections.slice(0, mappedCount);
	}

	/** Returns the file offset of the byte that is mapped to an address. */
	offsetOf(address: number): number {
		const segment = this.segments.find(
			({ type, address: start, fileSize }) =>
				type === SEGMENT_TYPE.load && start <= address && address < start + fileSize,
		);
		if (segment === undefined) throw new Error(`Nothing of the executable is mapped to ${address.toString(16)}.`);
		return address - segment.address + segment.offset;
	}

	/** Returns the value of a dynamic entry; 0 if there is no such entry. */
	dynamicValue(tag: number): number {
		return this.#dynamicEntries().find(entry => entry.tag === tag)?.value ?? 0;
	}

	/** Replaces the value of a dynamic entry. */
	setDynamicValue(tag: number, value: number): void {
		const entry = this.#dynamicEntries().find(entry => entry.tag === tag);
		if (entry === undefined) throw new Error(`The executable has no dynamic entry ${tag}.`);
		this.bytes.writeBigUInt64LE(BigInt(value), entry.at + 8);
	}

	/** Removes the dependency on a shared library. Returns false if the executable does not depend on it. */
	removeDependency(library: string): boolean {
		const entries = this.#dynamicEntries();
		const dependency = entries.find(
			({ tag, value }) => tag === DYNAMIC_TAG.needed && this.readString(value) === library,
		);
		if (dependency === undefined) return false;
		const entriesEnd = entries.at(-1)!.at + DYNAMIC_ENTRY_SIZE;
		this.bytes.copyWithin(dependency.at, dependency.at + DYNAMIC_ENTRY_SIZE, entriesEnd);
		this.bytes.fill(0, entriesEnd - DYNAMIC_ENTRY_SIZE, entriesEnd);
		return true;
	}

	/** Returns the string at an offset in the dynamic string table. */
	readString(offset: number): string {
		const start = this.offsetOf(this.dynamicValue(DYNAMIC_TAG.strings)) + offset;
		return this.bytes.toString('latin1', start, this.bytes.indexOf(0, start));
	}

	/** Returns the dynamic symbols for which `isWanted` holds. */
	findSymbols(isWanted: (name: string, index: number) => boolean): DynamicSymbol[] {
		const symbolTableOffset = this.offsetOf(this.dynamicValue(DYNAMIC_TAG.symbols));
		// No dynamic entry gives the table's size, but linkers place the strings directly after the table.
		const symbolCount = (this.offsetOf(this.dynamicValue(DYNAMIC_TAG.strings)) - symbolTableOffset) / SYMBOL_SIZE;
		const matches: DynamicSymbol[] = [];
		for (let index = 1; index < Math.floor(symbolCount); index++) {
			const symbolOffset = symbolTableOffset + index * SYMBOL_SIZE;
			const name = this.readString(this.bytes.readUInt32LE(symbolOffset));
			if (isWanted(name, index)) {
				matches.push({
					index,
					name,
					address: readUInt64(this.bytes, symbolOffset + 8),
					size: readUInt64(this.bytes, symbolOffset + 16),
				});
			}
		}
		return matches;
	}

	/**
	 * Returns the executable with updated headers, without the range `cut`, and without the bytes after the last segment that is
	 * loaded.
	 */
	toExecutable(cut: { readonly start: number; readonly end: number }): Buffer {
		const contentEnd = Math.max(
			...this.segments
				.filter(({ type }) => type === SEGMENT_TYPE.load)
				.map(({ offset, fileSize }) => offset + fileSize),
		);
		const offsetAfterCut = (offset: number): number => (offset >= cut.end ? offset - (cut.end - cut.start) : offset);
		const content = Buffer.concat([this.bytes.subarray(0, cut.start), this.bytes.subarray(cut.end, contentEnd)]);
		const segmentTable = Buffer.alloc(this.segments.length * SEGMENT_ENTRY_SIZE);
		for (const [i, segment] of this.segments.entries()) {
			const headerOffset = i * SEGMENT_ENTRY_SIZE;
			segmentTable.writeUInt32LE(segment.type, headerOffset);
			segmentTable.writeUInt32LE(segment.flags, headerOffset + 4);
			for (const [fieldOffset, value] of [
				[8, offsetAfterCut(segment.offset)],
				[16, segment.address],
				[24, segment.address],
				[32, segment.fileSize],
				[40, segment.memorySize],
				[48, segment.alignment],
			] as const) {
				segmentTable.writeBigUInt64LE(BigInt(value), headerOffset + fieldOffset);
			}
		}
		segmentTable.copy(content, readUInt64(content, 32));
		const namesOffset = content.length;
		const sectionsOffset = Math.ceil((namesOffset + this.#sectionNames.length) / 8) * 8;
		const writtenSections: Section[] = [
			...this.sections.map(section => ({ ...section, offset: offsetAfterCut(section.offset) })),
			{ ...sectionNamesHeader(this.#sectionNames), offset: namesOffset },
		];
		const tail = Buffer.alloc(sectionsOffset - namesOffset + writtenSections.length * SECTION_HEADER_SIZE);
		this.#sectionNames.copy(tail);
		for (const [i, section] of writtenSections.entries()) {
			const headerOffset = sectionsOffset - namesOffset + i * SECTION_HEADER_SIZE;
			tail.writeUInt32LE(section.nameOffset, headerOffset);
			tail.writeUInt32LE(section.type, headerOffset + 4);
			for (const [fieldOffset, value] of [
				[8, section.flags],
				[16, section.address],
				[24, section.offset],
				[32, section.size],
				[48, section.alignment],
				[56, section.entrySize],
			] as const) {
				tail.writeBigUInt64LE(BigInt(value), headerOffset + fieldOffset);
			}
			tail.writeUInt32LE(section.link, headerOffset + 40);
			tail.writeUInt32LE(section.info, headerOffset + 44);
		}
		content.writeBigUInt64LE(BigInt(sectionsOffset), 40);
		content.writeUInt16LE(this.segments.length, 56);
		content.writeUInt16LE(writtenSections.length, 60);
		content.writeUInt16LE(writtenSections.length - 1, 62);
		return Buffer.concat([content, tail]);
	}

	#dynamicEntries(): { readonly tag: number; readonly value: number; readonly at: number }[] {
		const segment = this.segments.find(({ type }) => type === SEGMENT_TYPE.dynamic);
		if (segment === undefined) throw new Error('The executable is not linked dynamically.');
		const entries = [];
		for (let at = segment.offset; ; at += DYNAMIC_ENTRY_SIZE) {
			const tag = readUInt64(this.bytes, at);
			entries.push({ tag, value: readUInt64(this.bytes, at + 8), at });
			if (tag === 0) return entries;
		}
	}
}

/** Returns the header of the section that holds the names of sections. */
function sectionNamesHeader(names: Buffer): Section {
	const stringTableType = 3;
	return {
		nameOffset: names.indexOf('.shstrtab\0', 'latin1'),
		type: stringTableType,
		flags: 0,
		address: 0,
		offset: 0,
		size: names.length,
		link: 0,
		info: 0,
		alignment: 1,
		entrySize: 0,
	};
}

/** Reads a 64-bit number. The offsets, sizes and addresses of executables are small enough for a double. */
export function readUInt64(bytes: Buffer, offset: number): number {
	return Number(bytes.readBigUInt64LE(offset));
}

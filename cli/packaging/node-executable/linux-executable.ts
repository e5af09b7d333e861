/**
 * The single executable for Linux: Node's official executable without libatomic, symbols and debugging information, and with
 * Unicode data for English only. The program is stored in the space of the removed data. All other code and data that Node uses
 * stays the same, byte for byte.
 *
 * Node finds the program as a note: a segment of type `PT_NOTE` with a note named `NODE_SEA_BLOB`, if its "fuse" is on. `node
 * --build-sea` writes the same note, but keeps the symbols, and does not reuse the space of removed data.
 */
import { ElfImage, SECTION_TYPE, SEGMENT_ENTRY_SIZE, SEGMENT_TYPE, type Section, type Segment } from './elf-image.ts';
import { reduceIcuData } from './reduce-icu-data.ts';
import { replaceLibatomic } from './replace-libatomic.ts';

const FUSE_MARKER = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2:';
const NOTE_NAME = Buffer.from('NODE_SEA_BLOB\0\0\0');
const NOTE_NAME_SIZE = 14;
const NOTE_HEADER_SIZE = 12;
/** The alignment of the program within the executable, in bytes. */
const PROGRAM_ALIGNMENT = 16;

/** Embeds a program, as `node --experimental-sea-config` writes it, in the Node executable. */
export function linuxExecutable(node: Buffer, program: Buffer): Buffer {
	const elf = new ElfImage(node);
	replaceLibatomic(elf);
	turnFuseOn(elf);
	return elf.toExecutable(replaceUnicodeData(elf, createProgramNote(program)));
}

function turnFuseOn(elf: ElfImage): void {
	const fuseOffset = elf.bytes.indexOf(`${FUSE_MARKER}0`);
	if (fuseOffset === -1) throw new Error('The executable does not run embedded programs.');
	elf.bytes.write('1', fuseOffset + FUSE_MARKER.length);
}

function createProgramNote(program: Buffer): Buffer {
	const header = Buffer.alloc(NOTE_HEADER_SIZE);
	header.writeUInt32LE(NOTE_NAME_SIZE, 0);
	header.writeUInt32LE(program.length, 4);
	return Buffer.concat([header, NOTE_NAME, program]);
}

/**
 * Replaces the Unicode data with the reduced data and a note, and makes a segment describe the note. Returns the range of the file
 * that is no longer used.
 */
function replaceUnicodeData(elf: ElfImage, note: Buffer): { readonly start: number; readonly end: number } {
	const [dataSymbol] = elf.findSymbols(name => /^icudt\d+_dat$/.test(name));
	if (dataSymbol === undefined) throw new Error('The executable has no Unicode data (icudt..._dat).');
	const dataOffset = elf.offsetOf(dataSymbol.address);
	const reducedData = reduceIcuData(elf.bytes.subarray(dataOffset, dataOffset + dataSymbol.size));
	const noteContentOffset = NOTE_HEADER_SIZE + NOTE_NAME.length;
	const noteOffset =
		Math.ceil((reducedData.length + noteContentOffset) / PROGRAM_ALIGNMENT) * PROGRAM_ALIGNMENT - noteContentOffset;
	const roomBytes = dataSymbol.size - noteOffset;
	if (note.length > roomBytes) {
		throw new Error(
			`The program has ${note.length} bytes; ${roomBytes} fit into the executable in place of its Unicode data.`,
		);
	}
	elf.bytes.fill(0, dataOffset, dataOffset + dataSymbol.size);
	reducedData.copy(elf.bytes, dataOffset);
	note.copy(elf.bytes, dataOffset + noteOffset);

	// What follows the Unicode data in its segment must keep its address, and therefore becomes a separate segment.
	const segment = elf.segments.find(
		({ type, address, fileSize }) =>
			type === SEGMENT_TYPE.load && address <= dataSymbol.address && dataSymbol.address < address + fileSize,
	)!;
	const pageSize = segment.alignment;
	const cutStartAddress = Math.ceil((dataSymbol.address + noteOffset + note.length) / pageSize) * pageSize;
	const cutEndAddress = Math.max(
		cutStartAddress,
		Math.floor((dataSymbol.address + dataSymbol.size) / pageSize) * pageSize,
	);
	const unusedRange = { start: elf.offsetOf(cutStartAddress), end: elf.offsetOf(cutEndAddress) };
	describeNote(elf.segments, dataSymbol.address + noteOffset, dataOffset + noteOffset, note.length);
	splitSegment(elf, segment, cutStartAddress, cutEndAddress);
	splitSection(elf.sections, dataSymbol.address, cutStartAddress, cutEndAddress);
	return unusedRange;
}

/** Changes the segment that describes Node's own notes, such as the ID of its build, so that it describes the program's note. */
function describeNote(segments: Segment[], address: number, offset: number, size: number): void {
	const segment = segments.find(({ type }) => type === SEGMENT_TYPE.note);
	if (segment === undefined) throw new Error('The executable has no notes.');
	Object.assign(segment, { address, offset, fileSize: size, memorySize: size });
}

/**
 * Splits a segment around a range of addresses. The table of segments must stay where it is, because older kernels expect it
 * there. The new entry is therefore written over the interpreter's name, which moves into the space of Node's own notes.
 */
function splitSegment(elf: ElfImage, segment: Segment, startAddress: number, endAddress: number): void {
	const { bytes, segments, sections } = elf;
	const interpreter = segments.find(({ type }) => type === SEGMENT_TYPE.interpreter);
	const segmentTable = segments.find(({ type }) => type === SEGMENT_TYPE.table);
	const notes = sections.filter(({ type }) => type === SECTION_TYPE.note);
	const notesEndOffset = Math.max(...notes.map(({ offset, size }) => offset + size));
	if (
		interpreter === undefined ||
		segmentTable === undefined ||
		interpreter.offset !== segmentTable.offset + segmentTable.fileSize
	) {
		throw new Error('The executable is not laid out as the build expects: segments, interpreter, notes.');
	}
	if (interpreter.offset + SEGMENT_ENTRY_SIZE + interpreter.fileSize > notesEndOffset) {
		throw new Error('The executable has no room for the description of another segment.');
	}
	const interpreterName = Buffer.from(bytes.subarray(interpreter.offset, interpreter.offset + interpreter.fileSize));
	bytes.fill(0, interpreter.offset, notesEndOffset);
	interpreterName.copy(bytes, interpreter.offset + SEGMENT_ENTRY_SIZE);
	const section = sections.find(({ offset, size }) => offset === interpreter.offset && size === interpreterName.length);
	for (const header of section ? [interpreter, section] : [interpreter]) {
		header.offset += SEGMENT_ENTRY_SIZE;
		header.address += SEGMENT_ENTRY_SIZE;
	}
	segmentTable.fileSize += SEGMENT_ENTRY_SIZE;
	segmentTable.memorySize += SEGMENT_ENTRY_SIZE;
	for (const note of notes) Object.assign(note, { type: SECTION_TYPE.none, flags: 0, size: 0 });

	const lowerSize = startAddress - segment.address;
	const upperOffset = endAddress - segment.address;
	segments.splice(segments.indexOf(segment) + 1, 0, {
		...segment,
		offset: segment.offset + upperOffset,
		address: endAddress,
		fileSize: segment.fileSize - upperOffset,
		memorySize: segment.memorySize - upperOffset,
	});
	segment.fileSize = lowerSize;
	segment.memorySize = lowerSize;
}

/**
 * Splits a section around a range of addresses. The second part is added at the end, because symbols refer to sections by number.
 */
function splitSection(sections: Section[], address: number, startAddress: number, endAddress: number): void {
	const section = sections.find(
		section => section.address !== 0 && section.address <= address && address < section.address + section.size,
	);
	if (section === undefined) return;
	const upperOffset = endAddress - section.address;
	sections.push({
		...section,
		address: endAddress,
		offset: section.offset + upperOffset,
		size: section.size - upperOffset,
	});
	section.size = startAddress - section.address;
}

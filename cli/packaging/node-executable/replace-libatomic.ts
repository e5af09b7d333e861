/**
 * Makes Node's executable independent of libatomic, which minimal systems lack.
 *
 * Node needs one function of that library, `__atomic_compare_exchange`. V8 calls it for 8 aligned bytes, for which the library
 * uses one instruction or one short loop. The same code is put into unused bytes at the end of the executable segment, and the
 * relocations of the function are changed to the address of that code. This is compatible with other accesses to the same memory:
 * for these sizes, libatomic takes no lock either, and all other accesses are instructions within V8.
 */
import {
	DYNAMIC_TAG,
	type ElfImage,
	RELOCATION_SIZE,
	readUInt64,
	SECTION_TYPE,
	SEGMENT_FLAG_EXECUTE,
	SEGMENT_TYPE,
} from './elf-image.ts';

const LIBRARY_NAME = 'libatomic.so.1';
const FUNCTION_NAME = '__atomic_compare_exchange';

/** The machine code for a processor, and the numbers of its relocation types. */
interface MachineCode {
	/** Types of relocations that store the address of a symbol. */
	readonly symbolRelocations: readonly number[];
	/** The type of relocation that stores an address. */
	readonly relativeRelocation: number;
	/**
	 * `bool __atomic_compare_exchange(size_t size, void *object, void *expected, void *desired, int, int)`: its memory order is
	 * always sequentially consistent, whatever order is requested. A size other than 1, 2, 4 and 8 stops the process.
	 */
	readonly code: string;
}

const MACHINE_CODES: { readonly [machine in ElfImage['machine']]: MachineCode } = {
	x64: {
		symbolRelocations: [6, 7],
		relativeRelocation: 8,
		code: `
			f30f1efa    endbr64
			4883ff08    cmp $8, %rdi
			7414        je 8f
			4883ff04    cmp $4, %rdi
			7420        je 4f
			4883ff02    cmp $2, %rdi
			7428        je 2f
			4883ff01    cmp $1, %rdi
			7434        je 1f
			0f0b        ud2
			488b02      8: mov (%rdx), %rax
			488b09      mov (%rcx), %rcx
			f0480fb10e  lock cmpxchg %rcx, (%rsi)
			7433        je 9f
			488902      mov %rax, (%rdx)
			eb2e        jmp 9f
			8b02        4: mov (%rdx), %eax
			8b09        mov (%rcx), %ecx
			f00fb10e    lock cmpxchg %ecx, (%rsi)
			7424        je 9f
			8902        mov %eax, (%rdx)
			eb20        jmp 9f
			0fb702      2: movzwl (%rdx), %eax
			0fb709      movzwl (%rcx), %ecx
			66f00fb10e  lock cmpxchg %cx, (%rsi)
			7413        je 9f
			668902      mov %ax, (%rdx)
			eb0e        jmp 9f
			0fb602      1: movzbl (%rdx), %eax
			0fb609      movzbl (%rcx), %ecx
			f00fb00e    lock cmpxchg %cl, (%rsi)
			7402        je 9f
			8802        mov %al, (%rdx)
			0f94c0      9: sete %al
			0fb6c0      movzbl %al, %eax
			c3          ret`,
	},
	arm64: {
		symbolRelocations: [1025, 1026],
		relativeRelocation: 1027,
		// The lowest byte of each instruction is stored first.
		code: `
			5f2403d5  bti c
			1f2000f1  cmp x0, #8
			00010054  b.eq 8f
			1f1000f1  cmp x0, #4
			00020054  b.eq 4f
			1f0800f1  cmp x0, #2
			00030054  b.eq 2f
			1f0400f1  cmp x0, #1
			00040054  b.eq 1f
			200020d4  brk #1
			440040f9  8: ldr x4, [x2]
			650040f9  ldr x5, [x3]
			26fc5fc8  0: ldaxr x6, [x1]
			df0004eb  cmp x6, x4
			81000054  b.ne 7f
			25fc07c8  stlxr w7, x5, [x1]
			87ffff35  cbnz w7, 0b
			23000014  b 6f
			460000f9  7: str x6, [x2]
			1e000014  b 5f
			440040b9  4: ldr w4, [x2]
			650040b9  ldr w5, [x3]
			26fc5f88  0: ldaxr w6, [x1]
			df00046b  cmp w6, w4
			81000054  b.ne 7f
			25fc0788  stlxr w7, w5, [x1]
			87ffff35  cbnz w7, 0b
			19000014  b 6f
			460000b9  7: str w6, [x2]
			14000014  b 5f
			44004079  2: ldrh w4, [x2]
			65004079  ldrh w5, [x3]
			26fc5f48  0: ldaxrh w6, [x1]
			df00046b  cmp w6, w4
			81000054  b.ne 7f
			25fc0748  stlxrh w7, w5, [x1]
			87ffff35  cbnz w7, 0b
			0f000014  b 6f
			46000079  7: strh w6, [x2]
			0a000014  b 5f
			44004039  1: ldrb w4, [x2]
			65004039  ldrb w5, [x3]
			26fc5f08  0: ldaxrb w6, [x1]
			df00046b  cmp w6, w4
			81000054  b.ne 7f
			25fc0708  stlxrb w7, w5, [x1]
			87ffff35  cbnz w7, 0b
			05000014  b 6f
			46000039  7: strb w6, [x2]
			5f3f03d5  5: clrex
			00008052  mov w0, #0
			c0035fd6  ret
			20008052  6: mov w0, #1
			c0035fd6  ret`,
	},
};

/** Returns the machine code of `__atomic_compare_exchange`. */
export function compareExchangeCode(machine: ElfImage['machine']): Buffer {
	const lines = MACHINE_CODES[machine].code.trim().split('\n');
	return Buffer.from(lines.map(line => line.trim().split(' ')[0]).join(''), 'hex');
}

/** Removes the dependency on libatomic, if there is one. Throws if the executable needs another function of the library. */
export function replaceLibatomic(elf: ElfImage): void {
	if (!elf.removeDependency(LIBRARY_NAME)) return;
	const versionIndexes = removeVersionNeeds(elf);
	const versionTable = elf.offsetOf(elf.dynamicValue(DYNAMIC_TAG.versions));
	const versionOf = (index: number): number => elf.bytes.readUInt16LE(versionTable + 2 * index) & 0x7fff;
	const symbols = elf.findSymbols((_, index) => versionIndexes.has(versionOf(index)));
	const otherSymbols = symbols.filter(({ name }) => name !== FUNCTION_NAME).map(({ name }) => name);
	if (otherSymbols.length > 0) {
		throw new Error(
			`The executable needs ${otherSymbols.join(', ')} of ${LIBRARY_NAME}, for which the build has no replacement.`,
		);
	}
	const address = addCode(elf, compareExchangeCode(elf.machine));
	for (const { index } of symbols) {
		redirectRelocations(elf, index, address);
		// Marks the symbol as unversioned.
		elf.bytes.writeUInt16LE(1, versionTable + 2 * index);
	}
}

/** Removes the library from the list of needed versions. Returns the version indexes that belonged to the library. */
function removeVersionNeeds(elf: ElfImage): Set<number> {
	const { bytes } = elf;
	const firstNeedAddress = elf.dynamicValue(DYNAMIC_TAG.versionNeeds);
	const versionIndexes = new Set<number>();
	let previousNeedOffset: number | undefined;
	for (let needOffset = elf.offsetOf(firstNeedAddress); ; ) {
		const needStep = bytes.readUInt32LE(needOffset + 12);
		if (elf.readString(bytes.readUInt32LE(needOffset + 4)) === LIBRARY_NAME) {
			for (let versionOffset = needOffset + bytes.readUInt32LE(needOffset + 8); ; ) {
				versionIndexes.add(bytes.readUInt16LE(versionOffset + 6));
				const versionStep = bytes.readUInt32LE(versionOffset + 12);
				if (versionStep === 0) break;
				versionOffset += versionStep;
			}
			if (previousNeedOffset !== undefined) {
				bytes.writeUInt32LE(
					needStep === 0 ? 0 : bytes.readUInt32LE(previousNeedOffset + 12) + needStep,
					previousNeedOffset + 12,
				);
			} else {
				elf.setDynamicValue(DYNAMIC_TAG.versionNeeds, firstNeedAddress + needStep);
			}
			const needCount = elf.dynamicValue(DYNAMIC_TAG.versionNeedCount) - 1;
			elf.setDynamicValue(DYNAMIC_TAG.versionNeedCount, needCount);
			const section = elf.sections.find(({ type }) => type === SECTION_TYPE.versionNeeds);
			if (section) {
				section.info = needCount;
				if (previousNeedOffset === undefined) {
					section.address += needStep;
					section.offset += needStep;
					section.size -= needStep;
				}
			}
			return versionIndexes;
		}
		if (needStep === 0) return versionIndexes;
		previousNeedOffset = needOffset;
		needOffset += needStep;
	}
}

/** Puts code after the contents of the executable segment, in the unused part of its last page. Returns the code's address. */
function addCode(elf: ElfImage, code: Buffer): number {
	const segment = elf.segments.find(({ type, flags }) => type === SEGMENT_TYPE.load && flags & SEGMENT_FLAG_EXECUTE);
	if (segment === undefined) throw new Error('The executable has no code.');
	const address = Math.ceil((segment.address + segment.fileSize) / 16) * 16;
	const newSegmentSize = address - segment.address + code.length;
	const roomBytes = Math.ceil((segment.address + segment.fileSize) / 4096) * 4096 - segment.address;
	const freeOffset = segment.offset + segment.fileSize;
	const freeBytes = elf.bytes.subarray(freeOffset, segment.offset + newSegmentSize);
	if (newSegmentSize > roomBytes || segment.memorySize !== segment.fileSize || freeBytes.some(byte => byte !== 0)) {
		throw new Error(`The executable has no room for the replacement of ${LIBRARY_NAME}.`);
	}
	code.copy(elf.bytes, segment.offset + address - segment.address);
	segment.fileSize = newSegmentSize;
	segment.memorySize = newSegmentSize;
	return address;
}

/** Changes the relocations of a symbol so that they store the given address. */
function redirectRelocations(elf: ElfImage, symbolIndex: number, address: number): void {
	const { symbolRelocations, relativeRelocation } = MACHINE_CODES[elf.machine];
	const { bytes } = elf;
	let changedCount = 0;
	for (const [tableTag, sizeTag] of [
		[DYNAMIC_TAG.relocations, DYNAMIC_TAG.relocationSize],
		[DYNAMIC_TAG.pltRelocations, DYNAMIC_TAG.pltRelocationSize],
	] as const) {
		const tableOffset = elf.offsetOf(elf.dynamicValue(tableTag));
		for (
			let relocationOffset = tableOffset;
			relocationOffset < tableOffset + elf.dynamicValue(sizeTag);
			relocationOffset += RELOCATION_SIZE
		) {
			if (bytes.readUInt32LE(relocationOffset + 12) !== symbolIndex) continue;
			const type = bytes.readUInt32LE(relocationOffset + 8);
			if (!symbolRelocations.includes(type) || readUInt64(bytes, relocationOffset + 16) !== 0) {
				throw new Error(`The executable uses ${FUNCTION_NAME} in a way for which the build has no replacement.`);
			}
			bytes.writeUInt32LE(relativeRelocation, relocationOffset + 8);
			bytes.writeUInt32LE(0, relocationOffset + 12);
			bytes.writeBigUInt64LE(BigInt(address), relocationOffset + 16);
			changedCount++;
		}
	}
	if (changedCount === 0) throw new Error(`The executable never uses ${FUNCTION_NAME}.`);
}

/** The Huffman code of HPACK strings (RFC 7541 §5.2, Appendix B). */
import { lazily } from '../../../compiler/exchange/lazily.ts';

/** Length in bits of each byte's code. The code is canonical: shorter codes come first, codes of equal length in byte order. */
const CODE_BITS_BY_BYTE: readonly number[] = [
	...[13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28],
	...[28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15],
	...[6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6],
	...[15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22],
	...[20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23],
	...[23, 24, 22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22],
	...[22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26],
	...[27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27],
	...[26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26],
];

/**
 * Length in bits of the end-of-string symbol, which consists of ones. The symbol must not occur in a string; its first bits are
 * used as padding.
 */
const EOS_BITS = 30;

/**
 * Layout of a transition: the low bits are the next node, and the bits above them are the byte that the transition
 * completes.
 */
const NODE_BITS = 9;
const NODE_MASK: number = (1 << NODE_BITS) - 1;
const COMPLETES_BYTE: number = 1 << 17;
const INVALID_TRANSITION = -1;

/** The codes of all bytes, and the state machine that decodes four bits at a time. */
interface HuffmanTables {
	readonly codes: Uint32Array;
	/**
	 * Transitions by node and the next four bits: INVALID, or the next node. With the flag COMPLETES_BYTE, the
	 * transition also yields a byte.
	 */
	readonly transitions: Int32Array;
	/** For each node, whether a string may end there, that is, whether the bits since the last byte are fewer than eight ones. */
	readonly mayEnd: Uint8Array;
}

const huffmanTables: () => HuffmanTables = lazily(buildTables);

/** Returns the length in bytes of an encoded string. The characters of `text` represent bytes. */
export function huffmanLength(text: string): number {
	let bitCount = 0;
	for (let i = 0; i < text.length; i++) bitCount += CODE_BITS_BY_BYTE[text.charCodeAt(i)]!;
	return (bitCount + 7) >> 3;
}

/** Encodes a string. Returns the index after its encoding. */
export function huffmanEncode(text: string, target: Buffer, at: number): number {
	const { codes } = huffmanTables();
	// Up to 7 pending bits and a code of 28 bits need more than 32 bits, so each code is added in two parts.
	let pendingBits = 0;
	let pendingBitCount = 0;
	let i = at;
	for (let k = 0; k < text.length; k++) {
		const byte = text.charCodeAt(k);
		let bitsLeft = CODE_BITS_BY_BYTE[byte]!;
		const code = codes[byte]!;
		while (bitsLeft > 0) {
			const partBits = Math.min(bitsLeft, 16);
			bitsLeft -= partBits;
			pendingBits = (pendingBits << partBits) | ((code >>> bitsLeft) & ((1 << partBits) - 1));
			pendingBitCount += partBits;
			while (pendingBitCount >= 8) {
				pendingBitCount -= 8;
				target[i++] = pendingBits >>> pendingBitCount;
			}
			pendingBits &= (1 << pendingBitCount) - 1;
		}
	}
	if (pendingBitCount > 0) target[i++] = (pendingBits << (8 - pendingBitCount)) | (0xff >>> pendingBitCount);
	return i;
}

/**
 * Decodes the bytes from `start` to `end` into `target`. Returns the number of decoded bytes, or −1 if the code is
 * invalid or `target` is too small.
 */
export function huffmanDecode(bytes: Buffer, start: number, end: number, target: Buffer): number {
	const { transitions, mayEnd } = huffmanTables();
	let node = 0;
	let decodedBytes = 0;
	for (let i = start; i < end; i++) {
		const byte = bytes[i]!;
		let transition = transitions[(node << 4) | (byte >> 4)]!;
		if (transition < 0) return -1;
		if (transition & COMPLETES_BYTE) target[decodedBytes++] = (transition >> NODE_BITS) & 0xff;
		transition = transitions[((transition & NODE_MASK) << 4) | (byte & 15)]!;
		if (transition < 0) return -1;
		if (transition & COMPLETES_BYTE) target[decodedBytes++] = (transition >> NODE_BITS) & 0xff;
		node = transition & NODE_MASK;
		if (decodedBytes + 2 > target.length) return -1;
	}
	return mayEnd[node] === 1 ? decodedBytes : -1;
}

function buildTables(): HuffmanTables {
	const codes = new Uint32Array(256);
	const bytesByCodeLength = CODE_BITS_BY_BYTE.map((_, byte) => byte).sort(
		(a, b) => CODE_BITS_BY_BYTE[a]! - CODE_BITS_BY_BYTE[b]! || a - b,
	);
	let code = 0;
	let codeBits = 0;
	for (const byte of bytesByCodeLength) {
		code *= 2 ** (CODE_BITS_BY_BYTE[byte]! - codeBits);
		codeBits = CODE_BITS_BY_BYTE[byte]!;
		codes[byte] = code++;
	}
	// A tree whose nodes have two children each. A child is 0 for none, a node's number, or −1 − byte for a leaf.
	const children: number[] = [0, 0];
	const addCode = (value: number, bits: number, leaf: number): void => {
		let node = 0;
		for (let bit = bits - 1; bit > 0; bit--) {
			const childIndex = node * 2 + (Math.floor(value / 2 ** bit) & 1);
			if (children[childIndex] === 0) {
				children[childIndex] = children.length / 2;
				children.push(0, 0);
			}
			node = children[childIndex]!;
		}
		children[node * 2 + (value & 1)] = leaf;
	};
	for (let byte = 0; byte < 256; byte++) addCode(codes[byte]!, CODE_BITS_BY_BYTE[byte]!, -1 - byte);
	const EOS = -1 - 256;
	addCode(2 ** EOS_BITS - 1, EOS_BITS, EOS);
	const nodeCount = children.length / 2;
	const transitions = new Int32Array(nodeCount * 16);
	for (let startNode = 0; startNode < nodeCount; startNode++) {
		for (let fourBits = 0; fourBits < 16; fourBits++) {
			let node = startNode;
			let transition = 0;
			for (let bit = 3; bit >= 0 && transition !== INVALID_TRANSITION; bit--) {
				const child = children[node * 2 + ((fourBits >> bit) & 1)]!;
				if (child === EOS) transition = INVALID_TRANSITION;
				else if (child < 0) {
					transition = COMPLETES_BYTE | ((-1 - child) << NODE_BITS);
					node = 0;
				} else node = child;
			}
			transitions[startNode * 16 + fourBits] =
				transition === INVALID_TRANSITION ? INVALID_TRANSITION : transition | node;
		}
	}
	const mayEnd = new Uint8Array(nodeCount);
	for (let node = 0, oneCount = 0; oneCount < 8; oneCount++) {
		mayEnd[node] = 1;
		node = children[node * 2 + 1]!;
	}
	return { codes, transitions, mayEnd };
}

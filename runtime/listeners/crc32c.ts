/** CRC-32C (Castagnoli), which PROXY headers carry. */

const POLYNOMIAL = 0x82f63b78;

/** The checksum, unsigned. Bit by bit: headers are short and seldom have one. */
export function crc32c(bytes: Uint8Array): number {
	let crc = 0xffffffff;
	for (const byte of bytes) {
		crc ^= byte;
		for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
	}
	return (crc ^ 0xffffffff) >>> 0;
}

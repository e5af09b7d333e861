/** CRC-32C (Castagnoli), used in PROXY headers. */

const POLYNOMIAL = 0x82f63b78;

/** Returns the unsigned checksum. It is computed bit by bit, because headers are short and rarely have a checksum. */
export function crc32c(bytes: Uint8Array): number {
	let crc = 0xffffffff;
	for (const byte of bytes) {
		crc ^= byte;
		for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ POLYNOMIAL : crc >>> 1;
	}
	return (crc ^ 0xffffffff) >>> 0;
}

/** The hash slots into which a Redis Cluster divides keys. */

/** Number of hash slots of a Redis Cluster. */
const SLOT_COUNT = 16_384;

/**
 * Returns the hash slot of a key: CRC-16/XMODEM of the key, or of its hash tag, which is the text in the first pair of braces if that
 * text is not empty.
 */
export function keySlot(key: string): number {
	const start = key.indexOf('{');
	const end = start === -1 ? -1 : key.indexOf('}', start + 1);
	const hashedText = end > start + 1 ? key.slice(start + 1, end) : key;
	let crc = 0;
	for (const byte of Buffer.from(hashedText)) {
		crc ^= byte << 8;
		for (let bit = 0; bit < 8; bit++) crc = (crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1) & 0xffff;
	}
	return crc % SLOT_COUNT;
}

/** Returns the first key of a command; undefined if it has none. */
export function firstKeyOf(args: readonly (string | Buffer)[]): string | undefined {
	const command = String(args[0]).toUpperCase();
	if (command === 'EVAL' || command === 'EVALSHA') return String(args[3]);
	if (command === 'XREAD') return String(args[args.findIndex(arg => String(arg).toUpperCase() === 'STREAMS') + 1]);
	return args[1] === undefined ? undefined : String(args[1]);
}

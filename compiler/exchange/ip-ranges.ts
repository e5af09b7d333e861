/** Sets of IP ranges with fast lookup. A range is in CIDR notation, a single address, or `private_ranges`. */
import { formatIp, type IpAddress, parseIp } from './ip-address.ts';

/** The ranges that `private_ranges` stands for. */
export const PRIVATE_RANGES: readonly string[] = [
	'192.168.0.0/16',
	'172.16.0.0/12',
	'10.0.0.0/8',
	'127.0.0.1/8',
	'fd00::/8',
	'::1',
];

type Words = readonly [number, number, number, number];

/** An inclusive interval of addresses. IPv4 addresses are at `::ffff:0:0/96`, so that both families share one order. */
interface Interval {
	readonly low: Words;
	readonly high: Words;
}

/** A parsed range. `zone` is '' if all zones are included; a `*` in it is a wildcard. */
export interface IpRange {
	readonly low: Words;
	readonly high: Words;
	readonly zone: string;
}

/**
 * Parses a range such as `10.0.0.0/8`, `::1` or `fe80::1%eth0`; undefined for an invalid range. Bits beyond the prefix are ignored.
 */
export function parseIpRange(text: string): IpRange | undefined {
	const slash = text.indexOf('/');
	const ip = parseIp(slash === -1 ? text : text.slice(0, slash));
	if (!ip) return undefined;
	if (slash === -1) return { low: ip.words, high: ip.words, zone: ip.zone };
	const digits = text.slice(slash + 1);
	if (!/^(0|[1-9][0-9]{0,2})$/.test(digits)) return undefined;
	// The prefix length of `::ffff:10.0.0.0/104` counts bits of an IPv6 address, and that of `10.0.0.0/8` bits of an IPv4 address.
	const isDotted = ip.v4 && !text.includes(':');
	const bits = Number(digits) + (isDotted ? 96 : 0);
	if (bits > 128) return undefined;
	return { low: applyMask(ip.words, bits, false), high: applyMask(ip.words, bits, true), zone: ip.zone };
}

function applyMask(words: Words, bits: number, setHostBits: boolean): Words {
	const result: [number, number, number, number] = [0, 0, 0, 0];
	for (let i = 0; i < 4; i++) {
		const keptBits = Math.min(32, Math.max(0, bits - i * 32));
		const mask = keptBits === 0 ? 0 : (0xffffffff << (32 - keptBits)) >>> 0;
		result[i] = setHostBits ? ((words[i]! & mask) | ~mask) >>> 0 : (words[i]! & mask) >>> 0;
	}
	return result;
}

/** Returns an address truncated to a prefix, in CIDR notation such as `10.1.0.0/16`; undefined if `text` is not an address. */
export function maskedAddress(text: string, v4Bits: number, v6Bits: number): string | undefined {
	const ip = parseIp(text);
	if (!ip) return undefined;
	const bits = ip.v4 ? v4Bits + 96 : v6Bits;
	const result: IpAddress = { v4: ip.v4, words: applyMask(ip.words, bits, false), zone: '' };
	return `${formatIp(result)}/${ip.v4 ? v4Bits : v6Bits}`;
}

/** A set of ranges. A lookup parses the address and does a binary search. The result of the last lookup is cached. */
export class IpRanges {
	/** The intervals, sorted and merged. Each takes 8 numbers: the words of its lowest and of its highest address. */
	readonly #table: Uint32Array;
	readonly #zonedRanges: readonly { range: IpRange; zone: readonly string[] }[];
	/** The last address that was looked up. Requests on one connection look up the same address repeatedly. */
	#lastText: string | undefined = undefined;
	#lastAnswer = false;

	/** `texts` are ranges in CIDR notation or `private_ranges`. Throws RangeError with the first invalid range in its message. */
	constructor(texts: readonly string[]) {
		const intervals: Interval[] = [];
		const zonedRanges: { range: IpRange; zone: readonly string[] }[] = [];
		for (const text of texts.flatMap(t => (t === 'private_ranges' ? PRIVATE_RANGES : [t]))) {
			const range = parseIpRange(text);
			if (!range) throw new RangeError(`\`${text}\` is not an IP address or range.`);
			if (range.zone === '') intervals.push(range);
			else zonedRanges.push({ range, zone: range.zone.split('*') });
		}
		intervals.sort((a, b) => compare(a.low, b.low));
		const merged: Interval[] = [];
		for (const interval of intervals) {
			const lastPart = merged.at(-1);
			if (lastPart && compare(interval.low, lastPart.high) <= 0) {
				if (compare(interval.high, lastPart.high) > 0)
					merged[merged.length - 1] = { low: lastPart.low, high: interval.high };
			} else merged.push(interval);
		}
		this.#table = new Uint32Array(merged.length * 8);
		merged.forEach((m, i) => {
			this.#table.set([...m.low, ...m.high], i * 8);
		});
		this.#zonedRanges = zonedRanges;
	}

	/**
	 * Reports whether an address is in one of the ranges. Returns false for a text that is not an address, such as that of a Unix
	 * socket's peer.
	 */
	contains(address: string): boolean {
		if (address === this.#lastText) return this.#lastAnswer;
		const ip = parseIp(address);
		const answer = ip !== undefined && (this.#find(ip.words) || this.#zonedRanges.some(z => isInZonedRange(ip, z)));
		this.#lastText = address;
		this.#lastAnswer = answer;
		return answer;
	}

	#find(words: Words): boolean {
		const table = this.#table;
		let low = 0;
		let high = table.length / 8 - 1;
		while (low <= high) {
			const middle = (low + high) >> 1;
			if (compareAt(table, middle * 8, words) > 0) high = middle - 1;
			else if (compareAt(table, middle * 8 + 4, words) < 0) low = middle + 1;
			else return true;
		}
		return false;
	}
}

function isInZonedRange(ip: IpAddress, { range, zone }: { range: IpRange; zone: readonly string[] }): boolean {
	return matchesZone(ip.zone, zone) && compare(range.low, ip.words) <= 0 && compare(range.high, ip.words) >= 0;
}

/** Reports whether a zone matches a pattern with `*`, which has been split into the parts between the `*`. */
function matchesZone(zone: string, [firstPart = '', ...otherParts]: readonly string[]): boolean {
	if (!zone.startsWith(firstPart)) return false;
	const lastPart = otherParts.pop();
	if (lastPart === undefined) return zone === firstPart;
	let position = firstPart.length;
	for (const piece of otherParts) {
		const partStart = zone.indexOf(piece, position);
		if (partStart === -1) return false;
		position = partStart + piece.length;
	}
	return zone.length - lastPart.length >= position && zone.endsWith(lastPart);
}

function compare(a: Words, b: Words): number {
	for (let i = 0; i < 4; i++) if (a[i] !== b[i]) return a[i]! < b[i]! ? -1 : 1;
	return 0;
}

function compareAt(table: Uint32Array, offset: number, words: Words): number {
	for (let i = 0; i < 4; i++) {
		const value = table[offset + i]!;
		if (value !== words[i]) return value < words[i]! ? -1 : 1;
	}
	return 0;
}

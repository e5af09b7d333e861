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

type IpWords = readonly [number, number, number, number];

/** An inclusive interval of addresses. IPv4 addresses are at `::ffff:0:0/96`, so that both families share one order. */
interface Interval {
	readonly low: IpWords;
	readonly high: IpWords;
}

/** A parsed range. `zone` is '' if all zones are included; a `*` in it is a wildcard. */
export interface IpRange {
	readonly low: IpWords;
	readonly high: IpWords;
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
	const prefixDigits = text.slice(slash + 1);
	if (!/^(0|[1-9][0-9]{0,2})$/.test(prefixDigits)) return undefined;
	// The prefix length counts bits of an IPv6 address in `::ffff:10.0.0.0/104`, but bits of an IPv4 address in `10.0.0.0/8`.
	const isDotted = ip.isIpv4 && !text.includes(':');
	const prefixBits = Number(prefixDigits) + (isDotted ? 96 : 0);
	if (prefixBits > 128) return undefined;
	return { low: applyMask(ip.words, prefixBits, false), high: applyMask(ip.words, prefixBits, true), zone: ip.zone };
}

function applyMask(words: IpWords, prefixBits: number, setHostBits: boolean): IpWords {
	const maskedWords: [number, number, number, number] = [0, 0, 0, 0];
	for (let i = 0; i < 4; i++) {
		const keptBits = Math.min(32, Math.max(0, prefixBits - i * 32));
		const mask = keptBits === 0 ? 0 : (0xffffffff << (32 - keptBits)) >>> 0;
		maskedWords[i] = setHostBits ? ((words[i]! & mask) | ~mask) >>> 0 : (words[i]! & mask) >>> 0;
	}
	return maskedWords;
}

/** Returns an address truncated to a prefix, in CIDR notation such as `10.1.0.0/16`; undefined if `text` is not an address. */
export function maskedAddress(text: string, v4Bits: number, v6Bits: number): string | undefined {
	const ip = parseIp(text);
	if (!ip) return undefined;
	const prefixBits = ip.isIpv4 ? v4Bits + 96 : v6Bits;
	const maskedIp: IpAddress = { isIpv4: ip.isIpv4, words: applyMask(ip.words, prefixBits, false), zone: '' };
	return `${formatIp(maskedIp)}/${ip.isIpv4 ? v4Bits : v6Bits}`;
}

/** A set of ranges. A lookup parses the address and does a binary search. The result of the last lookup is cached. */
export class IpRanges {
	/** The intervals, sorted and merged. Each takes 8 numbers: the words of its lowest and of its highest address. */
	readonly #intervalTable: Uint32Array;
	readonly #zonedRanges: readonly { range: IpRange; zone: readonly string[] }[];
	/** The last address that was looked up. Requests on one connection look up the same address repeatedly. */
	#lastAddress: string | undefined = undefined;
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
		intervals.sort((a, b) => compareWords(a.low, b.low));
		const mergedIntervals: Interval[] = [];
		for (const interval of intervals) {
			const lastInterval = mergedIntervals.at(-1);
			if (lastInterval && compareWords(interval.low, lastInterval.high) <= 0) {
				if (compareWords(interval.high, lastInterval.high) > 0)
					mergedIntervals[mergedIntervals.length - 1] = { low: lastInterval.low, high: interval.high };
			} else mergedIntervals.push(interval);
		}
		this.#intervalTable = new Uint32Array(mergedIntervals.length * 8);
		mergedIntervals.forEach((m, i) => {
			this.#intervalTable.set([...m.low, ...m.high], i * 8);
		});
		this.#zonedRanges = zonedRanges;
	}

	/**
	 * Reports whether an address is in one of the ranges. Returns false for a text that is not an address, such as the empty text
	 * that stands for the peer of a Unix socket.
	 */
	contains(address: string): boolean {
		if (address === this.#lastAddress) return this.#lastAnswer;
		const ip = parseIp(address);
		const answer =
			ip !== undefined && (this.#isInIntervals(ip.words) || this.#zonedRanges.some(z => isInZonedRange(ip, z)));
		this.#lastAddress = address;
		this.#lastAnswer = answer;
		return answer;
	}

	#isInIntervals(words: IpWords): boolean {
		const table = this.#intervalTable;
		let lowIndex = 0;
		let highIndex = table.length / 8 - 1;
		while (lowIndex <= highIndex) {
			const middle = (lowIndex + highIndex) >> 1;
			if (compareWordsAt(table, middle * 8, words) > 0) highIndex = middle - 1;
			else if (compareWordsAt(table, middle * 8 + 4, words) < 0) lowIndex = middle + 1;
			else return true;
		}
		return false;
	}
}

function isInZonedRange(ip: IpAddress, { range, zone }: { range: IpRange; zone: readonly string[] }): boolean {
	return (
		matchesZone(ip.zone, zone) && compareWords(range.low, ip.words) <= 0 && compareWords(range.high, ip.words) >= 0
	);
}

/** Reports whether a zone matches a pattern with `*`, which has been split into the parts between the `*`. */
function matchesZone(zone: string, [firstPart = '', ...otherParts]: readonly string[]): boolean {
	if (!zone.startsWith(firstPart)) return false;
	const lastPart = otherParts.pop();
	if (lastPart === undefined) return zone === firstPart;
	let searchStart = firstPart.length;
	for (const middlePart of otherParts) {
		const partStart = zone.indexOf(middlePart, searchStart);
		if (partStart === -1) return false;
		searchStart = partStart + middlePart.length;
	}
	return zone.length - lastPart.length >= searchStart && zone.endsWith(lastPart);
}

function compareWords(a: IpWords, b: IpWords): number {
	for (let i = 0; i < 4; i++) if (a[i] !== b[i]) return a[i]! < b[i]! ? -1 : 1;
	return 0;
}

function compareWordsAt(table: Uint32Array, offset: number, words: IpWords): number {
	for (let i = 0; i < 4; i++) {
		const value = table[offset + i]!;
		if (value !== words[i]) return value < words[i]! ? -1 : 1;
	}
	return 0;
}

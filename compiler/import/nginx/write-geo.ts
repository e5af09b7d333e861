/** Writes `geo` as lines that set a variable by the client's address. */
import { quoteText } from './configfile-writer.ts';
import type { NginxDirective } from './nginx-parser.ts';
import { Untranslatable } from './untranslatable.ts';

/** An address range with its value. */
export interface GeoEntry {
	readonly range: string;
	readonly prefixBits: number;
	readonly value: string;
}

/** Words that are options of a `geo`. All other lines in it begin with a range. */
const GEO_OPTIONS: ReadonlySet<string> = new Set(['ranges', 'delete', 'proxy', 'proxy_recursive']);

/** Returns the values that the variable of a `geo` may have. */
export function geoValues(lines: readonly NginxDirective[]): string[] {
	const values = lines.filter(({ name }) => !GEO_OPTIONS.has(name)).map(({ args }) => args[0] ?? '');
	return lines.some(({ name }) => name === 'default') ? values : [...values, ''];
}

/**
 * Returns lines that set `variable` to the value of the most specific range that contains the client's address. `matcher` is the
 * matcher for ranges of `$remote_addr`. Throws Untranslatable.
 */
export function geoLines({ args, block }: NginxDirective, variable: string, matcher: string): string[] {
	const addressVariable = args.length > 1 ? args[0]! : '$remote_addr';
	if (addressVariable !== '$remote_addr' && addressVariable !== '$realip_remote_addr')
		throw new Untranslatable(
			`only the address of the client or its connection is compared, not \`${addressVariable}\``,
		);
	if (block!.some(({ name }) => name === 'proxy' || name === 'proxy_recursive'))
		throw new Untranslatable('write its proxies as `trusted_proxies`, and the `geo` without them');
	const subject = addressVariable === '$remote_addr' ? matcher : 'remote_ip';
	const { entries, fallback } = parseGeo({ block });
	const lines: string[] = [];
	const assignmentLine = (value: string): string => `\tvars ${variable} ${quoteText(value.replace(/[{}]/g, '\\$&'))}`;
	for (const { ranges, value } of joinByValue(entries))
		lines.push(`${lines.length === 0 ? '' : '} else '}when ${subject} ${ranges.join(' ')} {`, assignmentLine(value));
	if (lines.length === 0) return [assignmentLine(fallback).slice(1)];
	if (fallback !== '') lines.push('} else {', assignmentLine(fallback));
	return [...lines, '}'];
}

/** Returns the ranges of a `geo` in the order in which they must be tried, and the value for all other addresses. */
export function parseGeo({ block }: Pick<NginxDirective, 'block'>): {
	readonly entries: readonly GeoEntry[];
	readonly fallback: string;
} {
	const hasRanges = block!.some(({ name }) => name === 'ranges');
	return {
		entries: hasRanges ? rangeEntries(block!) : networkEntries(block!),
		fallback: block!.findLast(({ name }) => name === 'default')?.args[0] ?? '',
	};
}

/**
 * Returns the networks in the order in which they must be tried: the longest prefixes first. If a network has several lines, the
 * last one is used.
 */
function networkEntries(lines: readonly NginxDirective[]): GeoEntry[] {
	const valuesByNetwork = new Map<string, string>();
	for (const { name, args } of lines) {
		if (name === 'default') continue;
		if (name === 'delete') valuesByNetwork.delete(args[0] ?? '');
		else if (/^[\da-fA-F.:]+(?:\/\d{1,3})?$/.test(name)) valuesByNetwork.set(name, args[0] ?? '');
		else throw new Untranslatable(`\`${name}\` is not a network`);
	}
	return [...valuesByNetwork]
		.map(([range, value]) => {
			const [network = '', prefixText] = range.split('/');
			return {
				range,
				prefixBits: prefixText === undefined ? (network.includes(':') ? 128 : 32) : Number(prefixText),
				value,
			};
		})
		.sort((a, b) => b.prefixBits - a.prefixBits || (a.value < b.value ? -1 : a.value > b.value ? 1 : 0));
}

/**
 * Returns address ranges as networks, in the order in which they must be tried: from last to first, because nginx requires that a
 * range follows the range that contains it.
 */
function rangeEntries(lines: readonly NginxDirective[]): GeoEntry[] {
	return lines
		.filter(({ name }) => !GEO_OPTIONS.has(name) && name !== 'default')
		.toReversed()
		.flatMap(({ name, args }) => {
			const [firstAddress, lastAddress, extraPart] = name.split('-').map(parseIpv4);
			if (
				firstAddress === undefined ||
				lastAddress === undefined ||
				extraPart !== undefined ||
				firstAddress > lastAddress
			)
				throw new Untranslatable(`\`${name}\` is not a range of IPv4 addresses`);
			return networksOf(firstAddress, lastAddress).map(range => ({ range, prefixBits: 0, value: args[0] ?? '' }));
		});
}

/** Returns an IPv4 address as a number; undefined if the text is not an IPv4 address. */
export function parseIpv4(text: string): number | undefined {
	const octets = /^\d{1,3}(?:\.\d{1,3}){3}$/.test(text) ? text.split('.').map(Number) : [];
	if (octets.length !== 4 || octets.some(octet => octet > 255)) return undefined;
	return octets.reduce((sum, octet) => sum * 256 + octet, 0);
}

/** Returns the fewest networks that contain exactly the addresses from `firstAddress` to `lastAddress`. */
function networksOf(firstAddress: number, lastAddress: number): string[] {
	const networks: string[] = [];
	for (let networkStart = firstAddress; networkStart <= lastAddress; ) {
		let networkSize = 1;
		while (networkStart % (networkSize * 2) === 0 && networkStart + networkSize * 2 - 1 <= lastAddress)
			networkSize *= 2;
		const octets = [24, 16, 8, 0].map(shift => Math.floor(networkStart / 2 ** shift) % 256);
		networks.push(`${octets.join('.')}/${32 - Math.log2(networkSize)}`);
		networkStart += networkSize;
	}
	return networks;
}

/** Joins adjacent entries that have the same value. */
function joinByValue(entries: readonly GeoEntry[]): { readonly ranges: string[]; readonly value: string }[] {
	const groups: { ranges: string[]; value: string }[] = [];
	for (const { range, value } of entries) {
		const lastGroup = groups.at(-1);
		if (lastGroup?.value === value) lastGroup.ranges.push(range);
		else groups.push({ ranges: [range], value });
	}
	return groups;
}

/** IP addresses as numbers: strict parsing and canonical text. */

/**
 * An address as four 32-bit words. An IPv4 address, or an IPv6 address that is mapped from an IPv4 address, is in the last word,
 * with `isIpv4` set. The zone is '' except for an IPv6 address with a zone.
 */
export interface IpAddress {
	readonly isIpv4: boolean;
	readonly words: readonly [number, number, number, number];
	readonly zone: string;
}

/**
 * Parses dotted decimal to an unsigned number; −1 if invalid. Leading zeros are invalid, because they could be mistaken for octal.
 */
function parseIpv4(text: string): number {
	let value = 0;
	let octet = -1;
	let dotCount = 0;
	if (text.length < 7 || text.length > 15) return -1;
	for (let i = 0; i < text.length; i++) {
		const c = text.charCodeAt(i);
		if (c === 46) {
			if (octet < 0 || ++dotCount > 3) return -1;
			value = value * 256 + octet;
			octet = -1;
		} else if (c >= 48 && c <= 57) {
			if (octet === 0) return -1;
			octet = octet < 0 ? c - 48 : octet * 10 + c - 48;
			if (octet > 255) return -1;
		} else return -1;
	}
	if (dotCount !== 3 || octet < 0) return -1;
	return value * 256 + octet;
}

/** Parses an IPv4 or IPv6 address without brackets; undefined for anything else. `fe80::1%eth0` keeps its zone. */
export function parseIp(text: string): IpAddress | undefined {
	if (!text.includes(':')) {
		const ipv4Value = parseIpv4(text);
		return ipv4Value < 0 ? undefined : { isIpv4: true, words: [0, 0, 0xffff, ipv4Value], zone: '' };
	}
	const percentIndex = text.indexOf('%');
	const zone = percentIndex === -1 ? '' : text.slice(percentIndex + 1);
	if (percentIndex !== -1 && zone === '') return undefined;
	const groups = parseIpv6Groups(percentIndex === -1 ? text : text.slice(0, percentIndex));
	if (!groups) return undefined;
	const words: [number, number, number, number] = [
		groups[0]! * 65536 + groups[1]!,
		groups[2]! * 65536 + groups[3]!,
		groups[4]! * 65536 + groups[5]!,
		groups[6]! * 65536 + groups[7]!,
	];
	const isIpv4 = words[0] === 0 && words[1] === 0 && words[2] === 0xffff;
	return { isIpv4, words, zone };
}

function parseIpv6Groups(text: string): number[] | undefined {
	const gapIndex = text.indexOf('::');
	if (gapIndex === -1) {
		const groups = parseGroups(text);
		return groups?.length === 8 ? groups : undefined;
	}
	if (text.indexOf('::', gapIndex + 1) !== -1) return undefined;
	const groupsBefore = gapIndex === 0 ? [] : parseGroups(text.slice(0, gapIndex), false);
	const groupsAfter = gapIndex + 2 === text.length ? [] : parseGroups(text.slice(gapIndex + 2));
	if (!groupsBefore || !groupsAfter || groupsBefore.length + groupsAfter.length > 7) return undefined;
	return [...groupsBefore, ...new Array<number>(8 - groupsBefore.length - groupsAfter.length).fill(0), ...groupsAfter];
}

function parseGroups(text: string, mayEndInIpv4 = true): number[] | undefined {
	const parts = text.split(':');
	const groups: number[] = [];
	for (let i = 0; i < parts.length; i++) {
		const part = parts[i]!;
		if (mayEndInIpv4 && i === parts.length - 1 && part.includes('.')) {
			const ipv4Value = parseIpv4(part);
			if (ipv4Value < 0) return undefined;
			groups.push(Math.floor(ipv4Value / 65536), ipv4Value % 65536);
		} else if (/^[0-9a-fA-F]{1,4}$/.test(part)) groups.push(Number.parseInt(part, 16));
		else return undefined;
	}
	return groups.length <= 8 ? groups : undefined;
}

/** Formats an unsigned number as dotted decimal. */
function formatIpv4(value: number): string {
	return `${Math.floor(value / 0x1000000)}.${Math.floor(value / 0x10000) % 256}.${Math.floor(value / 256) % 256}.${value % 256}`;
}

/** Formats an address in canonical form (RFC 5952). A mapped IPv4 address is written in dotted decimal, and the zone is kept. */
export function formatIp(address: IpAddress): string {
	if (address.isIpv4) return formatIpv4(address.words[3]);
	const groups: number[] = [];
	for (const word of address.words) groups.push(Math.floor(word / 65536), word % 65536);
	let zerosStart = -1;
	let zerosLength = 1;
	for (let i = 0; i < 8; i++) {
		let zeroRun = 0;
		while (i + zeroRun < 8 && groups[i + zeroRun] === 0) zeroRun++;
		if (zeroRun > zerosLength) {
			zerosStart = i;
			zerosLength = zeroRun;
		}
		if (zeroRun > 0) i += zeroRun - 1;
	}
	const formatGroups = (from: number, to: number) =>
		groups
			.slice(from, to)
			.map(g => g.toString(16))
			.join(':');
	const text =
		zerosStart === -1
			? formatGroups(0, 8)
			: `${formatGroups(0, zerosStart)}::${formatGroups(zerosStart + zerosLength, 8)}`;
	return address.zone === '' ? text : `${text}%${address.zone}`;
}

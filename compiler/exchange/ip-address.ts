/** IP addresses as numbers: strict parsing and canonical text. */

/**
 * An address as four 32-bit words. An IPv4 address, or an IPv6 address that is mapped from one, is in the last word, with `v4` set.
 * The zone is '' except for an IPv6 address with a zone.
 */
export interface IpAddress {
	readonly v4: boolean;
	readonly words: readonly [number, number, number, number];
	readonly zone: string;
}

/**
 * Parses dotted decimal to an unsigned number; −1 if invalid. Leading zeros are invalid, because they could be mistaken for octal.
 */
function parseIpv4(text: string): number {
	let value = 0;
	let octet = -1;
	let dots = 0;
	if (text.length < 7 || text.length > 15) return -1;
	for (let i = 0; i < text.length; i++) {
		const c = text.charCodeAt(i);
		if (c === 46) {
			if (octet < 0 || ++dots > 3) return -1;
			value = value * 256 + octet;
			octet = -1;
		} else if (c >= 48 && c <= 57) {
			if (octet === 0) return -1;
			octet = octet < 0 ? c - 48 : octet * 10 + c - 48;
			if (octet > 255) return -1;
		} else return -1;
	}
	if (dots !== 3 || octet < 0) return -1;
	return value * 256 + octet;
}

/** Parses an IPv4 or IPv6 address without brackets; undefined for anything else. `fe80::1%eth0` keeps its zone. */
export function parseIp(text: string): IpAddress | undefined {
	if (!text.includes(':')) {
		const v4 = parseIpv4(text);
		return v4 < 0 ? undefined : { v4: true, words: [0, 0, 0xffff, v4], zone: '' };
	}
	const percent = text.indexOf('%');
	const zone = percent === -1 ? '' : text.slice(percent + 1);
	if (percent !== -1 && zone === '') return undefined;
	const groups = ipv6Groups(percent === -1 ? text : text.slice(0, percent));
	if (!groups) return undefined;
	const words: [number, number, number, number] = [
		groups[0]! * 65536 + groups[1]!,
		groups[2]! * 65536 + groups[3]!,
		groups[4]! * 65536 + groups[5]!,
		groups[6]! * 65536 + groups[7]!,
	];
	const v4 = words[0] === 0 && words[1] === 0 && words[2] === 0xffff;
	return { v4, words, zone };
}

function ipv6Groups(text: string): number[] | undefined {
	const gap = text.indexOf('::');
	if (gap === -1) {
		const groups = groupList(text);
		return groups?.length === 8 ? groups : undefined;
	}
	if (text.indexOf('::', gap + 1) !== -1) return undefined;
	const groupsBefore = gap === 0 ? [] : groupList(text.slice(0, gap), false);
	const groupsAfter = gap + 2 === text.length ? [] : groupList(text.slice(gap + 2));
	if (!groupsBefore || !groupsAfter || groupsBefore.length + groupsAfter.length > 7) return undefined;
	return [...groupsBefore, ...new Array<number>(8 - groupsBefore.length - groupsAfter.length).fill(0), ...groupsAfter];
}

function groupList(text: string, mayEndInV4 = true): number[] | undefined {
	const parts = text.split(':');
	const groups: number[] = [];
	for (let i = 0; i < parts.length; i++) {
		const part = parts[i]!;
		if (mayEndInV4 && i === parts.length - 1 && part.includes('.')) {
			const v4 = parseIpv4(part);
			if (v4 < 0) return undefined;
			groups.push(Math.floor(v4 / 65536), v4 % 65536);
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
	if (address.v4) return formatIpv4(address.words[3]);
	const groups: number[] = [];
	for (const word of address.words) groups.push(Math.floor(word / 65536), word % 65536);
	let start = -1;
	let length = 1;
	for (let i = 0; i < 8; i++) {
		let run = 0;
		while (i + run < 8 && groups[i + run] === 0) run++;
		if (run > length) {
			start = i;
			length = run;
		}
		if (run > 0) i += run - 1;
	}
	const hex = (from: number, to: number) =>
		groups
			.slice(from, to)
			.map(g => g.toString(16))
			.join(':');
	const text = start === -1 ? hex(0, 8) : `${hex(0, start)}::${hex(start + length, 8)}`;
	return address.zone === '' ? text : `${text}%${address.zone}`;
}

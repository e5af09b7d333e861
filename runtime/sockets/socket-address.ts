/** Converts addresses to and from the form that system calls use (`sockaddr_in`, `sockaddr_in6`). */
import { parseIp } from '../../compiler/exchange/ip-address.ts';

const AF_INET = 2;
const AF_INET6 = 10;

/** Size in bytes of a `sockaddr_in6`, the longer form. */
export const SOCKET_ADDRESS_BYTES = 28;

/** The address and port of a socket or of its peer. */
export interface AddressAndPort {
	readonly address: string;
	readonly port: number;
}

/** Returns an IP address and a port as a `sockaddr`; undefined if `address` is not an IP address. */
export function writeSocketAddress(address: string, port: number): Buffer | undefined {
	const [addressPart, zone] = address.split('%');
	const ip = parseIp(addressPart!);
	if (ip === undefined) return undefined;
	const isIpv4 = ip.isIpv4 && !addressPart!.includes(':');
	const bytes = Buffer.alloc(isIpv4 ? 16 : SOCKET_ADDRESS_BYTES);
	bytes.writeUInt16LE(isIpv4 ? AF_INET : AF_INET6, 0);
	bytes.writeUInt16BE(port, 2);
	if (isIpv4) bytes.writeUInt32BE(ip.words[3]! >>> 0, 4);
	else {
		for (let i = 0; i < 4; i++) bytes.writeUInt32BE(ip.words[i]! >>> 0, 8 + i * 4);
		bytes.writeUInt32LE(Number(zone ?? 0) >>> 0, 24);
	}
	return bytes;
}

/** Reads a `sockaddr`. An IPv4 client of a dual-stack socket is returned as an IPv4 address. */
export function readSocketAddress(bytes: Buffer, at: number): AddressAndPort {
	const port = bytes.readUInt16BE(at + 2);
	if (bytes.readUInt16LE(at) === AF_INET) return { address: formatIpv4(bytes, at + 4), port };
	return { address: formatIpv6(bytes, at + 8), port };
}

/** Formats 4 bytes as an IPv4 address. */
export function formatIpv4(bytes: Buffer, at: number): string {
	return `${bytes[at]}.${bytes[at + 1]}.${bytes[at + 2]}.${bytes[at + 3]}`;
}

/** Formats 16 bytes as an IPv6 address (RFC 5952). An IPv4-mapped address is formatted as IPv4. */
export function formatIpv6(bytes: Buffer, at: number): string {
	const groups: number[] = [];
	for (let i = 0; i < 8; i++) groups.push(bytes.readUInt16BE(at + i * 2));
	if (groups.slice(0, 5).every(group => group === 0) && groups[5] === 0xffff) return formatIpv4(bytes, at + 12);
	let runStart = -1;
	let longestRunLength = 1;
	for (let i = 0; i < 8; i++) {
		let runEnd = i;
		while (runEnd < 8 && groups[runEnd] === 0) runEnd++;
		if (runEnd - i > longestRunLength) {
			runStart = i;
			longestRunLength = runEnd - i;
		}
	}
	const hexGroups = groups.map(group => group.toString(16));
	if (runStart < 0) return hexGroups.join(':');
	return `${hexGroups.slice(0, runStart).join(':')}::${hexGroups.slice(runStart + longestRunLength).join(':')}`;
}

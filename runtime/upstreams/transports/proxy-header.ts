/** Encodes PROXY protocol headers, versions 1 and 2. */
import { isIP } from 'node:net';
import type { ClientAddresses } from '../../../compiler/exchange/leases.ts';

const VERSION2_SIGNATURE = Buffer.from('0d0a0d0a000d0a515549540a', 'hex');

/** Returns the encoded header. If the client's address is not known, the header says so. */
export function encodeProxyHeader(version: 'v1' | 'v2', client: ClientAddresses | undefined): Buffer {
	const clientAddress = canonicalAddress(client?.address ?? '');
	const family = isIP(clientAddress);
	const port = client?.port ?? 0;
	const localAddress = canonicalAddress(client?.localAddress ?? '');
	// A header cannot have addresses of two families. The local address hardly matters to an upstream, so if it is not of the
	// client address's family, it is replaced by the unspecified address.
	const sentLocalAddress = isIP(localAddress) === family ? localAddress : family === 4 ? '0.0.0.0' : '::';
	const localPort = client?.localPort ?? 0;
	if (version === 'v1') {
		return Buffer.from(
			family === 0
				? 'PROXY UNKNOWN\r\n'
				: `PROXY TCP${family} ${clientAddress} ${sentLocalAddress} ${port} ${localPort}\r\n`,
			'latin1',
		);
	}
	if (family === 0) return Buffer.concat([VERSION2_SIGNATURE, Buffer.from([0x20, 0x00, 0, 0])]);
	const addressBytes = family === 4 ? 4 : 16;
	const header = Buffer.alloc(16 + 2 * addressBytes + 4);
	VERSION2_SIGNATURE.copy(header);
	header[12] = 0x21;
	header[13] = family === 4 ? 0x11 : 0x21;
	header.writeUInt16BE(2 * addressBytes + 4, 14);
	ipAddressBytes(clientAddress).copy(header, 16);
	ipAddressBytes(sentLocalAddress).copy(header, 16 + addressBytes);
	header.writeUInt16BE(port, 16 + 2 * addressBytes);
	header.writeUInt16BE(localPort, 18 + 2 * addressBytes);
	return header;
}

/** Converts an IPv4-mapped IPv6 address to IPv4, and removes the zone, which is meaningful only on this machine. */
function canonicalAddress(address: string): string {
	const mappedMatch = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address);
	return mappedMatch ? mappedMatch[1]! : address.split('%')[0]!;
}

/** Returns the bytes of a valid IP address in network order. */
export function ipAddressBytes(address: string): Buffer {
	if (isIP(address) === 4) return Buffer.from(address.split('.').map(Number));
	let ipv6Text = address;
	const dottedMatch = /^(.*:)(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(ipv6Text);
	if (dottedMatch) {
		const [a, b, c, d] = dottedMatch.slice(2).map(Number) as [number, number, number, number];
		ipv6Text = `${dottedMatch[1]}${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`;
	}
	const [before, after] = ipv6Text.split('::') as [string, string | undefined];
	const leadingGroups = before === '' ? [] : before.split(':');
	const trailingGroups = after === undefined || after === '' ? [] : after.split(':');
	const zeros = Array.from({ length: 8 - leadingGroups.length - trailingGroups.length }, () => '0');
	const groups = after === undefined ? leadingGroups : [...leadingGroups, ...zeros, ...trailingGroups];
	const bytes = Buffer.alloc(16);
	groups.forEach((group, at) => {
		bytes.writeUInt16BE(Number.parseInt(group, 16), at * 2);
	});
	return bytes;
}

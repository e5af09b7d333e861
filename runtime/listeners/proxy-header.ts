/** A strict parser of PROXY protocol headers, versions 1 and 2, with which a load balancer names a connection's client. */
import { formatIp, parseIp } from '../../compiler/exchange/ip-address.ts';
import type { ConnectionPeer } from '../protocols/protocol.ts';
import { crc32c } from './crc32c.ts';

/** The result of parsing the first bytes of a connection. */
export type ProxyHeader =
	/** More bytes are needed. */
	| { readonly kind: 'incomplete' }
	/** The bytes are not a header, but data of the protocol itself. */
	| { readonly kind: 'none' }
	/** The bytes begin like a header, but are invalid. */
	| { readonly kind: 'malformed' }
	/**
	 * A complete header of `length` bytes. `peer` is undefined for a connection of the load balancer itself (`LOCAL`, `UNKNOWN`).
	 */
	| { readonly kind: 'header'; readonly length: number; readonly peer: ConnectionPeer | undefined };

const VERSION2_SIGNATURE = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
const VERSION1_PREFIX = Buffer.from('PROXY ', 'latin1');
/** Maximum length of a version 1 line, including CRLF. */
const MAX_V1_LINE_BYTES = 107;
/** Maximum length of a version 2 header: addresses, and the extensions that balancers send. */
const MAX_V2_HEADER_BYTES = 4096;
const UNIX_ADDRESSES_BYTES = 216;
/** Type of the extension that carries a CRC32C of the header. */
const CRC_EXTENSION = 0x03;

const INCOMPLETE: ProxyHeader = { kind: 'incomplete' };
const NOT_A_HEADER: ProxyHeader = { kind: 'none' };
const MALFORMED: ProxyHeader = { kind: 'malformed' };

/** Parses the first bytes of a connection. The result never depends on how the bytes are split among reads. */
export function parseProxyHeader(bytes: Buffer): ProxyHeader {
	if (startsLike(bytes, VERSION2_SIGNATURE))
		return bytes.length < 16 ? checkShortVersion2(bytes) : parseVersion2(bytes);
	if (startsLike(bytes, VERSION1_PREFIX)) return parseVersion1(bytes);
	return NOT_A_HEADER;
}

/** Reports whether the bytes begin with `prefix` or are the beginning of `prefix`. */
function startsLike(bytes: Buffer, prefix: Buffer): boolean {
	const length = Math.min(bytes.length, prefix.length);
	return bytes.compare(prefix, 0, length, 0, length) === 0;
}

function parseVersion1(bytes: Buffer): ProxyHeader {
	const text = bytes.toString('latin1', 0, MAX_V1_LINE_BYTES);
	const lineEnd = text.indexOf('\r\n');
	if (lineEnd === -1) return text.length < MAX_V1_LINE_BYTES && !/\n|\r[^\n]/.test(text) ? INCOMPLETE : MALFORMED;
	const line = text.slice(0, lineEnd);
	const length = lineEnd + 2;
	if (/^PROXY UNKNOWN(?: [\x20-\x7e]*)?$/.test(line)) return { kind: 'header', length, peer: undefined };
	const parts = /^PROXY TCP([46]) ([0-9a-fA-F:.]+) ([0-9a-fA-F:.]+) (0|[1-9][0-9]{0,4}) (0|[1-9][0-9]{0,4})$/.exec(
		line,
	);
	if (!parts) return MALFORMED;
	const [, family, source, destination, sourcePort, destinationPort] = parts;
	const remoteAddress = canonicalAddress(source!, family === '4');
	const localAddress = canonicalAddress(destination!, family === '4');
	const remotePort = Number(sourcePort);
	const localPort = Number(destinationPort);
	if (remoteAddress === undefined || localAddress === undefined || remotePort > 65_535 || localPort > 65_535) {
		return MALFORMED;
	}
	return { kind: 'header', length, peer: { remoteAddress, remotePort, localAddress, localPort } };
}

/** Returns an address of the stated family in canonical form; an IPv4-mapped IPv6 address becomes the IPv4 address. */
function canonicalAddress(text: string, isIpv4: boolean): string | undefined {
	const ip = parseIp(text);
	if (!ip || text.includes(':') === isIpv4) return undefined;
	return formatIp(ip);
}

function checkShortVersion2(bytes: Buffer): ProxyHeader {
	return bytes.length > 12 && !isVersion2Command(bytes[12]!) ? MALFORMED : INCOMPLETE;
}

function isVersion2Command(byte: number): boolean {
	return byte === 0x20 || byte === 0x21;
}

function parseVersion2(bytes: Buffer): ProxyHeader {
	if (!isVersion2Command(bytes[12]!)) return MALFORMED;
	const family = bytes[13]!;
	const payloadBytes = bytes.readUInt16BE(14);
	const length = 16 + payloadBytes;
	if (length > MAX_V2_HEADER_BYTES) return MALFORMED;
	const addressBytes = addressBytesFor(family);
	if (addressBytes === undefined || payloadBytes < addressBytes) return MALFORMED;
	if (bytes.length < length) return INCOMPLETE;
	if (!areExtensionsValid(bytes, 16 + addressBytes, length)) return MALFORMED;
	// LOCAL marks a connection of the balancer itself, such as a health check. The addresses in its header are meaningless.
	if (bytes[12] === 0x20 || family === 0x00) return { kind: 'header', length, peer: undefined };
	return { kind: 'header', length, peer: peerOf(bytes, family) };
}

/** Returns the length of the addresses in a version 2 header; undefined if the transport is not a stream. */
function addressBytesFor(family: number): number | undefined {
	switch (family) {
		case 0x00:
			return 0;
		case 0x11:
			return 12;
		case 0x21:
			return 36;
		case 0x31:
			return UNIX_ADDRESSES_BYTES;
	}
	return undefined;
}

function peerOf(bytes: Buffer, family: number): ConnectionPeer {
	if (family === 0x31) return { remoteAddress: '', remotePort: 0, localAddress: '', localPort: 0 };
	const addressBytes = family === 0x11 ? 4 : 16;
	const portsStart = 16 + addressBytes * 2;
	return {
		remoteAddress: packedAddress(bytes, 16, addressBytes),
		remotePort: bytes.readUInt16BE(portsStart),
		localAddress: packedAddress(bytes, 16 + addressBytes, addressBytes),
		localPort: bytes.readUInt16BE(portsStart + 2),
	};
}

function packedAddress(bytes: Buffer, at: number, addressBytes: number): string {
	if (addressBytes === 4) return bytes.subarray(at, at + 4).join('.');
	const words = [bytes.readUInt32BE(at), bytes.readUInt32BE(at + 4), bytes.readUInt32BE(at + 8)] as const;
	const lastWord = bytes.readUInt32BE(at + 12);
	const v4 = words[0] === 0 && words[1] === 0 && words[2] === 0xffff;
	return formatIp({ isIpv4: v4, words: [...words, lastWord], zone: '' });
}

/** Reports whether the extensions fill their space exactly and the checksum, if present, is correct. */
function areExtensionsValid(bytes: Buffer, start: number, end: number): boolean {
	let at = start;
	while (at < end) {
		if (at + 3 > end) return false;
		const valueBytes = bytes.readUInt16BE(at + 1);
		const valueStart = at + 3;
		if (valueStart + valueBytes > end) return false;
		if (bytes[at] === CRC_EXTENSION) {
			if (valueBytes !== 4) return false;
			const headerCopy = Buffer.from(bytes.subarray(0, end));
			headerCopy.fill(0, valueStart, valueStart + 4);
			if (crc32c(headerCopy) !== bytes.readUInt32BE(valueStart)) return false;
		}
		at = valueStart + valueBytes;
	}
	return true;
}

/** Parser for the ClientHello, which is peeked at before the handshake begins (RFC 8446 §4.1.2, RFC 6066 §3, RFC 7301). */

/** The fields of a ClientHello that the server uses to choose a policy and a certificate. */
export interface ClientHello {
	/** The server name in lowercase, without a trailing dot; '' if the client sent none. */
	readonly serverName: string;
	/** The ALPN protocols that the client offers, in its order; empty if it offers none. */
	readonly alpn: readonly string[];
	/** True if the client offers `acme-tls/1`, the protocol of TLS-ALPN-01 challenges (RFC 8737 §4). */
	readonly offersAcmeTls: boolean;
	/** The cipher suites as hexadecimal IDs of four digits each, in the client's order. */
	readonly cipherSuites: readonly string[];
	readonly signatureSchemes: readonly string[];
	/** The first session ticket offered by the client (RFC 5077 §3.2, RFC 8446 §4.2.11); undefined or empty if there is none. */
	readonly ticket: Buffer | undefined;
}

/** Why the first bytes of a connection are not a complete ClientHello. */
export type ClientHelloProblem = 'incomplete' | 'not-tls' | 'malformed';

/** Maximum size of a ClientHello in bytes, including record headers; far more than any real client sends. */
export const MAX_HELLO_BYTES: number = 64 * 1024;

const RECORD_HEADER_BYTES = 5;
const MESSAGE_HEADER_BYTES = 4;
const MAX_RECORD_BYTES = 16_384 + 256;
const HANDSHAKE_RECORD = 22;
const CLIENT_HELLO = 1;
/** Bytes before the session ID: the message header, the version and the random number. */
const FIXED_BYTES = MESSAGE_HEADER_BYTES + 2 + 32;
const MAX_SERVER_NAME_BYTES = 255;
/** Extension types (RFC 8446 §4.2 and RFC 5077 §3.2). */
const SERVER_NAME = 0;
const SIGNATURE_ALGORITHMS = 13;
const ALPN = 16;
const SESSION_TICKET = 35;
const PRE_SHARED_KEY = 41;
/** The ALPN protocol of TLS-ALPN-01 challenges (RFC 8737). */
const ACME_TLS: Buffer = Buffer.from('acme-tls/1', 'latin1');

/** Parses the ClientHello at the start of `bytes`, which may be split across several records. Never throws. */
export function readClientHello(bytes: Buffer): ClientHello | ClientHelloProblem {
	return readWithScan(bytes, new RecordScan());
}

/** The parsed records of an incomplete ClientHello, so that each record is parsed once. */
class RecordScan {
	/** Offset of the first record that has not arrived completely. */
	recordStart = 0;
	/** Number of bytes of the message in the records before `recordStart`. */
	messageBytes = 0;
	/** The bytes of the message's header that these records contain. */
	readonly headerBytes: number[] = [];
}

/** Minimum size in bytes of the buffer for an incomplete ClientHello. */
const MIN_COLLECTED_BYTES = 2048;

/**
 * Collects a ClientHello that arrives in several pieces. The work is proportional to the number of bytes and pieces, even if a
 * client sends each byte in a packet and a record of its own.
 */
export class ClientHelloCollector {
	#memory: Buffer;
	#length = 0;
	readonly #scan = new RecordScan();

	/** `firstBytes` are the bytes that have been received so far. They are copied. */
	constructor(firstBytes: Buffer) {
		this.#memory = Buffer.allocUnsafeSlow(Math.max(MIN_COLLECTED_BYTES, firstBytes.length));
		this.#append(firstBytes);
	}

	/** Everything that has been received. Valid until the next call of `add`. */
	get bytes(): Buffer {
		return this.#memory.subarray(0, this.#length);
	}

	/** Adds bytes, and parses the ClientHello if it is complete. */
	add(bytes: Buffer): ClientHello | ClientHelloProblem {
		this.#append(bytes);
		return readWithScan(this.bytes, this.#scan);
	}

	#append(bytes: Buffer): void {
		const length = this.#length + bytes.length;
		if (length > this.#memory.length) {
			const memory = Buffer.allocUnsafeSlow(Math.max(length, this.#memory.length * 2));
			this.#memory.copy(memory, 0, 0, this.#length);
			this.#memory = memory;
		}
		bytes.copy(this.#memory, this.#length);
		this.#length = length;
	}
}

function readWithScan(bytes: Buffer, scan: RecordScan): ClientHello | ClientHelloProblem {
	if (bytes.length === 0) return 'incomplete';
	if (bytes[0] !== HANDSHAKE_RECORD) return 'not-tls';
	if (bytes.length > 1 && bytes[1] !== 3) return 'not-tls';
	// Nearly every client sends its ClientHello in one record, which is parsed without copying it.
	const wholeMessageBytes = messageBytesInFirstRecord(bytes);
	if (wholeMessageBytes > 0) return parseHello(bytes, RECORD_HEADER_BYTES, RECORD_HEADER_BYTES + wholeMessageBytes);
	const message = extractMessage(bytes, scan);
	return typeof message === 'string' ? message : parseHello(message, 0, message.length);
}

/** Returns the length of the handshake message if the first record contains all of it and has arrived that far; otherwise 0. */
function messageBytesInFirstRecord(bytes: Buffer): number {
	if (bytes.length < RECORD_HEADER_BYTES + MESSAGE_HEADER_BYTES) return 0;
	const recordBytes = (bytes[3]! << 8) | bytes[4]!;
	if (recordBytes > MAX_RECORD_BYTES || bytes[RECORD_HEADER_BYTES] !== CLIENT_HELLO) return 0;
	const messageBytes = MESSAGE_HEADER_BYTES + ((bytes[6]! << 16) | (bytes[7]! << 8) | bytes[8]!);
	return messageBytes <= recordBytes && RECORD_HEADER_BYTES + messageBytes <= bytes.length ? messageBytes : 0;
}

/**
 * Returns the handshake message without its record headers. It is called each time more bytes arrive, and a hostile client may
 * send one-byte records, so it continues after the records of earlier calls, and copies nothing before the message is complete.
 */
function extractMessage(bytes: Buffer, scan: RecordScan): Buffer | ClientHelloProblem {
	for (;;) {
		const { recordStart, headerBytes } = scan;
		const start = recordStart + RECORD_HEADER_BYTES;
		if (bytes.length < start) return 'incomplete';
		if (bytes[recordStart] !== HANDSHAKE_RECORD) return 'malformed';
		const recordBytes = bytes.readUInt16BE(recordStart + 3);
		if (recordBytes === 0 || recordBytes > MAX_RECORD_BYTES) return 'malformed';
		const end = start + recordBytes;
		const fragmentEnd = Math.min(end, bytes.length);
		const newHeaderBytes = bytes.subarray(
			start,
			Math.min(fragmentEnd, start + MESSAGE_HEADER_BYTES - headerBytes.length),
		);
		const knownHeader = headerBytes.length === MESSAGE_HEADER_BYTES ? headerBytes : [...headerBytes, ...newHeaderBytes];
		if (knownHeader.length > 0 && knownHeader[0] !== CLIENT_HELLO) return 'malformed';
		if (knownHeader.length === MESSAGE_HEADER_BYTES) {
			const messageBytes = MESSAGE_HEADER_BYTES + ((knownHeader[1]! << 16) | (knownHeader[2]! << 8) | knownHeader[3]!);
			if (messageBytes > MAX_HELLO_BYTES) return 'malformed';
			if (scan.messageBytes + fragmentEnd - start >= messageBytes) return joinRecords(bytes, messageBytes);
		}
		if (bytes.length < end) return 'incomplete';
		if (headerBytes.length < MESSAGE_HEADER_BYTES) headerBytes.push(...newHeaderBytes);
		scan.recordStart = end;
		scan.messageBytes += recordBytes;
	}
}

/** Returns the first `messageBytes` bytes of the contents of the records in `bytes`, which must contain at least that many. */
function joinRecords(bytes: Buffer, messageBytes: number): Buffer {
	const pieces: Buffer[] = [];
	let remainingBytes = messageBytes;
	for (let at = 0; remainingBytes > 0; ) {
		const start = at + RECORD_HEADER_BYTES;
		at = start + bytes.readUInt16BE(at + 3);
		pieces.push(bytes.subarray(start, Math.min(at, start + remainingBytes)));
		remainingBytes -= at - start;
	}
	return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
}

/** A parsed ClientHello. The lists that are rarely needed are parsed when they are first read. */
class ParsedHello implements ClientHello {
	readonly serverName: string;
	readonly offersAcmeTls: boolean;
	readonly ticket: Buffer | undefined;
	readonly #bytes: Buffer;
	/** Where the lists begin and end in `#bytes`. */
	readonly #suitesStart: number;
	readonly #suitesEnd: number;
	readonly #schemesStart: number;
	readonly #schemesEnd: number;
	readonly #alpnStart: number;
	readonly #alpnEnd: number;

	constructor(
		bytes: Buffer,
		serverName: string,
		offersAcmeTls: boolean,
		ticket: Buffer | undefined,
		suitesStart: number,
		suitesEnd: number,
		schemesStart: number,
		schemesEnd: number,
		alpnStart: number,
		alpnEnd: number,
	) {
		this.#bytes = bytes;
		this.serverName = serverName;
		this.offersAcmeTls = offersAcmeTls;
		this.ticket = ticket;
		this.#suitesStart = suitesStart;
		this.#suitesEnd = suitesEnd;
		this.#schemesStart = schemesStart;
		this.#schemesEnd = schemesEnd;
		this.#alpnStart = alpnStart;
		this.#alpnEnd = alpnEnd;
	}

	get alpn(): readonly string[] {
		const bytes = this.#bytes;
		const protocols: string[] = [];
		for (let at = this.#alpnStart; at < this.#alpnEnd; ) {
			const nameEnd = at + 1 + bytes[at]!;
			protocols.push(bytes.toString('latin1', at + 1, nameEnd));
			at = nameEnd;
		}
		return protocols;
	}

	get cipherSuites(): readonly string[] {
		return toHexIds(this.#bytes, this.#suitesStart, this.#suitesEnd);
	}

	get signatureSchemes(): readonly string[] {
		return toHexIds(this.#bytes, this.#schemesStart, this.#schemesEnd);
	}
}

/**
 * Returns the end of the vector at `at`, whose length is encoded in its first `lengthBytes` bytes; −1 if the vector extends
 * beyond `limit`. Positions are plain numbers, because objects for them would be most of the parser's work.
 */
function vectorEnd(bytes: Buffer, at: number, limit: number, lengthBytes: 1 | 2): number {
	const start = at + lengthBytes;
	if (start > limit) return -1;
	const end = start + (lengthBytes === 1 ? bytes[at]! : (bytes[at]! << 8) | bytes[at + 1]!);
	return end > limit ? -1 : end;
}

/** Parses the handshake message from `start` to `end`. */
function parseHello(bytes: Buffer, start: number, end: number): ClientHello | 'malformed' {
	const sessionIdEnd = vectorEnd(bytes, start + FIXED_BYTES, end, 1);
	const suitesEnd = sessionIdEnd < 0 ? -1 : vectorEnd(bytes, sessionIdEnd, end, 2);
	const compressionEnd = suitesEnd < 0 ? -1 : vectorEnd(bytes, suitesEnd, end, 1);
	const hasExtensions = compressionEnd !== end;
	const extensionsEnd =
		compressionEnd < 0 || !hasExtensions ? compressionEnd : vectorEnd(bytes, compressionEnd, end, 2);
	if (extensionsEnd < 0) return 'malformed';
	let serverName: string | undefined = '';
	let offersAcmeTls = false;
	let ticket: Buffer | undefined;
	let schemesStart = 0;
	let schemesEnd = 0;
	let alpnStart = 0;
	let alpnEnd = 0;
	for (let at = hasExtensions ? compressionEnd + 2 : end; at < extensionsEnd; ) {
		const bodyStart = at + 4;
		const bodyEnd = vectorEnd(bytes, at + 2, extensionsEnd, 2);
		if (bodyEnd < 0) return 'malformed';
		const extensionType = (bytes[at]! << 8) | bytes[at + 1]!;
		at = bodyEnd;
		switch (extensionType) {
			case SERVER_NAME:
				serverName = readServerName(bytes, bodyStart, bodyEnd);
				if (serverName === undefined) return 'malformed';
				break;
			case SIGNATURE_ALGORITHMS:
				schemesStart = bodyStart + 2;
				schemesEnd = vectorEnd(bytes, bodyStart, bodyEnd, 2);
				if (schemesEnd < 0) return 'malformed';
				break;
			case ALPN:
				alpnStart = bodyStart + 2;
				alpnEnd = vectorEnd(bytes, bodyStart, bodyEnd, 2);
				if (alpnEnd < 0 || !isProtocolList(bytes, alpnStart, alpnEnd)) return 'malformed';
				offersAcmeTls = listsAcmeTls(bytes, alpnStart, alpnEnd);
				break;
			case SESSION_TICKET:
				ticket ??= bytes.subarray(bodyStart, bodyEnd);
				break;
			case PRE_SHARED_KEY: {
				const identitiesEnd = vectorEnd(bytes, bodyStart, bodyEnd, 2);
				if (identitiesEnd < 0) return 'malformed';
				const identityEnd = vectorEnd(bytes, bodyStart + 2, identitiesEnd, 2);
				ticket = identityEnd < 0 ? bytes.subarray(0, 0) : bytes.subarray(bodyStart + 4, identityEnd);
				break;
			}
		}
	}
	return new ParsedHello(
		bytes,
		serverName,
		offersAcmeTls,
		ticket,
		sessionIdEnd + 2,
		suitesEnd,
		schemesStart,
		schemesEnd,
		alpnStart,
		alpnEnd,
	);
}

/**
 * Returns the first DNS name of the `server_name` extension, and undefined if the extension is malformed. An invalid name is
 * treated as absent; OpenSSL decides whether the handshake fails.
 */
function readServerName(bytes: Buffer, start: number, end: number): string | undefined {
	const listEnd = vectorEnd(bytes, start, end, 2);
	if (listEnd < 0) return undefined;
	for (let at = start + 2; at < listEnd; ) {
		const nameStart = at + 3;
		const nameEnd = vectorEnd(bytes, at + 1, listEnd, 2);
		if (nameEnd < 0) return undefined;
		const nameType = bytes[at];
		at = nameEnd;
		if (nameType !== 0) continue;
		if (nameEnd - nameStart > MAX_SERVER_NAME_BYTES) return '';
		const name = bytes.toString('latin1', nameStart, nameEnd).toLowerCase();
		if (!/^[a-z0-9._:-]+$/.test(name)) return '';
		return name.endsWith('.') ? name.slice(0, -1) : name;
	}
	return '';
}

/** Reports whether the bytes are a list of protocol names, none of which is empty. */
function isProtocolList(bytes: Buffer, start: number, end: number): boolean {
	for (let at = start; at < end; ) {
		const nameEnd = vectorEnd(bytes, at, end, 1);
		if (nameEnd <= at + 1) return false;
		at = nameEnd;
	}
	return true;
}

/** Reports whether a valid list of protocol names contains `acme-tls/1`. */
function listsAcmeTls(bytes: Buffer, start: number, end: number): boolean {
	for (let at = start; at < end; at += 1 + bytes[at]!) {
		if (bytes[at] === ACME_TLS.length && ACME_TLS.compare(bytes, at + 1, at + 1 + ACME_TLS.length) === 0) return true;
	}
	return false;
}

/** Returns the 16-bit numbers between two positions as hexadecimal text. */
function toHexIds(bytes: Buffer, start: number, end: number): string[] {
	const hexIds: string[] = [];
	for (let at = start; at + 1 < end; at += 2) hexIds.push(bytes.toString('hex', at, at + 2));
	return hexIds;
}

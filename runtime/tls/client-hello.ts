/** Parser for the ClientHello, which is peeked at before the handshake begins (RFC 8446 §4.1.2, RFC 6066 §3, RFC 7301). */

/** The fields of a ClientHello that the server uses to choose a policy and a certificate. */
export interface ClientHello {
	/** The server name in lowercase, without a trailing dot; '' if the client sent none. */
	readonly serverName: string;
	/** Protocols in the client's order; empty if it offers none. */
	readonly alpn: readonly string[];
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
const MAX_SERVER_NAME_BYTES = 255;

/** Parses the ClientHello at the start of `bytes`, which may be split across several records. Never throws. */
export function readClientHello(bytes: Buffer): ClientHello | ClientHelloProblem {
	if (bytes.length === 0) return 'incomplete';
	if (bytes[0] !== HANDSHAKE_RECORD) return 'not-tls';
	if (bytes.length > 1 && bytes[1] !== 3) return 'not-tls';
	const message = extractMessage(bytes);
	return typeof message === 'string' ? message : parseHello(message);
}

/**
 * Returns the handshake message without its record headers. It is called each time more bytes arrive, and a hostile client may
 * send one-byte records, so nothing is copied before the message is complete.
 */
function extractMessage(bytes: Buffer): Buffer | ClientHelloProblem {
	const headerBytes: number[] = [];
	let receivedBytes = 0;
	let messageBytes = Infinity;
	for (let at = 0; ; ) {
		if (bytes.length < at + RECORD_HEADER_BYTES) return 'incomplete';
		if (bytes[at] !== HANDSHAKE_RECORD) return 'malformed';
		const recordBytes = bytes.readUInt16BE(at + 3);
		if (recordBytes === 0 || recordBytes > MAX_RECORD_BYTES) return 'malformed';
		const start = at + RECORD_HEADER_BYTES;
		at = start + recordBytes;
		const fragmentEnd = Math.min(at, bytes.length);
		receivedBytes += fragmentEnd - start;
		for (let i = start; i < fragmentEnd && headerBytes.length < MESSAGE_HEADER_BYTES; i++) headerBytes.push(bytes[i]!);
		if (headerBytes.length > 0 && headerBytes[0] !== CLIENT_HELLO) return 'malformed';
		if (messageBytes === Infinity && headerBytes.length === MESSAGE_HEADER_BYTES) {
			messageBytes = MESSAGE_HEADER_BYTES + ((headerBytes[1]! << 16) | (headerBytes[2]! << 8) | headerBytes[3]!);
			if (messageBytes > MAX_HELLO_BYTES) return 'malformed';
		}
		if (receivedBytes >= messageBytes) return joinRecords(bytes, messageBytes);
		if (bytes.length < at) return 'incomplete';
	}
}

/** Joins the contents of the records at the start of `bytes`, up to `messageBytes` bytes. The records must contain at least that many. */
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

/** A read position within a message. Reading past `end` sets `failed`. */
class Cursor {
	failed = false;
	readonly bytes: Buffer;
	readonly end: number;
	at: number;

	constructor(bytes: Buffer, at: number, end: number) {
		this.bytes = bytes;
		this.at = at;
		this.end = end;
	}

	get remaining(): number {
		return this.end - this.at;
	}

	readNumber(size: 1 | 2): number {
		const at = this.skip(size);
		if (at < 0) return 0;
		return size === 1 ? this.bytes[at]! : (this.bytes[at]! << 8) | this.bytes[at + 1]!;
	}

	/** Skips `length` bytes. Returns the position where they begin, or −1 if there are too few. */
	skip(length: number): number {
		const { at } = this;
		if (this.end - at < length) {
			this.failed = true;
			this.at = this.end;
			return -1;
		}
		this.at = at + length;
		return at;
	}

	/** Reads a vector whose length is encoded in `lengthSize` bytes. */
	readVector(lengthSize: 1 | 2): Cursor {
		const length = this.readNumber(lengthSize);
		const at = this.skip(length);
		return at < 0 ? new Cursor(this.bytes, 0, 0) : new Cursor(this.bytes, at, at + length);
	}

	/** The remaining bytes. */
	get remainingBytes(): Buffer {
		return this.bytes.subarray(this.at, this.end);
	}
}

/** A parsed ClientHello. The lists that are rarely needed are parsed when they are first read. */
class ParsedHello implements ClientHello {
	readonly serverName: string;
	readonly alpn: readonly string[];
	readonly ticket: Buffer | undefined;
	readonly #suitesCursor: Cursor;
	readonly #schemesCursor: Cursor | undefined;

	constructor(
		serverName: string,
		alpn: readonly string[],
		suites: Cursor,
		schemes: Cursor | undefined,
		ticket: Buffer | undefined,
	) {
		this.serverName = serverName;
		this.alpn = alpn;
		this.#suitesCursor = suites;
		this.#schemesCursor = schemes;
		this.ticket = ticket;
	}

	get cipherSuites(): readonly string[] {
		return toHexIds(this.#suitesCursor.remainingBytes);
	}

	get signatureSchemes(): readonly string[] {
		return this.#schemesCursor ? toHexIds(this.#schemesCursor.remainingBytes) : [];
	}
}

function parseHello(message: Buffer): ClientHello | 'malformed' {
	const cursor = new Cursor(message, 0, message.length);
	cursor.skip(4 + 2 + 32);
	cursor.readVector(1);
	const suites = cursor.readVector(2);
	cursor.readVector(1);
	if (cursor.failed) return 'malformed';
	let serverName = '';
	let alpn: readonly string[] = [];
	let schemes: Cursor | undefined;
	let ticket: Buffer | undefined;
	const extensions = cursor.remaining > 0 ? cursor.readVector(2) : cursor;
	while (extensions.remaining > 0) {
		const extensionType = extensions.readNumber(2);
		const extensionBody = extensions.readVector(2);
		if (extensions.failed) return 'malformed';
		if (extensionType === 0) serverName = readServerName(extensionBody);
		else if (extensionType === 16) alpn = readAlpn(extensionBody);
		else if (extensionType === 13) schemes = extensionBody.readVector(2);
		else if (extensionType === 35) ticket ??= extensionBody.remainingBytes;
		else if (extensionType === 41) {
			const identities = extensionBody.readVector(2);
			ticket = identities.readVector(2).remainingBytes;
		}
		if (extensionBody.failed) return 'malformed';
	}
	if (cursor.failed) return 'malformed';
	return new ParsedHello(serverName, alpn, suites, schemes, ticket);
}

/** Returns the first DNS name. An invalid name counts as absent; OpenSSL decides whether the handshake fails. */
function readServerName(body: Cursor): string {
	const nameList = body.readVector(2);
	while (nameList.remaining > 0) {
		const type = nameList.readNumber(1);
		const name = nameList.readVector(2);
		if (nameList.failed) break;
		if (type !== 0) continue;
		if (name.remaining > MAX_SERVER_NAME_BYTES) return '';
		const text = name.bytes.toString('latin1', name.at, name.end).toLowerCase();
		if (!/^[a-z0-9._:-]+$/.test(text)) return '';
		return text.endsWith('.') ? text.slice(0, -1) : text;
	}
	if (nameList.failed) body.failed = true;
	return '';
}

function readAlpn(body: Cursor): string[] {
	const protocolList = body.readVector(2);
	const protocols: string[] = [];
	while (protocolList.remaining > 0) {
		const name = protocolList.readVector(1);
		if (protocolList.failed || name.remaining === 0) {
			body.failed = true;
			break;
		}
		protocols.push(name.bytes.toString('latin1', name.at, name.end));
	}
	return protocols;
}

function toHexIds(list: Buffer): string[] {
	const hexIds: string[] = [];
	for (let at = 0; at + 1 < list.length; at += 2) hexIds.push(list.toString('hex', at, at + 2));
	return hexIds;
}

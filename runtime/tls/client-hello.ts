/** The first message of a TLS client, read before the handshake begins (RFC 8446 §4.1.2, RFC 6066 §3, RFC 7301). */

/** What a ClientHello says, as far as the server chooses by it. */
export interface ClientHello {
	/** Lower case, without a trailing dot; '' when the client sent none. */
	readonly serverName: string;
	/** Protocols in the client's order; empty when it offers none. */
	readonly alpn: readonly string[];
	/** Hexadecimal ids, four digits each, in the client's order. */
	readonly cipherSuites: readonly string[];
	readonly signatureSchemes: readonly string[];
	/** The session ticket that the client offers first (RFC 5077 §3.2, RFC 8446 §4.2.11); undefined or empty when it has none. */
	readonly ticket: Buffer | undefined;
}

/** What the first bytes of a connection are, when they are no whole ClientHello. */
export type HelloState = 'incomplete' | 'not-tls' | 'malformed';

/** Bytes of a ClientHello at most, its records' heads included: larger ones than any client sends are refused. */
export const LONGEST_HELLO: number = 64 * 1024;

const RECORD_HEAD = 5;
const MESSAGE_HEAD = 4;
const LONGEST_RECORD = 16_384 + 256;
const HANDSHAKE = 22;
const CLIENT_HELLO = 1;
const LONGEST_NAME = 255;

/** Reads the ClientHello at the beginning of `bytes`, which may be cut into several records. Never throws. */
export function readClientHello(bytes: Buffer): ClientHello | HelloState {
	if (bytes.length === 0) return 'incomplete';
	if (bytes[0] !== HANDSHAKE) return 'not-tls';
	if (bytes.length > 1 && bytes[1] !== 3) return 'not-tls';
	const message = handshakeMessage(bytes);
	return typeof message === 'string' ? message : readMessage(new Cursor(message));
}

/**
 * The handshake message without the heads of its records. It is asked for whenever more has come, and records may be of one
 * byte each: nothing is copied before the message is whole.
 */
function handshakeMessage(bytes: Buffer): Buffer | HelloState {
	const head: number[] = [];
	let length = 0;
	let size = Infinity;
	for (let at = 0; ; ) {
		if (bytes.length < at + RECORD_HEAD) return 'incomplete';
		if (bytes[at] !== HANDSHAKE) return 'malformed';
		const announced = bytes.readUInt16BE(at + 3);
		if (announced === 0 || announced > LONGEST_RECORD) return 'malformed';
		const start = at + RECORD_HEAD;
		at = start + announced;
		const here = Math.min(at, bytes.length);
		length += here - start;
		for (let i = start; i < here && head.length < MESSAGE_HEAD; i++) head.push(bytes[i]!);
		if (head.length > 0 && head[0] !== CLIENT_HELLO) return 'malformed';
		if (size === Infinity && head.length === MESSAGE_HEAD) {
			size = MESSAGE_HEAD + ((head[1]! << 16) | (head[2]! << 8) | head[3]!);
			if (size > LONGEST_HELLO) return 'malformed';
		}
		if (length >= size) return contentOf(bytes, size);
		if (bytes.length < at) return 'incomplete';
	}
}

/** The first so many bytes of what stands in records, which are known to be there. */
function contentOf(bytes: Buffer, size: number): Buffer {
	const pieces: Buffer[] = [];
	let left = size;
	for (let at = 0; left > 0; ) {
		const start = at + RECORD_HEAD;
		at = start + bytes.readUInt16BE(at + 3);
		pieces.push(bytes.subarray(start, Math.min(at, start + left)));
		left -= at - start;
	}
	return pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces);
}

/** A place in a message; reading beyond its end sets `failed`. */
class Cursor {
	failed = false;
	readonly #bytes: Buffer;
	#at = 0;

	constructor(bytes: Buffer) {
		this.#bytes = bytes;
	}

	get left(): number {
		return this.#bytes.length - this.#at;
	}

	number(size: number): number {
		if (this.left < size) {
			this.failed = true;
			this.#at = this.#bytes.length;
			return 0;
		}
		const value = this.#bytes.readUIntBE(this.#at, size);
		this.#at += size;
		return value;
	}

	take(length: number): Buffer {
		if (this.left < length) {
			this.failed = true;
			this.#at = this.#bytes.length;
			return Buffer.alloc(0);
		}
		const piece = this.#bytes.subarray(this.#at, this.#at + length);
		this.#at += length;
		return piece;
	}

	/** What a length of so many bytes stands before. */
	vector(lengthSize: number): Buffer {
		return this.take(this.number(lengthSize));
	}
}

function readMessage(cursor: Cursor): ClientHello | 'malformed' {
	cursor.take(4 + 2 + 32);
	cursor.vector(1);
	const suites = cursor.vector(2);
	cursor.vector(1);
	if (cursor.failed) return 'malformed';
	let serverName = '';
	let alpn: readonly string[] = [];
	let schemes: Buffer = Buffer.alloc(0);
	let ticket: Buffer | undefined;
	const extensions = new Cursor(cursor.left > 0 ? cursor.vector(2) : Buffer.alloc(0));
	while (extensions.left > 0) {
		const type = extensions.number(2);
		const body = new Cursor(extensions.vector(2));
		if (extensions.failed) return 'malformed';
		if (type === 0) serverName = readServerName(body);
		else if (type === 16) alpn = readAlpn(body);
		else if (type === 13) schemes = body.vector(2);
		else if (type === 35) ticket ??= body.take(body.left);
		else if (type === 41) ticket = new Cursor(body.vector(2)).vector(2);
		if (body.failed) return 'malformed';
	}
	if (cursor.failed) return 'malformed';
	return {
		serverName,
		alpn,
		get cipherSuites() {
			return ids(suites);
		},
		get signatureSchemes() {
			return ids(schemes);
		},
		ticket,
	};
}

/** The first DNS name; a name that is none counts as absent, and the handshake fails by it or goes on without. */
function readServerName(body: Cursor): string {
	const list = new Cursor(body.vector(2));
	while (list.left > 0) {
		const type = list.number(1);
		const name = list.vector(2);
		if (list.failed) break;
		if (type !== 0) continue;
		const text = name.toString('latin1').toLowerCase();
		if (name.length > LONGEST_NAME || !/^[a-z0-9._:-]+$/.test(text)) return '';
		return text.endsWith('.') ? text.slice(0, -1) : text;
	}
	if (list.failed) body.failed = true;
	return '';
}

function readAlpn(body: Cursor): string[] {
	const list = new Cursor(body.vector(2));
	const protocols: string[] = [];
	while (list.left > 0) {
		const name = list.vector(1);
		if (list.failed || name.length === 0) {
			body.failed = true;
			break;
		}
		protocols.push(name.toString('latin1'));
	}
	return protocols;
}

function ids(list: Buffer): string[] {
	const found: string[] = [];
	for (let at = 0; at + 1 < list.length; at += 2) found.push(list.toString('hex', at, at + 2));
	return found;
}

/** Transaction signatures (TSIG, RFC 8945), which authenticate DNS messages. */
import { createHmac, timingSafeEqual } from 'node:crypto';
import { IssueError } from '../issuer.ts';
import { encodeName, encodeUint16s, encodeUint32 } from './dynamic-update.ts';

/** A key that is shared with the DNS server. */
export interface TransactionKey {
	/** Name of the key, in lowercase, without a trailing dot. */
	readonly name: string;
	/** The algorithm, for example `hmac-sha256`. */
	readonly algorithm: string;
	readonly secret: Buffer;
}

const TYPE_TSIG = 250;
const CLASS_ANY = 255;
/** Maximum difference, in seconds, between the clocks of this machine and the DNS server. */
const FUDGE_SECONDS = 300;

const DIGESTS_BY_ALGORITHM: { readonly [algorithm: string]: string } = {
	'hmac-sha1': 'sha1',
	'hmac-sha256': 'sha256',
	'hmac-sha384': 'sha384',
	'hmac-sha512': 'sha512',
};

/** Signs a request; `time` is in seconds since the epoch. Throws IssueError for an unsupported algorithm. */
export function signMessage(
	message: Buffer,
	key: TransactionKey,
	time: number,
): { readonly message: Buffer; readonly mac: Buffer } {
	const mac = computeMac(key, message, signatureVariables(key, time, FUDGE_SECONDS, 0, Buffer.alloc(0)));
	const recordData = Buffer.concat([
		encodeName(key.algorithm),
		encodeTime48(time),
		encodeUint16s(FUDGE_SECONDS, mac.length),
		mac,
		message.subarray(0, 2),
		encodeUint16s(0, 0),
	]);
	const record = Buffer.concat([
		encodeName(key.name),
		encodeUint16s(TYPE_TSIG, CLASS_ANY),
		encodeUint32(0),
		encodeUint16s(recordData.length),
		recordData,
	]);
	const signedMessage = Buffer.concat([message, record]);
	signedMessage.writeUInt16BE(signedMessage.readUInt16BE(10) + 1, 10);
	return { message: signedMessage, mac };
}

/**
 * Throws IssueError unless the response has a valid signature with the key. The signature also covers `requestMac`, the signature
 * of the request (§5.3).
 */
export function verifyResponse(response: Buffer, key: TransactionKey, requestMac: Buffer): void {
	const signature = findSignature(response);
	if (!signature) {
		throw new IssueError('dns/unsigned', 'The name server did not sign its response; it may not know the key.');
	}
	const { mac, time, fudge, error, otherData, recordStart } = signature;
	if (error !== 0) {
		const errorNames: { readonly [code: number]: string } = {
			16: 'BADSIG',
			17: 'BADKEY',
			18: 'BADTIME',
			22: 'BADTRUNC',
		};
		throw new IssueError('dns/refused', `The name server refused the key: ${errorNames[error] ?? error}.`);
	}
	const unsignedResponse = Buffer.from(response.subarray(0, recordStart));
	unsignedResponse.writeUInt16BE(unsignedResponse.readUInt16BE(10) - 1, 10);
	const expectedMac = computeMac(
		key,
		encodeUint16s(requestMac.length),
		requestMac,
		unsignedResponse,
		signatureVariables(key, time, fudge, error, otherData),
	);
	const isFresh = Math.abs(Date.now() / 1000 - time) <= fudge;
	if (isFresh && mac.length === expectedMac.length && timingSafeEqual(mac, expectedMac)) return;
	throw new IssueError('dns/unsigned', "The signature of the name server's response is wrong.");
}

function computeMac({ algorithm, secret }: TransactionKey, ...parts: readonly Buffer[]): Buffer {
	const digest = DIGESTS_BY_ALGORITHM[algorithm];
	if (digest === undefined) throw new IssueError('dns/key', `\`${algorithm}\` is not a supported algorithm.`);
	const signer = createHmac(digest, secret);
	for (const part of parts) signer.update(part);
	return signer.digest();
}

/** Returns the data that the signature covers in addition to the message (§4.3.3). */
function signatureVariables(
	key: TransactionKey,
	time: number,
	fudge: number,
	error: number,
	otherData: Buffer,
): Buffer {
	return Buffer.concat([
		encodeName(key.name),
		encodeUint16s(CLASS_ANY),
		encodeUint32(0),
		encodeName(key.algorithm),
		encodeTime48(time),
		encodeUint16s(fudge, error, otherData.length),
		otherData,
	]);
}

function encodeTime48(seconds: number): Buffer {
	const bytes = Buffer.alloc(6);
	bytes.writeUIntBE(seconds, 0, 6);
	return bytes;
}

interface Signature {
	readonly mac: Buffer;
	/** Time of signing, in seconds since the epoch. */
	readonly time: number;
	readonly fudge: number;
	readonly error: number;
	readonly otherData: Buffer;
	/** Offset of the record in the message. */
	readonly recordStart: number;
}

/** Returns the last record of a message if that record is a signature, otherwise undefined. */
function findSignature(message: Buffer): Signature | undefined {
	try {
		let at = 12;
		for (let remaining = message.readUInt16BE(4); remaining > 0; remaining--) at = skipName(message, at) + 4;
		const recordCount = message.readUInt16BE(6) + message.readUInt16BE(8) + message.readUInt16BE(10);
		let recordStart = at;
		for (let remaining = recordCount; remaining > 0; remaining--) {
			recordStart = at;
			const fixedFields = skipName(message, at);
			const recordEnd = fixedFields + 10 + message.readUInt16BE(fixedFields + 8);
			if (remaining === 1 && message.readUInt16BE(fixedFields) === TYPE_TSIG)
				return readSignature(message, fixedFields + 10, recordStart);
			at = recordEnd;
		}
		return undefined;
	} catch (error) {
		if (error instanceof RangeError) return undefined;
		throw error;
	}
}

function readSignature(message: Buffer, dataStart: number, recordStart: number): Signature {
	let at = skipName(message, dataStart);
	const time = message.readUIntBE(at, 6);
	const fudge = message.readUInt16BE(at + 6);
	const macLength = message.readUInt16BE(at + 8);
	at += 10;
	const mac = message.subarray(at, at + macLength);
	at += macLength + 2;
	const error = message.readUInt16BE(at);
	const otherLength = message.readUInt16BE(at + 2);
	const otherData = message.subarray(at + 4, at + 4 + otherLength);
	return { mac, time, fudge, error, otherData, recordStart };
}

function skipName(message: Buffer, nameStart: number): number {
	let at = nameStart;
	for (;;) {
		const length = message.readUInt8(at);
		if (length === 0) return at + 1;
		if (length >= 0xc0) return at + 2;
		at += 1 + length;
	}
}

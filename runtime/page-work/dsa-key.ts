/** Encodes DSA private keys as PEM with the label `DSA PRIVATE KEY`, a format that OpenSSL no longer writes. */
import type { KeyObject } from 'node:crypto';

/** Tags of DER elements (X.690). */
const SEQUENCE_TAG = 0x30;
const INTEGER_TAG = 0x02;
const OCTET_STRING_TAG = 0x04;

/** Returns a private key as PEM. It contains a DER sequence of 0, p, q, g, the public y and the private x. */
export function dsaKeyPem(key: KeyObject): string {
	const [, algorithm, wrappedKey] = sequenceElements(key.export({ type: 'pkcs8', format: 'der' }));
	const [, parameters] = sequenceElements(algorithm!);
	const [p, q, g] = sequenceElements(parameters!).map(decodeInteger) as [bigint, bigint, bigint];
	const x = decodeInteger(elementsOf(wrappedKey!, OCTET_STRING_TAG)[0]!);
	const keyBody = Buffer.concat([0n, p, q, g, modularPower(g, x, p), x].map(encodeInteger));
	const lines = encodeElement(SEQUENCE_TAG, keyBody)
		.toString('base64')
		.match(/.{1,64}/g)!;
	return `-----BEGIN DSA PRIVATE KEY-----\n${lines.join('\n')}\n-----END DSA PRIVATE KEY-----\n`;
}

/** Returns the elements of a DER sequence. */
function sequenceElements(bytes: Buffer): Buffer[] {
	return elementsOf(bytes, SEQUENCE_TAG);
}

/** Returns the elements within a DER element of the given tag, each with its own tag and length. */
function elementsOf(bytes: Buffer, tag: number): Buffer[] {
	if (bytes[0] !== tag) throw new Error(`expected tag ${tag} in a key`);
	const elements: Buffer[] = [];
	for (let offset = headLength(bytes); offset < bytes.length; ) {
		const remainingBytes = bytes.subarray(offset);
		const elementLength = headLength(remainingBytes) + contentLength(remainingBytes);
		elements.push(remainingBytes.subarray(0, elementLength));
		offset += elementLength;
	}
	return elements;
}

function headLength(bytes: Buffer): number {
	return bytes[1]! < 0x80 ? 2 : 2 + (bytes[1]! & 0x7f);
}

function contentLength(bytes: Buffer): number {
	return bytes[1]! < 0x80 ? bytes[1]! : bytes.readUIntBE(2, bytes[1]! & 0x7f);
}

function decodeInteger(bytes: Buffer): bigint {
	if (bytes[0] !== INTEGER_TAG) throw new Error('expected an integer in a key');
	return BigInt(`0x${bytes.toString('hex', headLength(bytes))}`);
}

function encodeInteger(value: bigint): Buffer {
	let hex = value.toString(16);
	if (hex.length % 2 === 1) hex = `0${hex}`;
	// The first bit is the sign: a positive number whose first bit is set needs a leading zero byte.
	if (Number.parseInt(hex.slice(0, 2), 16) >= 0x80) hex = `00${hex}`;
	return encodeElement(INTEGER_TAG, Buffer.from(hex, 'hex'));
}

function encodeElement(tag: number, content: Buffer): Buffer {
	const { length } = content;
	const lengthBytes = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
	return Buffer.concat([Buffer.from([tag, ...lengthBytes]), content]);
}

function modularPower(base: bigint, exponent: bigint, modulus: bigint): bigint {
	let result = 1n;
	let square = base % modulus;
	for (let remainingExponent = exponent; remainingExponent > 0n; remainingExponent >>= 1n) {
		if (remainingExponent & 1n) result = (result * square) % modulus;
		square = (square * square) % modulus;
	}
	return result;
}

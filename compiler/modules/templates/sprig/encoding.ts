/** sprig's functions for encodings, digests and random strings. */
import { createCipheriv, createDecipheriv, createHash, randomBytes, randomInt, randomUUID } from 'node:crypto';
import { defineFunction, type FunctionList } from '../function.ts';
import { fromJson, toJson } from '../json-text.ts';
import type { TemplateRun } from '../run.ts';
import type { Value } from '../value.ts';
import { clampCount } from './casts.ts';

const BASE32_ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const DIGITS = '0123456789';
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const PRINTABLE_CHARACTERS = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).join('');

const parseJsonFunction = defineFunction('string', (run, text: string) => {
	run.budget.spendSteps(text.length >> 4);
	try {
		return fromJson(text);
	} catch (error) {
		if (error instanceof SyntaxError) return run.fail(`invalid JSON: ${error.message}`);
		throw error;
	}
});
const jsonFunction = defineFunction('any', (run, value: Value) => toJson(run, value, '', false));
const prettyJsonFunction = defineFunction('any', (run, value: Value) => toJson(run, value, '  ', false));
const rawJsonFunction = defineFunction('any', (run, value: Value) => toJson(run, value, '', true));
const defineDigestFunction = (algorithm: string) =>
	defineFunction('string', (run, text: string) => {
		run.budget.spendSteps(text.length >> 5);
		return createHash(algorithm).update(text).digest('hex');
	});
const defineRandomFunction = (alphabet: string) =>
	defineFunction('int', (run, count: bigint) => {
		const length = clampCount(count, run.budget.bounds.maxCharacters);
		run.budget.chargeText(length * 4);
		run.budget.spendSteps(length);
		return run.once(() => Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join(''));
	});

export const ENCODING_FUNCTIONS: FunctionList = {
	b64enc: defineFunction('string', (_, text: string) => Buffer.from(text).toString('base64')),
	b64dec: defineFunction('string', (run, text: string) =>
		/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(text.replace(/[\r\n]/g, ''))
			? Buffer.from(text, 'base64').toString('utf8')
			: run.fail('illegal base64 data'),
	),
	b32enc: defineFunction('string', (run, text: string) => toBase32(run, text)),
	b32dec: defineFunction('string', fromBase32),
	fromJson: parseJsonFunction,
	mustFromJson: parseJsonFunction,
	toJson: jsonFunction,
	mustToJson: jsonFunction,
	toPrettyJson: prettyJsonFunction,
	mustToPrettyJson: prettyJsonFunction,
	toRawJson: rawJsonFunction,
	mustToRawJson: rawJsonFunction,
	sha1sum: defineDigestFunction('sha1'),
	sha256sum: defineDigestFunction('sha256'),
	sha512sum: defineDigestFunction('sha512'),
	adler32sum: defineFunction('string', (run, text: string) => {
		let [a, b] = [1, 0];
		run.budget.spendSteps(text.length >> 5);
		for (const byte of Buffer.from(text)) {
			a = (a + byte) % 65521;
			b = (b + a) % 65521;
		}
		return String(b * 65536 + a);
	}),
	encryptAES: defineFunction('string string', (run, key: string, text: string) =>
		run.once(() => {
			const iv = randomBytes(16);
			const cipher = createCipheriv('aes-256-cbc', toAesKey(key), iv);
			return Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final()]).toString('base64');
		}),
	),
	decryptAES: defineFunction('string string', (run, key: string, text: string) => {
		const encryptedBytes = Buffer.from(text, 'base64');
		try {
			const decipher = createDecipheriv('aes-256-cbc', toAesKey(key), encryptedBytes.subarray(0, 16));
			return Buffer.concat([decipher.update(encryptedBytes.subarray(16)), decipher.final()]).toString('utf8');
		} catch {
			return run.fail('the text was not encrypted with this key');
		}
	}),
	randAlphaNum: defineRandomFunction(LETTERS + DIGITS),
	randAlpha: defineRandomFunction(LETTERS),
	randNumeric: defineRandomFunction(DIGITS),
	randAscii: defineRandomFunction(PRINTABLE_CHARACTERS),
	randBytes: defineFunction('int', (run, count: bigint) => {
		const length = clampCount(count, run.budget.bounds.maxCharacters);
		run.budget.chargeText(length * 2);
		return run.once(() => randomBytes(length).toString('base64'));
	}),
	uuidv4: defineFunction('', run => run.once(() => randomUUID())),
};

/** Returns the first 32 bytes of a key, padded with zeros. */
function toAesKey(key: string): Buffer {
	const keyBytes = Buffer.alloc(32);
	keyBytes.write(key);
	return keyBytes;
}

function toBase32(run: TemplateRun, text: string): string {
	const bytes = Buffer.from(text);
	run.budget.spendSteps(bytes.length >> 2);
	let result = '';
	let pendingBitCount = 0;
	let bitBuffer = 0;
	for (const byte of bytes) {
		bitBuffer = ((bitBuffer << 8) | byte) & 0xfff;
		for (pendingBitCount += 8; pendingBitCount >= 5; pendingBitCount -= 5)
			result += BASE32_ALPHABET[(bitBuffer >> (pendingBitCount - 5)) & 31];
	}
	if (pendingBitCount > 0) result += BASE32_ALPHABET[(bitBuffer << (5 - pendingBitCount)) & 31];
	return result.padEnd(Math.ceil(result.length / 8) * 8, '=');
}

function fromBase32(run: TemplateRun, encodedText: string): string {
	let textEnd = encodedText.length;
	while (textEnd > 0 && encodedText[textEnd - 1] === '=') textEnd--;
	const unpaddedText = encodedText.slice(0, textEnd);
	if (!/^[A-Z2-7]*$/.test(unpaddedText)) return run.fail('illegal base32 data');
	run.budget.spendSteps(unpaddedText.length >> 2);
	const bytes: number[] = [];
	let pendingBitCount = 0;
	let bitBuffer = 0;
	for (const c of unpaddedText) {
		bitBuffer = ((bitBuffer << 5) | BASE32_ALPHABET.indexOf(c)) & 0xfff;
		pendingBitCount += 5;
		if (pendingBitCount < 8) continue;
		pendingBitCount -= 8;
		bytes.push((bitBuffer >> pendingBitCount) & 255);
	}
	return Buffer.from(bytes).toString('utf8');
}

/** sprig's functions for encodings, digests and random strings. */
import { createCipheriv, createDecipheriv, createHash, randomBytes, randomInt, randomUUID } from 'node:crypto';
import { defineFunction, type FunctionList } from '../function.ts';
import { fromJson, toJson } from '../json-text.ts';
import type { TemplateRun } from '../run.ts';
import type { Value } from '../value.ts';
import { clampCount } from './casts.ts';

const BASE32 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567';
const DIGITS = '0123456789';
const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const PRINTABLE = Array.from({ length: 95 }, (_, i) => String.fromCharCode(32 + i)).join('');

const parseJsonFunction = defineFunction('string', (run, text: string) => {
	run.budget.spend(text.length >> 4);
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
		run.budget.spend(text.length >> 5);
		return createHash(algorithm).update(text).digest('hex');
	});
const defineRandomFunction = (alphabet: string) =>
	defineFunction('int', (run, count: bigint) => {
		const length = clampCount(count, run.budget.bounds.characters);
		run.budget.chargeText(length * 4);
		run.budget.spend(length);
		return run.once(() => Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join(''));
	});

/** sprig's functions from `b64enc` to `uuidv4`. */
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
		run.budget.spend(text.length >> 5);
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
		const bytes = Buffer.from(text, 'base64');
		try {
			const decipher = createDecipheriv('aes-256-cbc', toAesKey(key), bytes.subarray(0, 16));
			return Buffer.concat([decipher.update(bytes.subarray(16)), decipher.final()]).toString('utf8');
		} catch {
			return run.fail('the text was not encrypted with this key');
		}
	}),
	randAlphaNum: defineRandomFunction(LETTERS + DIGITS),
	randAlpha: defineRandomFunction(LETTERS),
	randNumeric: defineRandomFunction(DIGITS),
	randAscii: defineRandomFunction(PRINTABLE),
	randBytes: defineFunction('int', (run, count: bigint) => {
		const length = clampCount(count, run.budget.bounds.characters);
		run.budget.chargeText(length * 2);
		return run.once(() => randomBytes(length).toString('base64'));
	}),
	uuidv4: defineFunction('', run => run.once(() => randomUUID())),
};

/** Returns the first 32 bytes of a key, padded with zeros. */
function toAesKey(key: string): Buffer {
	const bytes = Buffer.alloc(32);
	bytes.write(key);
	return bytes;
}

function toBase32(run: TemplateRun, text: string): string {
	const bytes = Buffer.from(text);
	run.budget.spend(bytes.length >> 2);
	let result = '';
	let bits = 0;
	let value = 0;
	for (const byte of bytes) {
		value = ((value << 8) | byte) & 0xfff;
		for (bits += 8; bits >= 5; bits -= 5) result += BASE32[(value >> (bits - 5)) & 31];
	}
	if (bits > 0) result += BASE32[(value << (5 - bits)) & 31];
	return result.padEnd(Math.ceil(result.length / 8) * 8, '=');
}

function fromBase32(run: TemplateRun, encoded: string): string {
	let end = encoded.length;
	while (end > 0 && encoded[end - 1] === '=') end--;
	const text = encoded.slice(0, end);
	if (!/^[A-Z2-7]*$/.test(text)) return run.fail('illegal base32 data');
	run.budget.spend(text.length >> 2);
	const bytes: number[] = [];
	let bits = 0;
	let value = 0;
	for (const c of text) {
		value = ((value << 5) | BASE32.indexOf(c)) & 0xfff;
		bits += 5;
		if (bits < 8) continue;
		bits -= 8;
		bytes.push((value >> bits) & 255);
	}
	return Buffer.from(bytes).toString('utf8');
}

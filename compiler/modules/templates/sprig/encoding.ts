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

const parse = defineFunction('string', (run, text: string) => {
	run.budget.spend(text.length >> 4);
	try {
		return fromJson(text);
	} catch (error) {
		if (error instanceof SyntaxError) return run.fail(`invalid JSON: ${error.message}`);
		throw error;
	}
});
const json = defineFunction('any', (run, value: Value) => toJson(run, value, '', false));
const prettyJson = defineFunction('any', (run, value: Value) => toJson(run, value, '  ', false));
const rawJson = defineFunction('any', (run, value: Value) => toJson(run, value, '', true));
const digest = (algorithm: string) =>
	defineFunction('string', (run, s: string) => {
		run.budget.spend(s.length >> 5);
		return createHash(algorithm).update(s).digest('hex');
	});
const random = (alphabet: string) =>
	defineFunction('int', (run, count: bigint) => {
		const length = clampCount(count, run.budget.bounds.characters);
		run.budget.text(length * 4);
		run.budget.spend(length);
		return run.once(() => Array.from({ length }, () => alphabet[randomInt(alphabet.length)]).join(''));
	});

/** sprig's functions from `b64enc` to `uuidv4`. */
export const ENCODING_FUNCTIONS: FunctionList = {
	b64enc: defineFunction('string', (_, s: string) => Buffer.from(s).toString('base64')),
	b64dec: defineFunction('string', (run, s: string) =>
		/^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(s.replace(/[\r\n]/g, ''))
			? Buffer.from(s, 'base64').toString('utf8')
			: run.fail('illegal base64 data'),
	),
	b32enc: defineFunction('string', (run, s: string) => base32(run, s)),
	b32dec: defineFunction('string', fromBase32),
	fromJson: parse,
	mustFromJson: parse,
	toJson: json,
	mustToJson: json,
	toPrettyJson: prettyJson,
	mustToPrettyJson: prettyJson,
	toRawJson: rawJson,
	mustToRawJson: rawJson,
	sha1sum: digest('sha1'),
	sha256sum: digest('sha256'),
	sha512sum: digest('sha512'),
	adler32sum: defineFunction('string', (run, s: string) => {
		let [a, b] = [1, 0];
		run.budget.spend(s.length >> 5);
		for (const byte of Buffer.from(s)) {
			a = (a + byte) % 65521;
			b = (b + a) % 65521;
		}
		return String(b * 65536 + a);
	}),
	encryptAES: defineFunction('string string', (run, key: string, text: string) =>
		run.once(() => {
			const iv = randomBytes(16);
			const cipher = createCipheriv('aes-256-cbc', aesKey(key), iv);
			return Buffer.concat([iv, cipher.update(text, 'utf8'), cipher.final()]).toString('base64');
		}),
	),
	decryptAES: defineFunction('string string', (run, key: string, text: string) => {
		const bytes = Buffer.from(text, 'base64');
		try {
			const decipher = createDecipheriv('aes-256-cbc', aesKey(key), bytes.subarray(0, 16));
			return Buffer.concat([decipher.update(bytes.subarray(16)), decipher.final()]).toString('utf8');
		} catch {
			return run.fail('the text was not encrypted with this key');
		}
	}),
	randAlphaNum: random(LETTERS + DIGITS),
	randAlpha: random(LETTERS),
	randNumeric: random(DIGITS),
	randAscii: random(PRINTABLE),
	randBytes: defineFunction('int', (run, count: bigint) => {
		const length = clampCount(count, run.budget.bounds.characters);
		run.budget.text(length * 2);
		return run.once(() => randomBytes(length).toString('base64'));
	}),
	uuidv4: defineFunction('', run => run.once(() => randomUUID())),
};

/** Returns the first 32 bytes of a key, padded with zeros. */
function aesKey(key: string): Buffer {
	const bytes = Buffer.alloc(32);
	bytes.write(key);
	return bytes;
}

function base32(run: TemplateRun, s: string): string {
	const bytes = Buffer.from(s);
	run.budget.spend(bytes.length >> 2);
	let out = '';
	let bits = 0;
	let value = 0;
	for (const byte of bytes) {
		value = ((value << 8) | byte) & 0xfff;
		for (bits += 8; bits >= 5; bits -= 5) out += BASE32[(value >> (bits - 5)) & 31];
	}
	if (bits > 0) out += BASE32[(value << (5 - bits)) & 31];
	return out.padEnd(Math.ceil(out.length / 8) * 8, '=');
}

function fromBase32(run: TemplateRun, s: string): string {
	let end = s.length;
	while (end > 0 && s[end - 1] === '=') end--;
	const text = s.slice(0, end);
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

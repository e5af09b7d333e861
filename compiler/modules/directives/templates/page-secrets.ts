/** Slow sprig functions: password hashes, derived passwords, keys, address lookups. The work is done on another thread. */
import { createHmac } from 'node:crypto';
import type { PageKeyKind, PageTask } from '../../../exchange/page-work.ts';
import { defineFunction, type FunctionList } from '../../templates/function.ts';
import type { TemplateRun } from '../../templates/run.ts';
import { pageHostOf } from './page-host.ts';

/** Maximum bytes of a password that bcrypt uses. */
const MAX_PASSWORD = 72;

/** Maximum counter of a derived password. */
const MAX_COUNTER = 0xffff_ffffn;

/** The functions whose work is done on another thread: `bcrypt` to `getHostByName`. */
export const SECRET_FUNCTIONS: FunctionList = {
	bcrypt: defineFunction('string', (run, password: string) => bcrypt(run, password)),
	htpasswd: defineFunction('string string', (run, user: string, password: string) =>
		user.includes(':') ? `invalid username: ${user}` : `${user}:${bcrypt(run, password)}`,
	),
	derivePassword: defineFunction('int string string string string', derivePassword),
	genPrivateKey: defineFunction('string', (run, kind: string) => {
		const wanted = kind === '' ? 'rsa' : kind;
		if (!isKeyKind(wanted)) return `Unknown type ${kind}`;
		return elsewhere(run, { task: 'key', kind: wanted });
	}),
	getHostByName: defineFunction('string', (run, host: string) => {
		const addresses = elsewhere(run, { task: 'addresses', host }).split(' ');
		return run.once(() => addresses[Math.floor(Math.random() * addresses.length)]!);
	}),
};

/**
 * Does work on another thread; the page is executed again when it is done. Throws Suspension, FunctionError, or HttpError 503 if
 * too much work is pending.
 */
function elsewhere(run: TemplateRun, task: PageTask): string {
	const host = pageHostOf(run);
	run.budget.spend(100);
	const { work } = host.site;
	if (!work) return run.fail('it is not available while a configuration is checked');
	return host.later(() => work.run(task));
}

function bcrypt(run: TemplateRun, password: string): string {
	if (Buffer.byteLength(password) > MAX_PASSWORD) {
		return `failed to encrypt string with bcrypt: bcrypt: password length exceeds ${MAX_PASSWORD} bytes`;
	}
	return elsewhere(run, { task: 'bcrypt', password });
}

function isKeyKind(kind: string): kind is PageKeyKind {
	return kind === 'rsa' || kind === 'dsa' || kind === 'ecdsa' || kind === 'ed25519';
}

/** The patterns of derived passwords (Master Password algorithm, version 3). Each letter stands for a set of characters. */
const SHAPES: ReadonlyMap<string, readonly string[]> = new Map([
	['maximum', ['anoxxxxxxxxxxxxxxxxx', 'axxxxxxxxxxxxxxxxxno']],
	[
		'long',
		[
			...['CvcvnoCvcvCvcv', 'CvcvCvcvnoCvcv', 'CvcvCvcvCvcvno', 'CvccnoCvcvCvcv', 'CvccCvcvnoCvcv', 'CvccCvcvCvcvno'],
			...['CvcvnoCvccCvcv', 'CvcvCvccnoCvcv', 'CvcvCvccCvcvno', 'CvcvnoCvcvCvcc', 'CvcvCvcvnoCvcc', 'CvcvCvcvCvccno'],
			...['CvccnoCvccCvcv', 'CvccCvccnoCvcv', 'CvccCvccCvcvno', 'CvcvnoCvccCvcc', 'CvcvCvccnoCvcc', 'CvcvCvccCvccno'],
			...['CvccnoCvcvCvcc', 'CvccCvcvnoCvcc', 'CvccCvcvCvccno'],
		],
	],
	['medium', ['CvcnoCvc', 'CvcCvcno']],
	['short', ['Cvcn']],
	['basic', ['aaanaaan', 'aannaaan', 'aaannaaa']],
	['pin', ['nnnn']],
]);

const VOWELS = 'AEIOU';
const CONSONANTS = 'BCDFGHJKLMNPQRSTVWXYZ';
const DIGITS = '0123456789';
const LETTERS = `${VOWELS}${VOWELS.toLowerCase()}${CONSONANTS}${CONSONANTS.toLowerCase()}`;

const CHARACTERS: { readonly [letter: string]: string } = {
	V: VOWELS,
	C: CONSONANTS,
	v: VOWELS.toLowerCase(),
	c: CONSONANTS.toLowerCase(),
	A: `${VOWELS}${CONSONANTS}`,
	a: LETTERS,
	n: DIGITS,
	o: "@&%?,=[]_:-+*$#!'^~;()/.",
	x: `${LETTERS}${DIGITS}!@#$%^&*()`,
};

const SCOPE = 'com.lyndir.masterpassword';

/** Returns a site's password, which is determined by counter, kind, master password, user and site. */
function derivePassword(
	run: TemplateRun,
	counter: bigint,
	kind: string,
	password: string,
	user: string,
	site: string,
): string {
	const shapes = SHAPES.get(kind);
	if (!shapes) return `cannot find password template ${kind}`;
	if (counter < 0n || counter > MAX_COUNTER) return run.fail(`${counter} overflows uint32`);
	const salt = Buffer.concat([Buffer.from(SCOPE), counted(user)]).toString('latin1');
	const key = Buffer.from(elsewhere(run, { task: 'scrypt', password, salt }), 'hex');
	const count = Buffer.alloc(4);
	count.writeUInt32BE(Number(counter));
	const seed = createHmac('sha256', key)
		.update(Buffer.concat([Buffer.from(SCOPE), counted(site), count]))
		.digest();
	const shape = shapes[seed[0]! % shapes.length]!;
	return Array.from(shape, (letter, i) => {
		const characters = CHARACTERS[letter]!;
		return characters[seed[i + 1]! % characters.length];
	}).join('');
}

/** Encodes a string: its length in four bytes, followed by its bytes. */
function counted(text: string): Buffer {
	const bytes = Buffer.from(text);
	const length = Buffer.alloc(4);
	length.writeUInt32BE(bytes.length);
	return Buffer.concat([length, bytes]);
}

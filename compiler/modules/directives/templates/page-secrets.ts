/** The slow functions of sprig, whose work is done on another thread: password hashes, derived passwords, keys, address lookups. */
import { createHmac } from 'node:crypto';
import type { PageKeyKind, PageTask } from '../../../exchange/page-work.ts';
import { defineFunction, type FunctionList } from '../../templates/function.ts';
import type { TemplateRun } from '../../templates/run.ts';
import { pageHostOf } from './page-host.ts';

/** Maximum length in bytes of a password that bcrypt can hash. */
const MAX_PASSWORD_BYTES = 72;

/** Maximum value of the counter in `derivePassword`. */
const MAX_PASSWORD_COUNTER = 0xffff_ffffn;

export const SECRET_FUNCTIONS: FunctionList = {
	bcrypt: defineFunction('string', (run, password: string) => bcrypt(run, password)),
	htpasswd: defineFunction('string string', (run, user: string, password: string) =>
		user.includes(':') ? `invalid username: ${user}` : `${user}:${bcrypt(run, password)}`,
	),
	derivePassword: defineFunction('int string string string string', derivePassword),
	genPrivateKey: defineFunction('string', (run, kind: string) => {
		const keyKind = kind === '' ? 'rsa' : kind;
		if (!isKeyKind(keyKind)) return `Unknown type ${kind}`;
		return runOnOtherThread(run, { task: 'key', kind: keyKind });
	}),
	getHostByName: defineFunction('string', (run, host: string) => {
		const addresses = runOnOtherThread(run, { task: 'addresses', host }).split(' ');
		return run.once(() => addresses[Math.floor(Math.random() * addresses.length)]!);
	}),
};

/**
 * Starts a task on another thread and throws Suspension. When the task is done, the page is executed again, and this function then
 * returns the result. Throws FunctionError if the task fails, and HttpError 503 if too many tasks are pending.
 */
function runOnOtherThread(run: TemplateRun, task: PageTask): string {
	const host = pageHostOf(run);
	run.budget.spendSteps(100);
	const { pageWork: work } = host.stepState;
	if (!work) return run.fail('it is not available while a configuration is checked');
	return host.runSlowWork(() => work.run(task));
}

function bcrypt(run: TemplateRun, password: string): string {
	if (Buffer.byteLength(password) > MAX_PASSWORD_BYTES) {
		return `failed to encrypt string with bcrypt: bcrypt: password length exceeds ${MAX_PASSWORD_BYTES} bytes`;
	}
	return runOnOtherThread(run, { task: 'bcrypt', password });
}

function isKeyKind(kind: string): kind is PageKeyKind {
	return kind === 'rsa' || kind === 'dsa' || kind === 'ecdsa' || kind === 'ed25519';
}

/**
 * The templates of derived passwords by kind (Master Password algorithm, version 3). Each letter of a template stands for a set of
 * characters.
 */
const PASSWORD_TEMPLATES: ReadonlyMap<string, readonly string[]> = new Map([
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

const CHARACTERS_BY_LETTER: { readonly [letter: string]: string } = {
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

const ALGORITHM_SCOPE = 'com.lyndir.masterpassword';

/**
 * Returns the password of a user for a site. It is derived from the arguments: the same master password, site, user, counter and
 * kind always give the same password.
 */
function derivePassword(
	run: TemplateRun,
	counter: bigint,
	kind: string,
	masterPassword: string,
	user: string,
	site: string,
): string {
	const passwordTemplates = PASSWORD_TEMPLATES.get(kind);
	if (!passwordTemplates) return `cannot find password template ${kind}`;
	if (counter < 0n || counter > MAX_PASSWORD_COUNTER) return run.fail(`${counter} overflows uint32`);
	const salt = Buffer.concat([Buffer.from(ALGORITHM_SCOPE), encodeWithLength(user)]).toString('latin1');
	const masterKey = Buffer.from(runOnOtherThread(run, { task: 'scrypt', password: masterPassword, salt }), 'hex');
	const counterBytes = Buffer.alloc(4);
	counterBytes.writeUInt32BE(Number(counter));
	const seed = createHmac('sha256', masterKey)
		.update(Buffer.concat([Buffer.from(ALGORITHM_SCOPE), encodeWithLength(site), counterBytes]))
		.digest();
	const passwordTemplate = passwordTemplates[seed[0]! % passwordTemplates.length]!;
	return Array.from(passwordTemplate, (letter, i) => {
		const characters = CHARACTERS_BY_LETTER[letter]!;
		return characters[seed[i + 1]! % characters.length];
	}).join('');
}

/** Encodes a text as its length in four bytes, followed by its bytes. */
function encodeWithLength(text: string): Buffer {
	const bytes = Buffer.from(text);
	const length = Buffer.alloc(4);
	length.writeUInt32BE(bytes.length);
	return Buffer.concat([length, bytes]);
}

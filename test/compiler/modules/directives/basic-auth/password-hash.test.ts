/** Password hashes: parsing, and decoy hashes for unknown users. */
import * as argon2 from 'argon2';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
	decoyHashFor,
	type HashAlgorithm,
	type PasswordHash,
	parsePasswordHash,
} from '../../../../../compiler/modules/directives/basic-auth/password-hash.ts';
import { verifyPassword } from '../../../../../runtime/passwords/verify-password.ts';

const BCRYPT = '$2b$04$dn9tFKKjjviJcZyNIh9.FegXvwX0ahZVruFNmM.efvz3DjFl884fW';
const ARGON = '$argon2id$v=19$m=64,t=1,p=1$c29tZXNhbHRzb21lc2FsdA$VPzeojHk1q8RmP6wf0MS/45pZQ8EyhmWIyRCmRpuqRY';

const reading = suite('reading hashes');

for (const [algorithm, text] of [
	['bcrypt', BCRYPT],
	['bcrypt', BCRYPT.replace('2b', '2a')],
	['bcrypt', BCRYPT.replace('2b', '2y')],
	['argon2id', ARGON],
] as const) {
	reading(`${algorithm} ${text.slice(0, 12)} is parsed, plain and as base64, and verifies its password`, () => {
		for (const form of [text, Buffer.from(text).toString('base64')]) {
			const hash = parsePasswordHash(algorithm, form) as PasswordHash;
			assert.is(hash.text, text);
			assert.is(verifyPassword(hash, 'hiccup'), true);
			assert.is(verifyPassword(hash, 'hiccuq'), false);
			assert.is(verifyPassword(hash, ''), false);
		}
	});
}

const REFUSED: readonly (readonly [HashAlgorithm, string, RegExp])[] = [
	['bcrypt', 'plain', /not a bcrypt hash/],
	['bcrypt', ARGON, /not a bcrypt hash/],
	['bcrypt', BCRYPT.slice(0, -1), /not a bcrypt hash/],
	['bcrypt', `${BCRYPT}\n`, /not a bcrypt hash/],
	['bcrypt', BCRYPT.replace('$04$', '$03$'), /from 4 to 31/],
	['bcrypt', BCRYPT.replace('$04$', '$32$'), /from 4 to 31/],
	['argon2id', BCRYPT, /not an argon2id hash/],
	['argon2id', ARGON.replace('argon2id', 'argon2i'), /not an argon2id hash/],
	['argon2id', ARGON.replace('v=19', 'v=16'), /only version 19/],
	['argon2id', ARGON.replace('m=64', 'm=9999999999'), /memory/],
	['argon2id', ARGON.replace('t=1', 't=0'), /time/],
	['argon2id', ARGON.replace('p=1', 'p=9'), /8 KiB of memory for each thread/],
	['argon2id', ARGON.replace('c29tZXNhbHRzb21lc2FsdA', 'c2E'), /salt/],
];

for (const [algorithm, text, message] of REFUSED) {
	reading(`${algorithm} refuses ${JSON.stringify(text.slice(0, 34))}`, () => {
		const mistake = parsePasswordHash(algorithm, text);
		assert.type(mistake, 'string');
		assert.match(mistake as string, message);
		assert.not((mistake as string).includes(text), 'a message must not contain the hash');
	});
}

for (const [memoryCost, timeCost, parallelism, hashLength, password] of [
	[8, 2, 1, 32, 'hiccup'],
	[64, 1, 1, 4, 'p\u00e4ss w\u00f6rd \u{1f511}'],
	[1024, 3, 4, 64, ''],
	[65_536, 1, 2, 32, 'x'.repeat(1000)],
] as const) {
	reading(`argon2id of the reference implementation: m=${memoryCost}, t=${timeCost}, p=${parallelism}`, async () => {
		const type = argon2.argon2id;
		const text = await argon2.hash(password, { type, memoryCost, timeCost, parallelism, hashLength });
		const hash = parsePasswordHash('argon2id', text) as PasswordHash;
		assert.is(verifyPassword(hash, password), true);
		assert.is(verifyPassword(hash, `${password}x`), false);
	});
}

reading.run();

const decoys = suite('decoy hashes');

decoys('have the parameters of the imitated hash, and can be verified against', () => {
	for (const [algorithm, text] of [
		['bcrypt', BCRYPT],
		['argon2id', ARGON],
	] as const) {
		const hash = parsePasswordHash(algorithm, text) as PasswordHash;
		const decoy = decoyHashFor(hash);
		assert.is(decoy.text.length, hash.text.length);
		assert.is(decoy.text.slice(0, 7), hash.text.slice(0, 7));
		const { text: again } = parsePasswordHash(algorithm, decoy.text) as PasswordHash;
		assert.is(again, decoy.text);
		assert.is(verifyPassword(decoy, 'hiccup'), false);
		assert.is(decoyHashFor(hash).text, decoy.text);
	}
});

decoys.run();

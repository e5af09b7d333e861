/** The threads that verify passwords: verdicts, limits, and timing. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { PasswordHash } from '../../../compiler/modules/directives/basic-auth/password-hash.ts';
import { PasswordThreads, passwordThreadCount } from '../../../runtime/passwords/password-threads.ts';

const HASH: PasswordHash = {
	algorithm: 'bcrypt',
	text: '$2b$04$dn9tFKKjjviJcZyNIh9.FegXvwX0ahZVruFNmM.efvz3DjFl884fW',
	cost: 4,
};

const threads = suite('password threads');

threads(
	'passwords are verified; a verification that takes too long is aborted, and the next one succeeds',
	async () => {
		const reasons: string[] = [];
		const passwords = new PasswordThreads(reason => reasons.push(reason), 700);
		try {
			assert.is(await passwords.verify({ hash: HASH, password: 'hiccup' }), true);
			assert.is(await passwords.verify({ hash: HASH, password: 'other' }), false);
			const costly: PasswordHash = { ...HASH, text: HASH.text.replace('$04$', '$20$'), cost: 20 };
			assert.is(await passwords.verify({ hash: costly, password: 'hiccup' }), null);
			assert.match(reasons[0]!, /cost of its hash is too high/);
			assert.is(await passwords.verify({ hash: HASH, password: 'hiccup' }), true);
			const impossible = { ...HASH, algorithm: 'argon2id' } as unknown as PasswordHash;
			assert.is(await passwords.verify({ hash: impossible, password: 'x' }), null);
		} finally {
			await passwords.end();
		}
		assert.is(await passwords.verify({ hash: HASH, password: 'hiccup' }), null);
	},
);

threads('checking an unknown user takes as long as checking a known one', async () => {
	const { decoyHashFor } = await import('../../../compiler/modules/directives/basic-auth/password-hash.ts');
	const { verifyPassword } = await import('../../../runtime/passwords/verify-password.ts');
	const hash: PasswordHash = { ...HASH, text: HASH.text.replace('$04$', '$08$'), cost: 8 };
	const time = (of: PasswordHash) => {
		const times = Array.from({ length: 9 }, () => {
			const begin = performance.now();
			verifyPassword(of, 'some password');
			return performance.now() - begin;
		});
		return times.sort((a, b) => a - b)[2]!;
	};
	time(hash);
	const known = time(hash);
	const unknown = time(decoyHashFor(hash));
	assert.ok(unknown > known / 2 && unknown < known * 2, `${known} ms and ${unknown} ms`);
});

threads('there are half as many threads as processors, at least two from two processors on, and at most four', () => {
	assert.equal([1, 2, 3, 4, 6, 8, 64].map(passwordThreadCount), [1, 2, 2, 2, 3, 4, 4]);
});

threads.run();

/** The output of `svc hash-password` is accepted by `basic_auth`. */
import { verify } from 'argon2';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
	type HashAlgorithm,
	type PasswordHash,
	parsePasswordHash,
} from '../../compiler/modules/directives/basic-auth/password-hash.ts';
import { verifyPassword } from '../../runtime/passwords/verify-password.ts';
import { runCommand } from '../harness.ts';

const CASES: readonly (readonly [what: string, args: string[], stdin: string | undefined, RegExp])[] = [
	['bcrypt from the command line', ['-p', 'p\u00e4ss word', '--bcrypt-cost', '4'], undefined, /^\$2b\$04\$/],
	['the first line of standard input', ['--bcrypt-cost=5'], 'p\u00e4ss word\r\nmore\n', /^\$2b\$05\$/],
	['standard input without a line end', ['--bcrypt-cost=4'], 'p\u00e4ss word', /^\$2b\$04\$/],
	[
		'argon2id with every flag',
		'--algorithm argon2id --argon2id-time 2 --argon2id-memory 64 --argon2id-threads 2 --argon2id-keylen 16'.split(' '),
		'p\u00e4ss word\n',
		/^\$argon2id\$v=19\$m=64,t=2,p=2\$[^$]{22}\$[^$]{22}\n$/,
	],
	[
		'argon2id with its defaults',
		['--algorithm', 'argon2id'],
		'p\u00e4ss word',
		/^\$argon2id\$v=19\$m=65536,t=1,p=4\$[^$]{22}\$[^$]{43}\n$/,
	],
];

const hashes = suite('hash-password');

for (const [what, args, stdin, shape] of CASES) {
	hashes(what, async () => {
		const result = await runCommand(['hash-password', ...args], stdin === undefined ? {} : { stdin });
		assert.is(result.stderr, '');
		assert.match(result.stdout, shape);
		const algorithm: HashAlgorithm = args.includes('argon2id') ? 'argon2id' : 'bcrypt';
		const hash = parsePasswordHash(algorithm, result.stdout.trim()) as PasswordHash;
		assert.is(verifyPassword(hash, 'p\u00e4ss word'), true);
		assert.is(verifyPassword(hash, 'pass word'), false);
		if (algorithm !== 'argon2id') return;
		assert.is(await verify(hash.text, 'p\u00e4ss word'), true, 'the reference implementation accepts the hash');
		assert.is(await verify(hash.text, 'pass word'), false);
	});
}

hashes('two hashes of the same password differ', async () => {
	const run = () => runCommand(['hash-password', '-p', 'x', '--bcrypt-cost', '4']);
	const [a, b] = await Promise.all([run(), run()]);
	assert.is.not(a.stdout, b.stdout);
});

hashes.run();

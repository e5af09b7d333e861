/** The command `svc hash-password`: prints the hash of a password, for `basic_auth`. */
import { quoteWord } from '../command/arguments.ts';
import { type Command, CommandFailure, type Invocation } from '../command/command.ts';
import { print } from '../command/terminal.ts';

/** Maximum bytes of a password for bcrypt, which ignores the rest of a longer one. */
const BCRYPT_MAX_PASSWORD_BYTES = 72;
const SALT_BYTES = 16;
/** The default cost of bcrypt: the logarithm to base 2 of the number of rounds. */
const DEFAULT_BCRYPT_COST = '14';

export const hashPassword: Command = {
	name: 'hash-password',
	summary: 'Hash a password for `basic_auth`',
	details: [
		'Prints the hash of a password, for the directive `basic_auth`.',
		'Without --plaintext, the password is read from the first line of standard input; on a terminal, you are prompted for it twice, without echo. Other users of the machine can see a password on the command line.',
	],
	options: [
		{ name: 'plaintext', short: 'p', valueName: 'PLAINTEXT', summary: 'Password to hash', default: 'standard input' },
		{ name: 'algorithm', valueName: 'ALGORITHM', summary: 'bcrypt or argon2id', default: 'bcrypt' },
		{
			name: 'bcrypt-cost',
			valueName: 'COST',
			summary: 'Logarithm of the rounds, 4 to 31',
			default: DEFAULT_BCRYPT_COST,
		},
		{ name: 'argon2id-time', valueName: 'TIME', summary: 'Iterations', default: '1' },
		{ name: 'argon2id-memory', valueName: 'MEMORY', summary: 'Memory in KiB', default: '65536' },
		{ name: 'argon2id-threads', valueName: 'THREADS', summary: 'Parallelism', default: '4' },
		{ name: 'argon2id-keylen', valueName: 'KEYLEN', summary: 'Length of the output in bytes', default: '32' },
	],
	async run(invocation) {
		const algorithm = invocation.value('algorithm') ?? 'bcrypt';
		// The options are checked first, so that mistakes are reported before a password is typed.
		const hasher =
			algorithm === 'bcrypt'
				? bcryptHasher(invocation)
				: algorithm === 'argon2id'
					? await argon2idHasher(invocation)
					: undefined;
		if (!hasher) throw new CommandFailure(`${quoteWord(algorithm)} is not a hash algorithm; give bcrypt or argon2id.`);
		const { readPassword } = await import('../command/password-input.ts');
		const password = invocation.value('plaintext') ?? (await readPassword());
		if (password === '') throw new CommandFailure('The password is empty.');
		print(`${await hasher(password)}\n`);
		return 0;
	},
};

function bcryptHasher({ value }: Invocation): (password: string) => Promise<string> {
	const cost = parseWholeNumber('bcrypt-cost', value('bcrypt-cost') ?? DEFAULT_BCRYPT_COST, 4, 31);
	return async password => {
		const length = Buffer.byteLength(password);
		if (length > BCRYPT_MAX_PASSWORD_BYTES) {
			throw new CommandFailure(
				`The password has ${length} bytes, and bcrypt uses only the first ${BCRYPT_MAX_PASSWORD_BYTES}. Use a shorter one or --algorithm argon2id.`,
			);
		}
		const { hashSync } = await import('bcryptjs');
		return hashSync(password, cost);
	};
}

async function argon2idHasher({ value }: Invocation): Promise<(password: string) => Promise<string>> {
	const { findArgon2idMistake, ARGON2ID_LIMITS, formatArgon2id } = await import(
		'../../compiler/modules/directives/basic-auth/password-hash.ts'
	);
	const parseParameter = (option: string, defaultText: string, limitName: keyof typeof ARGON2ID_LIMITS): number => {
		const { min, max } = ARGON2ID_LIMITS[limitName];
		return parseWholeNumber(option, value(option) ?? defaultText, min, max);
	};
	const passes = parseParameter('argon2id-time', '1', 'passes');
	const memoryKiB = parseParameter('argon2id-memory', '65536', 'memory');
	const parallelism = parseParameter('argon2id-threads', '4', 'parallelism');
	const tagLength = parseParameter('argon2id-keylen', '32', 'tag');
	const mistake = findArgon2idMistake({ passes, memory: memoryKiB, parallelism, tag: tagLength, salt: SALT_BYTES });
	if (mistake !== undefined) throw new CommandFailure(`${mistake[0]!.toUpperCase()}${mistake.slice(1)}.`);
	return async password => {
		const { argon2Sync, randomBytes } = await import('node:crypto');
		const salt = randomBytes(SALT_BYTES);
		try {
			const tag = argon2Sync('argon2id', {
				message: password,
				nonce: salt,
				memory: memoryKiB,
				passes,
				parallelism,
				tagLength,
			});
			return formatArgon2id({ memory: memoryKiB, passes, parallelism, salt, tag });
		} catch {
			throw new CommandFailure(`The password cannot be hashed: ${memoryKiB} KiB of memory are not available.`);
		}
	};
}

function parseWholeNumber(option: string, text: string, min: number, max: number): number {
	const number = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
	if (number >= min && number <= max) return number;
	throw new CommandFailure(`${quoteWord(`--${option} ${text}`)} is not a whole number from ${min} to ${max}.`);
}

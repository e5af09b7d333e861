/** Account files in the format of Apache's `htpasswd`: their parser, and the lease through which `basic_auth` reads one. */
import { ReadError, type Reader } from '../../../source/reader.ts';
import { type PasswordHash, parsePasswordHash } from './password-hash.ts';

declare module '../../../exchange/leases.ts' {
	interface LeaseKinds {
		/** When a configuration is only checked, leasing throws AccountFileError if the file cannot be used. */
		account_file: { settings: { readonly path: string }; lease: AccountFile };
	}
}

/** Password hashes by user name. */
export type Accounts = ReadonlyMap<string, PasswordHash>;

/** A file of accounts that may change at any time. */
export interface AccountFile {
	/**
	 * Returns the accounts in the last valid version of the file; a promise if the file has to be checked for changes. Returns the
	 * same object until the file changes. Rejects with HttpError 503 if there has never been a valid version.
	 */
	accounts(): Accounts | Promise<Accounts>;
}

/** Thrown if an account file cannot be used. The message is a sentence and quotes nothing from the file. */
export class AccountFileError extends Error {
	readonly code: 'auth/htpasswd-unreadable' | 'auth/htpasswd-invalid';
	readonly hint: string | undefined;

	constructor(code: AccountFileError['code'], message: string, hint?: string) {
		super(message);
		this.name = 'AccountFileError';
		this.code = code;
		this.hint = hint;
	}
}

/** Maximum size of a file in bytes, enough for ten thousand accounts. */
export const MAX_ACCOUNT_FILE_BYTES: number = 1024 * 1024;

/** Maximum number of invalid lines that a message lists. */
const MAX_LISTED_MISTAKES = 5;

const NEW_HASH_HINT =
	'Hashes cannot be converted: set these passwords again with `htpasswd -B FILE USER`, or `svc hash-password`.';
const FORMAT_HINT = 'Each line is `USER:HASH`, as `htpasswd -B FILE USER` writes it.';

/** Reads and parses a file. Throws AccountFileError. */
export function readAccountFile(path: string, reader: Reader): Accounts {
	const throwUnreadable = (reason: string, hint?: string): never => {
		const message = `The file of accounts \`${path}\` cannot be read: ${reason}.`;
		throw new AccountFileError('auth/htpasswd-unreadable', message, hint);
	};
	const fileKind = reader.kind(path);
	if (fileKind === 'directory' || fileKind === 'other') return throwUnreadable('it is not a regular file');
	let fileBytes: Uint8Array;
	try {
		fileBytes = reader.readBytes(path);
	} catch (error) {
		if (!(error instanceof ReadError)) throw error;
		if (error.code !== 'ENOENT') return throwUnreadable(`the system says ${error.code}`);
		return throwUnreadable(
			'it does not exist',
			'Create it with `htpasswd -B -c FILE USER`. An account with the name `htpasswd` is written in quotes.',
		);
	}
	return parseAccountFile(fileBytes, path);
}

/** Parses the lines `user:hash` of a file. One invalid line makes the whole file invalid. Throws AccountFileError. */
export function parseAccountFile(fileBytes: Uint8Array, path: string): Accounts {
	const throwInvalid = (mistake: string, hint: string): never => {
		throw new AccountFileError(
			'auth/htpasswd-invalid',
			`The file of accounts \`${path}\` cannot be used: ${mistake}.`,
			hint,
		);
	};
	if (fileBytes.length > MAX_ACCOUNT_FILE_BYTES) {
		return throwInvalid(
			'it has more than 1 MiB',
			'Distribute the accounts to several blocks, each with a file of its own.',
		);
	}
	// The file may be empty for a moment: a program that writes it in place truncates it first.
	if (fileBytes.length === 0)
		return throwInvalid('it is empty', 'Write a comment, such as `# nobody`, to admit nobody.');
	let fileText: string;
	try {
		fileText = new TextDecoder('utf-8', { fatal: true }).decode(fileBytes);
	} catch {
		return throwInvalid('it is not UTF-8', 'Save it in UTF-8.');
	}
	const accounts = new Map<string, PasswordHash>();
	const mistakes: string[] = [];
	let needsNewHash = false;
	for (const [index, rawLine] of fileText.split('\n').entries()) {
		const line = rawLine.replace(/\r$/, '');
		if (line.trim() === '' || line.startsWith('#')) continue;
		// Fields after the hash are ignored, as Apache and nginx do.
		const [user, hashText] = line.split(':', 2) as [string, string | undefined];
		const addMistake = (reason: string): void => void mistakes.push(`line ${index + 1}: ${reason}`);
		if (hashText === undefined || user === '') addMistake('it has no name, or no colon after it');
		else if (accounts.has(user)) addMistake('an earlier line has the same name');
		else {
			const refusal = schemeRefusalReason(hashText);
			needsNewHash ||= refusal !== undefined;
			const hash = refusal ?? parsePasswordHash(hashText.startsWith('$argon2id$') ? 'argon2id' : 'bcrypt', hashText);
			if (typeof hash === 'string') addMistake(hash);
			else accounts.set(user, hash);
		}
	}
	if (mistakes.length > 0) {
		const moreText = mistakes.length > MAX_LISTED_MISTAKES ? `; and ${mistakes.length - MAX_LISTED_MISTAKES} more` : '';
		return throwInvalid(
			mistakes.slice(0, MAX_LISTED_MISTAKES).join('; ') + moreText,
			needsNewHash ? NEW_HASH_HINT : FORMAT_HINT,
		);
	}
	return accounts;
}

/** Returns why a hash is refused; undefined for bcrypt and argon2id, the only schemes that are accepted. */
function schemeRefusalReason(hash: string): string | undefined {
	if (/^\$(2[aby]|argon2id)\$/.test(hash)) return undefined;
	if (/^\$(apr1|1)\$/.test(hash)) return 'MD5-crypt can be guessed too fast';
	if (/^\{S?SHA\}/i.test(hash)) return 'SHA-1 can be guessed too fast';
	if (/^\$[56]\$/.test(hash)) return 'SHA-crypt is not supported';
	return 'this is neither a bcrypt nor an argon2id hash';
}

/** Files of accounts in the format of Apache's `htpasswd`: parsing them, and the lease through which `basic_auth` reads one. */
import { ReadError, type Reader } from '../../../source/reader.ts';
import { type PasswordHash, parsePasswordHash } from './password-hash.ts';

declare module '../../../exchange/leases.ts' {
	interface LeaseKinds {
		/** Leasing throws AccountFileError where a configuration is checked and the file cannot be used. */
		account_file: { settings: { readonly path: string }; lease: AccountFile };
	}
}

/** Hashes by the names of users. */
export type Accounts = ReadonlyMap<string, PasswordHash>;

/** A file of accounts that may change at any time. */
export interface AccountFile {
	/**
	 * Returns the accounts of the last valid version; a promise if the file has to be checked for changes. The same object as before
	 * unless the file has changed. Rejects with HttpError 503 if there has never been a valid version.
	 */
	accounts(): Accounts | Promise<Accounts>;
}

/** A file of accounts cannot be used. The message is a sentence and contains nothing from the file. */
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

/** Maximum bytes of a file. This is enough for ten thousand accounts. */
export const MAX_ACCOUNT_FILE: number = 1024 * 1024;

/** Maximum number of invalid lines that a message lists. */
const MAX_LISTED = 5;

const CONVERT =
	'Hashes cannot be converted: set these passwords again with `htpasswd -B FILE USER`, or `svc hash-password`.';
const FORMAT = 'Each line is `USER:HASH`, as `htpasswd -B FILE USER` writes it.';

/** Reads and parses a file. Throws AccountFileError. */
export function readAccountFile(path: string, reader: Reader): Accounts {
	const unreadable = (why: string, hint?: string): never => {
		const message = `The file of accounts \`${path}\` cannot be read: ${why}.`;
		throw new AccountFileError('auth/htpasswd-unreadable', message, hint);
	};
	const kind = reader.kind(path);
	if (kind === 'directory' || kind === 'other') return unreadable('it is not a regular file');
	let bytes: Uint8Array;
	try {
		bytes = reader.readBytes(path);
	} catch (error) {
		if (!(error instanceof ReadError)) throw error;
		if (error.code !== 'ENOENT') return unreadable(`the system says ${error.code}`);
		return unreadable(
			'it does not exist',
			'Create it with `htpasswd -B -c FILE USER`. An account with the name `htpasswd` is written in quotes.',
		);
	}
	return parseAccountFile(bytes, path);
}

/**
 * Parses the lines `user:hash` of a file. Like inline accounts, a file is valid as a whole or not at all. Throws AccountFileError.
 */
export function parseAccountFile(bytes: Uint8Array, path: string): Accounts {
	const invalid = (what: string, hint: string): never => {
		throw new AccountFileError(
			'auth/htpasswd-invalid',
			`The file of accounts \`${path}\` cannot be used: ${what}.`,
			hint,
		);
	};
	if (bytes.length > MAX_ACCOUNT_FILE) {
		return invalid('it has more than 1 MiB', 'Distribute the accounts to several blocks, each with a file of its own.');
	}
	// A program that writes a file in place truncates it first.
	if (bytes.length === 0) return invalid('it is empty', 'Write a comment, such as `# nobody`, to admit nobody.');
	let text: string;
	try {
		text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
	} catch {
		return invalid('it is not UTF-8', 'Save it in UTF-8.');
	}
	const accounts = new Map<string, PasswordHash>();
	const mistakes: string[] = [];
	let needsNewHash = false;
	for (const [index, raw] of text.split('\n').entries()) {
		const line = raw.replace(/\r$/, '');
		if (line.trim() === '' || line.startsWith('#')) continue;
		// Apache and nginx ignore further fields.
		const [user, hashText] = line.split(':', 2) as [string, string | undefined];
		const mistake = (what: string): void => void mistakes.push(`line ${index + 1}: ${what}`);
		if (hashText === undefined || user === '') mistake('it has no name, or no colon after it');
		else if (accounts.has(user)) mistake('an earlier line has the same name');
		else {
			const refused = refusedScheme(hashText);
			needsNewHash ||= refused !== undefined;
			const hash = refused ?? parsePasswordHash(hashText.startsWith('$argon2id$') ? 'argon2id' : 'bcrypt', hashText);
			if (typeof hash === 'string') mistake(hash);
			else accounts.set(user, hash);
		}
	}
	if (mistakes.length > 0) {
		const more = mistakes.length > MAX_LISTED ? `; and ${mistakes.length - MAX_LISTED} more` : '';
		return invalid(mistakes.slice(0, MAX_LISTED).join('; ') + more, needsNewHash ? CONVERT : FORMAT);
	}
	return accounts;
}

/** Returns why a hash of another kind than bcrypt and argon2id is refused; undefined for these two. */
function refusedScheme(hash: string): string | undefined {
	if (/^\$(2[aby]|argon2id)\$/.test(hash)) return undefined;
	if (/^\$(apr1|1)\$/.test(hash)) return 'MD5-crypt can be guessed too fast';
	if (/^\{S?SHA\}/i.test(hash)) return 'SHA-1 can be guessed too fast';
	if (/^\$[56]\$/.test(hash)) return 'SHA-crypt is not supported';
	return 'this is neither a bcrypt nor an argon2id hash';
}

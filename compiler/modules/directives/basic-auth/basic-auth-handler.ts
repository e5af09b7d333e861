/** The handler of `basic_auth`: reads the credentials, has the password verified, and admits or rejects the request. */
import { createHash, createHmac } from 'node:crypto';
import type { Step } from '../../../document/document.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { Handler } from '../../../exchange/handler.ts';
import type { HeaderList } from '../../../exchange/header-list.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import { BuildError, type CompileContext } from '../../contract/compile-context.ts';
import { type AccountFile, AccountFileError, type Accounts } from './account-file.ts';
import { decoyHashFor, type HashAlgorithm, type PasswordHash, parsePasswordHash } from './password-hash.ts';

/** User name and password from an `Authorization` field. */
interface Credentials {
	readonly user: string;
	readonly password: string;
}

/**
 * Maximum number of characters of the `Authorization` field. Real passwords are shorter; without a maximum, a client could have
 * texts of any length hashed.
 */
const MAX_AUTHORIZATION_LENGTH = 8192;
const BASIC_CREDENTIALS = /^basic +([A-Za-z0-9+/]+={0,2}) *$/i;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Returns the credentials of a request; undefined if it has none that could be valid. If there are two `Authorization` fields,
 * neither is used, because a server behind this one might use the other one.
 */
function readCredentials(headers: HeaderList): Credentials | undefined {
	const fields = headers.getAll('authorization');
	if (fields.length !== 1 || fields[0]!.length > MAX_AUTHORIZATION_LENGTH) return undefined;
	const token = BASIC_CREDENTIALS.exec(fields[0]!)?.[1];
	if (token === undefined || token.length % 4 !== 0) return undefined;
	let text: string;
	try {
		text = utf8.decode(Buffer.from(token, 'base64'));
	} catch {
		return undefined;
	}
	const colon = text.indexOf(':');
	return colon === -1 ? undefined : { user: text.slice(0, colon), password: text.slice(colon + 1) };
}

/** An account as it is written in the document; its hash has not been parsed. */
export interface BasicAuthAccount {
	readonly user: string;
	/** The hash in the algorithm's own format, or that format in base64. */
	readonly hash: string;
}

export interface BasicAuthStep extends Step {
	readonly handler: 'basic_auth';
	readonly algorithm?: HashAlgorithm;
	readonly realm?: string;
	readonly accounts: readonly BasicAuthAccount[];
	/** Path of a file with more accounts. */
	readonly htpasswd?: string;
}

/** Variable that holds the name of the authenticated user, for placeholders and access logs. */
export const USER_VARIABLE = 'http.auth.user.id';
/** Variable that holds the name of a rejected user. */
const REJECTED_USER_VARIABLE = 'http.auth.candidate.id';
export const DEFAULT_REALM = 'restricted';

export function compileBasicAuth(step: BasicAuthStep, cx: CompileContext, next: Handler): Handler {
	const verifier = cx.lease('password_verifier', {});
	const inlineAccounts = compileInlineAccounts(step, cx, verifier.isLive);
	const { stepNumber } = cx;
	const inlineTable = createAccountTable(inlineAccounts);
	const loadMergedTable =
		step.htpasswd === undefined ? undefined : compileMergedTable(leaseAccountFile(step.htpasswd, cx), inlineAccounts);
	const realm = (step.realm ?? DEFAULT_REALM).replace(/[\\"]/g, '\\$&');
	const challenge = { headers: [['WWW-Authenticate', `Basic realm="${realm}"`]] as const };
	const refuse = (x: Exchange, message: string): never => {
		x.markAnswered('basic_auth', stepNumber);
		throw new HttpError(401, message, challenge);
	};
	const checkPassword = (x: Exchange, { user, password }: Credentials, table: AccountTable): void | Promise<void> => {
		const hash = table.hashes.get(user);
		const admitOrRefuse = (isValid: boolean): void | Promise<void> => {
			if (!isValid || hash === undefined) {
				x.variables.set(REJECTED_USER_VARIABLE, user);
				return refuse(x, 'The credentials are not valid.');
			}
			x.variables.set(USER_VARIABLE, user);
			return next(x);
		};
		// Verifying an unknown user takes as long as verifying a known one.
		const verdict = verifier.verify(x, user, hash ?? table.decoyFor(user), password);
		if (typeof verdict === 'boolean') return admitOrRefuse(verdict);
		return verdict.then(admitOrRefuse, (error: unknown) => {
			// Too many verifications are pending. Access logs name this handler as the one that failed.
			x.markAnswered('basic_auth', stepNumber);
			throw error;
		});
	};
	return x => {
		const credentials = readCredentials(x.request.headers);
		if (!credentials) return refuse(x, 'No credentials were given.');
		if (!loadMergedTable) return checkPassword(x, credentials, inlineTable);
		const table = loadMergedTable();
		if (!(table instanceof Promise)) return checkPassword(x, credentials, table);
		return table.then(
			loadedTable => checkPassword(x, credentials, loadedTable),
			(error: unknown) => {
				x.markAnswered('basic_auth', stepNumber);
				throw error;
			},
		);
	};
}

/** Password hashes by user name. `decoyFor` returns the hash against which the password of an unknown user is verified. */
interface AccountTable {
	readonly hashes: Accounts;
	readonly decoyFor: (user: string) => PasswordHash;
}

function createAccountTable(hashes: Accounts): AccountTable {
	return { hashes, decoyFor: compileDecoyChooser([...hashes.values()]) };
}

/** Leases an account file. While a configuration is only checked, throws BuildError if the file cannot be used. */
function leaseAccountFile(path: string, cx: CompileContext): AccountFile {
	try {
		return cx.lease('account_file', { path });
	} catch (error) {
		if (!(error instanceof AccountFileError)) throw error;
		throw new BuildError(error.code, `${cx.pointer}/htpasswd`, error.message, error.hint);
	}
}

/** Returns a function that returns the accounts of a file together with the inline accounts, which take precedence. */
function compileMergedTable(file: AccountFile, inlineAccounts: Accounts): () => AccountTable | Promise<AccountTable> {
	let lastFileAccounts: Accounts | undefined;
	let mergedTable: AccountTable | undefined;
	const merge = (accounts: Accounts): AccountTable => {
		if (accounts !== lastFileAccounts || !mergedTable) {
			lastFileAccounts = accounts;
			mergedTable = createAccountTable(new Map([...accounts, ...inlineAccounts]));
		}
		return mergedTable;
	};
	return () => {
		const accounts = file.accounts();
		return accounts instanceof Promise ? accounts.then(merge) : merge(accounts);
	};
}

/**
 * Returns the step's inline accounts. Unless `isLive`, skips accounts that depend on environment variables, whose values are
 * unknown.
 */
function compileInlineAccounts(
	step: BasicAuthStep,
	cx: CompileContext,
	isLive: boolean,
): ReadonlyMap<string, PasswordHash> {
	const algorithm = step.algorithm ?? 'bcrypt';
	const accounts = new Map<string, PasswordHash>();
	for (const [index, account] of step.accounts.entries()) {
		const dependsOnEnvironment = !isLive && (account.user.includes('{') || account.hash.includes('{'));
		const user = requireConstant(account.user, 'user', cx);
		if (dependsOnEnvironment) continue;
		if (user === '' || user.includes(':'))
			cx.refuse('An account needs a name, without a colon in it (RFC 7617 §2).', 'auth/bad-user');
		if (accounts.has(user)) cx.refuse(`account ${index}: username is not unique: ${user}`, 'auth/user-twice');
		const hash = parsePasswordHash(algorithm, requireConstant(account.hash, 'hash', cx));
		if (typeof hash === 'string') cx.refuse(`The hash of \`${user}\` cannot be used: ${hash}.`, 'auth/bad-hash');
		accounts.set(user, hash);
	}
	return accounts;
}

/** Returns the value of a template that must not depend on a request. */
function requireConstant(text: string, fieldName: string, cx: CompileContext): string {
	const { constant } = cx.template(text, 'empty');
	return constant ?? cx.refuse(`The ${fieldName} of an account cannot depend on a request.`, 'auth/per-request');
}

/**
 * Returns a function that assigns a hash to an unknown name, so that verification takes as long as for a real account. If accounts
 * differ in cost, the hash depends on the name, and only someone who knows all hashes can predict it.
 */
function compileDecoyChooser(hashes: readonly PasswordHash[]): (user: string) => PasswordHash {
	const decoysByCost = new Map<string, PasswordHash>();
	const decoys = hashes.map(hash => {
		const cost = costKeyOf(hash);
		const decoy = decoysByCost.get(cost) ?? decoyHashFor(hash);
		decoysByCost.set(cost, decoy);
		return decoy;
	});
	const firstDecoy = decoys[0] ?? decoyHashFor({ algorithm: 'bcrypt', text: '', cost: 10 });
	if (decoysByCost.size <= 1) return () => firstDecoy;
	const hashTexts = hashes.map(({ text }) => text).join('\n');
	const key = createHash('sha256').update(hashTexts).digest();
	return user => decoys[createHmac('sha256', key).update(user).digest().readUInt32LE() % decoys.length]!;
}

/** Returns a text that is the same for all hashes that take equally long to verify. */
function costKeyOf(hash: PasswordHash): string {
	if (hash.algorithm === 'bcrypt') return `bcrypt ${hash.cost}`;
	const { memory, passes, parallelism, salt, tag } = hash;
	return `argon2id ${memory} ${passes} ${parallelism} ${salt.length} ${tag.length}`;
}

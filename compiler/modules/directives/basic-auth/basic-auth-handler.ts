/** The closure of `basic_auth`: reads credentials, asks for a verdict on the password, and lets pass or refuses. */
import { createHmac } from 'node:crypto';
import type { CompileContext } from '../../../codegen/compile-context.ts';
import type { Step } from '../../../document/document.ts';
import type { Exchange } from '../../../exchange/exchange.ts';
import type { Handler } from '../../../exchange/handler.ts';
import { HttpError } from '../../../exchange/http-error.ts';
import { readCredentials } from './credentials.ts';
import { decoyOf, type HashAlgorithm, type PasswordHash, parsePasswordHash } from './password-hash.ts';

/** One account of the document. */
export interface Account {
	readonly user: string;
	/** In the algorithm's own format, or base64 of it. */
	readonly hash: string;
}

export interface BasicAuthStep extends Step {
	readonly handler: 'basic_auth';
	readonly algorithm?: HashAlgorithm;
	readonly realm?: string;
	readonly accounts: readonly Account[];
}

/** Variable of the user that was let pass, for placeholders and access logs. */
export const USER_VARIABLE = 'http.auth.user.id';
/** Variable of the user that was refused. */
const CANDIDATE_VARIABLE = 'http.auth.candidate.id';
/** The realm of a step without one. */
export const DEFAULT_REALM = 'restricted';

/** Compiles the step. */
export function compileBasicAuth(step: BasicAuthStep, cx: CompileContext, next: Handler): Handler {
	const verifier = cx.lease('password_verifier', {});
	const accounts = compileAccounts(step, cx, verifier.live);
	const { step: number } = cx;
	const decoyFor = compileDecoys([...accounts.values()]);
	const realm = (step.realm ?? DEFAULT_REALM).replace(/[\\"]/g, '\\$&');
	const challenge = { headers: [['WWW-Authenticate', `Basic realm="${realm}"`]] as const };
	const refuse = (x: Exchange, message: string): never => {
		x.answered('basic_auth', number);
		throw new HttpError(401, message, challenge);
	};
	return x => {
		const credentials = readCredentials(x.request.headers);
		if (!credentials) return refuse(x, 'No credentials were given.');
		const { user, password } = credentials;
		const hash = accounts.get(user);
		const settle = (verdict: boolean): void | Promise<void> => {
			if (!verdict || hash === undefined) {
				x.variables.set(CANDIDATE_VARIABLE, user);
				return refuse(x, 'The credentials are not valid.');
			}
			x.variables.set(USER_VARIABLE, user);
			return next(x);
		};
		// A user that does not exist costs the same as one that does.
		const verdict = verifier.verify(x, user, hash ?? decoyFor(user), password);
		if (typeof verdict === 'boolean') return settle(verdict);
		return verdict.then(settle, (error: unknown) => {
			// Too many wait: this handler is what answers.
			x.answered('basic_auth', number);
			throw error;
		});
	};
}

/** Hashes by user. What is taken from the environment is known only where the server runs (`live`). */
function compileAccounts(step: BasicAuthStep, cx: CompileContext, live: boolean): ReadonlyMap<string, PasswordHash> {
	const algorithm = step.algorithm ?? 'bcrypt';
	const accounts = new Map<string, PasswordHash>();
	for (const [index, account] of step.accounts.entries()) {
		const later = !live && (account.user.includes('{') || account.hash.includes('{'));
		const user = fixed(account.user, 'user', cx);
		if (later) continue;
		if (user === '' || user.includes(':'))
			cx.refuse('A user has a name, and no colon in it (RFC 7617 §2).', 'auth/bad-user');
		if (accounts.has(user)) cx.refuse(`account ${index}: username is not unique: ${user}`, 'auth/user-twice');
		const hash = parsePasswordHash(algorithm, fixed(account.hash, 'hash', cx));
		if (typeof hash === 'string') cx.refuse(`The hash of \`${user}\` cannot be used: ${hash}.`, 'auth/bad-hash');
		accounts.set(user, hash);
	}
	return accounts;
}

/** The text of a template that must not depend on a request. */
function fixed(text: string, what: string, cx: CompileContext): string {
	const { constant } = cx.template(text, 'empty');
	return constant ?? cx.refuse(`The ${what} of an account cannot depend on a request.`, 'auth/per-request');
}

/**
 * Gives a hash to names that nobody has. With accounts of several costs the name decides which, in a way that only who
 * knows the hashes can foretell: an unknown name looks like any account.
 */
function compileDecoys(hashes: readonly PasswordHash[]): (user: string) => PasswordHash {
	const decoys = hashes.map(decoyOf);
	const first = decoys[0] ?? decoyOf({ algorithm: 'bcrypt', text: '', cost: 10 });
	if (new Set(decoys.map(({ text }) => text)).size <= 1) return () => first;
	const key = hashes.map(({ text }) => text).join('\n');
	return user => decoys[createHmac('sha256', key).update(user).digest().readUInt32LE() % decoys.length]!;
}

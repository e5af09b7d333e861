/** Completes ACME challenges (RFC 8555 §7.5): publishes the answer, notifies the server, and waits for validation. */
import { createHash } from 'node:crypto';
import { challengeCertificate } from '../certificate-request.ts';
import type { ChallengeRegistry } from '../challenge-registry.ts';
import { IssueError } from '../issuer.ts';
import type { SharedChallenges } from '../shared-challenges.ts';
import type { AcmeAccount } from './acme-account.ts';
import { type AcmeConnection, pollDelay, toAcmeProblem, waitUnlessAborted } from './acme-connection.ts';

/** The supported challenge types. */
export type ChallengeType = 'http-01' | 'tls-alpn-01' | 'dns-01';

/** The error for a name that the server could not validate. */
export class ValidationFailed extends IssueError {
	constructor(message: string) {
		super('issuer/validation-failed', message);
		this.name = 'ValidationFailed';
	}
}

/** Creates the records that answer DNS-01 challenges. */
export interface DnsSolver {
	/** Creates the record and waits until it is visible. Resolves to a function that removes it. Rejects with IssueError. */
	present(name: string, value: string, signal: AbortSignal): Promise<() => Promise<void>>;
}

/** Dependencies for answering challenges. */
export interface SolverDeps {
	readonly connection: AcmeConnection;
	readonly account: AcmeAccount;
	readonly challenges: ChallengeRegistry;
	/** Publishes answers to challenges to other processes; undefined if only this process needs to answer them. */
	readonly sharedChallenges: SharedChallenges | undefined;
	readonly dnsSolver: DnsSolver | undefined;
}

/** Answers challenges for an account. */
export class ChallengeSolver {
	readonly #connection: AcmeConnection;
	readonly #account: AcmeAccount;
	readonly #challenges: ChallengeRegistry;
	readonly #sharedChallenges: SharedChallenges | undefined;
	readonly #dnsSolver: DnsSolver | undefined;

	constructor({ connection, account, challenges, sharedChallenges, dnsSolver }: SolverDeps) {
		this.#connection = connection;
		this.#account = account;
		this.#challenges = challenges;
		this.#sharedChallenges = sharedChallenges;
		this.#dnsSolver = dnsSolver;
	}

	/** Completes one authorization. Rejects with IssueError or the signal's reason. */
	async authorize(url: string, name: string, type: ChallengeType, signal: AbortSignal): Promise<void> {
		const { body } = await this.#connection.postAsGet(url, this.#account, signal);
		if (body?.status === 'valid') return;
		if (body?.status !== 'pending') throw new ValidationFailed(`The authorization is ${String(body?.status)}.`);
		const offeredChallenges = challengesOf(body);
		const challenge = offeredChallenges.find(candidate => candidate.type === type);
		if (!challenge) {
			throw new ValidationFailed(
				`The server does not offer ${type} for \`${name}\`, only ${offeredChallenges.map(offered => offered.type).join(', ')}.`,
			);
		}
		const unpublish = await this.#publishAnswer(type, name, challenge.token, signal);
		try {
			await this.#connection.post(challenge.url, {}, this.#account, signal);
			await this.#awaitValidation(url, type, signal);
		} finally {
			await unpublish();
		}
	}

	/**
	 * Publishes the answer to a challenge. Once the promise resolves, every thread and every process with the same store can give
	 * the answer.
	 */
	async #publishAnswer(
		type: ChallengeType,
		name: string,
		token: string,
		signal: AbortSignal,
	): Promise<() => Promise<void>> {
		const challenges = this.#challenges;
		const keyAuthorization = `${token}.${this.#account.thumbprint}`;
		switch (type) {
			case 'http-01':
			case 'tls-alpn-01': {
				const unshare = await this.#sharedChallenges?.share(type, name, keyAuthorization);
				if (type === 'http-01') await challenges.addToken(token, keyAuthorization);
				else await challenges.addCertificate(name, await challengeCertificate(name, keyAuthorization));
				return async () => {
					await unshare?.();
					await (type === 'http-01' ? challenges.removeToken(token) : challenges.removeCertificate(name));
				};
			}
			case 'dns-01': {
				if (!this.#dnsSolver) throw new IssueError('issuer/no-dns', 'DNS-01 requires a DNS provider.');
				const digest = createHash('sha256').update(keyAuthorization).digest('base64url');
				return this.#dnsSolver.present(name.replace(/^\*\./, ''), digest, signal);
			}
		}
	}

	async #awaitValidation(url: string, type: ChallengeType, signal: AbortSignal): Promise<void> {
		for (let waitMs = 100; ; waitMs = Math.min(waitMs * 2, 5000)) {
			const { body, retryAt } = await this.#connection.postAsGet(url, this.#account, signal);
			if (body?.status === 'valid') return;
			if (body?.status !== 'pending') {
				const error = challengesOf(body ?? {}).find(candidate => candidate.error !== undefined)?.error;
				const cause = error
					? toAcmeProblem(error, 400, undefined).message
					: `The authorization is ${String(body?.status)}.`;
				throw new ValidationFailed(`${type} failed. ${cause}`);
			}
			await waitUnlessAborted(pollDelay(retryAt, waitMs), signal);
		}
	}
}

interface Challenge {
	readonly type: string;
	readonly url: string;
	readonly token: string;
	readonly error?: { readonly [member: string]: unknown };
}

/** Parses the challenges of an authorization. Tokens must be base64url (§8.1), because they become part of a path. */
function challengesOf(body: { readonly [member: string]: unknown }): Challenge[] {
	const challenges = Array.isArray(body.challenges) ? (body.challenges as Partial<Challenge>[]) : [];
	return challenges.filter(
		(candidate): candidate is Challenge =>
			typeof candidate?.type === 'string' &&
			typeof candidate.url === 'string' &&
			typeof candidate.token === 'string' &&
			/^[A-Za-z0-9_-]{1,512}$/.test(candidate.token),
	);
}

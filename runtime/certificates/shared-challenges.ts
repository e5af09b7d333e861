/**
 * ACME challenges shared through the store. The process that orders a certificate writes the answer to the store, and every
 * process with the same store can serve it. This is needed behind a load balancer, where the CA's request may reach any machine.
 */
import { createHash } from 'node:crypto';
import { type Store, StoreError, toKeySegment } from '../storage/store.ts';
import type { ChallengeAnswer, ChallengeQuestion } from './certificate-feed.ts';

/** The folder of shared challenges in the store. */
export const CHALLENGES_FOLDER = 'acme/challenges';

interface SharedChallenge {
	readonly type: string;
	readonly name: string;
	readonly key_authorization: string;
}

/** The challenges that the processes with the same store share. */
export class SharedChallenges {
	readonly #store: () => Store | Promise<Store>;
	/** Lookups in progress. Concurrent lookups of one challenge are coalesced. */
	readonly #lookupsByKey = new Map<string, Promise<SharedChallenge | undefined>>();

	constructor(store: () => Store | Promise<Store>) {
		this.#store = store;
	}

	/**
	 * Publishes a challenge so that other processes can answer it. Resolves to a function that withdraws it. Failures of the
	 * store are ignored, because this process can still answer.
	 */
	async share(type: ChallengeQuestion['type'], name: string, keyAuthorization: string): Promise<() => Promise<void>> {
		const token = keyAuthorization.slice(0, keyAuthorization.indexOf('.'));
		const key = storeKeyOf(type === 'http-01' ? { type, token } : { type, name });
		const challenge: SharedChallenge = { type, name, key_authorization: keyAuthorization };
		const store = await this.#store();
		await ignoreStoreErrors(store.write(key, JSON.stringify(challenge)));
		return () => ignoreStoreErrors(store.remove(key));
	}

	/** Returns the answer published by another process; undefined if there is none, the store fails or its contents are invalid. */
	async answer(question: ChallengeQuestion): Promise<ChallengeAnswer | undefined> {
		const key = storeKeyOf(question);
		let lookup = this.#lookupsByKey.get(key);
		if (!lookup) {
			lookup = this.#readChallenge(key).finally(() => this.#lookupsByKey.delete(key));
			this.#lookupsByKey.set(key, lookup);
		}
		const challenge = await lookup;
		if (challenge?.type !== question.type) return undefined;
		const authorization = challenge.key_authorization;
		if (question.type === 'http-01') {
			return authorization.startsWith(`${question.token}.`) ? { authorization } : undefined;
		}
		if (challenge.name !== question.name) return undefined;
		const { challengeCertificate } = await import('./certificate-request.ts');
		return { certificate: await challengeCertificate(challenge.name, authorization) };
	}

	async #readChallenge(key: string): Promise<SharedChallenge | undefined> {
		try {
			const store = await this.#store();
			const challengeJson = await store.read(key, true);
			const challenge =
				challengeJson && (JSON.parse(challengeJson.toString('utf8')) as Partial<SharedChallenge> | null);
			const isComplete = [challenge?.type, challenge?.name, challenge?.key_authorization].every(
				part => typeof part === 'string',
			);
			return isComplete ? (challenge as SharedChallenge) : undefined;
		} catch (error) {
			if (error instanceof StoreError || error instanceof SyntaxError) return undefined;
			throw error;
		}
	}
}

/**
 * Returns the store key of a challenge. HTTP-01 challenges are looked up by token, TLS-ALPN-01 challenges by name, because only one
 * process at a time orders a name. Tokens are untrusted and case-sensitive, so their digest is used as the file name.
 */
function storeKeyOf(challenge: ChallengeQuestion): string {
	const segment =
		challenge.type === 'http-01'
			? createHash('sha256').update(challenge.token).digest('hex')
			: toKeySegment(challenge.name);
	return `${CHALLENGES_FOLDER}/${challenge.type}/${segment}.json`;
}

async function ignoreStoreErrors(work: Promise<void>): Promise<void> {
	await work.catch(error => {
		if (!(error instanceof StoreError)) throw error;
	});
}

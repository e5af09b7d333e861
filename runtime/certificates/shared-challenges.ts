/**
 * Challenges as processes that share a store see them: whoever orders writes what would answer its challenge, and whoever is
 * asked by the authority answers, for one address may lead to many machines.
 */
import { keySegment, type Store, StoreError } from '../storage/store.ts';
import type { ChallengeAnswer, ChallengeQuestion } from '../tls/certificate-feed.ts';

/** Folder of the challenges in the store: a file for each name, for a name is ordered by one process at a time. */
export const CHALLENGES = 'acme/challenges';

interface SharedChallenge {
	readonly type: string;
	readonly name: string;
	readonly key_authorization: string;
}

/** The challenges of one store. */
export class SharedChallenges {
	readonly #store: () => Store;
	/** Looks that are under way: many questions about one name are one look. */
	readonly #looks = new Map<string, Promise<SharedChallenge | undefined>>();

	constructor(store: () => Store) {
		this.#store = store;
	}

	/** Lets other processes answer; gives what takes it back. What the store refuses is theirs to miss. */
	async put(type: string, name: string, keyAuthorization: string): Promise<() => Promise<void>> {
		const key = keyOf(name);
		const challenge: SharedChallenge = { type, name, key_authorization: keyAuthorization };
		await ignoringStore(this.#store().write(key, JSON.stringify(challenge)));
		return () => ignoringStore(this.#store().remove(key));
	}

	/** The answer that another process has put up. Never rejects for what the store holds or refuses. */
	async answer({ type, name, token }: ChallengeQuestion): Promise<ChallengeAnswer | undefined> {
		let look = this.#looks.get(name);
		if (!look) {
			look = this.#read(name).finally(() => this.#looks.delete(name));
			this.#looks.set(name, look);
		}
		const found = await look;
		if (found?.type !== type || found.name !== name) return undefined;
		const authorization = found.key_authorization;
		if (type === 'http-01') return authorization.startsWith(`${token}.`) ? { authorization } : undefined;
		const { challengeCertificate } = await import('./acme/certificate-request.ts');
		return { certificate: await challengeCertificate(name, authorization) };
	}

	async #read(name: string): Promise<SharedChallenge | undefined> {
		try {
			const text = await this.#store().read(keyOf(name));
			const found = text && (JSON.parse(text.toString('utf8')) as Partial<SharedChallenge> | null);
			const whole = [found?.type, found?.name, found?.key_authorization].every(part => typeof part === 'string');
			return whole ? (found as SharedChallenge) : undefined;
		} catch (error) {
			if (error instanceof StoreError || error instanceof SyntaxError) return undefined;
			throw error;
		}
	}
}

function keyOf(name: string): string {
	return `${CHALLENGES}/${keySegment(name)}.json`;
}

async function ignoringStore(work: Promise<void>): Promise<void> {
	await work.catch(error => {
		if (!(error instanceof StoreError)) throw error;
	});
}

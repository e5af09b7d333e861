/**
 * Challenges as processes that share a store see them: whoever orders writes what would answer its challenge, and whoever is
 * asked by the authority answers, for one address may lead to many machines, whatever names each of them serves.
 */
import { createHash } from 'node:crypto';
import { keySegment, type Store, StoreError } from '../storage/store.ts';
import type { ChallengeAnswer, ChallengeQuestion } from '../tls/certificate-feed.ts';

/** Folder of the challenges in the store. */
export const CHALLENGES = 'acme/challenges';

interface SharedChallenge {
	readonly type: string;
	readonly name: string;
	readonly key_authorization: string;
}

/** The challenges of one store. */
export class SharedChallenges {
	readonly #store: () => Store | Promise<Store>;
	/** Looks that are under way: many questions about one challenge are one look. */
	readonly #looks = new Map<string, Promise<SharedChallenge | undefined>>();

	constructor(store: () => Store | Promise<Store>) {
		this.#store = store;
	}

	/** Lets other processes answer; gives what takes it back. What the store refuses is theirs to miss. */
	async put(type: ChallengeQuestion['type'], name: string, keyAuthorization: string): Promise<() => Promise<void>> {
		const token = keyAuthorization.slice(0, keyAuthorization.indexOf('.'));
		const key = keyOf(type === 'http-01' ? { type, token } : { type, name });
		const challenge: SharedChallenge = { type, name, key_authorization: keyAuthorization };
		const store = await this.#store();
		await ignoringStore(store.write(key, JSON.stringify(challenge)));
		return () => ignoringStore(store.remove(key));
	}

	/** The answer that another process has put up. Never rejects for what the store holds or refuses. */
	async answer(question: ChallengeQuestion): Promise<ChallengeAnswer | undefined> {
		const key = keyOf(question);
		let look = this.#looks.get(key);
		if (!look) {
			look = this.#read(key).finally(() => this.#looks.delete(key));
			this.#looks.set(key, look);
		}
		const found = await look;
		if (found?.type !== question.type) return undefined;
		const authorization = found.key_authorization;
		if (question.type === 'http-01') {
			return authorization.startsWith(`${question.token}.`) ? { authorization } : undefined;
		}
		if (found.name !== question.name) return undefined;
		const { challengeCertificate } = await import('./acme/certificate-request.ts');
		return { certificate: await challengeCertificate(found.name, authorization) };
	}

	async #read(key: string): Promise<SharedChallenge | undefined> {
		try {
			const store = await this.#store();
			const text = await store.read(key);
			const found = text && (JSON.parse(text.toString('utf8')) as Partial<SharedChallenge> | null);
			const whole = [found?.type, found?.name, found?.key_authorization].every(part => typeof part === 'string');
			return whole ? (found as SharedChallenge) : undefined;
		} catch (error) {
			if (error instanceof StoreError || error instanceof SyntaxError) return undefined;
			throw error;
		}
	}
}

/**
 * Where a challenge is in the store. The authority asks for a token whatever the name, and for a certificate by the name,
 * which one process orders at a time. A token comes from anybody and tells letter case apart: its digest names the file.
 */
function keyOf(challenge: ChallengeQuestion): string {
	const segment =
		challenge.type === 'http-01'
			? createHash('sha256').update(challenge.token).digest('hex')
			: keySegment(challenge.name);
	return `${CHALLENGES}/${challenge.type}/${segment}.json`;
}

async function ignoringStore(work: Promise<void>): Promise<void> {
	await work.catch(error => {
		if (!(error instanceof StoreError)) throw error;
	});
}

/** The dependencies of issuers. */
import type { Store } from '../storage/store.ts';
import type { Authority } from './authority.ts';
import type { ChallengeRegistry } from './challenge-registry.ts';
import type { ManagerLog } from './manager-log.ts';
import type { SharedChallenges } from './shared-challenges.ts';

export interface IssuerDeps {
	readonly log: ManagerLog;
	readonly now: () => number;
	readonly store: Store;
	readonly challenges: ChallengeRegistry;
	readonly sharedChallenges: SharedChallenges;
	readonly findAuthority: (id: string) => Promise<Authority | undefined>;
	/** Returns the ports on which challenges arrive. */
	readonly ports: () => { readonly http_port: number; readonly https_port: number };
	readonly environment: { readonly [name: string]: string | undefined };
	readonly workingDirectory: string;
}

/** The registry of issuers: what makes each from its settings. */
import { hash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { canonicalJson } from '../../compiler/document/canonical-json.ts';
import type { IssuerSettings } from '../../compiler/tls/certificate-plan.ts';
import type { Store } from '../storage/store.ts';
import type { Authority } from './authority.ts';
import type { ChallengeBoard } from './challenge-board.ts';
import { internalIssuer } from './internal-issuer.ts';
import { IssueError, type Issuer } from './issuer.ts';
import type { ManagerLog } from './manager-log.ts';
import { expandEnvironment } from './settings-text.ts';
import type { SharedChallenges } from './shared-challenges.ts';

/** What issuers find around them. */
export interface IssuerSurroundings {
	readonly log: ManagerLog;
	readonly now: () => number;
	readonly store: Store;
	readonly board: ChallengeBoard;
	readonly sharedChallenges: SharedChallenges;
	readonly authority: (id: string) => Promise<Authority | undefined>;
	/** Ports on which challenges arrive. */
	readonly ports: () => { readonly http_port: number; readonly https_port: number };
	readonly environment: { readonly [name: string]: string | undefined };
	readonly workingDirectory: string;
}

/** Returns what tells an issuer from others: its settings and what the files hold that they name. */
export async function issuerKey(
	settings: IssuerSettings,
	{ environment, workingDirectory }: Pick<IssuerSurroundings, 'environment' | 'workingDirectory'>,
): Promise<string> {
	const files = expandEnvironment(settings.trusted_roots ?? [], environment) as readonly string[];
	const roots = files.map(file => readFile(path.resolve(workingDirectory, file), 'latin1').catch(() => ''));
	return canonicalJson([settings, hash('sha256', JSON.stringify(await Promise.all(roots)), 'base64')]);
}

/** Returns what keeps an issuer from being made; undefined when nothing does. Asks no network. */
export async function issuerProblem(
	written: IssuerSettings,
	around: Pick<IssuerSurroundings, 'environment' | 'workingDirectory'>,
): Promise<{ readonly code: string; readonly message: string } | undefined> {
	if (written.issuer !== 'acme') return undefined;
	const settings = expandEnvironment(written, around.environment);
	for (const name of ['directory', 'test_directory']) {
		const url = settings[name];
		if (url === undefined || (typeof url === 'string' && /^https?:$/.test(URL.parse(url)?.protocol ?? ''))) continue;
		return { code: 'issuer/bad-url', message: `\`${url}\` is not the URL of a directory.` };
	}
	if (settings.dns === undefined) return undefined;
	try {
		const { createDnsProvider } = await import('./dns/dns-providers.ts');
		await createDnsProvider(settings.dns, around);
		return undefined;
	} catch (error) {
		if (error instanceof IssueError) return { code: error.code, message: error.message };
		throw error;
	}
}

/** Makes an issuer. Rejects with IssueError for one that this build has not, or that cannot work. */
export async function createIssuer(settings: IssuerSettings, around: IssuerSurroundings): Promise<Issuer> {
	const problem = await issuerProblem(settings, around);
	if (problem) throw new IssueError(problem.code, problem.message);
	switch (settings.issuer) {
		case 'internal':
			return internalIssuer(settings, around.authority);
		case 'acme':
			return (await import('./acme/acme-issuer.ts')).acmeIssuer(settings, around);
		default:
			throw new IssueError('issuer/unknown', `\`${settings.issuer}\` is not an issuer of this build.`);
	}
}

/** Preflight check of certificate management and client verification. Finds problems that the compiler cannot find. */
import type { Plan } from '../../compiler/codegen/plan/plan.ts';
import { canonicalJson } from '../../compiler/document/canonical-json.ts';
import { isSiteAddress, parseSiteAddress } from '../../compiler/document/site-address.ts';
import type { ClientAuth, TrustPool } from '../../compiler/document/tls-settings.ts';
import { findIssuerProblem } from '../certificates/manager/issuers.ts';
import { openStore, type StoreSelection } from '../storage/open-store.ts';
import { loadClientTrust, type TrustDeps, TrustError } from '../tls/client-trust.ts';
import type { PreflightFinding, TargetMachine } from './finding.ts';

/** Returns what would prevent certificates from being managed or clients from being verified. Does not use the network. */
export async function certificateFindings(
	{ document, certificates }: Plan,
	machine: TargetMachine,
): Promise<PreflightFinding[]> {
	const findings: PreflightFinding[] = [];
	const { sites = [], settings = {} } = document;
	const configuredStore = settings.storage as StoreSelection | undefined;
	const trustDeps: TrustDeps = {
		workingDirectory: machine.workingDirectory,
		manager: () => Promise.reject(new TrustError('There is no certificate manager.')),
		store: async selection => openStore(selection ?? configuredStore, machine),
	};
	for (const [siteIndex, { tls }] of sites.entries()) {
		if (!tls?.client_auth) continue;
		const message = await trustProblem(tls.client_auth, trustDeps);
		if (message === undefined) continue;
		findings.push({
			code: 'tls/unavailable',
			severity: 'error',
			message,
			pointer: `/sites/${siteIndex}/tls/client_auth`,
		});
	}
	const checkedIssuers = new Set<string>();
	for (const { issuers, subjects } of certificates?.managed.policies ?? []) {
		for (const issuer of issuers) {
			const key = canonicalJson(issuer);
			if (checkedIssuers.has(key)) continue;
			checkedIssuers.add(key);
			const problem = await findIssuerProblem(issuer, machine);
			if (!problem) continue;
			const siteIndex = sites.findIndex(({ addresses }) =>
				addresses.some(address => subjects.includes(hostOf(address))),
			);
			const pointer = siteIndex === -1 ? undefined : `/sites/${siteIndex}${sites[siteIndex]!.tls ? '/tls' : ''}`;
			findings.push({ ...problem, severity: 'error', ...(pointer === undefined ? {} : { pointer }) });
		}
	}
	return findings;
}

async function trustProblem({ trust_pool: pool, ...otherSettings }: ClientAuth, trustDeps: TrustDeps) {
	try {
		const localPool = pool && localTrustPool(pool);
		await loadClientTrust({ ...otherSettings, ...(localPool ? { trust_pool: localPool } : {}) }, trustDeps);
		return undefined;
	} catch (error) {
		return (error as Error).message;
	}
}

/**
 * Returns the part of a trust pool that a preflight check can load. Omits sources that need the network, and internal
 * authorities, because loading an internal authority would create it.
 */
function localTrustPool(pool: TrustPool): TrustPool | undefined {
	switch (pool.source) {
		case 'http':
		case 'pki_root':
		case 'pki_intermediate':
			return undefined;
		case 'combined':
			return { ...pool, of: pool.of.flatMap(part => localTrustPool(part) ?? []) };
		case 'storage': {
			const { store = 'file_system' } = (pool.storage ?? {}) as Partial<StoreSelection>;
			return store === 'file_system' ? pool : undefined;
		}
		default:
			return pool;
	}
}

function hostOf(address: string): string {
	const parsed = parseSiteAddress(address);
	return isSiteAddress(parsed) ? parsed.host : '';
}

/** Chooses one of the certificate chains that an ACME server offers (RFC 8555 §7.4.2). */
import { X509Certificate } from 'node:crypto';
import type { PreferredChains } from '../../../compiler/modules/providers/issuers/preferred-chains.ts';

/** Returns the first chain that matches the preference. If none does, returns the server's default, which is the first chain. */
export function chooseChain(chains: readonly string[], preferred: PreferredChains): string {
	const first = chains[0]!;
	if (preferred.smallest) {
		return chains.reduce((best, chain) => (chain.length < best.length ? chain : best), first);
	}
	const { root_common_name: roots, any_common_name: any } = preferred;
	for (const name of roots ?? []) {
		const found = chains.find(chain => commonName(certificates(chain).at(-1)?.issuer) === name);
		if (found !== undefined) return found;
	}
	for (const name of any ?? []) {
		const found = chains.find(chain =>
			certificates(chain).some(one => commonName(one.issuer) === name || commonName(one.subject) === name),
		);
		if (found !== undefined) return found;
	}
	return first;
}

function certificates(chain: string): X509Certificate[] {
	const blocks = chain.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
	return blocks.map(block => new X509Certificate(block));
}

function commonName(distinguished: string | undefined): string | undefined {
	return /^CN=(.*)$/m.exec(distinguished ?? '')?.[1];
}

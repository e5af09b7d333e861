/** Chooses one of the certificate chains that an ACME server offers (RFC 8555 §7.4.2). */
import { X509Certificate } from 'node:crypto';
import type { PreferredChains } from '../../../compiler/modules/providers/issuers/preferred-chains.ts';

/** Returns the first chain that matches the preference. If none does, returns the server's default, which is the first chain. */
export function chooseChain(chains: readonly string[], preferred: PreferredChains): string {
	const defaultChain = chains[0]!;
	if (preferred.smallest) {
		return chains.reduce((best, chain) => (chain.length < best.length ? chain : best), defaultChain);
	}
	const { root_common_name: rootNames, any_common_name: anyNames } = preferred;
	for (const name of rootNames ?? []) {
		const matchingChain = chains.find(chain => commonName(parseCertificates(chain).at(-1)?.issuer) === name);
		if (matchingChain !== undefined) return matchingChain;
	}
	for (const name of anyNames ?? []) {
		const matchingChain = chains.find(chain =>
			parseCertificates(chain).some(
				certificate => commonName(certificate.issuer) === name || commonName(certificate.subject) === name,
			),
		);
		if (matchingChain !== undefined) return matchingChain;
	}
	return defaultChain;
}

function parseCertificates(chain: string): X509Certificate[] {
	const blocks = chain.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
	return blocks.map(block => new X509Certificate(block));
}

function commonName(distinguishedName: string | undefined): string | undefined {
	return /^CN=(.*)$/m.exec(distinguishedName ?? '')?.[1];
}

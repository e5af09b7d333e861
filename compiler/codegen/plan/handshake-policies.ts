/** Plans the TLS handshakes of each listener: which policy applies to which server name. */
import { canonicalJson } from '../../document/canonical-json.ts';
import type { Settings } from '../../document/document.ts';
import type { ServerSettings } from '../../document/server-settings.ts';
import type { SiteTls } from '../../document/tls-settings.ts';
import type { TlsAddress } from './served-names.ts';
import { coveringWildcards } from './server-names.ts';
import type { HandshakePolicy, ListenerTls } from './site-tls.ts';

/** Returns the policy of a site; `certificates` are the IDs of its loaded certificates. */
export function handshakePolicy(tls: SiteTls, certificates: readonly string[]): HandshakePolicy {
	const { min_version, max_version, ciphers, curves, alpn, client_auth, insecure_secrets_log } = tls;
	return {
		...(min_version ? { min_version } : {}),
		...(max_version ? { max_version } : {}),
		...(ciphers ? { ciphers } : {}),
		...(curves ? { curves } : {}),
		...(alpn ? { alpn } : {}),
		...(certificates.length > 0 ? { certificates } : {}),
		...(client_auth ? { client_auth } : {}),
		...(insecure_secrets_log ? { insecure_secrets_log } : {}),
	};
}

/** An address for which two sites have handshake policies that differ in some fields. */
export interface PolicyConflict {
	readonly address: TlsAddress;
	readonly conflictingFields: readonly string[];
}

/** Plans the handshakes of a listener. `policyOf` returns the policy of an address's site; undefined for a site without `tls`. */
export function planHandshakes(
	addresses: readonly TlsAddress[],
	policyOf: (address: TlsAddress) => HandshakePolicy | undefined,
	settings: Settings,
	server: ServerSettings,
	onConflict: (conflict: PolicyConflict) => void,
): ListenerTls {
	const policies: HandshakePolicy[] = [{}];
	const indexByPolicyKey = new Map<string, number>([['{}', 0]]);
	const policyIndexOf = (policy: HandshakePolicy): number => {
		const key = canonicalJson(policy);
		let index = indexByPolicyKey.get(key);
		if (index === undefined) {
			index = policies.push(policy) - 1;
			indexByPolicyKey.set(key, index);
		}
		return index;
	};
	const policyIndexByName = new Map<string, number>();
	let catchAllIndex: number | undefined;
	for (const address of addresses) {
		const policy = policyOf(address);
		if (!policy) continue;
		const index = policyIndexOf(policy);
		const earlierIndex = address.host === '' ? catchAllIndex : policyIndexByName.get(address.host);
		if (earlierIndex !== undefined && earlierIndex !== index) {
			const conflictingFields = differingFields(policies[earlierIndex]!, policy);
			if (conflictingFields.length > 0) onConflict({ address, conflictingFields });
		}
		if (address.host === '') catchAllIndex ??= index;
		else if (earlierIndex === undefined) policyIndexByName.set(address.host, index);
	}
	shieldFromClientAuth(addresses, policyIndexByName, policies, policyIndexOf);
	const requestsClientAuth = policies.some(policy => policy.client_auth !== undefined);
	const strictSniHost = server.strict_sni_host as boolean | undefined;
	const { protocols, listener_wrappers: wrappers } = server;
	return {
		policies,
		names: Object.fromEntries(policyIndexByName),
		other: catchAllIndex ?? 0,
		strict_sni_host: strictSniHost ?? requestsClientAuth,
		...(settings.default_sni === undefined ? {} : { default_sni: settings.default_sni as string }),
		...(settings.fallback_sni === undefined ? {} : { fallback_sni: settings.fallback_sni as string }),
		...(protocols === undefined ? {} : { protocols: protocols as string[] }),
		...(wrappers?.some(({ wrapper }) => wrapper === 'http_redirect') ? { http_redirect: true } : {}),
	};
}

/**
 * Returns the settings in which two policies for one name differ. Lists of certificates are not compared, because they are
 * combined.
 */
function differingFields(a: HandshakePolicy, b: HandshakePolicy): string[] {
	const fields = [
		'min_version',
		'max_version',
		'ciphers',
		'curves',
		'alpn',
		'client_auth',
		'insecure_secrets_log',
	] as const;
	return fields.filter(field => canonicalJson(a[field] ?? null) !== canonicalJson(b[field] ?? null));
}

/**
 * Keeps names without a policy of their own from requesting client certificates. Such a name has the policy of the wildcard that
 * covers it. If this policy requests client certificates, the name gets a copy that does not.
 */
function shieldFromClientAuth(
	addresses: readonly TlsAddress[],
	policyIndexByName: Map<string, number>,
	policies: readonly HandshakePolicy[],
	policyIndexOf: (policy: HandshakePolicy) => number,
): void {
	for (const { host } of addresses) {
		if (host === '' || policyIndexByName.has(host)) continue;
		const wildcard = coveringWildcards(host).find(name => policyIndexByName.has(name));
		if (wildcard === undefined) continue;
		const { client_auth: clientAuth, ...withoutClientAuth } = policies[policyIndexByName.get(wildcard)!]!;
		if (clientAuth) policyIndexByName.set(host, policyIndexOf(withoutClientAuth));
	}
}

/**
 * Selects the issuers of a certificate: from its site; if the site names none, from the global settings; otherwise the defaults.
 */
import type { Settings } from '../../document/document.ts';
import type { IssuerSettings, SiteTls } from '../../document/tls-settings.ts';
import { FALLBACK_ACME_DIRECTORY } from '../../modules/providers/issuers/acme.ts';
import { isInternalName } from './server-names.ts';

const INTERNAL_ISSUERS: readonly IssuerSettings[] = [{ issuer: 'internal' }];

/** Returns the issuers of a name, in order of preference; never empty. `name` is '' for any name. */
export function issuersOf(name: string, tls: SiteTls | undefined, settings: Settings): readonly IssuerSettings[] {
	if (tls?.issuers && tls.issuers.length > 0) return tls.issuers.map(issuer => withDefaults(issuer, settings));
	if (tls?.acme && Object.keys(tls.acme).length > 0) return publicIssuers(tls.acme, settings);
	if (settings.local_certs === true) return INTERNAL_ISSUERS;
	const configuredIssuers = settings.cert_issuers as readonly IssuerSettings[] | undefined;
	if (configuredIssuers && configuredIssuers.length > 0)
		return configuredIssuers.map(issuer => withDefaults(issuer, settings));
	return name !== '' && isInternalName(name) ? INTERNAL_ISSUERS : publicIssuers({}, settings);
}

/**
 * Returns an issuer for the default ACME authority and, if an email is known and no directory is named, another for the fallback
 * authority.
 */
function publicIssuers(acmeSettings: { readonly [setting: string]: unknown }, settings: Settings): IssuerSettings[] {
	const mainIssuer = withDefaults({ issuer: 'acme', ...acmeSettings }, settings);
	if (mainIssuer.email === undefined || mainIssuer.directory !== undefined) return [mainIssuer];
	const { eab: _, ...withoutEab } = mainIssuer;
	return [mainIssuer, { ...withoutEab, issuer: 'acme', directory: FALLBACK_ACME_DIRECTORY }];
}

/** Returns an issuer. An ACME issuer gets defaults from the global settings. */
function withDefaults(issuer: IssuerSettings, settings: Settings): IssuerSettings {
	if (issuer.issuer !== 'acme') return issuer;
	const { default_dns: usesDefaultDns, ...issuerSettings } = issuer;
	const provider = settings.acme_dns as { readonly provider: string } | undefined;
	const acmeDns = provider?.provider === 'default' ? settings.dns : provider;
	const defaults: { [setting: string]: unknown } = {
		email: settings.email,
		directory: settings.acme_ca,
		trusted_roots: settings.acme_ca_root === undefined ? undefined : [settings.acme_ca_root],
		eab: settings.acme_eab,
		dns: usesDefaultDns === true ? settings.dns : acmeDns,
		resolvers: settings.tls_resolvers,
		preferred_chains: settings.preferred_chains,
		lifetime: settings.cert_lifetime,
	};
	const definedDefaults: { [setting: string]: unknown } = {};
	for (const [name, value] of Object.entries(defaults)) if (value !== undefined) definedDefaults[name] = value;
	return { ...definedDefaults, ...issuerSettings } as IssuerSettings;
}

/** Returns the IDs of the internal authorities that issuers sign with. */
export function internalAuthoritiesOf(issuers: readonly IssuerSettings[]): string[] {
	return issuers.filter(({ issuer }) => issuer === 'internal').map(({ ca }) => (typeof ca === 'string' ? ca : 'local'));
}

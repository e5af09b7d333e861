/** Plans automatic HTTPS: which names in a document get certificates, and how. */
import type { Report } from '../../diagnostics/diagnostic.ts';
import { canonicalJson } from '../../document/canonical-json.ts';
import type { Settings } from '../../document/document.ts';
import type { IssuerSettings, SiteTls } from '../../document/tls-settings.ts';
import type { AutomationPolicy, CertificatePlan } from './certificate-plan.ts';
import { internalAuthoritiesOf, issuersOf } from './issuers.ts';
import type { TlsAddress } from './served-names.ts';
import { coveringWildcards, isInternalName, qualifiesForCertificate } from './server-names.ts';
import type { LoadedCertificate } from './site-tls.ts';

/** The parts of automatic HTTPS that are in effect. */
export interface AutoHttpsModes {
	readonly managesCertificates: boolean;
	readonly addsRedirects: boolean;
	readonly ignoresLoaded: boolean;
}

/** Returns which parts of automatic HTTPS the settings leave in effect. */
export function activeAutoHttps(settings: Settings): AutoHttpsModes {
	const modes = (settings.auto_https ?? []) as readonly string[];
	const isOff = modes.includes('off');
	return {
		managesCertificates: !isOff && !modes.includes('disable_certs'),
		addsRedirects: !isOff && !modes.includes('disable_redirects'),
		ignoresLoaded: modes.includes('ignore_loaded_certs'),
	};
}

/** The settings of a certificate: all properties of an automation policy except its names. */
type PolicySettings = Omit<AutomationPolicy, 'subjects'>;

interface ManagedName {
	readonly policySettings: PolicySettings;
	/**
	 * True if the site itself configures its certificates. Two such sites with different settings for one name are a mistake.
	 */
	readonly isExplicit: boolean;
	readonly isForced: boolean;
	readonly pointer: string;
}

/**
 * Plans the certificates of all TLS addresses. Reports names that cannot have a certificate, and names for which two sites have
 * different settings.
 */
export function planCertificates(
	addresses: readonly TlsAddress[],
	settings: Settings,
	loadedCertificates: readonly LoadedCertificate[],
	report: Report,
): CertificatePlan {
	const autoHttps = activeAutoHttps(settings);
	const ports = { http_port: settings.http_port ?? 80, https_port: settings.https_port ?? 443 };
	const policySet = new PolicySet();
	const poolAuthorities = addresses.flatMap(({ tls }) => authoritiesOfPool(tls?.client_auth?.trust_pool));
	if (autoHttps.managesCertificates) {
		const managedNames = namesToManage(addresses, settings, report);
		const loadedCertificateNames = loadedNames(loadedCertificates);
		for (const [name, managedName] of managedNames) {
			if (!autoHttps.ignoresLoaded && hasNameOrWildcard(name, loadedCertificateNames)) continue;
			const hasManagedWildcard = coveringWildcards(name).some(wildcard => managedNames.has(wildcard));
			if (hasManagedWildcard && !managedName.isForced) continue;
			if (name.endsWith('.ts.net') && !managedName.isExplicit)
				reportTailscale(name, managedName.pointer, settings, report);
			policySet.add(name, managedName.policySettings);
		}
	}
	const policyList = policySet.toPolicies();
	return {
		policies: policyList,
		authorities: [
			...new Set([...policyList.flatMap(({ issuers }) => internalAuthoritiesOf(issuers)), ...poolAuthorities]),
		],
		...ports,
	};
}

/** A set of automation policies, in which names with the same settings share one policy. */
class PolicySet {
	readonly #entriesByKey = new Map<string, { readonly policySettings: PolicySettings; readonly subjects: string[] }>();
	/**
	 * The canonical JSON of each {@link PolicySettings}, by which its entry is found. Cached, because many names share one settings
	 * object.
	 */
	readonly #keysBySettings = new WeakMap<PolicySettings, string>();

	add(name: string, policySettings: PolicySettings): void {
		let key = this.#keysBySettings.get(policySettings);
		if (key === undefined) {
			key = canonicalJson(policySettings);
			this.#keysBySettings.set(policySettings, key);
		}
		let entry = this.#entriesByKey.get(key);
		if (!entry) {
			entry = { policySettings, subjects: [] };
			this.#entriesByKey.set(key, entry);
		}
		if (name !== '') entry.subjects.push(name);
		else this.#anyNameSettings = policySettings;
	}

	#anyNameSettings: PolicySettings | undefined;

	toPolicies(): AutomationPolicy[] {
		const policies: AutomationPolicy[] = [];
		for (const { policySettings, subjects } of this.#entriesByKey.values())
			if (subjects.length > 0) policies.push({ subjects, ...policySettings });
		if (this.#anyNameSettings) policies.push({ subjects: [], ...this.#anyNameSettings });
		return policies;
	}
}

/** Returns the names for which certificates are managed, each with its settings. '' stands for any name, on demand. */
function namesToManage(
	addresses: readonly TlsAddress[],
	settings: Settings,
	report: Report,
): ReadonlyMap<string, ManagedName> {
	const managedNames = new Map<string, ManagedName>();
	const settingsCache = new PolicySettingsCache(settings);
	for (const { host, tls, pointer, site } of addresses) {
		const isExplicit = configuresCertificates(tls);
		if (host === '') {
			if (!isExplicit) continue;
			const policySettings = settingsCache.settingsFor('', tls);
			requirePermission(host, policySettings, settings, `/sites/${site}/tls`, report);
			if (policySettings.on_demand || policySettings.managers) {
				const earlierName = managedNames.get('');
				if (earlierName && canonicalJson(earlierName.policySettings) !== canonicalJson(policySettings))
					reportConflict('', pointer, report);
				managedNames.set('', { policySettings, isExplicit, isForced: false, pointer });
			}
			continue;
		}
		if (!qualifiesForCertificate(host)) {
			// A name with an empty label is only a warning, because Caddy accepts it (but never obtains a certificate for it).
			const isTolerated = host.includes('..') && !host.startsWith('.') && !host.endsWith('.');
			report({
				code: 'tls/name-does-not-qualify',
				severity: isTolerated ? 'warning' : 'error',
				pointer,
				message: `subject does not qualify for certificate: '${host}'`,
				hint: 'Give the site certificate files, or an http:// address.',
			});
			continue;
		}
		const policySettings = settingsCache.settingsFor(host, tls);
		const earlierManaged = managedNames.get(host);
		if (earlierManaged) {
			if (
				earlierManaged.policySettings !== policySettings &&
				earlierManaged.isExplicit &&
				isExplicit &&
				canonicalJson(earlierManaged.policySettings) !== canonicalJson(policySettings)
			) {
				reportConflict(host, pointer, report);
			}
			if (earlierManaged.isExplicit || !isExplicit) continue;
		}
		requirePermission(host, policySettings, settings, `/sites/${site}/tls`, report);
		managedNames.set(host, { policySettings, isExplicit, isForced: tls?.force_automate === true, pointer });
	}
	return managedNames;
}

/** Reports whether a site configures how its certificates are obtained. */
function configuresCertificates(tls: SiteTls | undefined): boolean {
	if (!tls) return false;
	const { issuers, acme, managers, key_type, on_demand, reuse_private_keys, renewal_window_ratio } = tls;
	const definedSetting =
		issuers ?? acme ?? managers ?? key_type ?? on_demand ?? reuse_private_keys ?? renewal_window_ratio;
	return definedSetting !== undefined;
}

/** Creates the settings of certificates. Names whose settings have the same origin share one object. */
class PolicySettingsCache {
	readonly #globalSettings: Settings;
	readonly #defaultsByKind = new Map<boolean, PolicySettings>();
	readonly #settingsBySite = new Map<SiteTls, Map<boolean, PolicySettings>>();

	constructor(settings: Settings) {
		this.#globalSettings = settings;
	}

	settingsFor(name: string, tls: SiteTls | undefined): PolicySettings {
		const isInternal = name !== '' && isInternalName(name);
		let settingsByKind = this.#defaultsByKind;
		if (tls && configuresCertificates(tls)) {
			settingsByKind = this.#settingsBySite.get(tls) ?? new Map();
			this.#settingsBySite.set(tls, settingsByKind);
		}
		let policySettings = settingsByKind.get(isInternal);
		if (!policySettings) {
			policySettings = this.#createSettings(name, settingsByKind === this.#defaultsByKind ? undefined : tls);
			settingsByKind.set(isInternal, policySettings);
		}
		return policySettings;
	}

	#createSettings(name: string, tls: SiteTls | undefined): PolicySettings {
		const settings = this.#globalSettings;
		const keyType = tls?.key_type ?? (settings.key_type as string | undefined);
		const renewalRatio = tls?.renewal_window_ratio ?? (settings.renewal_window_ratio as number | undefined);
		const issuers: readonly IssuerSettings[] = issuersOf(name, tls, settings);
		return {
			issuers,
			...(keyType === undefined ? {} : { key_type: keyType }),
			...(tls?.on_demand ? { on_demand: true } : {}),
			...(tls?.reuse_private_keys ? { reuse_private_keys: true } : {}),
			...(renewalRatio === undefined ? {} : { renewal_window_ratio: renewalRatio }),
			...(tls?.managers ? { managers: tls.managers } : {}),
		};
	}
}

/**
 * Reports on-demand certificates for unknown names unless a permission module is configured, because clients could request any
 * number of them.
 */
function requirePermission(
	host: string,
	policySettings: PolicySettings,
	settings: Settings,
	pointer: string,
	report: Report,
): void {
	if (policySettings.on_demand !== true || settings.on_demand_tls !== undefined) return;
	if (host !== '' && !host.includes('*')) return;
	if (policySettings.issuers.every(({ issuer }) => issuer === 'internal')) return;
	const message =
		'on-demand TLS cannot be enabled without a permission module to prevent abuse; please refer to documentation for details';
	const hint = 'Use `on_demand_tls { ask <url> }` to decide which names are permitted.';
	report({
		code: 'tls/no-permission',
		severity: policySettings.managers ? 'warning' : 'error',
		pointer,
		message,
		hint,
	});
}

function reportConflict(host: string, pointer: string, report: Report): void {
	const message =
		host === ''
			? 'automation policy from site block is also default/catch-all policy because of key without hostname, and the two are in conflict'
			: `hostname appears in more than one automation policy, making certificate management ambiguous: ${host}`;
	const hint = 'Give all sites with this name the same `tls`.';
	report({ code: 'tls/ambiguous-automation', severity: 'error', pointer, message, hint });
}

/**
 * Reports a name in a Tailscale network, which only the Tailscale daemon could certify, unless another source of certificates is
 * configured.
 */
function reportTailscale(name: string, pointer: string, settings: Settings, report: Report): void {
	if (settings.cert_issuers !== undefined || settings.local_certs === true || settings.acme_ca !== undefined) return;
	report({
		code: 'tls/unavailable',
		severity: 'error',
		pointer,
		message: `\`${name}\` gets its certificate from the Tailscale daemon, which is not supported by this build.`,
		hint: 'Give the site certificate files or `tls internal`.',
	});
}

function loadedNames(loadedCertificates: readonly LoadedCertificate[]): ReadonlySet<string> {
	const names = new Set<string>();
	for (const certificate of loadedCertificates) for (const name of certificate.names) names.add(name);
	return names;
}

function hasNameOrWildcard(name: string, names: ReadonlySet<string>): boolean {
	return names.has(name) || coveringWildcards(name).some(wildcard => names.has(wildcard));
}

function authoritiesOfPool(pool: NonNullable<SiteTls['client_auth']>['trust_pool']): string[] {
	if (!pool) return [];
	if (pool.source === 'combined') return pool.of.flatMap(authoritiesOfPool);
	return pool.source === 'pki_root' || pool.source === 'pki_intermediate' ? [...pool.authorities] : [];
}

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

/** Which parts of automatic HTTPS are disabled. */
export interface AutoHttpsModes {
	readonly certificates: boolean;
	readonly redirects: boolean;
	readonly ignoreLoaded: boolean;
}

/** Returns which parts of automatic HTTPS a document disables. */
export function autoHttpsModes(settings: Settings): AutoHttpsModes {
	const modes = (settings.auto_https ?? []) as readonly string[];
	const off = modes.includes('off');
	return {
		certificates: !off && !modes.includes('disable_certs'),
		redirects: !off && !modes.includes('disable_redirects'),
		ignoreLoaded: modes.includes('ignore_loaded_certs'),
	};
}

/** All properties of a certificate except its name. */
type Way = Omit<AutomationPolicy, 'subjects'>;

interface Named {
	readonly way: Way;
	/** Whether the site itself configures its certificates. Two explicit sites with different configurations are a conflict. */
	readonly explicit: boolean;
	readonly forced: boolean;
	readonly pointer: string;
}

/** Plans the certificates. Reports names that cannot have a certificate, and sites that contradict each other. */
export function planCertificates(
	addresses: readonly TlsAddress[],
	settings: Settings,
	loaded: readonly LoadedCertificate[],
	report: Report,
): CertificatePlan {
	const modes = autoHttpsModes(settings);
	const ports = { http_port: settings.http_port ?? 80, https_port: settings.https_port ?? 443 };
	const policies = new PolicySet();
	const pools = addresses.flatMap(({ tls }) => authoritiesOfPool(tls?.client_auth?.trust_pool));
	if (modes.certificates) {
		const names = namesToManage(addresses, settings, report);
		const covered = loadedNames(loaded);
		for (const [name, named] of names) {
			if (!modes.ignoreLoaded && isCovered(name, covered)) continue;
			const byWildcard = coveringWildcards(name).some(wildcard => names.has(wildcard));
			if (byWildcard && !named.forced) continue;
			if (name.endsWith('.ts.net') && !named.explicit) reportTailscale(name, named.pointer, settings, report);
			policies.add(name, named.way);
		}
	}
	const list = policies.list();
	return {
		policies: list,
		authorities: [...new Set([...list.flatMap(({ issuers }) => internalAuthoritiesOf(issuers)), ...pools])],
		...ports,
	};
}

/** Merges policies that differ only in their names. */
class PolicySet {
	readonly #ways = new Map<string, { readonly way: Way; readonly subjects: string[] }>();
	/** The serialized form of each {@link Way}. There are few, and many names share them, so each is serialized once. */
	readonly #keys = new WeakMap<Way, string>();

	add(name: string, way: Way): void {
		let key = this.#keys.get(way);
		if (key === undefined) {
			key = canonicalJson(way);
			this.#keys.set(way, key);
		}
		let entry = this.#ways.get(key);
		if (!entry) {
			entry = { way, subjects: [] };
			this.#ways.set(key, entry);
		}
		if (name !== '') entry.subjects.push(name);
		else this.#everyName = way;
	}

	#everyName: Way | undefined;

	list(): AutomationPolicy[] {
		const list: AutomationPolicy[] = [];
		for (const { way, subjects } of this.#ways.values()) if (subjects.length > 0) list.push({ subjects, ...way });
		if (this.#everyName) list.push({ subjects: [], ...this.#everyName });
		return list;
	}
}

/** Returns the names of sites with the way in which each gets its certificate; '' stands for any name, on demand. */
function namesToManage(
	addresses: readonly TlsAddress[],
	settings: Settings,
	report: Report,
): ReadonlyMap<string, Named> {
	const names = new Map<string, Named>();
	const ways = new Ways(settings);
	for (const { host, tls, pointer, site } of addresses) {
		const explicit = says(tls);
		if (host === '') {
			if (!explicit) continue;
			const way = ways.of('', tls);
			permitted(host, way, settings, `/sites/${site}/tls`, report);
			if (way.on_demand || way.managers) {
				const before = names.get('');
				if (before && canonicalJson(before.way) !== canonicalJson(way)) reportConflict('', pointer, report);
				names.set('', { way, explicit, forced: false, pointer });
			}
			continue;
		}
		if (!qualifiesForCertificate(host)) {
			// The compatible server accepts a name with an empty label, but never obtains a certificate for it.
			const isTaken = host.includes('..') && !host.startsWith('.') && !host.endsWith('.');
			report({
				code: 'tls/name-does-not-qualify',
				severity: isTaken ? 'warning' : 'error',
				pointer,
				message: `subject does not qualify for certificate: '${host}'`,
				hint: 'Give the site certificate files, or an http:// address.',
			});
			continue;
		}
		const way = ways.of(host, tls);
		const before = names.get(host);
		if (before) {
			if (before.way !== way && before.explicit && explicit && canonicalJson(before.way) !== canonicalJson(way)) {
				reportConflict(host, pointer, report);
			}
			if (before.explicit || !explicit) continue;
		}
		permitted(host, way, settings, `/sites/${site}/tls`, report);
		names.set(host, { way, explicit, forced: tls?.force_automate === true, pointer });
	}
	return names;
}

/** Reports whether a site configures how its certificates are obtained. */
function says(tls: SiteTls | undefined): boolean {
	if (!tls) return false;
	const { issuers, acme, managers, key_type, on_demand, reuse_private_keys, renewal_window_ratio } = tls;
	const anything = issuers ?? acme ?? managers ?? key_type ?? on_demand ?? reuse_private_keys ?? renewal_window_ratio;
	return anything !== undefined;
}

/** The ways of obtaining certificates. Names with the same settings share one object. */
class Ways {
	readonly #settings: Settings;
	readonly #byDefault = new Map<boolean, Way>();
	readonly #bySite = new Map<SiteTls, Map<boolean, Way>>();

	constructor(settings: Settings) {
		this.#settings = settings;
	}

	of(name: string, tls: SiteTls | undefined): Way {
		const internal = name !== '' && isInternalName(name);
		let known = this.#byDefault;
		if (tls && says(tls)) {
			known = this.#bySite.get(tls) ?? new Map();
			this.#bySite.set(tls, known);
		}
		let way = known.get(internal);
		if (!way) {
			way = this.#make(name, known === this.#byDefault ? undefined : tls);
			known.set(internal, way);
		}
		return way;
	}

	#make(name: string, tls: SiteTls | undefined): Way {
		const settings = this.#settings;
		const keyType = tls?.key_type ?? (settings.key_type as string | undefined);
		const ratio = tls?.renewal_window_ratio ?? (settings.renewal_window_ratio as number | undefined);
		const issuers: readonly IssuerSettings[] = issuersOf(name, tls, settings);
		return {
			issuers,
			...(keyType === undefined ? {} : { key_type: keyType }),
			...(tls?.on_demand ? { on_demand: true } : {}),
			...(tls?.reuse_private_keys ? { reuse_private_keys: true } : {}),
			...(ratio === undefined ? {} : { renewal_window_ratio: ratio }),
			...(tls?.managers ? { managers: tls.managers } : {}),
		};
	}
}

/** Requires a permission for on-demand certificates of unknown names, because clients could request endlessly many. */
function permitted(host: string, way: Way, settings: Settings, pointer: string, report: Report): void {
	if (way.on_demand !== true || settings.on_demand_tls !== undefined) return;
	if (host !== '' && !host.includes('*')) return;
	if (way.issuers.every(({ issuer }) => issuer === 'internal')) return;
	const message =
		'on-demand TLS cannot be enabled without a permission module to prevent abuse; please refer to documentation for details';
	const hint = 'Use `on_demand_tls { ask <url> }` to decide which names are permitted.';
	report({
		code: 'tls/no-permission',
		severity: way.managers ? 'warning' : 'error',
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

/** Rejects names in a Tailscale network unless another source is configured: only the Tailscale daemon could certify them. */
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

function loadedNames(loaded: readonly LoadedCertificate[]): ReadonlySet<string> {
	const names = new Set<string>();
	for (const certificate of loaded) for (const name of certificate.names) names.add(name);
	return names;
}

function isCovered(name: string, names: ReadonlySet<string>): boolean {
	return names.has(name) || coveringWildcards(name).some(wildcard => names.has(wildcard));
}

function authoritiesOfPool(pool: NonNullable<SiteTls['client_auth']>['trust_pool']): string[] {
	if (!pool) return [];
	if (pool.source === 'combined') return pool.of.flatMap(authoritiesOfPool);
	return pool.source === 'pki_root' || pool.source === 'pki_intermediate' ? [...pool.authorities] : [];
}

/** Plans the TLS of a document: handshake policies of its listeners, certificates to manage, and redirects. */

import type { Report } from '../../diagnostics/diagnostic.ts';
import { canonicalJson } from '../../document/canonical-json.ts';
import type { Document } from '../../document/document.ts';
import { serverSettingsFor } from '../../document/server-settings.ts';
import type { ClientAuth } from '../../document/tls-settings.ts';
import type { Reader } from '../../source/reader.ts';
import type { HostFacts } from '../placeholders/placeholder.ts';
import { checkAuthorityFiles } from './authority-files.ts';
import { activeAutoHttps, planCertificates } from './automation.ts';
import type { CertificateCheck } from './certificate-check.ts';
import { readDocumentCertificates } from './certificate-files.ts';
import type { CertificatePlan } from './certificate-plan.ts';
import { handshakePolicy, planHandshakes } from './handshake-policies.ts';
import type { ListenedSite } from './plan.ts';
import { planRedirects } from './redirects.ts';
import type { TlsAddress } from './served-names.ts';
import type { HandshakePolicy, ListenerTls, LoadedCertificate } from './site-tls.ts';

/** The certificates that a document requires from the process. */
export interface PlannedCertificates {
	readonly managed: CertificatePlan;
	/** Certificates that are read from files. */
	readonly loaded: readonly LoadedCertificate[];
	/** Names that are served over TLS, sorted. Adding a name needs a restart. */
	readonly names: readonly string[];
	/** Listeners that request client certificates, as `host:port`. */
	readonly mutual: readonly string[];
	/** All different settings for client certificates that listeners use. */
	readonly client_auth: readonly ClientAuth[];
}

/** What {@link planTls} needs in order to read certificate files. */
export interface PlanFiles {
	readonly reader: Reader;
	readonly certificateCheck: CertificateCheck;
	/** Facts about the machine that will serve the document, if known. */
	readonly facts?: HostFacts | undefined;
}

/** The TLS parts of a plan. */
export interface PlannedTls {
	readonly certificates: PlannedCertificates;
	/** TLS parameters, by {@link TlsListener.key}. */
	readonly listeners: ReadonlyMap<string, ListenerTls>;
	/** Redirects to HTTPS, by the host to which their TLS listener is bound; empty if there are none. */
	readonly redirects: ReadonlyMap<string, readonly ListenedSite[]>;
}

/** The TLS addresses of a listener, in order of precedence. */
export interface TlsListener {
	readonly key: string;
	readonly host: string;
	readonly port: number;
	readonly addresses: readonly TlsAddress[];
}

/** Plans the TLS of a document. Without `files`, certificate files are assumed to exist and to contain no names. */
export function planTls(
	document: Document,
	listeners: readonly TlsListener[],
	files: PlanFiles | undefined,
	report: Report,
): PlannedTls {
	const settings = document.settings ?? {};
	const { loadedCertificates, idsBySite: certificatesBySite } = files
		? readDocumentCertificates(document, files.reader, files.certificateCheck, report)
		: { loadedCertificates: [], idsBySite: new Map<number, readonly string[]>() };
	const policiesBySite = new Map<number, HandshakePolicy>();
	const policyOf = ({ site, tls }: TlsAddress): HandshakePolicy | undefined => {
		if (!tls) return undefined;
		let policy = policiesBySite.get(site);
		if (!policy) {
			policy = handshakePolicy(tls, certificatesBySite.get(site) ?? []);
			policiesBySite.set(site, policy);
		}
		return policy;
	};
	const tlsByListener = new Map<string, ListenerTls>();
	for (const { key, host, port, addresses } of listeners) {
		const serverSettings = serverSettingsFor(settings, { host, port });
		const tls = planHandshakes(addresses, policyOf, settings, serverSettings, ({ address, conflictingFields }) => {
			const message = `two policies with same match criteria have conflicting ${conflictingFields.map(field => `\`${field}\``).join(', ')}`;
			const hint = 'Sites that share a name on a listener must use the same TLS settings.';
			report({
				code: 'tls/conflicting-policies',
				severity: 'error',
				pointer: `/sites/${address.site}/tls`,
				message,
				hint,
			});
		});
		tlsByListener.set(key, tls);
	}
	const allAddresses = listeners.flatMap(({ addresses }) => addresses);
	const certificatePlan = planCertificates(allAddresses, settings, loadedCertificates, report);
	if (files) checkAuthorityFiles(document, certificatePlan, files, report);
	const ports = { http: certificatePlan.http_port, https: certificatePlan.https_port };
	const redirects = activeAutoHttps(settings).addsRedirects
		? planRedirects(allAddresses, ports)
		: new Map<string, readonly ListenedSite[]>();
	const mutualListeners = listeners
		.filter(({ key }) => tlsByListener.get(key)!.policies.some(policy => policy.client_auth !== undefined))
		.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`);
	const servedNames = [...new Set(allAddresses.map(({ host }) => host))].filter(host => host !== '').sort();
	const clientAuths = [...tlsByListener.values()].flatMap(({ policies }) =>
		policies.flatMap(policy => policy.client_auth ?? []),
	);
	const clientAuth = [...new Map(clientAuths.map(auth => [canonicalJson(auth), auth])).values()];
	return {
		certificates: {
			managed: certificatePlan,
			loaded: loadedCertificates,
			names: servedNames,
			mutual: mutualListeners,
			client_auth: clientAuth,
		},
		listeners: tlsByListener,
		redirects,
	};
}

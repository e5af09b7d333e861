/** Selects the policy and the certificate for a ClientHello, according to one configuration of a listener. */
import { lookUpName } from '../../compiler/codegen/plan/server-names.ts';
import type { HandshakePolicy, ListenerTls } from '../../compiler/codegen/plan/site-tls.ts';
import { unmapAddress } from '../protocols/http1/socket-info.ts';
import type { CertificateTable } from './certificate-table.ts';
import type { ClientHello } from './client-hello.ts';
import type { HandshakerCache } from './handshaker-cache.ts';
import { chooseCertificate, type TableCertificate } from './table-certificate.ts';

/** The handshake settings of a listener. A reload creates a new object; a connection keeps the one with which it started. */
export class HandshakeSelector {
	readonly settings: ListenerTls;
	readonly handshakers: HandshakerCache;
	readonly #policyIndexByName: ReadonlyMap<string, number>;
	/** For each policy, the IDs of the certificates that it names; undefined if it names at most one. */
	readonly #certificateIdsByPolicy: readonly (ReadonlySet<string> | undefined)[];

	constructor(settings: ListenerTls, handshakers: HandshakerCache) {
		this.settings = settings;
		this.handshakers = handshakers;
		this.#policyIndexByName = new Map(Object.entries(settings.names));
		this.#certificateIdsByPolicy = settings.policies.map(({ certificates: ids = [] }) =>
			ids.length > 1 ? new Set(ids) : undefined,
		);
	}

	/** Returns the name by which the policy and the certificate of a handshake are selected. */
	nameFor(serverName: string, connection: { readonly localAddress?: string | undefined }): string {
		// Reading the local address costs a system call, so it is done only if the client sent no name.
		return serverName || this.settings.default_sni || unmapAddress(connection.localAddress);
	}

	policyIndexOf(name: string): number {
		return lookUpName(this.#policyIndexByName, name) ?? this.settings.other;
	}

	policy(index: number): HandshakePolicy {
		return this.settings.policies[index]!;
	}

	/**
	 * Returns a certificate of the policy that covers the name, or else the policy's first certificate. If the policy names no
	 * certificates, or none of them is loaded, returns any certificate for the name.
	 */
	selectCertificate(
		policyIndex: number,
		name: string,
		hello: ClientHello,
		table: CertificateTable,
	): TableCertificate | undefined {
		const certificateIds = this.policy(policyIndex).certificates;
		if (certificateIds === undefined) return table.find(name, hello);
		const policyIds = this.#certificateIdsByPolicy[policyIndex];
		if (policyIds === undefined) return table.findById(certificateIds[0]!) ?? table.find(name, hello);
		const certificatesForName = table.findAll(name).filter(({ published }) => policyIds.has(published.id));
		if (certificatesForName.length > 0)
			return chooseCertificate(sortedByIds(certificatesForName, certificateIds), hello);
		// The table returns no wildcard certificates if another site's certificate has the exact name, so this policy's certificates
		// are looked up by ID.
		const loadedCertificates = certificateIds.flatMap(id => table.findById(id) ?? []);
		const coveringCertificates = loadedCertificates.filter(certificate => coversName(certificate, name));
		if (loadedCertificates.length === 0) return table.find(name, hello);
		return chooseCertificate(coveringCertificates.length > 0 ? coveringCertificates : loadedCertificates, hello);
	}
}

/** Sorts certificates into the order in which the site lists them. */
function sortedByIds(certificates: readonly TableCertificate[], ids: readonly string[]): readonly TableCertificate[] {
	if (certificates.length === 1) return certificates;
	return certificates.toSorted((a, b) => ids.indexOf(a.published.id) - ids.indexOf(b.published.id));
}

function coversName({ published }: TableCertificate, name: string): boolean {
	if (published.names.includes(name)) return true;
	const dotIndex = name.indexOf('.');
	return dotIndex > 0 && published.names.includes(`*${name.slice(dotIndex)}`);
}

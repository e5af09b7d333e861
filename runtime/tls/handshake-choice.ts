/** How a TLS listener shakes hands under one configuration: which policy and which certificate a ClientHello gets. */
import { lookUpName } from '../../compiler/tls/server-names.ts';
import type { HandshakePolicy, ListenerTls } from '../../compiler/tls/site-tls.ts';
import type { CertificateTable } from './certificate-table.ts';
import type { ClientHello } from './client-hello.ts';
import type { Shakers } from './shakers.ts';
import { certificateFor, type TableCertificate } from './table-certificate.ts';

/** What a listener goes by from one load to the next; a connection keeps what it began with. */
export class HandshakeChoice {
	readonly settings: ListenerTls;
	readonly shakers: Shakers;
	readonly #names: ReadonlyMap<string, number>;
	/** By policy: the ids of its own certificates, where it has several. */
	readonly #own: readonly (ReadonlySet<string> | undefined)[];

	constructor(settings: ListenerTls, shakers: Shakers) {
		this.settings = settings;
		this.shakers = shakers;
		this.#names = new Map(Object.entries(settings.names));
		this.#own = settings.policies.map(({ certificates: ids = [] }) => (ids.length > 1 ? new Set(ids) : undefined));
	}

	/** Index of the policy of a name. */
	policyOf(name: string): number {
		return lookUpName(this.#names, name) ?? this.settings.other;
	}

	policy(index: number): HandshakePolicy {
		return this.settings.policies[index]!;
	}

	/** Of the policy's own certificates one that covers the name, else its first; without any what is for the name. */
	certificate(policy: number, name: string, hello: ClientHello, table: CertificateTable): TableCertificate | undefined {
		const ids = this.policy(policy).certificates;
		if (ids === undefined) return table.find(name, hello);
		const own = this.#own[policy];
		if (own === undefined) return table.byId(ids[0]!) ?? table.find(name, hello);
		const listed = table.all(name).filter(({ published }) => own.has(published.id));
		if (listed.length > 0) return certificateFor(inOrder(listed, ids), hello);
		// Another site's certificate for the very name hides this one's wildcards from the table.
		const there = ids.flatMap(id => table.byId(id) ?? []);
		const covering = there.filter(certificate => covers(certificate, name));
		if (there.length === 0) return table.find(name, hello);
		return certificateFor(covering.length > 0 ? covering : there, hello);
	}
}

/** As the site lists them. */
function inOrder(certificates: readonly TableCertificate[], ids: readonly string[]): readonly TableCertificate[] {
	if (certificates.length === 1) return certificates;
	return certificates.toSorted((a, b) => ids.indexOf(a.published.id) - ids.indexOf(b.published.id));
}

function covers({ published }: TableCertificate, name: string): boolean {
	if (published.names.includes(name)) return true;
	const dot = name.indexOf('.');
	return dot > 0 && published.names.includes(`*${name.slice(dot)}`);
}

/** The certificates of one thread by name: exact names and wildcards, found in a time that does not grow with their number. */
import { lookUpName } from '../../compiler/tls/server-names.ts';
import type { PublishedCertificate } from './certificate-feed.ts';
import { type ClientAbilities, certificateFor, TableCertificate } from './table-certificate.ts';

/** Certificates by id and by name. */
export class CertificateTable {
	readonly #byId = new Map<string, TableCertificate>();
	/** For each name its certificate; a list where there are several, the preferred first. */
	readonly #byName = new Map<string, TableCertificate | readonly TableCertificate[]>();
	#serial = 0;

	/** Certificates that there are. */
	get size(): number {
		return this.#byId.size;
	}

	/** Adds a certificate, or replaces the one with its id; gives the one that is gone. */
	set(published: PublishedCertificate): TableCertificate | undefined {
		const before = this.#byId.get(published.id);
		if (before) this.#forget(before);
		const certificate = new TableCertificate(published, ++this.#serial);
		this.#byId.set(published.id, certificate);
		for (const name of published.names) this.#addName(name, certificate);
		return before;
	}

	/** Takes a certificate out; gives it. */
	delete(id: string): TableCertificate | undefined {
		const before = this.#byId.get(id);
		if (before) this.#forget(before);
		this.#byId.delete(id);
		return before;
	}

	byId(id: string): TableCertificate | undefined {
		return this.#byId.get(id);
	}

	/** The certificate for a lower-case name that a client can verify. */
	find(name: string, client: ClientAbilities): TableCertificate | undefined {
		const found = lookUpName(this.#byName, name);
		return found === undefined || found instanceof TableCertificate ? found : certificateFor(found, client);
	}

	/** All that are for what stands for a lower-case name, the preferred first. */
	all(name: string): readonly TableCertificate[] {
		const found = lookUpName(this.#byName, name);
		return found === undefined ? [] : found instanceof TableCertificate ? [found] : found;
	}

	#addName(name: string, certificate: TableCertificate): void {
		const before = this.#byName.get(name);
		if (!before) {
			this.#byName.set(name, certificate);
			return;
		}
		const all = before instanceof TableCertificate ? [before] : [...before];
		let at = all.length;
		while (at > 0 && byPreference(certificate, all[at - 1]!) < 0) at--;
		this.#byName.set(name, all.toSpliced(at, 0, certificate));
	}

	#forget(certificate: TableCertificate): void {
		for (const name of certificate.published.names) {
			const before = this.#byName.get(name);
			if (before === certificate) this.#byName.delete(name);
			if (before === undefined || before instanceof TableCertificate) continue;
			const left = before.filter(other => other !== certificate);
			this.#byName.set(name, left.length > 1 ? left : left[0]!);
		}
	}
}

/** Managed certificates before those from files; then by id, so that threads agree. */
function byPreference(a: TableCertificate, b: TableCertificate): number {
	const x = a.published.id;
	const y = b.published.id;
	return Number(a.fromFile) - Number(b.fromFile) || (x < y ? -1 : x > y ? 1 : 0);
}

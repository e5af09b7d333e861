/** The certificates of one thread by name: exact names and wildcards, found in a time that does not grow with their number. */
import { lookUpName } from '../../compiler/tls/server-names.ts';
import type { PublishedCertificate } from './certificate-feed.ts';

/** A certificate as this thread has it; published again it is another object. */
export interface TableCertificate {
	readonly published: PublishedCertificate;
	/** Order of publication. */
	readonly serial: number;
}

/** Certificates by id and by name. */
export class CertificateTable {
	readonly #byId = new Map<string, TableCertificate>();
	/** For each name the certificates that are for it, the preferred first. */
	readonly #byName = new Map<string, TableCertificate>();
	/** Names that more than one certificate is for. */
	readonly #others = new Map<string, TableCertificate[]>();
	#serial = 0;

	/** Certificates that there are. */
	get size(): number {
		return this.#byId.size;
	}

	/** Adds a certificate, or replaces the one with its id; gives the one that is gone. */
	set(published: PublishedCertificate): TableCertificate | undefined {
		const before = this.#byId.get(published.id);
		if (before) this.#forget(before);
		const certificate = { published, serial: ++this.#serial };
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

	/** The certificate for a lower-case name. */
	find(name: string): TableCertificate | undefined {
		return lookUpName(this.#byName, name);
	}

	#addName(name: string, certificate: TableCertificate): void {
		const first = this.#byName.get(name);
		if (!first) {
			this.#byName.set(name, certificate);
			return;
		}
		let all = this.#others.get(name);
		if (!all) {
			all = [first];
			this.#others.set(name, all);
		}
		let at = all.length;
		while (at > 0 && byPreference(certificate, all[at - 1]!) < 0) at--;
		all.splice(at, 0, certificate);
		this.#byName.set(name, all[0]!);
	}

	#forget(certificate: TableCertificate): void {
		for (const name of certificate.published.names) {
			const left = this.#others.get(name)?.filter(other => other !== certificate);
			if (!left) {
				if (this.#byName.get(name) === certificate) this.#byName.delete(name);
				continue;
			}
			if (left.length > 1) this.#others.set(name, left);
			else this.#others.delete(name);
			this.#byName.set(name, left[0]!);
		}
	}
}

/** Managed certificates, which are there because they are wanted, before those from files; then by id, so that threads agree. */
function byPreference(a: TableCertificate, b: TableCertificate): number {
	const fromFile = (id: string) => (id.startsWith('file ') ? 1 : 0);
	const x = a.published.id;
	const y = b.published.id;
	return fromFile(x) - fromFile(y) || (x < y ? -1 : x > y ? 1 : 0);
}

/** The certificates of one thread, looked up by exact name or wildcard in constant time. */
import { coveringWildcards, lookUpName } from '../../compiler/codegen/plan/server-names.ts';
import type { PublishedCertificate } from '../certificates/certificate-feed.ts';
import { type ClientAbilities, chooseCertificate, TableCertificate } from './table-certificate.ts';

/** The certificates of one thread, by ID and by name. */
export class CertificateTable {
	readonly #certificatesById = new Map<string, TableCertificate>();
	/** The certificate for each name, or a list in order of preference if a name has several. */
	readonly #certificatesByName = new Map<string, TableCertificate | readonly TableCertificate[]>();
	#lastSerial = 0;

	get size(): number {
		return this.#certificatesById.size;
	}

	/** Adds a certificate. If it replaces one with the same ID, returns the replaced one. */
	set(published: PublishedCertificate): TableCertificate | undefined {
		const previous = this.#certificatesById.get(published.id);
		if (previous) this.#forget(previous);
		const certificate = new TableCertificate(published, ++this.#lastSerial);
		this.#certificatesById.set(published.id, certificate);
		for (const name of published.names) this.#addName(name, certificate);
		return previous;
	}

	/** Removes a certificate and returns it; undefined if there is none with this ID. */
	delete(id: string): TableCertificate | undefined {
		const previous = this.#certificatesById.get(id);
		if (previous) this.#forget(previous);
		this.#certificatesById.delete(id);
		return previous;
	}

	findById(id: string): TableCertificate | undefined {
		return this.#certificatesById.get(id);
	}

	/**
	 * Returns the best certificate for a lower-case name and a client's abilities. An expired one is returned only if all that cover
	 * the name have expired.
	 */
	find(name: string, client: ClientAbilities): TableCertificate | undefined {
		const match = lookUpName(this.#certificatesByName, name);
		if (match === undefined) return undefined;
		const certificate = match instanceof TableCertificate ? match : chooseCertificate(match, client);
		return certificate.isExpired ? (this.#findUnexpired(name, client) ?? certificate) : certificate;
	}

	/** Returns a certificate for one of the wildcards that cover a name; undefined if all of them have expired. */
	#findUnexpired(name: string, client: ClientAbilities): TableCertificate | undefined {
		for (const wildcard of coveringWildcards(name)) {
			const match = this.#certificatesByName.get(wildcard);
			if (match === undefined) continue;
			const certificate = match instanceof TableCertificate ? match : chooseCertificate(match, client);
			if (!certificate.isExpired) return certificate;
		}
		return undefined;
	}

	/**
	 * Returns all certificates for a lower-case name, in order of preference. Certificates with a matching wildcard are returned
	 * only if none has the exact name.
	 */
	findAll(name: string): readonly TableCertificate[] {
		const match = lookUpName(this.#certificatesByName, name);
		return match === undefined ? [] : match instanceof TableCertificate ? [match] : match;
	}

	#addName(name: string, certificate: TableCertificate): void {
		const previous = this.#certificatesByName.get(name);
		if (!previous) {
			this.#certificatesByName.set(name, certificate);
			return;
		}
		const nameCertificates = previous instanceof TableCertificate ? [previous] : [...previous];
		let insertIndex = nameCertificates.length;
		while (insertIndex > 0 && byPreference(certificate, nameCertificates[insertIndex - 1]!) < 0) insertIndex--;
		this.#certificatesByName.set(name, nameCertificates.toSpliced(insertIndex, 0, certificate));
	}

	#forget(certificate: TableCertificate): void {
		for (const name of certificate.published.names) {
			const previous = this.#certificatesByName.get(name);
			if (previous === certificate) this.#certificatesByName.delete(name);
			if (previous === undefined || previous instanceof TableCertificate) continue;
			const remaining = previous.filter(other => other !== certificate);
			this.#certificatesByName.set(name, remaining.length > 1 ? remaining : remaining[0]!);
		}
	}
}

/** Orders managed certificates before those from files, and then by ID so that all threads agree. */
function byPreference(a: TableCertificate, b: TableCertificate): number {
	const idA = a.published.id;
	const idB = b.published.id;
	return Number(a.isFromFile) - Number(b.isFromFile) || (idA < idB ? -1 : idA > idB ? 1 : 0);
}

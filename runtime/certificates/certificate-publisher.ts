/** Publishes the certificates of managed names to threads. */
import type { CertificateSink } from './certificate-feed.ts';
import type { ManagedCertificate } from './managed-certificate.ts';

/**
 * Publishes certificates, and keeps those of two entries with the same ID apart. A name has two entries while two configurations
 * want its certificate in different ways, or if a site names it after it was obtained on demand. Threads have only the certificate
 * of the entry that was published last. When that entry is withdrawn, they get the certificate of the other one.
 */
export class CertificatePublisher {
	readonly #sink: CertificateSink;
	/** The published entries, by the ID of their certificates. Threads have the certificate of the last one of each list. */
	readonly #entriesById = new Map<string, ManagedCertificate[]>();

	constructor(sink: CertificateSink) {
		this.#sink = sink;
	}

	/** Publishes the current certificates of entries that have one and are not dropped. */
	publish(entries: readonly ManagedCertificate[]): void {
		const publishableEntries = entries.filter(({ publication, isDropped }) => publication && !isDropped);
		if (publishableEntries.length === 0) return;
		// If another issuer has provided the new certificate, its ID differs from that of the previous one.
		const movedEntries = publishableEntries.filter(
			({ id, publishedId }) => publishedId !== undefined && publishedId !== id,
		);
		const releasePrevious = this.#remove(movedEntries);
		for (const entry of publishableEntries) {
			const id = entry.id!;
			const otherEntries = this.#entriesById.get(id)?.filter(other => other !== entry) ?? [];
			this.#entriesById.set(id, [...otherEntries, entry]);
			entry.publishedId = id;
		}
		this.#sink.publish(publishableEntries.map(({ publication }) => publication!));
		releasePrevious();
	}

	/** Withdraws the certificates of dropped entries. */
	withdraw(entries: readonly ManagedCertificate[]): void {
		this.#remove(entries)();
	}

	/** Removes entries. Returns a function that makes the threads drop or replace the certificates that they have of them. */
	#remove(entries: readonly ManagedCertificate[]): () => void {
		const changedIds = new Set<string>();
		for (const entry of entries) {
			const id = entry.publishedId;
			if (id === undefined) continue;
			entry.publishedId = undefined;
			const publishedEntries = this.#entriesById.get(id)!;
			if (publishedEntries.at(-1) === entry) changedIds.add(id);
			const otherEntries = publishedEntries.filter(other => other !== entry);
			if (otherEntries.length > 0) this.#entriesById.set(id, otherEntries);
			else this.#entriesById.delete(id);
		}
		return () => {
			const ids = [...changedIds];
			const remainingEntries = ids.flatMap(id => this.#entriesById.get(id)?.at(-1) ?? []);
			const droppedIds = ids.filter(id => !this.#entriesById.has(id));
			if (remainingEntries.length > 0) this.#sink.publish(remainingEntries.map(({ publication }) => publication!));
			if (droppedIds.length > 0) this.#sink.drop(droppedIds);
		};
	}
}

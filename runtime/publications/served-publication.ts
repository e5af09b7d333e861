/** The publication that a machine serves: which one it is, when it was published, and whether it may be out of date. */
import { openPublication, PublicationRefused } from '../cluster/publication.ts';
import type { FinalPublication, PublicationNumber, PublicationReference } from '../cluster/rollout-decision.ts';
import type { SealedValues } from '../cluster/sealed-values.ts';
import type { PublicationLog } from './publication-log.ts';

/**
 * Age in milliseconds from which a publication that was read from the disk is called old. Newer ones have probably been
 * published, but the machine cannot know of them without Redis.
 */
const OLD_PUBLICATION_MS = 7 * 24 * 3_600_000;

/** Decrypts and verifies publications. */
export interface PublicationKeys {
	readonly sealedValues: SealedValues;
	/** The trusted publishers, as listed in the option `cluster`. */
	readonly publishers: readonly string[] | undefined;
}

/** The publication that the machine serves now. */
export class ServedPublication {
	/** True if the publication was loaded from the disk, and Redis has not answered since then. */
	isFromDisk: boolean;
	readonly #keys: PublicationKeys;
	readonly #log: PublicationLog;
	#number: PublicationNumber;
	/** See {@link PublicationReference}. */
	#identity: string | undefined;
	/** When the publication was published; see {@link FinalPublication.finalSince}. */
	#finalSince: number | undefined;
	/** True if it has been logged that the publication from the disk is old. */
	#hasLoggedOld = false;

	constructor(publication: PublicationReference, isFromDisk: boolean, keys: PublicationKeys, log: PublicationLog) {
		this.isFromDisk = isFromDisk;
		this.#keys = keys;
		this.#log = log;
		this.#number = publication.number;
		this.#identity = publication.identity;
	}

	get number(): PublicationNumber {
		return this.#number;
	}

	get reference(): PublicationReference {
		return { number: this.#number, identity: this.#identity };
	}

	/** The publication in the form that reports contain. */
	get facts(): FinalPublication {
		return { serves: this.#number, identity: this.#identity, finalSince: this.#finalSince };
	}

	/** True if it is known to be final, rather than on trial. */
	get isFinal(): boolean {
		return this.#finalSince !== undefined;
	}

	/** Milliseconds since the publication was published; undefined if it is not known to be final. */
	get ageMs(): number | undefined {
		return this.#finalSince === undefined ? undefined : Math.max(0, Date.now() - this.#finalSince);
	}

	/** Replaces the publication by one that has just been loaded. */
	replaceBy(number: PublicationNumber, identity: string | undefined): void {
		this.#number = number;
		this.#identity = identity;
		this.#finalSince = undefined;
	}

	/**
	 * Decrypts the publication, which must be final, and records when it was published. Returns false if it cannot be decrypted or
	 * verified.
	 */
	openFinal(sealed: Buffer): boolean {
		const { sealedValues, publishers } = this.#keys;
		try {
			this.#finalSince = openPublication(sealedValues, this.#number, sealed, publishers, this.#identity).publishedAt;
			return true;
		} catch (error) {
			if (!(error instanceof PublicationRefused)) throw error;
			return false;
		}
	}

	/** Logs how old a publication from the disk is. A process that took over from another one does not log it again. */
	logStartFromDisk(hasTakenOver: boolean): void {
		const { ageMs } = this;
		if (!this.isFromDisk || ageMs === undefined) return;
		// If the publication was already old, the previous process has logged the warning.
		if (hasTakenOver) this.#hasLoggedOld = ageMs >= OLD_PUBLICATION_MS;
		else this.#log.write('info', 'serving the last good publication from the disk', this.#ageFields(ageMs));
		this.warnIfOld();
	}

	/** Warns once if the publication comes from the disk and is old. */
	warnIfOld(): void {
		const { ageMs } = this;
		if (!this.isFromDisk || this.#hasLoggedOld || ageMs === undefined || ageMs < OLD_PUBLICATION_MS) return;
		this.#hasLoggedOld = true;
		this.#log.write('warn', 'the publication from the disk is more than a week old', {
			...this.#ageFields(ageMs),
			hint: 'Redis has not answered since the start, so another publication may be final by now.',
		});
	}

	#ageFields(ageMs: number): { readonly [name: string]: unknown } {
		return {
			publication: this.#number,
			published_at: new Date(this.#finalSince!).toISOString(),
			age_seconds: Math.round(ageMs / 1000),
		};
	}
}

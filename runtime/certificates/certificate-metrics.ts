/** What the certificate manager counts. */

/** One series: labels and a value. */
export interface CertificateSample {
	readonly labels: { readonly [name: string]: string };
	readonly value: number;
}

/** What a scrape shows of certificates. */
export interface CertificateReadings {
	/** Attempts to obtain or renew, by `issuer` and `result` (`obtained`, `renewed`, `failed`, `rate_limited`). */
	readonly attempts: readonly CertificateSample[];
	/** End of the life of served certificates in seconds since the epoch, by `subject` and `issuer`. */
	readonly expiry: readonly CertificateSample[];
	/** Fetched OCSP responses by `result` (`good`, `revoked`, `unknown`, `failed`). */
	readonly ocsp: readonly CertificateSample[];
	/** Names without a certificate that they should have. */
	readonly missing: number;
}

/** Series of one family at most: a host with ten thousand names would make a scrape of megabytes. */
export const MOST_EXPIRY_SERIES = 1000;

/** Counts by labels. */
export class LabelledCounter {
	readonly #counts = new Map<string, { readonly labels: { readonly [name: string]: string }; value: number }>();

	/** Counts one, or so many. */
	count(labels: { readonly [name: string]: string }, by = 1): void {
		const key = JSON.stringify(labels);
		const known = this.#counts.get(key);
		if (known) known.value += by;
		else this.#counts.set(key, { labels, value: by });
	}

	/** The counts so far. */
	samples(): CertificateSample[] {
		return [...this.#counts.values()].map(({ labels, value }) => ({ labels, value }));
	}
}

/** The sums of samples with the same labels. */
export function addedUp(samples: readonly CertificateSample[]): CertificateSample[] {
	const counter = new LabelledCounter();
	for (const { labels, value } of samples) counter.count(labels, value);
	return counter.samples();
}

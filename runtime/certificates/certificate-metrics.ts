/** Metrics of the certificate manager. */

/** One time series: labels and a value. */
export interface CertificateSample {
	readonly labels: { readonly [name: string]: string };
	readonly value: number;
}

/** The current values of all certificate metrics. */
export interface CertificateReadings {
	/** Attempts to obtain or renew a certificate, by `issuer` and `result` (`obtained`, `renewed`, `failed`, `rate_limited`). */
	readonly attempts: readonly CertificateSample[];
	/** Expiry of served certificates, in seconds since the epoch, by `subject` and `issuer`. */
	readonly expiry: readonly CertificateSample[];
	/** OCSP fetches by `result` (`good`, `revoked`, `unknown`, `failed`). */
	readonly ocsp: readonly CertificateSample[];
	/** Number of names that should have a certificate but have none. */
	readonly missing: number;
}

/** Maximum number of expiry series. Without it, a scrape with ten thousand names would take megabytes. */
export const MAX_EXPIRY_SERIES = 1000;

/** Counts events, separately for each set of labels. */
export class LabelledCounter {
	readonly #countsByLabels = new Map<string, { readonly labels: { readonly [name: string]: string }; value: number }>();

	/** Adds `amount` to the count for a set of labels. */
	count(labels: { readonly [name: string]: string }, amount = 1): void {
		const key = JSON.stringify(labels);
		const existingCount = this.#countsByLabels.get(key);
		if (existingCount) existingCount.value += amount;
		else this.#countsByLabels.set(key, { labels, value: amount });
	}

	/** Returns one sample for each set of labels. */
	samples(): CertificateSample[] {
		return [...this.#countsByLabels.values()].map(({ labels, value }) => ({ labels, value }));
	}
}

/** Sums samples with equal labels. */
export function sumByLabels(samples: readonly CertificateSample[]): CertificateSample[] {
	const counter = new LabelledCounter();
	for (const { labels, value } of samples) counter.count(labels, value);
	return counter.samples();
}

/** The answers to challenges that stand at one time, and the threads' word that each of them has them. */
import type { CertificateSink } from '../tls/certificate-feed.ts';

/** Collects answers of all orders. */
export class ChallengeBoard {
	readonly #sink: CertificateSink;
	readonly #http01 = new Map<string, string>();
	readonly #alpn = new Map<string, { readonly chain: string; readonly key: string }>();
	#spreading: Promise<void> | undefined;
	#next: Promise<void> | undefined;

	constructor(sink: CertificateSink) {
		this.#sink = sink;
	}

	/** Puts up the answer to an HTTP-01 challenge; resolves when every thread gives it. */
	async putToken(token: string, keyAuthorization: string): Promise<void> {
		this.#http01.set(token, keyAuthorization);
		await this.#spread();
	}

	/** Takes the answer to an HTTP-01 challenge down. */
	async takeToken(token: string): Promise<void> {
		if (this.#http01.delete(token)) await this.#spread();
	}

	/** Puts up the certificate that answers a TLS-ALPN-01 challenge; resolves when every thread gives it. */
	async putCertificate(name: string, certificate: { readonly chain: string; readonly key: string }): Promise<void> {
		this.#alpn.set(name, certificate);
		await this.#spread();
	}

	/** Takes a challenge certificate down. */
	async takeCertificate(name: string): Promise<void> {
		if (this.#alpn.delete(name)) await this.#spread();
	}

	/** Tells the threads; changes made while they are being told go together in the next round. */
	#spread(): Promise<void> {
		if (!this.#spreading) {
			this.#spreading = this.#send().finally(() => {
				this.#spreading = undefined;
			});
			return this.#spreading;
		}
		this.#next ??= this.#spreading
			.catch(() => {})
			.then(() => {
				this.#next = undefined;
				return this.#spread();
			});
		return this.#next;
	}

	#send(): Promise<void> {
		return this.#sink.challenges({
			http01: Object.fromEntries(this.#http01),
			alpn: Object.fromEntries(this.#alpn),
		});
	}
}

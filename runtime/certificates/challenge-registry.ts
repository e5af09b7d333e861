/** The answers to all pending challenges, distributed to every thread. */
import type { CertificateSink } from './certificate-feed.ts';

/** Collects the challenge answers of all orders. */
export class ChallengeRegistry {
	readonly #sink: CertificateSink;
	readonly #http01 = new Map<string, string>();
	readonly #alpn = new Map<string, { readonly chain: string; readonly key: string }>();
	#currentPublication: Promise<void> | undefined;
	#nextPublication: Promise<void> | undefined;

	constructor(sink: CertificateSink) {
		this.#sink = sink;
	}

	/** Adds the answer to an HTTP-01 challenge. Resolves once every thread serves it. */
	async addToken(token: string, keyAuthorization: string): Promise<void> {
		this.#http01.set(token, keyAuthorization);
		await this.#publish();
	}

	/** Removes the answer to an HTTP-01 challenge. */
	async removeToken(token: string): Promise<void> {
		if (this.#http01.delete(token)) await this.#publish();
	}

	/** Adds the certificate that answers a TLS-ALPN-01 challenge. Resolves once every thread serves it. */
	async addCertificate(name: string, certificate: { readonly chain: string; readonly key: string }): Promise<void> {
		this.#alpn.set(name, certificate);
		await this.#publish();
	}

	/** Removes the certificate of a TLS-ALPN-01 challenge. */
	async removeCertificate(name: string): Promise<void> {
		if (this.#alpn.delete(name)) await this.#publish();
	}

	/** Publishes the answers. Changes made while a publication is in progress are combined in the next one. */
	#publish(): Promise<void> {
		if (!this.#currentPublication) {
			this.#currentPublication = this.#send().finally(() => {
				this.#currentPublication = undefined;
			});
			return this.#currentPublication;
		}
		this.#nextPublication ??= this.#currentPublication
			.catch(() => {})
			.then(() => {
				this.#nextPublication = undefined;
				return this.#publish();
			});
		return this.#nextPublication;
	}

	#send(): Promise<void> {
		return this.#sink.setChallenges({
			http01: Object.fromEntries(this.#http01),
			alpn: Object.fromEntries(this.#alpn),
		});
	}
}

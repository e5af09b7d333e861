/** The answers to all pending challenges, distributed to every thread. */
import type { CertificateSink } from './certificate-feed.ts';

/** Collects the challenge answers of all orders. */
export class ChallengeRegistry {
	readonly #sink: CertificateSink;
	readonly #keyAuthorizations = new Map<string, string>();
	readonly #challengeCertificates = new Map<string, { readonly chain: string; readonly key: string }>();
	#currentPublication: Promise<void> | undefined;
	#nextPublication: Promise<void> | undefined;

	constructor(sink: CertificateSink) {
		this.#sink = sink;
	}

	/** Adds the answer to an HTTP-01 challenge. Resolves once every thread serves it. */
	async addToken(token: string, keyAuthorization: string): Promise<void> {
		this.#keyAuthorizations.set(token, keyAuthorization);
		await this.#publishAnswers();
	}

	/** Removes the answer to an HTTP-01 challenge. */
	async removeToken(token: string): Promise<void> {
		if (this.#keyAuthorizations.delete(token)) await this.#publishAnswers();
	}

	/** Adds the certificate that answers a TLS-ALPN-01 challenge. Resolves once every thread serves it. */
	async addCertificate(name: string, certificate: { readonly chain: string; readonly key: string }): Promise<void> {
		this.#challengeCertificates.set(name, certificate);
		await this.#publishAnswers();
	}

	/** Removes the certificate of a TLS-ALPN-01 challenge. */
	async removeCertificate(name: string): Promise<void> {
		if (this.#challengeCertificates.delete(name)) await this.#publishAnswers();
	}

	/** Publishes the answers. Changes made while a publication is in progress are combined in the next one. */
	#publishAnswers(): Promise<void> {
		if (!this.#currentPublication) {
			this.#currentPublication = this.#sendAnswers().finally(() => {
				this.#currentPublication = undefined;
			});
			return this.#currentPublication;
		}
		this.#nextPublication ??= this.#currentPublication
			.catch(() => {})
			.then(() => {
				this.#nextPublication = undefined;
				return this.#publishAnswers();
			});
		return this.#nextPublication;
	}

	#sendAnswers(): Promise<void> {
		return this.#sink.setChallenges({
			http01: Object.fromEntries(this.#keyAuthorizations),
			alpn: Object.fromEntries(this.#challengeCertificates),
		});
	}
}

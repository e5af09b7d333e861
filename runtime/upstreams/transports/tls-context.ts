/** Certificates and keys for TLS to upstreams, read from files that may be replaced while the server runs. */
import { readFileSync, statSync } from 'node:fs';
import { createSecureContext, getCACertificates, type SecureContext, setDefaultCACertificates } from 'node:tls';
import {
	readTlsMaterial,
	tlsFilePaths,
} from '../../../compiler/modules/directives/reverse-proxy/transports/tls-material.ts';
import type { ClientTlsSettings } from '../../../compiler/modules/directives/reverse-proxy/transports/transport-settings.ts';
import { type TlsMaterial, type TlsMaterialRequest, type TlsProvider, tlsMaterialRequestFor } from './tls-provision.ts';

/** Milliseconds between checks of the files. */
const CHECK_INTERVAL_MS = 1000;

/** Milliseconds after which certificates from the main thread are requested again. */
const REFRESH_INTERVAL_MS = 60_000;
/** Milliseconds after which certificates that the main thread did not have are requested again. */
const RETRY_INTERVAL_MS = 1000;

/** The secure context for the connections of one pool on one thread. */
export class ClientTlsContext {
	readonly #settings: ClientTlsSettings;
	readonly #files: readonly string[];
	#context: SecureContext | undefined = undefined;
	#fileVersions = '';
	/** True if the main thread has sent other certificates or keys since the context was created. */
	#isOutdated = false;
	/** True if the context has been replaced since the last call of {@link takeReplaced}. */
	#hasBeenReplaced = false;
	#checkedAt = 0;
	readonly #materialRequest: TlsMaterialRequest | undefined;
	readonly #provider: TlsProvider;
	#providedMaterial: TlsMaterial | undefined = undefined;
	#pendingRequest: Promise<string | undefined> | undefined = undefined;
	#requestedAt = Number.NEGATIVE_INFINITY;

	/**
	 * Reads and checks the files.
	 * @param provider Provides certificates and keys that are not in files.
	 * @throws MaterialError
	 */
	constructor(settings: ClientTlsSettings, provider: TlsProvider = NO_PROVIDER) {
		this.#settings = settings;
		this.#provider = provider;
		this.#materialRequest = tlsMaterialRequestFor(settings);
		this.#files = tlsFilePaths(settings);
		// The system's authorities are not loaded here, because that is slow: the first connection that needs them loads them.
		if (this.#files.length > 0 || settings.trust?.source === 'inline') readTlsMaterial(settings, readFileSync);
	}

	/**
	 * True if some certificates are not in files. In that case, {@link pendingMaterial} must be awaited before {@link getContext}
	 * is called for the first time.
	 */
	get needsProvision(): boolean {
		return this.#materialRequest !== undefined;
	}

	/**
	 * Returns undefined if no certificate or key is missing. Otherwise, returns a promise that resolves to a description of what is
	 * missing, or to undefined if everything has arrived. Requests old certificates again in the background.
	 */
	pendingMaterial(): Promise<string | undefined> | undefined {
		if (!this.#materialRequest) return undefined;
		const isProvided = this.#providedMaterial?.problem === undefined && this.#providedMaterial !== undefined;
		if (performance.now() - this.#requestedAt >= (isProvided ? REFRESH_INTERVAL_MS : RETRY_INTERVAL_MS)) {
			this.#pendingRequest ??= this.#requestMaterial(this.#materialRequest);
		}
		return isProvided ? undefined : (this.#pendingRequest ?? Promise.resolve(this.#providedMaterial?.problem));
	}

	async #requestMaterial(request: TlsMaterialRequest): Promise<string | undefined> {
		const material = await this.#provider(request);
		this.#pendingRequest = undefined;
		this.#requestedAt = performance.now();
		// If a refresh fails, the certificates obtained earlier stay in use.
		if (material.problem === undefined || this.#providedMaterial?.problem !== undefined || !this.#providedMaterial) {
			if (JSON.stringify(material) !== JSON.stringify(this.#providedMaterial)) this.#isOutdated = true;
			this.#providedMaterial = material;
		}
		return this.#providedMaterial.problem;
	}

	/**
	 * Checks whether files, or certificates from the main thread, have changed, if the last check is long enough ago. Reports, once
	 * per change, whether existing connections were verified with certificates that have been replaced.
	 */
	takeReplaced(): boolean {
		if (!this.#context) return false;
		void this.pendingMaterial();
		this.getContext();
		const hasBeenReplaced = this.#hasBeenReplaced;
		this.#hasBeenReplaced = false;
		return hasBeenReplaced;
	}

	/**
	 * Returns the context for the current files, or the previous context if they have become unusable. Throws if there is no
	 * previous context. Some errors, such as a key that is too short, show only here, because OpenSSL detects them.
	 */
	getContext(): SecureContext {
		const now = performance.now();
		const currentContext = this.#isOutdated ? undefined : this.#context;
		if (currentContext && (this.#files.length === 0 || now - this.#checkedAt < CHECK_INTERVAL_MS))
			return currentContext;
		this.#checkedAt = now;
		this.#isOutdated = false;
		const fileVersions = this.#files.map(fileVersionOf).join(' ');
		if (currentContext && fileVersions === this.#fileVersions) return currentContext;
		try {
			const fileMaterial = readTlsMaterial(this.#settings, readFileSync);
			const authorities = [...fileMaterial.authorities, ...(this.#providedMaterial?.authorities ?? [])];
			const { chain: certificate = fileMaterial.certificate, key = fileMaterial.key } =
				this.#providedMaterial?.certificate ?? {};
			const { trustsSystem } = fileMaterial;
			if (trustsSystem) trustSystemAuthorities();
			const ca = trustsSystem
				? authorities.length === 0
					? undefined
					: [...getCACertificates('default'), ...authorities]
				: authorities;
			const previousContext = this.#context;
			this.#context = createSecureContext({
				minVersion: 'TLSv1.2',
				...(ca === undefined ? {} : { ca: [...ca] }),
				...(certificate === undefined ? {} : { cert: certificate, key: key! }),
			});
			this.#hasBeenReplaced ||= previousContext !== undefined;
			this.#fileVersions = fileVersions;
		} catch (error) {
			if (!this.#context) throw error;
		}
		return this.#context!;
	}
}

/** A provider without any certificates, for use where there is no main thread to ask. */
const NO_PROVIDER: TlsProvider = async () => ({
	authorities: [],
	certificate: undefined,
	problem: "this server's authorities and certificates are not available here",
});

function fileVersionOf(path: string): string {
	const stat = statSync(path, { throwIfNoEntry: false });
	return stat ? `${stat.mtimeMs}/${stat.size}/${stat.ino}` : '-';
}

/**
 * Adds the system's trusted CAs to this thread's default CAs, unless the default is no longer the list that is bundled with Node.
 */
function trustSystemAuthorities(): void {
	const bundledAuthorities = getCACertificates('bundled');
	const defaultAuthorities = getCACertificates('default');
	if (defaultAuthorities.length !== bundledAuthorities.length) return;
	const systemAuthorities = getCACertificates('system');
	if (systemAuthorities.length > 0)
		setDefaultCACertificates([...new Set([...bundledAuthorities, ...systemAuthorities])]);
}

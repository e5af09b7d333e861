/** Certificates and keys of TLS to upstreams, read from files that may be replaced while the server runs. */
import { readFileSync, statSync } from 'node:fs';
import { createSecureContext, getCACertificates, type SecureContext, setDefaultCACertificates } from 'node:tls';
import { readTlsMaterial, tlsFiles } from '../../../compiler/directives/reverse-proxy/transports/tls-material.ts';
import type { ClientTlsSettings } from '../../../compiler/directives/reverse-proxy/transports/transport-settings.ts';

/** Milliseconds between two looks at files that may have changed. */
const LOOK_AGAIN = 10_000;

/** The secure context of one pool on one thread. */
export class ClientTlsContext {
	readonly #settings: ClientTlsSettings;
	readonly #files: readonly string[];
	#context: SecureContext | undefined = undefined;
	#times = '';
	#lookedAt = 0;

	/** Reads and checks the files. @throws MaterialError */
	constructor(settings: ClientTlsSettings) {
		this.#settings = settings;
		this.#files = tlsFiles(settings);
		// What the system's authorities cost is paid when the first connection needs them.
		if (this.#files.length > 0 || settings.trust?.source === 'inline') readTlsMaterial(settings, readFileSync);
	}

	/** The context as the files are now; if they cannot be read any more, as they were. */
	current(): SecureContext {
		const now = performance.now();
		if (this.#context && (this.#files.length === 0 || now - this.#lookedAt < LOOK_AGAIN)) return this.#context;
		this.#lookedAt = now;
		const times = this.#files.map(timeOf).join(' ');
		if (this.#context && times === this.#times) return this.#context;
		try {
			const { authorities, system, certificate, key } = readTlsMaterial(this.#settings, readFileSync);
			if (system) believeSystem();
			const ca = system
				? authorities.length === 0
					? undefined
					: [...getCACertificates('default'), ...authorities]
				: authorities;
			this.#context = createSecureContext({
				minVersion: 'TLSv1.2',
				...(ca === undefined ? {} : { ca: [...ca] }),
				...(certificate === undefined ? {} : { cert: certificate, key: key! }),
			});
			this.#times = times;
		} catch (error) {
			if (!this.#context) throw error;
		}
		return this.#context!;
	}
}

function timeOf(path: string): string {
	const stat = statSync(path, { throwIfNoEntry: false });
	return stat ? `${stat.mtimeMs}/${stat.size}/${stat.ino}` : '-';
}

/** Makes the authorities that the system believes in those of this thread, beside those that come with the engine. */
function believeSystem(): void {
	const bundled = getCACertificates('bundled');
	const known = getCACertificates('default');
	if (known.length !== bundled.length) return;
	const system = getCACertificates('system');
	if (system.length > 0) setDefaultCACertificates([...new Set([...bundled, ...system])]);
}

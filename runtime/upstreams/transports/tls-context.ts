/** Certificates and keys of TLS to upstreams, read from files that may be replaced while the server runs. */
import { readFileSync, statSync } from 'node:fs';
import { createSecureContext, getCACertificates, type SecureContext, setDefaultCACertificates } from 'node:tls';
import {
	readTlsMaterial,
	tlsFiles,
} from '../../../compiler/modules/directives/reverse-proxy/transports/tls-material.ts';
import type { ClientTlsSettings } from '../../../compiler/modules/directives/reverse-proxy/transports/transport-settings.ts';
import { type TlsProvided, type TlsProvider, type TlsWanted, tlsWantedBy } from './tls-provision.ts';

/** Milliseconds between two looks at files that may have changed. */
const LOOK_AGAIN = 1000;

/** Milliseconds for which what the main thread gave is believed to be the newest. */
const ASK_AGAIN = 60_000;
/** Milliseconds after which it is asked again for what was missing. */
const ASK_SOON = 1000;

/** The secure context of one pool on one thread. */
export class ClientTlsContext {
	readonly #settings: ClientTlsSettings;
	readonly #files: readonly string[];
	#context: SecureContext | undefined = undefined;
	#times = '';
	/** What the main thread gives has changed since the context was made. */
	#outdated = false;
	/** A context has taken the place of another since {@link takeReplaced} was asked. */
	#replaced = false;
	#lookedAt = 0;
	readonly #wanted: TlsWanted | undefined;
	readonly #provider: TlsProvider;
	#provided: TlsProvided | undefined = undefined;
	#asking: Promise<string | undefined> | undefined = undefined;
	#askedAt = Number.NEGATIVE_INFINITY;

	/**
	 * Reads and checks the files.
	 * @param provider Gives what is not in files.
	 * @throws MaterialError
	 */
	constructor(settings: ClientTlsSettings, provider: TlsProvider = NOTHING) {
		this.#settings = settings;
		this.#provider = provider;
		this.#wanted = tlsWantedBy(settings);
		this.#files = tlsFiles(settings);
		// What the system's authorities cost is paid when the first connection needs them.
		if (this.#files.length > 0 || settings.trust?.source === 'inline') readTlsMaterial(settings, readFileSync);
	}

	/** True when something is wanted that is in no file: {@link pending} is to be asked before {@link current}. */
	get waits(): boolean {
		return this.#wanted !== undefined;
	}

	/**
	 * Until all that is wanted is there, a promise of what is missing, in words, or of undefined; undefined when it is there.
	 * What may be old is asked for again behind the connections' backs.
	 */
	pending(): Promise<string | undefined> | undefined {
		if (!this.#wanted) return undefined;
		const there = this.#provided?.problem === undefined && this.#provided !== undefined;
		if (performance.now() - this.#askedAt >= (there ? ASK_AGAIN : ASK_SOON)) {
			this.#asking ??= this.#ask(this.#wanted);
		}
		return there ? undefined : (this.#asking ?? Promise.resolve(this.#provided?.problem));
	}

	async #ask(wanted: TlsWanted): Promise<string | undefined> {
		const provided = await this.#provider(wanted);
		this.#asking = undefined;
		this.#askedAt = performance.now();
		// What was there stays in use when it cannot be had again.
		if (provided.problem === undefined || this.#provided?.problem !== undefined || !this.#provided) {
			if (JSON.stringify(provided) !== JSON.stringify(this.#provided)) this.#outdated = true;
			this.#provided = provided;
		}
		return this.#provided.problem;
	}

	/**
	 * Looks, if it is time to, whether the files or what the main thread gives have changed. Reports, once for each change,
	 * whether connections made before were verified by something else.
	 */
	takeReplaced(): boolean {
		if (!this.#context) return false;
		void this.pending();
		this.current();
		const replaced = this.#replaced;
		this.#replaced = false;
		return replaced;
	}

	/**
	 * The context as the files are now; if they cannot be used any more, as they were. Throws when they never could be: that
	 * the library finds a key too short shows only here.
	 */
	current(): SecureContext {
		const now = performance.now();
		const made = this.#outdated ? undefined : this.#context;
		if (made && (this.#files.length === 0 || now - this.#lookedAt < LOOK_AGAIN)) return made;
		this.#lookedAt = now;
		this.#outdated = false;
		const times = this.#files.map(timeOf).join(' ');
		if (made && times === this.#times) return made;
		try {
			const read = readTlsMaterial(this.#settings, readFileSync);
			const authorities = [...read.authorities, ...(this.#provided?.authorities ?? [])];
			const { chain: certificate = read.certificate, key = read.key } = this.#provided?.certificate ?? {};
			const { system } = read;
			if (system) believeSystem();
			const ca = system
				? authorities.length === 0
					? undefined
					: [...getCACertificates('default'), ...authorities]
				: authorities;
			const before = this.#context;
			this.#context = createSecureContext({
				minVersion: 'TLSv1.2',
				...(ca === undefined ? {} : { ca: [...ca] }),
				...(certificate === undefined ? {} : { cert: certificate, key: key! }),
			});
			this.#replaced ||= before !== undefined;
			this.#times = times;
		} catch (error) {
			if (!this.#context) throw error;
		}
		return this.#context!;
	}
}

/** Without a main thread there is nothing but files. */
const NOTHING: TlsProvider = async () => ({
	authorities: [],
	certificate: undefined,
	problem: 'authorities and certificates of this server are not to be had here',
});

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

/** Certificates from files: read for a document, and read again when they change. */
import { readFileSync, statSync } from 'node:fs';
import { checkPair, isMistake, pairDigest } from '../../compiler/tls/certificate-check.ts';
import type { LoadedCertificate } from '../../compiler/tls/site-tls.ts';
import type { LogLevel } from '../threads/messages.ts';
import type { PublishedCertificate } from './certificate-feed.ts';

/** Milliseconds between two looks at the files; more where there are many: one for each. */
const LOOK_INTERVAL = 1000;
/** Milliseconds of reading after which the thread does something else. */
const SLICE = 5;

/** A pair that has been read. */
interface Read {
	readonly wanted: LoadedCertificate;
	readonly published: PublishedCertificate;
	/** Sizes and times of both files. */
	readonly state: string;
	/** Milliseconds since the epoch. */
	readonly notAfter: number;
}

/** A pair of files that cannot be served; the message is a sentence. */
export class CertificateFileError extends Error {
	readonly code: string;

	constructor(code: string, message: string) {
		super(message);
		this.name = 'CertificateFileError';
		this.code = code;
	}
}

/** Where changes go. */
export interface CertificateFilesHost {
	publish(certificates: readonly PublishedCertificate[]): void;
	drop(ids: readonly string[]): void;
	log(level: LogLevel, logger: string, message: string, fields?: { readonly [name: string]: unknown }): void;
}

/** The files of the document that is served. */
export class CertificateFiles {
	readonly #host: CertificateFilesHost;
	#served = new Map<string, Read>();
	#prepared: Map<string, Read> | undefined;
	#timer: NodeJS.Timeout | undefined;
	/** Changes that were found bad, so that each is told once. */
	readonly #told = new Map<string, string>();

	constructor(host: CertificateFilesHost) {
		this.#host = host;
	}

	/** Reads what a document wants and publishes what is new. Rejects with CertificateFileError. */
	async prepare(wanted: readonly LoadedCertificate[]): Promise<void> {
		const prepared = new Map<string, Read>();
		const fresh: PublishedCertificate[] = [];
		await inSlices(wanted, one => {
			const known = this.#served.get(one.id);
			const state = stateOf(one);
			if (known && known.state === state && known.wanted.key === one.key) {
				prepared.set(one.id, known);
				return;
			}
			const read = readPair(one, state);
			prepared.set(one.id, read);
			fresh.push(read.published);
		});
		this.#prepared = prepared;
		if (fresh.length > 0) this.#host.publish(fresh);
	}

	/** The document prepared last is served. */
	activate(): void {
		const prepared = this.#prepared;
		if (!prepared) return;
		this.#prepared = undefined;
		const gone = [...this.#served.keys()].filter(id => !prepared.has(id));
		this.#served = prepared;
		if (gone.length > 0) this.#host.drop(gone);
		if (prepared.size > 0) this.#timer ??= this.#later();
	}

	/** The document prepared last is not served: what only it wanted goes, what it read anew is as it was. */
	discard(): void {
		const prepared = this.#prepared;
		if (!prepared) return;
		this.#prepared = undefined;
		const gone: string[] = [];
		const back: PublishedCertificate[] = [];
		for (const [id, read] of prepared) {
			const before = this.#served.get(id);
			if (!before) gone.push(id);
			else if (before !== read) back.push(before.published);
		}
		if (gone.length > 0) this.#host.drop(gone);
		if (back.length > 0) this.#host.publish(back);
	}

	/** Ends of life by certificate, in milliseconds since the epoch. */
	get expiry(): readonly { readonly subject: string; readonly notAfter: number }[] {
		return [...this.#served.values()].map(({ published, notAfter }) => ({
			subject: published.names[0] ?? published.id,
			notAfter,
		}));
	}

	close(): void {
		clearTimeout(this.#timer);
	}

	/** Looks at every file; what changed and is whole is published, what is not is told and left as it was. */
	async #look(): Promise<void> {
		const served = this.#served;
		const changed: PublishedCertificate[] = [];
		await inSlices([...served.values()], ({ wanted, state: before }) => {
			try {
				const state = stateOf(wanted);
				if (state === before || this.#told.get(wanted.id) === state) return;
				this.#told.set(wanted.id, state);
				const read = readPair(wanted, state);
				if (this.#served !== served) return;
				served.set(wanted.id, read);
				this.#told.delete(wanted.id);
				changed.push(read.published);
			} catch (error) {
				const message = (error as Error).message;
				if (this.#told.get(wanted.id) === message) return;
				if (!(error instanceof CertificateFileError && error.code !== 'tls/unreadable-file')) {
					this.#told.set(wanted.id, message);
				}
				this.#host.log('error', 'tls', 'a certificate file changed and cannot be used; the one before is served on', {
					certificate: wanted.certificate,
					cause: message,
				});
			}
		});
		if (changed.length > 0 && this.#served === served) {
			this.#host.publish(changed);
			for (const { id } of changed)
				this.#host.log('info', 'tls', 'a certificate file was read again', { certificate: id.slice(5) });
		}
		this.#timer = this.#served.size > 0 ? this.#later() : undefined;
	}

	#later(): NodeJS.Timeout {
		return setTimeout(() => void this.#look(), Math.max(LOOK_INTERVAL, this.#served.size)).unref();
	}
}

function stateOf({ certificate, key }: LoadedCertificate): string {
	const states = [certificate, key].map(path => {
		try {
			const { size, mtimeMs, ino } = statSync(path);
			return `${ino} ${size} ${mtimeMs}`;
		} catch (error) {
			throw unreadable(path, error);
		}
	});
	return states.join();
}

function readPair(wanted: LoadedCertificate, state: string): Read {
	const { certificate, key } = wanted;
	const certificateBytes = readWhole(certificate);
	const keyBytes = key === certificate ? certificateBytes : readWhole(key);
	// What the compiler has just checked needs no second check.
	const same = pairDigest(certificateBytes, keyBytes) === wanted.digest;
	const pair = same ? wanted : checkPair(certificateBytes, keyBytes, certificate, key);
	if (isMistake(pair)) throw new CertificateFileError(pair.code, pair.message);
	const chain = certificateBytes.toString('latin1').match(PEM_CERTIFICATE) ?? [];
	const privateKey = PEM_KEY.exec(keyBytes.toString('latin1'))?.[0] ?? '';
	const published = { id: wanted.id, names: pair.names, chain: `${chain.join('\n')}\n`, key: `${privateKey}\n` };
	return { wanted, published, state, notAfter: pair.notAfter };
}

function readWhole(path: string): Buffer {
	try {
		return readFileSync(path);
	} catch (error) {
		throw unreadable(path, error);
	}
}

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;
const PEM_KEY = /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----[\s\S]*?-----END (?:[A-Z]+ )?PRIVATE KEY-----/;

function unreadable(path: string, error: unknown): CertificateFileError {
	const code = (error as NodeJS.ErrnoException).code ?? 'EIO';
	return new CertificateFileError(
		'tls/unreadable-file',
		`The file \`${path}\` cannot be read: the system says ${code}.`,
	);
}

/** Runs for every item, a few milliseconds at a time: each is too little to be worth a thread of the pool. */
async function inSlices<T>(items: readonly T[], run: (item: T) => void): Promise<void> {
	let began = performance.now();
	for (const item of items) {
		run(item);
		if (performance.now() - began < SLICE) continue;
		await new Promise(resolve => setImmediate(resolve));
		began = performance.now();
	}
}

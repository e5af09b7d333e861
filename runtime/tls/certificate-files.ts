/** Certificates from files: read for a document, and read again when they change. */
import { readFileSync, statSync } from 'node:fs';
import type { Settings } from '../../compiler/document/document.ts';
import { checkPair, isMistake, pairDigest } from '../../compiler/tls/certificate-check.ts';
import type { LoadedCertificate } from '../../compiler/tls/site-tls.ts';
import type { CertificateSample } from '../certificates/certificate-metrics.ts';
import { StatusStapler } from '../certificates/status-stapler.ts';
import type { Store } from '../storage/store.ts';
import type { LogLevel } from '../threads/messages.ts';
import { within } from '../within.ts';
import type { PublishedCertificate } from './certificate-feed.ts';
import { FileCertificate } from './file-certificate.ts';

/** Milliseconds between two looks at the files; more where there are many: one for each. */
const LOOK_INTERVAL = 1000;
/** Milliseconds of reading after which the thread does something else. */
const SLICE = 5;
/** Milliseconds that a load waits for the responses without which clients refuse its certificates. */
const STAPLE_LIMIT = 3000;

/** A pair that has been read. */
interface Read {
	readonly wanted: LoadedCertificate;
	readonly certificate: FileCertificate;
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
	/** The store of the server, for OCSP responses. */
	store(): Promise<Store>;
	log(level: LogLevel, logger: string, message: string, fields?: { readonly [name: string]: unknown }): void;
}

/** The files of the document that is served. */
export class CertificateFiles {
	readonly #host: CertificateFilesHost;
	readonly #stapler: StatusStapler<FileCertificate>;
	#served = new Map<string, Read>();
	#prepared: Map<string, Read> | undefined;
	#settings: Settings = {};
	#nextSettings: Settings = {};
	#timer: NodeJS.Timeout | undefined;
	/** Changes that were found bad, so that each is told once. */
	readonly #told = new Map<string, string>();

	constructor(host: CertificateFilesHost) {
		this.#host = host;
		this.#stapler = new StatusStapler({
			log: (...entry) => host.log(...entry),
			now: Date.now,
			store: () => host.store(),
			publish: certificate => {
				if (!certificate.gone) host.publish([certificate.publication]);
			},
		});
	}

	/**
	 * Reads what a document wants and publishes what is new, the responses with it that clients demand if they can be had
	 * soon. Rejects with CertificateFileError.
	 */
	async prepare(wanted: readonly LoadedCertificate[], settings: Settings = {}): Promise<void> {
		const prepared = new Map<string, Read>();
		const fresh: FileCertificate[] = [];
		await inSlices(wanted, one => {
			const known = this.#served.get(one.id);
			const state = stateOf(one);
			if (known?.state === state && known.wanted.key === one.key && known.wanted.digest === one.digest) {
				prepared.set(one.id, known);
				return;
			}
			const read = readPair(one, state);
			if (known) read.certificate.succeed(known.certificate);
			prepared.set(one.id, read);
			fresh.push(read.certificate);
		});
		this.#prepared = prepared;
		this.#nextSettings = settings;
		if (fresh.length === 0) return;
		await this.#stapleDemanding(fresh, settings);
		this.#host.publish(fresh.map(({ publication }) => publication));
	}

	/** The document prepared last is served. */
	activate(): void {
		const prepared = this.#prepared;
		if (!prepared) return;
		this.#prepared = undefined;
		const gone: string[] = [];
		for (const [id, { certificate }] of this.#served) {
			const next = prepared.get(id);
			if (next) this.#replace(certificate, next.certificate);
			else {
				certificate.gone = true;
				gone.push(id);
			}
		}
		this.#served = prepared;
		this.#settings = this.#nextSettings;
		this.#stapler.configure(this.#settings);
		if (gone.length > 0) this.#host.drop(gone);
		if (prepared.size === 0) return;
		for (const { certificate } of prepared.values()) this.#stapler.look(certificate);
		this.#timer ??= this.#later();
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
			if (before === read) continue;
			read.certificate.gone = true;
			if (before) back.push(before.certificate.publication);
			else gone.push(id);
		}
		if (gone.length > 0) this.#host.drop(gone);
		if (back.length > 0) this.#host.publish(back);
	}

	/** Ends of life by certificate, in milliseconds since the epoch. */
	get expiry(): readonly { readonly subject: string; readonly notAfter: number }[] {
		return [...this.#served.values()].map(({ certificate, notAfter }) => ({ subject: certificate.name, notAfter }));
	}

	/** Fetched OCSP responses by result. */
	get statuses(): readonly CertificateSample[] {
		return this.#stapler.fetched.samples();
	}

	close(): void {
		clearTimeout(this.#timer);
	}

	/** Looks at every file; what changed and is whole is published, what is not is told and left as it was. */
	async #look(): Promise<void> {
		const served = this.#served;
		const changed: FileCertificate[] = [];
		await inSlices([...served.values()], ({ wanted, state: before, certificate }) => {
			try {
				const state = stateOf(wanted);
				if (state === before || this.#told.get(wanted.id) === state) return;
				this.#told.set(wanted.id, state);
				const read = readPair(wanted, state);
				if (this.#served !== served) return;
				served.set(wanted.id, read);
				read.certificate.succeed(certificate);
				this.#replace(certificate, read.certificate);
				this.#told.delete(wanted.id);
				changed.push(read.certificate);
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
		await this.#stapleDemanding(changed, this.#settings);
		if (changed.length > 0 && this.#served === served) {
			this.#host.publish(changed.map(({ publication }) => publication));
			for (const { id } of changed)
				this.#host.log('info', 'tls', 'a certificate file was read again', { certificate: id.slice(5) });
		}
		for (const { certificate } of this.#served.values()) this.#stapler.look(certificate);
		this.#timer = this.#served.size > 0 ? this.#later() : undefined;
	}

	/** Waits for the first responses of certificates that clients refuse without one. */
	async #stapleDemanding(fresh: readonly FileCertificate[], settings: Settings): Promise<void> {
		const demanding = fresh.filter(({ mustStaple, record, ocsp }) => mustStaple && record.hasResponder && !ocsp);
		if (settings.ocsp_stapling === false || demanding.length === 0) return;
		const fetched = Promise.all(demanding.map(one => this.#stapler.refresh(one)));
		await within(
			fetched.then(() => {}),
			STAPLE_LIMIT,
		);
	}

	/** One certificate is served in place of another, which may be the same. */
	#replace(before: FileCertificate, next: FileCertificate): void {
		if (before === next) return;
		before.gone = true;
		if (before.record.fingerprint !== next.record.fingerprint) void this.#stapler.forget(before);
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
	return { wanted, certificate: new FileCertificate(published), state, notAfter: pair.notAfter };
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

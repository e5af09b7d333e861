/** Certificates from files, read when a configuration is loaded and again whenever the files change. */

import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import {
	certificatePairDigest,
	checkCertificatePair,
	isFileMistake,
} from '../../compiler/codegen/plan/certificate-check.ts';
import type { LoadedCertificate } from '../../compiler/codegen/plan/site-tls.ts';
import type { Settings } from '../../compiler/document/document.ts';
import type { PublishedCertificate } from '../certificates/certificate-feed.ts';
import type { CertificateSample } from '../certificates/certificate-metrics.ts';
import { type StapledCertificate, StatusStapler } from '../certificates/status-stapler.ts';
import { systemReason } from '../files/system-reason.ts';
import type { LogLevel } from '../logs/log-entry.ts';
import type { Store } from '../storage/store.ts';
import { withTimeLimit } from '../threads/within.ts';

/** DER object identifier that marks the address of an OCSP responder in a certificate (RFC 5280 §4.2.2.1). */
const RESPONDER_OID = Buffer.from('06082b06010505073001', 'hex');
/** DER object identifier of the must-staple extension (RFC 7633). */
const TLS_FEATURE_OID = Buffer.from('06082b06010505070118', 'hex');

const FIRST_CERTIFICATE = /-----BEGIN CERTIFICATE-----([\s\S]*?)-----END CERTIFICATE-----/;

/** A certificate loaded from files. When the files have changed, a new object with the same ID replaces it. */
class FileCertificate implements StapledCertificate {
	readonly record: NonNullable<StapledCertificate['record']>;
	/** True if clients reject the certificate without a stapled OCSP response. */
	readonly mustStaple: boolean;
	ocsp: Uint8Array | undefined = undefined;
	statusCheckAt = 0;
	statusFailures = 0;
	isDropped = false;
	readonly #publishedPair: PublishedCertificate;

	constructor(pair: PublishedCertificate) {
		this.#publishedPair = pair;
		const der = Buffer.from(FIRST_CERTIFICATE.exec(pair.chain)?.[1] ?? '', 'base64');
		this.mustStaple = der.includes(TLS_FEATURE_OID);
		this.record = {
			name: pair.names[0] ?? pair.id,
			chain: pair.chain,
			fingerprint: createHash('sha256').update(der).digest('hex'),
			hasResponder: der.includes(RESPONDER_OID),
		};
	}

	get id(): string {
		return this.#publishedPair.id;
	}

	get name(): string {
		return this.record.name;
	}

	/** The certificate in the form that threads serve. */
	get publication(): PublishedCertificate {
		return this.ocsp ? { ...this.#publishedPair, ocsp: this.ocsp } : this.#publishedPair;
	}

	/** Takes over the OCSP response of the object it replaces, if both hold the same certificate. */
	inheritStaple(previous: FileCertificate): void {
		if (previous.record.fingerprint !== this.record.fingerprint) return;
		this.ocsp = previous.ocsp;
		this.statusCheckAt = previous.statusCheckAt;
	}

	onRevoked(): string {
		return 'its files must be replaced';
	}
}

/** Minimum milliseconds between two checks of all files. The interval is one millisecond per certificate if that is longer. */
const CHECK_INTERVAL_MS = 1000;
/** After this many milliseconds of work, the event loop gets a turn. */
const SLICE_MS = 5;
/** Milliseconds that a load waits for OCSP responses of must-staple certificates. */
const STAPLE_TIMEOUT_MS = 3000;

/** A certificate and its key, as read from their two files. */
interface LoadedPair {
	readonly files: LoadedCertificate;
	readonly certificate: FileCertificate;
	/** Inode, size and modification time of both files, as text. */
	readonly fileState: string;
	/** Expiry of the certificate, in milliseconds since the epoch. */
	readonly notAfter: number;
}

/** The error for a certificate or key file that cannot be used. The message is a full sentence. */
export class CertificateFileError extends Error {
	readonly code: string;

	constructor(code: string, message: string) {
		super(message);
		this.name = 'CertificateFileError';
		this.code = code;
	}
}

export interface CertificateFilesDeps {
	publish(certificates: readonly PublishedCertificate[]): void;
	drop(ids: readonly string[]): void;
	/** Opens the server's store, which keeps OCSP responses. */
	store(): Promise<Store>;
	log(level: LogLevel, logger: string, message: string, fields?: { readonly [name: string]: unknown }): void;
}

/** Loads the certificate files of the active configuration, reloads them when they change, and passes them to all threads. */
export class CertificateFiles {
	readonly #deps: CertificateFilesDeps;
	readonly #stapler: StatusStapler<FileCertificate>;
	#servedPairs = new Map<string, LoadedPair>();
	#preparedPairs: Map<string, LoadedPair> | undefined;
	#settings: Settings = {};
	#nextSettings: Settings = {};
	#timer: NodeJS.Timeout | undefined;
	/** The last error or file state reported for each certificate, so that each problem is logged once. */
	readonly #reportedProblems = new Map<string, string>();

	constructor(deps: CertificateFilesDeps) {
		this.#deps = deps;
		this.#stapler = new StatusStapler({
			log: (...entry) => deps.log(...entry),
			now: Date.now,
			store: () => deps.store(),
			publish: certificate => {
				if (!certificate.isDropped) deps.publish([certificate.publication]);
			},
		});
	}

	/**
	 * Reads the files that a configuration names, and passes new and changed certificates to all threads. Must-staple certificates
	 * wait up to {@link STAPLE_TIMEOUT_MS} for their OCSP responses. Rejects with CertificateFileError.
	 */
	async prepare(requestedFiles: readonly LoadedCertificate[], settings: Settings = {}): Promise<void> {
		const preparedPairs = new Map<string, LoadedPair>();
		const newCertificates: FileCertificate[] = [];
		await inSlices(requestedFiles, files => {
			const servedPair = this.#servedPairs.get(files.id);
			const fileState = fileStateOf(files);
			if (
				servedPair?.fileState === fileState &&
				servedPair.files.key === files.key &&
				servedPair.files.digest === files.digest
			) {
				preparedPairs.set(files.id, servedPair);
				return;
			}
			const loadedPair = readPair(files, fileState);
			if (servedPair) loadedPair.certificate.inheritStaple(servedPair.certificate);
			preparedPairs.set(files.id, loadedPair);
			newCertificates.push(loadedPair.certificate);
		});
		this.#preparedPairs = preparedPairs;
		this.#nextSettings = settings;
		if (newCertificates.length === 0) return;
		await this.#awaitStaples(newCertificates, settings);
		this.#deps.publish(newCertificates.map(({ publication }) => publication));
	}

	/** Makes the certificates of the last prepared configuration the active ones, and drops those that it does not name. */
	activate(): void {
		const preparedPairs = this.#preparedPairs;
		if (!preparedPairs) return;
		this.#preparedPairs = undefined;
		const removedIds: string[] = [];
		for (const [id, { certificate }] of this.#servedPairs) {
			const replacement = preparedPairs.get(id);
			if (replacement) this.#retireReplaced(certificate, replacement.certificate);
			else {
				certificate.isDropped = true;
				removedIds.push(id);
			}
		}
		this.#servedPairs = preparedPairs;
		this.#settings = this.#nextSettings;
		this.#stapler.configure(this.#settings);
		if (removedIds.length > 0) this.#deps.drop(removedIds);
		if (preparedPairs.size === 0) return;
		for (const { certificate } of preparedPairs.values()) this.#stapler.refreshIfDue(certificate);
		this.#timer ??= this.#scheduleCheck();
	}

	/** Discards the last prepared configuration: drops its new certificates and restores those that they replaced. */
	discard(): void {
		const preparedPairs = this.#preparedPairs;
		if (!preparedPairs) return;
		this.#preparedPairs = undefined;
		const removedIds: string[] = [];
		const restoredCertificates: PublishedCertificate[] = [];
		for (const [id, loadedPair] of preparedPairs) {
			const servedPair = this.#servedPairs.get(id);
			if (servedPair === loadedPair) continue;
			loadedPair.certificate.isDropped = true;
			if (servedPair) restoredCertificates.push(servedPair.certificate.publication);
			else removedIds.push(id);
		}
		if (removedIds.length > 0) this.#deps.drop(removedIds);
		if (restoredCertificates.length > 0) this.#deps.publish(restoredCertificates);
	}

	/** The expiry of each certificate, in milliseconds since the epoch. */
	get expiry(): readonly { readonly subject: string; readonly notAfter: number }[] {
		return [...this.#servedPairs.values()].map(({ certificate, notAfter }) => ({
			subject: certificate.name,
			notAfter,
		}));
	}

	/** Counts of OCSP fetches by result. */
	get statuses(): readonly CertificateSample[] {
		return this.#stapler.fetchCounter.samples();
	}

	close(): void {
		clearTimeout(this.#timer);
	}

	/** Checks every file. Publishes valid changes; logs invalid ones and keeps serving the previous certificate. */
	async #checkFiles(): Promise<void> {
		const servedPairs = this.#servedPairs;
		const changedCertificates: FileCertificate[] = [];
		await inSlices([...servedPairs.values()], ({ files, fileState: previousState, certificate }) => {
			try {
				const fileState = fileStateOf(files);
				if (fileState === previousState || this.#reportedProblems.get(files.id) === fileState) return;
				this.#reportedProblems.set(files.id, fileState);
				const loadedPair = readPair(files, fileState);
				if (this.#servedPairs !== servedPairs) return;
				servedPairs.set(files.id, loadedPair);
				loadedPair.certificate.inheritStaple(certificate);
				this.#retireReplaced(certificate, loadedPair.certificate);
				this.#reportedProblems.delete(files.id);
				changedCertificates.push(loadedPair.certificate);
			} catch (error) {
				const message = (error as Error).message;
				if (this.#reportedProblems.get(files.id) === message) return;
				if (!(error instanceof CertificateFileError && error.code !== 'tls/unreadable-file')) {
					this.#reportedProblems.set(files.id, message);
				}
				this.#deps.log(
					'error',
					'tls',
					'a certificate file has changed and cannot be used; the previous certificate stays in use',
					{
						certificate: files.certificate,
						cause: message,
					},
				);
			}
		});
		await this.#awaitStaples(changedCertificates, this.#settings);
		if (changedCertificates.length > 0 && this.#servedPairs === servedPairs) {
			this.#deps.publish(changedCertificates.map(({ publication }) => publication));
			for (const { id } of changedCertificates)
				this.#deps.log('info', 'tls', 'certificate file reloaded', { certificate: id.slice(5) });
		}
		for (const { certificate } of this.#servedPairs.values()) this.#stapler.refreshIfDue(certificate);
		this.#timer = this.#servedPairs.size > 0 ? this.#scheduleCheck() : undefined;
	}

	/**
	 * Waits until must-staple certificates have their first OCSP responses, because clients reject these certificates without one.
	 */
	async #awaitStaples(newCertificates: readonly FileCertificate[], settings: Settings): Promise<void> {
		const unstapledCertificates = newCertificates.filter(
			({ mustStaple, record, ocsp }) => mustStaple && record.hasResponder && !ocsp,
		);
		if (settings.ocsp_stapling === false || unstapledCertificates.length === 0) return;
		const stapleFetches = Promise.all(unstapledCertificates.map(certificate => this.#stapler.refresh(certificate)));
		await withTimeLimit(
			stapleFetches.then(() => {}),
			STAPLE_TIMEOUT_MS,
		);
	}

	/** Retires a certificate that `replacement` replaces; does nothing if they are the same object. */
	#retireReplaced(previous: FileCertificate, replacement: FileCertificate): void {
		if (previous === replacement) return;
		previous.isDropped = true;
		if (previous.record.fingerprint !== replacement.record.fingerprint) void this.#stapler.forgetResponse(previous);
	}

	#scheduleCheck(): NodeJS.Timeout {
		return setTimeout(() => void this.#checkFiles(), Math.max(CHECK_INTERVAL_MS, this.#servedPairs.size)).unref();
	}
}

function fileStateOf({ certificate, key }: LoadedCertificate): string {
	const states = [certificate, key].map(path => {
		try {
			const { size, mtimeMs, ino } = statSync(path);
			return `${ino} ${size} ${mtimeMs}`;
		} catch (error) {
			throw unreadableError(path, error);
		}
	});
	return states.join();
}

function readPair(files: LoadedCertificate, fileState: string): LoadedPair {
	const { certificate, key } = files;
	const certificateBytes = readBytes(certificate);
	const keyBytes = key === certificate ? certificateBytes : readBytes(key);
	// The compiler has already checked a certificate and key with this digest.
	const isChecked = certificatePairDigest(certificateBytes, keyBytes) === files.digest;
	const pair = isChecked ? files : checkCertificatePair(certificateBytes, keyBytes, certificate, key);
	if (isFileMistake(pair)) throw new CertificateFileError(pair.code, pair.message);
	const chain = certificateBytes.toString('latin1').match(PEM_CERTIFICATE) ?? [];
	const privateKey = PEM_KEY.exec(keyBytes.toString('latin1'))?.[0] ?? '';
	const publishedPair = { id: files.id, names: pair.names, chain: `${chain.join('\n')}\n`, key: `${privateKey}\n` };
	return { files, certificate: new FileCertificate(publishedPair), fileState, notAfter: pair.notAfter };
}

function readBytes(path: string): Buffer {
	try {
		return readFileSync(path);
	} catch (error) {
		throw unreadableError(path, error);
	}
}

const PEM_CERTIFICATE = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;
const PEM_KEY = /-----BEGIN (?:[A-Z]+ )?PRIVATE KEY-----[\s\S]*?-----END (?:[A-Z]+ )?PRIVATE KEY-----/;

function unreadableError(path: string, error: unknown): CertificateFileError {
	const code = (error as NodeJS.ErrnoException).code ?? 'EIO';
	return new CertificateFileError('tls/unreadable-file', `The file \`${path}\` cannot be read: ${systemReason(code)}.`);
}

/**
 * Runs a function for every item, and yields to the event loop after each {@link SLICE_MS} milliseconds of work. Passing the work
 * to a thread pool would cost more than the work itself.
 */
async function inSlices<T>(items: readonly T[], runItem: (item: T) => void): Promise<void> {
	let sliceStart = performance.now();
	for (const item of items) {
		runItem(item);
		if (performance.now() - sliceStart < SLICE_MS) continue;
		await new Promise(resolve => setImmediate(resolve));
		sliceStart = performance.now();
	}
}

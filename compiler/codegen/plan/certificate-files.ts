/** Reads and checks the certificate files that a document names. */
import { X509Certificate } from 'node:crypto';
import { join, resolve } from 'node:path';
import type { Report } from '../../diagnostics/diagnostic.ts';
import type { Document } from '../../document/document.ts';
import type { TrustedLeaves, TrustPool } from '../../document/tls-settings.ts';
import { ReadError, type Reader } from '../../source/reader.ts';
import { type CertificateCheck, isFileMistake } from './certificate-check.ts';
import type { LoadedCertificate } from './site-tls.ts';

/** The certificate files that a document names. */
export interface DocumentCertificates {
	readonly loadedCertificates: readonly LoadedCertificate[];
	/** IDs of the loaded certificates, by the index of the site, most preferred first. Sites without certificates are missing. */
	readonly idsBySite: ReadonlyMap<number, readonly string[]>;
}

/** Maximum nesting of folders that are searched for bundles. */
const MAX_FOLDER_DEPTH = 16;

/** Reads every certificate and key file that the sites name. Mistakes are reported at the `tls` of the site. */
export function readDocumentCertificates(
	document: Document,
	reader: Reader,
	certificateCheck: CertificateCheck,
	report: Report,
): DocumentCertificates {
	const certificatesById = new Map<string, LoadedCertificate>();
	const idsBySite = new Map<number, readonly string[]>();
	(document.sites ?? []).forEach(({ tls }, site) => {
		if (!tls) return;
		const pointer = `/sites/${site}/tls`;
		const certificateIds: string[] = [];
		const addPair = (configuredCertificate: string, configuredKey: string, pairPointer: string): void => {
			const certificate = resolve(reader.workingDirectory, configuredCertificate);
			const key = resolve(reader.workingDirectory, configuredKey);
			const id = `file ${certificate}`;
			const existingCertificate = certificatesById.get(id);
			const checkedPair =
				existingCertificate && existingCertificate.key === key
					? existingCertificate
					: certificateCheck.checkPair(certificate, key, reader);
			if (isFileMistake(checkedPair)) {
				report({ ...checkedPair, severity: 'error', pointer: pairPointer });
				return;
			}
			const { names, notAfter, digest } = checkedPair;
			certificatesById.set(id, existingCertificate ?? { id, certificate, key, names, notAfter, digest });
			if (!certificateIds.includes(id)) certificateIds.push(id);
		};
		tls.certificates?.forEach(({ certificate, key }, index) => {
			addPair(certificate, key, `${pointer}/certificates/${index}`);
		});
		tls.load?.forEach((folder, index) => {
			for (const path of bundlePaths(folder, reader, `${pointer}/load/${index}`, report))
				addPair(path, path, `${pointer}/load/${index}`);
		});
		if (certificateIds.length > 0) idsBySite.set(site, certificateIds);
		if (tls.client_auth?.trust_pool)
			checkTrustPool(tls.client_auth.trust_pool, reader, `${pointer}/client_auth`, report);
		if (tls.client_auth?.trusted_leaves)
			checkTrustedLeaves(tls.client_auth.trusted_leaves, reader, `${pointer}/client_auth`, report);
	});
	return { loadedCertificates: [...certificatesById.values()], idsBySite };
}

/** Returns the PEM files in a folder and its subfolders, in lexical order. */
function bundlePaths(configuredPath: string, reader: Reader, pointer: string, report: Report, depth = 0): string[] {
	const folder = resolve(reader.workingDirectory, configuredPath);
	const paths: string[] = [];
	let names: readonly string[];
	try {
		names = reader.list(folder);
	} catch (error) {
		if (!(error instanceof ReadError)) throw error;
		const message = `The folder \`${folder}\` cannot be read: the system says ${error.code}.`;
		report({ code: 'tls/unreadable-file', severity: 'error', pointer, message });
		return paths;
	}
	for (const name of names) {
		const path = join(folder, name);
		if (reader.kind(path) === 'directory') {
			if (depth < MAX_FOLDER_DEPTH) paths.push(...bundlePaths(path, reader, pointer, report, depth + 1));
		} else if (name.endsWith('.pem')) paths.push(path);
	}
	return paths;
}

/** Returns the certificates in a PEM text, and checks that each can be parsed. Throws if one cannot or if there are none. */
export function parsePemCertificates(text: string): string[] {
	const certificates = text.match(/-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g) ?? [];
	if (certificates.length === 0) throw new TypeError('There is no certificate.');
	for (const pem of certificates) new X509Certificate(pem);
	return certificates;
}

function checkTrustPool(pool: TrustPool, reader: Reader, pointer: string, report: Report): void {
	if (pool.source === 'combined') for (const part of pool.of) checkTrustPool(part, reader, pointer, report);
	else if (pool.source === 'file') checkPemFiles(pool.files, reader, pointer, report);
}

function checkTrustedLeaves(
	{ files = [], folders = [] }: TrustedLeaves,
	reader: Reader,
	pointer: string,
	report: Report,
): void {
	checkPemFiles(files, reader, pointer, report);
	for (const folder of folders) checkPemFiles(bundlePaths(folder, reader, pointer, report), reader, pointer, report);
}

function checkPemFiles(files: readonly string[], reader: Reader, pointer: string, report: Report): void {
	for (const configuredPath of files) {
		const path = resolve(reader.workingDirectory, configuredPath);
		try {
			parsePemCertificates(Buffer.from(reader.readBytes(path)).toString('latin1'));
		} catch (error) {
			const message =
				error instanceof ReadError
					? `The file \`${path}\` cannot be read: the system says ${error.code}.`
					: `\`${path}\` contains no certificate in PEM form.`;
			const code = error instanceof ReadError ? 'tls/unreadable-file' : 'tls/malformed-certificate';
			report({ code, severity: 'error', pointer, message });
		}
	}
}

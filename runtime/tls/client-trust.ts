/** Loads the trust pools and leaf certificates of `client_auth`, on the main thread, before a configuration is served. */
import { X509Certificate } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { getCACertificates } from 'node:tls';
import { parsePemCertificates } from '../../compiler/codegen/plan/certificate-files.ts';
import { canonicalJson } from '../../compiler/document/canonical-json.ts';
import { redactUrlSecrets } from '../../compiler/document/secret-parts.ts';
import type { ClientAuth, TrustedLeaves, TrustPool } from '../../compiler/document/tls-settings.ts';
import type { CertificateManager } from '../certificates/certificate-feed.ts';
import type { StoreSelection } from '../storage/open-store.ts';
import type { Store } from '../storage/store.ts';
import type { ClientTrust } from './tls-update.ts';

/** Timeout in milliseconds for fetching a trust pool over HTTP. */
const FETCH_TIMEOUT_MS = 10_000;
/** Maximum bytes of a trust pool fetched over HTTP. */
const MAX_RESPONSE_BYTES = 4 * 1024 * 1024;

/** The error for a trust pool or leaf certificate that cannot be loaded. The message is a full sentence. */
export class TrustError extends Error {
	constructor(message: string) {
		super(message);
		this.name = 'TrustError';
	}
}

/** Dependencies for loading trust pools. */
export interface TrustDeps {
	/** Relative paths are resolved against this folder. */
	readonly workingDirectory: string;
	readonly manager: () => Promise<CertificateManager>;
	/** Opens the selected store, or the server's own if undefined. */
	readonly store: (selection: StoreSelection | undefined) => Promise<Store>;
}

/** Loads the trusted certificates of one `client_auth`. Rejects with TrustError. */
export async function loadClientTrust(auth: ClientAuth, deps: TrustDeps): Promise<ClientTrust> {
	return {
		key: canonicalJson(auth),
		authorities: auth.trust_pool ? await loadPoolCertificates(auth.trust_pool, deps) : [],
		leaves: auth.trusted_leaves && (await leafFingerprints(auth.trusted_leaves, deps.workingDirectory)),
	};
}

/** Returns the certificates of a pool in PEM. Rejects with TrustError. */
export async function loadPoolCertificates(pool: TrustPool, deps: TrustDeps): Promise<string[]> {
	switch (pool.source) {
		case 'inline':
			return pool.certificates.map(pemOfDer);
		case 'file':
			return (
				await Promise.all(pool.files.map(file => readCertificateFile(resolve(deps.workingDirectory, file))))
			).flat();
		case 'system':
			return getCACertificates('system');
		case 'combined':
			return (await Promise.all(pool.of.map(part => loadPoolCertificates(part, deps)))).flat();
		case 'storage': {
			const store = await deps.store(pool.storage as StoreSelection | undefined);
			return (await Promise.all(pool.keys.map(key => readStoredCertificates(key, store)))).flat();
		}
		case 'http':
			return (await Promise.all(pool.endpoints.map(fetchCertificates))).flat();
		case 'pki_root':
		case 'pki_intermediate': {
			const field = pool.source === 'pki_root' ? 'root' : 'intermediate';
			return Promise.all(pool.authorities.map(async id => (await authorityOf(id, await deps.manager()))[field]));
		}
	}
}

function fingerprintOf(pem: string): string {
	try {
		return new X509Certificate(pem).fingerprint256;
	} catch {
		throw new TrustError('A certificate given inline is not in PEM form.');
	}
}

async function authorityOf(id: string, manager: CertificateManager) {
	const authority = await manager.authorityCertificates?.(id).catch(() => undefined);
	if (!authority) throw new TrustError(`The trusted internal authority \`${id}\` does not exist.`);
	return authority;
}

function pemOfDer(base64: string): string {
	try {
		return new X509Certificate(Buffer.from(base64, 'base64')).toString();
	} catch {
		throw new TrustError('A certificate given inline is not base64 of DER.');
	}
}

async function readCertificateFile(path: string): Promise<string[]> {
	try {
		return parsePemCertificates(await readFile(path, 'latin1'));
	} catch (error) {
		const code = (error as NodeJS.ErrnoException).code;
		throw new TrustError(
			code === undefined || code.startsWith('ERR_')
				? `\`${path}\` contains no PEM certificate.`
				: `The file \`${path}\` cannot be read: ${code}.`,
		);
	}
}

async function readStoredCertificates(key: string, store: Store): Promise<string[]> {
	let value: Buffer | undefined;
	try {
		value = await store.read(key);
	} catch (error) {
		throw new TrustError(`\`${key}\` cannot be read from the store: ${(error as Error).message}`);
	}
	if (value === undefined)
		throw new TrustError(`The store ${store.description} has no key \`${key}\`, which a trust pool names.`);
	try {
		return parsePemCertificates(value.toString('latin1'));
	} catch {
		throw new TrustError(`\`${key}\` in the store contains no PEM certificate.`);
	}
}

async function fetchCertificates(url: string): Promise<string[]> {
	try {
		const response = await fetch(url, { signal: AbortSignal.timeout(FETCH_TIMEOUT_MS), redirect: 'error' });
		if (!response.ok) throw new TypeError(`the response has status ${response.status}`);
		let text = '';
		for await (const piece of response.body ?? []) {
			text += Buffer.from(piece).toString('latin1');
			if (text.length > MAX_RESPONSE_BYTES) throw new TypeError('the response is too large');
		}
		return parsePemCertificates(text);
	} catch (error) {
		const reason = (error as Error).message;
		throw new TrustError(redactUrlSecrets(`Cannot load trusted certificates from \`${url}\`: ${reason}.`));
	}
}

async function leafFingerprints(
	{ certificates = [], files = [], folders = [], pem = [] }: TrustedLeaves,
	workingDirectory: string,
) {
	const fromFolders = (await Promise.all(folders.map(folder => pemFiles(resolve(workingDirectory, folder))))).flat();
	const paths = [...files.map(file => resolve(workingDirectory, file)), ...fromFolders];
	const fromFiles = (await Promise.all(paths.map(readCertificateFile))).flat();
	const pems = [...certificates.map(pemOfDer), ...fromFiles, ...pem];
	return pems.map(fingerprintOf);
}

async function pemFiles(folder: string): Promise<string[]> {
	try {
		const entries = await readdir(folder, { recursive: true, withFileTypes: true });
		const files = entries.filter(entry => entry.isFile() && entry.name.endsWith('.pem'));
		return files.map(entry => join(entry.parentPath, entry.name)).sort();
	} catch (error) {
		throw new TrustError(`The folder \`${folder}\` cannot be read: ${(error as NodeJS.ErrnoException).code ?? 'EIO'}.`);
	}
}

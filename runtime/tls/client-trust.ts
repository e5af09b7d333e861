/** Trust pools and leaf certificates of `client_auth`, read and fetched on the main thread before a document is served. */
import { X509Certificate } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { getCACertificates } from 'node:tls';
import { canonicalJson } from '../../compiler/document/canonical-json.ts';
import type { TrustPool } from '../../compiler/providers/trust-pools/trust-pool.ts';
import { certificatesIn } from '../../compiler/tls/certificate-files.ts';
import type { ClientAuth, TrustedLeaves } from '../../compiler/tls/site-tls.ts';
import type { StoreSelection } from '../storage/open-store.ts';
import type { Store } from '../storage/store.ts';
import type { CertificateManager } from './certificate-feed.ts';
import type { ClientTrust } from './tls-update.ts';

/** Milliseconds for an address of a trust pool to answer. */
const FETCH_LIMIT = 10_000;
/** Bytes that it may answer with. */
const LARGEST_ANSWER = 4 * 1024 * 1024;

/** A pool that cannot be had; the message is a sentence. */
export class TrustError extends Error {
	constructor(message: string) {
		super(message);
		this.name = 'TrustError';
	}
}

/** What reading pools needs. */
export interface TrustSurroundings {
	/** Relative paths start here. */
	readonly workingDirectory: string;
	readonly manager: () => Promise<CertificateManager>;
	/** Opens the store that a pool names, else the server's own. */
	readonly store: (selection: StoreSelection | undefined) => Promise<Store>;
}

/** Resolves one `client_auth`. Rejects with TrustError. */
export async function clientTrust(auth: ClientAuth, around: TrustSurroundings): Promise<ClientTrust> {
	return {
		key: canonicalJson(auth),
		authorities: auth.trust_pool ? await poolCertificates(auth.trust_pool, around) : [],
		leaves: auth.trusted_leaves && (await leafFingerprints(auth.trusted_leaves, around.workingDirectory)),
	};
}

/** PEM certificates of a pool. Rejects with TrustError. */
export async function poolCertificates(pool: TrustPool, around: TrustSurroundings): Promise<string[]> {
	switch (pool.source) {
		case 'inline':
			return pool.certificates.map(pemOfDer);
		case 'file':
			return (
				await Promise.all(pool.files.map(file => certificatesOfFile(resolve(around.workingDirectory, file))))
			).flat();
		case 'system':
			return getCACertificates('system');
		case 'combined':
			return (await Promise.all(pool.of.map(part => poolCertificates(part, around)))).flat();
		case 'storage': {
			const store = await around.store(pool.storage as StoreSelection | undefined);
			return (await Promise.all(pool.keys.map(key => storedCertificates(key, store)))).flat();
		}
		case 'http':
			return (await Promise.all(pool.endpoints.map(fetched))).flat();
		case 'pki_root':
		case 'pki_intermediate': {
			const field = pool.source === 'pki_root' ? 'root' : 'intermediate';
			return Promise.all(pool.authorities.map(async id => (await authorityOf(id, await around.manager()))[field]));
		}
	}
}

async function authorityOf(id: string, manager: CertificateManager) {
	const found = await manager.authority?.(id).catch(() => undefined);
	if (!found) throw new TrustError(`There is no internal authority \`${id}\` to trust.`);
	return found;
}

function pemOfDer(base64: string): string {
	return new X509Certificate(Buffer.from(base64, 'base64')).toString();
}

async function certificatesOfFile(path: string): Promise<string[]> {
	try {
		return certificatesIn(await readFile(path, 'latin1'));
	} catch (error) {
		const code = (error as NodeJS.ErrnoException).code;
		throw new TrustError(
			code === undefined || code.startsWith('ERR_')
				? `\`${path}\` holds no certificate in PEM form.`
				: `The file \`${path}\` cannot be read: the system says ${code}.`,
		);
	}
}

async function storedCertificates(key: string, store: Store): Promise<string[]> {
	let value: Buffer | undefined;
	try {
		value = await store.read(key);
	} catch (error) {
		throw new TrustError(`\`${key}\` cannot be read from the store: ${(error as Error).message}`);
	}
	if (value === undefined) throw new TrustError(`The store ${store.description} has no \`${key}\` to trust.`);
	try {
		return certificatesIn(value.toString('latin1'));
	} catch {
		throw new TrustError(`\`${key}\` in the store holds no certificate in PEM form.`);
	}
}

async function fetched(url: string): Promise<string[]> {
	try {
		const response = await fetch(url, { signal: AbortSignal.timeout(FETCH_LIMIT), redirect: 'error' });
		if (!response.ok) throw new TypeError(`it answered ${response.status}`);
		let text = '';
		for await (const piece of response.body ?? []) {
			text += Buffer.from(piece).toString('latin1');
			if (text.length > LARGEST_ANSWER) throw new TypeError('it answered too much');
		}
		return certificatesIn(text);
	} catch (error) {
		throw new TrustError(`No trusted certificates can be had from \`${url}\`: ${(error as Error).message}.`);
	}
}

async function leafFingerprints(
	{ certificates = [], files = [], folders = [], pem = [] }: TrustedLeaves,
	workingDirectory: string,
) {
	const below = (await Promise.all(folders.map(folder => pemFiles(resolve(workingDirectory, folder))))).flat();
	const paths = [...files.map(file => resolve(workingDirectory, file)), ...below];
	const fromFiles = (await Promise.all(paths.map(certificatesOfFile))).flat();
	const all = [...certificates.map(pemOfDer), ...fromFiles, ...pem];
	return all.map(text => new X509Certificate(text).fingerprint256);
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

/** An internal CA. Keeps a root and an intermediate in the store or in files, renews them, and signs certificates. */
import { type KeyObject, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Store } from '../storage/store.ts';
import type { AuthorityPlan } from './authority-settings.ts';
import { type KeyType, makePrivateKey, parsePrivateKey, privateKeyPem } from './certificate-keys.ts';
import { type CertificateSigner, certificatePem, issueCertificate } from './issue-certificate.ts';

/** Milliseconds by which certificates are backdated, for clients whose clocks are slow. */
const BACKDATING_MS = 60_000;

/** The error for a CA that cannot sign. The message is a full sentence for the operator. */
export class AuthorityError extends Error {
	constructor(message: string) {
		super(message);
		this.name = 'AuthorityError';
	}
}

/** A signing certificate: the root or the intermediate. */
interface SigningCertificate extends CertificateSigner {
	readonly pem: string;
	readonly notBefore: number;
	readonly notAfter: number;
	readonly subject: string;
}

/** The contents of a certificate to sign. */
export interface SigningRequest {
	readonly names: readonly string[];
	/** The key to certify, private or public. */
	readonly key: KeyObject;
	/** Lifetime in milliseconds. It is limited to the remaining lifetime of the signing certificate. */
	readonly lifetimeMs: number;
	/** True if the root, instead of the intermediate, signs the certificate. */
	readonly withRoot?: boolean | undefined;
}

/** An internal CA, opened with {@link openAuthority}. */
export interface Authority {
	readonly id: string;
	/** The root certificate in PEM, for clients to trust. */
	readonly rootPem: string;
	readonly rootName: string;
	readonly intermediatePem: string;
	readonly intermediateName: string;
	/** Expiry of the signing certificates, in milliseconds since the epoch. */
	readonly rootNotAfter: number;
	readonly intermediateNotAfter: number;
	/** Signs a certificate. Returns it and its chain in PEM, without the root. Throws AuthorityError if the signer has expired. */
	sign(request: SigningRequest): string;
	/** Renews the root and intermediate if due. Resolves to true if either changed. Rejects with StoreError or AuthorityError. */
	maintain(): Promise<boolean>;
}

/** Returns the store key of a file of a CA. */
export function authorityKey(id: string, file: string): string {
	return `pki/authorities/${id}/${file}`;
}

/** Opens a CA, and creates it if the store does not have it. Rejects with StoreError or AuthorityError. */
export async function openAuthority(plan: AuthorityPlan, store: Store, now: () => number): Promise<Authority> {
	const authority = new InternalAuthority(plan, store, now);
	await authority.maintain();
	return authority;
}

class InternalAuthority implements Authority {
	readonly #plan: AuthorityPlan;
	readonly #store: Store;
	readonly #now: () => number;
	#root: SigningCertificate | undefined;
	#intermediate: SigningCertificate | undefined;

	constructor(plan: AuthorityPlan, store: Store, now: () => number) {
		this.#plan = plan;
		this.#store = store;
		this.#now = now;
	}

	get id(): string {
		return this.#plan.id;
	}

	get rootPem(): string {
		return this.#root!.pem;
	}

	get rootName(): string {
		return this.#root!.subject;
	}

	get intermediatePem(): string {
		return this.#intermediate!.pem;
	}

	get intermediateName(): string {
		return this.#intermediate!.subject;
	}

	get rootNotAfter(): number {
		return this.#root!.notAfter;
	}

	get intermediateNotAfter(): number {
		return this.#intermediate!.notAfter;
	}

	sign({ names, key, lifetimeMs, withRoot }: SigningRequest): string {
		const signer = withRoot ? this.#root! : this.#intermediate!;
		const now = this.#now();
		const notBefore = Math.max(now - BACKDATING_MS, signer.notBefore);
		const notAfter = Math.min(notBefore + lifetimeMs, signer.notAfter);
		if (notAfter <= now) throw new AuthorityError(`The certificate \`${signer.subject}\` has expired.`);
		const der = issueCertificate({ names, key, signer, notBefore: new Date(notBefore), notAfter: new Date(notAfter) });
		return certificatePem(der) + (withRoot ? '' : signer.pem);
	}

	async maintain(): Promise<boolean> {
		const previousIntermediate = this.#intermediate;
		if (await this.#readAndCheck()) return this.#intermediate !== previousIntermediate;
		const lock = await this.#store.lock(`pki-${this.#plan.id}`);
		try {
			// Another process may have created the certificates while this one waited for the lock.
			if (!(await this.#readAndCheck())) {
				const store = this.#store.fenced(lock);
				await this.#makeRoot(store);
				await this.#makeIntermediate(store);
			}
		} finally {
			await lock.release();
		}
		return this.#intermediate !== previousIntermediate;
	}

	/** Reads the root and the intermediate. Resolves to true if neither is missing or due for renewal. */
	async #readAndCheck(): Promise<boolean> {
		const { root: rootFiles, intermediate: intermediateFiles } = this.#plan;
		const currentRoot = rootFiles ? await readFiles(rootFiles, 'root') : await this.#readStored('root');
		if (currentRoot) this.#root = keepIfEqual(this.#root, currentRoot);
		const currentIntermediate = intermediateFiles
			? await readFiles(intermediateFiles, 'intermediate')
			: await this.#readStored('intermediate');
		if (currentIntermediate) this.#intermediate = keepIfEqual(this.#intermediate, currentIntermediate);
		if (!currentRoot || !currentIntermediate) return false;
		if (!rootFiles && this.#isDue(currentRoot)) return false;
		if (intermediateFiles) return true;
		return !this.#isDue(currentIntermediate) && isSignedBy(currentIntermediate, currentRoot);
	}

	#isDue({ notBefore, notAfter }: SigningCertificate): boolean {
		return this.#now() >= notAfter - (notAfter - notBefore) * this.#plan.renewalRatio;
	}

	/** Creates or renews the root. A renewed root keeps its key and name, so that clients that trust the old one also trust the new one. */
	async #makeRoot(store: Store): Promise<void> {
		if (this.#plan.root || (this.#root && !this.#isDue(this.#root))) return;
		const key = this.#root?.key ?? (await makePrivateKey('p256'));
		const now = this.#now();
		const der = issueCertificate({
			commonName: this.#root?.subject ?? this.#plan.rootName,
			authority: { pathLength: 1 },
			key,
			notBefore: new Date(now - BACKDATING_MS),
			notAfter: new Date(now + this.#plan.rootLifetimeMs),
		});
		this.#root = await this.#storeCertificate(store, 'root', der, key);
	}

	async #makeIntermediate(store: Store): Promise<void> {
		const root = this.#root!;
		const previousIntermediate = this.#intermediate;
		if (
			this.#plan.intermediate ||
			(previousIntermediate && !this.#isDue(previousIntermediate) && isSignedBy(previousIntermediate, root))
		)
			return;
		const key = await makePrivateKey('p256' satisfies KeyType);
		const now = this.#now();
		if (root.notAfter <= now) throw new AuthorityError(`The root \`${root.subject}\` has expired.`);
		const der = issueCertificate({
			commonName: this.#plan.intermediateName,
			authority: { pathLength: 0 },
			key,
			signer: root,
			notBefore: new Date(Math.max(now - BACKDATING_MS, root.notBefore)),
			notAfter: new Date(Math.min(now + this.#plan.intermediateLifetimeMs, root.notAfter)),
		});
		this.#intermediate = await this.#storeCertificate(store, 'intermediate', der, key);
	}

	/**
	 * Stores a key and its certificate, the key first. If the process dies between the two writes, the next process finds no
	 * certificate that matches the key, and creates both again.
	 */
	async #storeCertificate(
		store: Store,
		level: 'root' | 'intermediate',
		der: Uint8Array,
		key: KeyObject,
	): Promise<SigningCertificate> {
		const pem = certificatePem(der);
		await store.write(authorityKey(this.#plan.id, `${level}.key`), privateKeyPem(key));
		await store.write(authorityKey(this.#plan.id, `${level}.crt`), pem);
		return parseSigningCertificate(pem, key)!;
	}

	async #readStored(level: 'root' | 'intermediate'): Promise<SigningCertificate | undefined> {
		const [pem, key] = await Promise.all([
			this.#store.read(authorityKey(this.#plan.id, `${level}.crt`)),
			this.#store.read(authorityKey(this.#plan.id, `${level}.key`)),
		]);
		if (!pem) return undefined;
		const certificate = key && parseSigningCertificate(pem.toString('latin1'), parsePrivateKey(key));
		// A root whose key is lost is an error: if it were replaced silently, no client would trust the new root.
		if (!certificate && level === 'root') {
			const file = authorityKey(this.#plan.id, 'root.crt');
			throw new AuthorityError(`\`${file}\` in the store does not match its key; restore both files or remove both.`);
		}
		return certificate;
	}
}

/**
 * Returns `previous` if both certificates are equal, otherwise `current`, so that `===` tells whether a certificate has changed.
 */
function keepIfEqual(previous: SigningCertificate | undefined, current: SigningCertificate): SigningCertificate {
	return previous?.pem === current.pem ? previous : current;
}

function isSignedBy(lower: SigningCertificate, upper: SigningCertificate): boolean {
	const certificate = new X509Certificate(lower.certificate);
	const issuer = new X509Certificate(upper.certificate);
	return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

/** Parses a certificate. Returns undefined if it is invalid or does not match the key. */
function parseSigningCertificate(pem: string, key: KeyObject | undefined): SigningCertificate | undefined {
	try {
		const certificate = new X509Certificate(pem);
		if (!key || !certificate.checkPrivateKey(key)) return undefined;
		return {
			certificate: certificate.raw,
			key,
			pem,
			notBefore: certificate.validFromDate.getTime(),
			notAfter: certificate.validToDate.getTime(),
			subject: /^CN=(.*)$/m.exec(certificate.subject)?.[1] ?? certificate.subject.replaceAll('\n', ', '),
		};
	} catch {
		return undefined;
	}
}

async function readFiles(
	files: { readonly cert: string; readonly key: string },
	role: string,
): Promise<SigningCertificate> {
	const readPem = (file: string): Promise<Buffer> =>
		readFile(file).catch(error => {
			throw new AuthorityError(`The ${role} file \`${file}\` cannot be read: ${error.code}.`);
		});
	const [pem, key] = await Promise.all([readPem(files.cert), readPem(files.key)]);
	const certificate = parseSigningCertificate(pem.toString('latin1'), parsePrivateKey(key));
	if (!certificate)
		throw new AuthorityError(`\`${files.cert}\` and \`${files.key}\` are not a matching certificate and key.`);
	if (!new X509Certificate(certificate.certificate).ca) {
		throw new AuthorityError(`\`${files.cert}\` is not a CA certificate.`);
	}
	return certificate;
}

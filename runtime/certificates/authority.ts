/** An internal authority: its root and intermediate, made and renewed in the store or read from files, and what it signs. */
import { type KeyObject, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { Store } from '../storage/store.ts';
import type { AuthorityPlan } from './authority-settings.ts';
import { type KeyType, keyPem, makePrivateKey, readKey } from './certificate-keys.ts';
import { certificatePem, issueCertificate, type Signer } from './issue-certificate.ts';

/** Milliseconds that certificates are valid before they are made: clocks of clients are late. */
const BACKDATED = 60_000;

/** The authority cannot sign. The message is a sentence for an operator. */
export class AuthorityError extends Error {
	constructor(message: string) {
		super(message);
		this.name = 'AuthorityError';
	}
}

/** A certificate that signs. */
interface Level extends Signer {
	readonly pem: string;
	readonly notBefore: number;
	readonly notAfter: number;
	readonly subject: string;
}

/** What is to be signed. */
export interface SigningRequest {
	readonly names: readonly string[];
	/** The key to certify, private or public. */
	readonly key: KeyObject;
	/** Milliseconds; cut to the life that the signing certificate has left. */
	readonly lifetime: number;
	/** Signs with the root instead of the intermediate. */
	readonly withRoot?: boolean | undefined;
}

/** An internal authority. Made by {@link openAuthority}. */
export interface Authority {
	readonly id: string;
	/** PEM of the root that clients are to trust. */
	readonly rootPem: string;
	readonly rootName: string;
	/** PEM of the intermediate. */
	readonly intermediatePem: string;
	readonly intermediateName: string;
	/** End of the signing certificates' lives, in milliseconds since the epoch. */
	readonly rootNotAfter: number;
	readonly intermediateNotAfter: number;
	/** Signs; gives the PEM of the certificate and its chain without the root. */
	sign(request: SigningRequest): string;
	/** Renews what is due, in the store; true when something changed. Rejects with StoreError or AuthorityError. */
	maintain(): Promise<boolean>;
}

/** Where an authority's files lie in the store. */
export function authorityKey(id: string, file: string): string {
	return `pki/authorities/${id}/${file}`;
}

/** Opens an authority, and makes it when the store has none. Rejects with StoreError or AuthorityError. */
export async function openAuthority(plan: AuthorityPlan, store: Store, now: () => number): Promise<Authority> {
	const authority = new InternalAuthority(plan, store, now);
	await authority.maintain();
	return authority;
}

class InternalAuthority implements Authority {
	readonly #plan: AuthorityPlan;
	readonly #store: Store;
	readonly #now: () => number;
	#root: Level | undefined;
	#intermediate: Level | undefined;

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

	sign({ names, key, lifetime, withRoot }: SigningRequest): string {
		const signer = withRoot ? this.#root! : this.#intermediate!;
		const now = this.#now();
		const notBefore = Math.max(now - BACKDATED, signer.notBefore);
		const notAfter = Math.min(notBefore + lifetime, signer.notAfter);
		if (notAfter <= now) throw new AuthorityError(`The certificate \`${signer.subject}\` has expired.`);
		const der = issueCertificate({ names, key, signer, notBefore: new Date(notBefore), notAfter: new Date(notAfter) });
		return certificatePem(der) + (withRoot ? '' : signer.pem);
	}

	async maintain(): Promise<boolean> {
		const before = this.#intermediate;
		if (await this.#current()) return this.#intermediate !== before;
		const lock = await this.#store.lock(`pki-${this.#plan.id}`);
		try {
			// Another process may have done it while this one waited.
			if (!(await this.#current())) {
				await this.#makeRoot();
				await this.#makeIntermediate();
			}
		} finally {
			await lock.release();
		}
		return this.#intermediate !== before;
	}

	/** Reads what there is; true when nothing is missing or due. */
	async #current(): Promise<boolean> {
		const { root, intermediate } = this.#plan;
		const readRoot = root ? await readFiles(root, 'root') : await this.#stored('root');
		if (readRoot) this.#root = same(this.#root, readRoot);
		const readIntermediate = intermediate
			? await readFiles(intermediate, 'intermediate')
			: await this.#stored('intermediate');
		if (readIntermediate) this.#intermediate = same(this.#intermediate, readIntermediate);
		if (!readRoot || !readIntermediate) return false;
		if (!root && this.#due(readRoot)) return false;
		if (intermediate) return true;
		return !this.#due(readIntermediate) && isSignedBy(readIntermediate, readRoot);
	}

	#due({ notBefore, notAfter }: Level): boolean {
		return this.#now() >= notAfter - (notAfter - notBefore) * this.#plan.renewalRatio;
	}

	/** A renewed root keeps its key and its name: who trusts the old one trusts what both have signed. */
	async #makeRoot(): Promise<void> {
		if (this.#plan.root || (this.#root && !this.#due(this.#root))) return;
		const key = this.#root?.key ?? (await makePrivateKey('p256'));
		const now = this.#now();
		const der = issueCertificate({
			commonName: this.#root?.subject ?? this.#plan.rootName,
			authority: { pathLength: 1 },
			key,
			notBefore: new Date(now - BACKDATED),
			notAfter: new Date(now + this.#plan.rootLifetime),
		});
		this.#root = await this.#save('root', der, key);
	}

	async #makeIntermediate(): Promise<void> {
		const root = this.#root!;
		const old = this.#intermediate;
		if (this.#plan.intermediate || (old && !this.#due(old) && isSignedBy(old, root))) return;
		const key = await makePrivateKey('p256' satisfies KeyType);
		const now = this.#now();
		if (root.notAfter <= now) throw new AuthorityError(`The root \`${root.subject}\` has expired.`);
		const der = issueCertificate({
			commonName: this.#plan.intermediateName,
			authority: { pathLength: 0 },
			key,
			signer: root,
			notBefore: new Date(Math.max(now - BACKDATED, root.notBefore)),
			notAfter: new Date(Math.min(now + this.#plan.intermediateLifetime, root.notAfter)),
		});
		this.#intermediate = await this.#save('intermediate', der, key);
	}

	/** The key is there before its certificate: a process that dies between the two leaves a pair that is made anew. */
	async #save(level: 'root' | 'intermediate', der: Uint8Array, key: KeyObject): Promise<Level> {
		const pem = certificatePem(der);
		await this.#store.write(authorityKey(this.#plan.id, `${level}.key`), keyPem(key));
		await this.#store.write(authorityKey(this.#plan.id, `${level}.crt`), pem);
		return levelOf(pem, key)!;
	}

	async #stored(level: 'root' | 'intermediate'): Promise<Level | undefined> {
		const [pem, key] = await Promise.all([
			this.#store.read(authorityKey(this.#plan.id, `${level}.crt`)),
			this.#store.read(authorityKey(this.#plan.id, `${level}.key`)),
		]);
		if (!pem) return undefined;
		const found = key && levelOf(pem.toString('latin1'), readKey(key));
		// Making a new root in place of one whose key is lost would take the trust of every client away unseen.
		if (!found && level === 'root') {
			const file = authorityKey(this.#plan.id, 'root.crt');
			throw new AuthorityError(
				`\`${file}\` in the store and its key do not belong together; restore both or remove both.`,
			);
		}
		return found;
	}
}

/** Objects stay what they are while nothing changes, so that a change can be told. */
function same(before: Level | undefined, now: Level): Level {
	return before?.pem === now.pem ? before : now;
}

function isSignedBy(lower: Level, upper: Level): boolean {
	const certificate = new X509Certificate(lower.certificate);
	const issuer = new X509Certificate(upper.certificate);
	return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

/** Undefined unless the certificate can be read and the key belongs to it. */
function levelOf(pem: string, key: KeyObject | undefined): Level | undefined {
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

async function readFiles(files: { readonly cert: string; readonly key: string }, what: string): Promise<Level> {
	const read = (file: string): Promise<Buffer> =>
		readFile(file).catch(error => {
			throw new AuthorityError(`\`${file}\` of the ${what} cannot be read: ${error.code}.`);
		});
	const [pem, key] = await Promise.all([read(files.cert), read(files.key)]);
	const level = levelOf(pem.toString('latin1'), readKey(key));
	if (!level) throw new AuthorityError(`\`${files.cert}\` and \`${files.key}\` are not a certificate and its key.`);
	if (!new X509Certificate(level.certificate).ca) {
		throw new AuthorityError(`\`${files.cert}\` is not the certificate of an authority.`);
	}
	return level;
}

/** Adds the root certificate of an internal CA to the trust stores of this machine, or removes it from them. */
import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { MachineToTrust } from './machine.ts';
import { addToNss, removeFromNss } from './nss-databases.ts';
import { addToSystem, removeFromSystem } from './system-store.ts';
import { TrustError } from './trust-error.ts';

/** The root certificate of an internal CA. */
export interface TrustedRoot {
	readonly file: string;
	readonly pem: string;
	/** A unique name for its file in trust stores and its entry in databases. */
	readonly name: string;
	/** The common name of the certificate, for messages. */
	readonly title: string;
}

/** Reads the root of a CA from the folder of a store. Rejects with {@link TrustError}. */
export async function readRoot(store: string, authority: string): Promise<TrustedRoot> {
	const file = path.join(store, 'pki', 'authorities', authority, 'root.crt');
	let pem: string;
	try {
		pem = await readFile(file, 'utf8');
	} catch (error) {
		const { code } = error as NodeJS.ErrnoException;
		if (code !== 'ENOENT' && code !== 'ENOTDIR') throw new TrustError(`\`${file}\` cannot be read: ${code}.`);
		throw new TrustError(
			`There is no root at \`${file}\`. The server creates it when it first needs it. If the store is elsewhere, set SVC_TLS_STORE: the store of the systemd unit is /var/lib/svc/store.`,
		);
	}
	try {
		const certificate = new X509Certificate(pem);
		if (!certificate.ca) throw new TrustError(`\`${file}\` is not a CA certificate.`);
		const fingerprintDigits = certificate.fingerprint256.replaceAll(':', '').toLowerCase().slice(0, 16);
		const title = /^CN=(.*)$/m.exec(certificate.subject)?.[1] ?? authority;
		return { file, pem: certificate.toString(), name: `svc-${authority}-${fingerprintDigits}`, title };
	} catch (error) {
		throw error instanceof TrustError ? error : new TrustError(`\`${file}\` is not a certificate.`);
	}
}

/** The result for each trust store, as full sentences. */
export interface TrustReport {
	readonly sentences: readonly string[];
	/** The errors of stores that could not be changed. */
	readonly failures: readonly string[];
}

/** Adds the root to every trust store. A store that cannot be changed does not prevent changes to the others. */
export async function trustRoot(machine: MachineToTrust, root: TrustedRoot): Promise<TrustReport> {
	return changeStores(machine, {
		changeSystem: () => addToSystem(machine, root.name, root.pem),
		changeNss: () => addToNss(machine, root.name, root.file),
		doneText: `trusts \`${root.title}\` now`,
		unchangedText: 'trusted it already',
	});
}

/** Removes the root from every trust store. */
export async function untrustRoot(machine: MachineToTrust, root: TrustedRoot): Promise<TrustReport> {
	return changeStores(machine, {
		changeSystem: () => removeFromSystem(machine, root.name),
		changeNss: () => removeFromNss(machine, root.name),
		doneText: `does not trust \`${root.title}\` any more`,
		unchangedText: 'did not trust it',
	});
}

async function changeStores(
	machine: MachineToTrust,
	changes: {
		readonly changeSystem: () => ReturnType<typeof addToSystem>;
		readonly changeNss: () => ReturnType<typeof addToNss>;
		readonly doneText: string;
		readonly unchangedText: string;
	},
): Promise<TrustReport> {
	const sentences: string[] = [];
	const failures: string[] = [];
	const attemptChange = async (change: () => Promise<string | undefined>): Promise<void> => {
		try {
			const sentence = await change();
			if (sentence !== undefined) sentences.push(sentence);
		} catch (error) {
			if (!(error instanceof TrustError)) throw error;
			failures.push(error.message);
		}
	};
	await attemptChange(async () => {
		const change = await changes.changeSystem();
		if (change === 'no-store') throw new TrustError('No supported trust store was found on this system.');
		return `The trust store of the system ${change === 'changed' ? changes.doneText : changes.unchangedText}.`;
	});
	await attemptChange(async () => {
		const { changedCount, foundCount } = await changes.changeNss();
		if (foundCount === 0 || machine.home === undefined) return undefined;
		const isSingle = foundCount === 1;
		if (changedCount === 0) return `The NSS database${isSingle ? '' : 's'} of browsers ${changes.unchangedText}.`;
		return `${changedCount} of ${foundCount} NSS database${isSingle ? '' : 's'} of browsers: ${changes.doneText.replace(/^trusts/, 'trusting').replace(/^does not trust/, 'not trusting')}.`;
	});
	return { sentences, failures };
}

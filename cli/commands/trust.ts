/** The command `svc trust`: makes this machine trust the certificates of an internal certificate authority. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Store } from '../../runtime/storage/store.ts';
import type { Command, Invocation } from '../command/command.ts';
import { CommandFailure } from '../command/command.ts';
import { print } from '../command/terminal.ts';
import { ADAPTER_OPTION, CONFIG_OPTION } from '../configuration/configuration.ts';
import { chooseStore, rethrowStoreFailure, STORE_RULE } from '../configuration/store-choice.ts';

/** The options that `trust` and `untrust` share. */
export const TRUST_OPTIONS: NonNullable<Command['options']> = [
	{ name: 'ca', valueName: 'ID', summary: 'ID of the internal authority', default: 'local' },
	{ ...CONFIG_OPTION, default: 'none' },
	ADAPTER_OPTION,
];

export const trust: Command = {
	name: 'trust',
	summary: "Add the internal authority's root certificate to this machine's trust stores",
	details: [
		'The root certificate is `pki/authorities/local/root.crt` in the certificate store; a server creates it when a site first needs it.',
		"Changes the system's trust store (Debian, Red Hat, Arch and their derivatives), which requires root, and the user's NSS databases, which Firefox and Chromium read; these require the program certutil.",
		STORE_RULE,
	],
	options: TRUST_OPTIONS,
	run: invocation => runTrustChange(invocation, 'trust'),
};

/**
 * Adds or removes the root certificate and prints the outcome for each trust store. @throws {@link CommandFailure} if a trust
 * store could not be changed
 */
export async function runTrustChange(invocation: Invocation, action: 'trust' | 'untrust'): Promise<number> {
	const authorityId = invocation.value('ca') ?? 'local';
	if (!/^(?!\.+$)[A-Za-z0-9._-]{1,64}$/.test(authorityId)) {
		throw new CommandFailure(`\`${authorityId}\` is not a valid authority ID.`);
	}
	const [{ readRoot, trustRoot, untrustRoot }, { thisMachine }, { TrustError }] = await Promise.all([
		import('../../runtime/trust/root-trust.ts'),
		import('../../runtime/trust/machine.ts'),
		import('../../runtime/trust/trust-error.ts'),
	]);
	const { store, folder } = await chooseStore(invocation);
	const temporaryFolder = folder === undefined ? await copyRoot(store, authorityId) : undefined;
	try {
		const root = await readRoot(folder ?? temporaryFolder!, authorityId).catch(error => {
			throw error instanceof TrustError ? new CommandFailure(error.message) : error;
		});
		const changeTrust = action === 'trust' ? trustRoot : untrustRoot;
		const { sentences, failures } = await changeTrust(thisMachine(process.env), root);
		for (const sentence of sentences) print(`${sentence}\n`);
		if (failures.length > 0) throw new CommandFailure(failures.join(' '));
		return 0;
	} finally {
		if (temporaryFolder !== undefined) await rm(temporaryFolder, { recursive: true, force: true });
	}
}

/** Copies the root certificate from the store to a temporary folder and closes the store. Returns the folder's path. */
async function copyRoot(store: Store, authorityId: string): Promise<string> {
	const key = `pki/authorities/${authorityId}/root.crt`;
	const pem = await store
		.read(key)
		.catch(rethrowStoreFailure)
		.finally(() => store.close?.());
	if (!pem) {
		throw new CommandFailure(
			`There is no root at \`${key}\` in the store (${store.description}). A server creates it when it first needs it.`,
		);
	}
	const folder = await mkdtemp(path.join(tmpdir(), 'svc-trust-'));
	await mkdir(path.join(folder, path.dirname(key)), { recursive: true });
	await writeFile(path.join(folder, key), pem);
	return folder;
}

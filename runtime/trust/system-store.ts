/** The system's trust store: a folder of certificates, and a program that builds bundles from it. */
import { constants } from 'node:fs';
import { access, open, readdir, readFile, unlink } from 'node:fs/promises';
import path from 'node:path';
import type { MachineToTrust } from './machine.ts';
import { TrustError } from './trust-error.ts';

/** Where a family of distributions keeps locally added certificates. */
interface StoreLayout {
	readonly name: string;
	readonly folder: string;
	readonly extension: string;
	readonly refreshCommand: readonly [program: string, ...args: string[]];
}

const STORE_LAYOUTS: readonly StoreLayout[] = [
	{
		name: 'Red Hat',
		folder: 'etc/pki/ca-trust/source/anchors',
		extension: '.pem',
		refreshCommand: ['update-ca-trust', 'extract'],
	},
	{
		name: 'Debian',
		folder: 'usr/local/share/ca-certificates',
		extension: '.crt',
		refreshCommand: ['update-ca-certificates'],
	},
	{
		name: 'Arch',
		folder: 'etc/ca-certificates/trust-source/anchors',
		extension: '.crt',
		refreshCommand: ['trust', 'extract-compat'],
	},
	{
		name: 'SUSE',
		folder: 'usr/share/pki/trust/anchors',
		extension: '.crt',
		refreshCommand: ['update-ca-certificates'],
	},
];

export type SystemStoreChange = 'changed' | 'unchanged' | 'no-store';

/** Adds a certificate. `name` is its file name without extension. Rejects with {@link TrustError}. */
export async function addToSystem(machine: MachineToTrust, name: string, pem: string): Promise<SystemStoreChange> {
	const layout = await findLayout(machine);
	if (!layout) return 'no-store';
	const file = path.join(machine.root, layout.folder, `${name}${layout.extension}`);
	if ((await readFile(file, 'utf8').catch(() => undefined)) === pem) return 'unchanged';
	requirePrivilege(machine);
	try {
		const flags = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;
		const handle = await open(file, flags, 0o644);
		try {
			await handle.chmod(0o644);
			await handle.writeFile(pem);
		} finally {
			await handle.close();
		}
	} catch (error) {
		throw unwritableError(file, error);
	}
	await refreshStore(machine, layout);
	return 'changed';
}

/** Removes a certificate. Rejects with {@link TrustError}. */
export async function removeFromSystem(machine: MachineToTrust, name: string): Promise<SystemStoreChange> {
	const layout = await findLayout(machine);
	if (!layout) return 'no-store';
	const folder = path.join(machine.root, layout.folder);
	const file = `${name}${layout.extension}`;
	if (!(await readdir(folder)).includes(file)) return 'unchanged';
	requirePrivilege(machine);
	await unlink(path.join(folder, file)).catch(error => {
		throw unwritableError(path.join(folder, file), error);
	});
	await refreshStore(machine, layout);
	return 'changed';
}

async function findLayout(machine: MachineToTrust): Promise<StoreLayout | undefined> {
	for (const layout of STORE_LAYOUTS) {
		const exists = await access(path.join(machine.root, layout.folder)).then(
			() => true,
			() => false,
		);
		if (exists) return layout;
	}
	return undefined;
}

function requirePrivilege(machine: MachineToTrust): void {
	if (machine.isPrivileged) return;
	throw new TrustError('Only root can change the trust store of the system. Run the command again with sudo.');
}

async function refreshStore(
	machine: MachineToTrust,
	{ name, refreshCommand: [program, ...args] }: StoreLayout,
): Promise<void> {
	const { status, output } = await machine.run(program, args);
	if (status === 0) return;
	if (status === undefined) {
		throw new TrustError(
			`\`${program}\`, which builds the ${name} trust store, is not installed. Install ca-certificates.`,
		);
	}
	throw new TrustError(`\`${program}\` ended with status ${status}: ${output.split('\n').at(-1) ?? ''}`);
}

function unwritableError(file: string, error: unknown): TrustError {
	return new TrustError(`\`${file}\` cannot be changed: ${(error as NodeJS.ErrnoException).code}.`);
}

/** The system's trust store: a folder of certificates, and a program that builds bundles from it. */
import { constants } from 'node:fs';
import { access, open, readdir, readFile, unlink } from 'node:fs/promises';
import path from 'node:path';
import type { MachineToTrust } from './machine.ts';
import { TrustError } from './trust-error.ts';

/** The location of locally added certificates in a family of distributions. */
interface Layout {
	readonly name: string;
	readonly folder: string;
	readonly extension: string;
	readonly refresh: readonly [program: string, ...args: string[]];
}

const LAYOUTS: readonly Layout[] = [
	{
		name: 'Red Hat',
		folder: 'etc/pki/ca-trust/source/anchors',
		extension: '.pem',
		refresh: ['update-ca-trust', 'extract'],
	},
	{
		name: 'Debian',
		folder: 'usr/local/share/ca-certificates',
		extension: '.crt',
		refresh: ['update-ca-certificates'],
	},
	{
		name: 'Arch',
		folder: 'etc/ca-certificates/trust-source/anchors',
		extension: '.crt',
		refresh: ['trust', 'extract-compat'],
	},
	{ name: 'SUSE', folder: 'usr/share/pki/trust/anchors', extension: '.crt', refresh: ['update-ca-certificates'] },
];

export type SystemStoreChange = 'changed' | 'unchanged' | 'no-store';

/** Adds a certificate. `name` is its file name without extension. Rejects with {@link TrustError}. */
export async function addToSystem(machine: MachineToTrust, name: string, pem: string): Promise<SystemStoreChange> {
	const layout = await layoutOf(machine);
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
		throw unwritable(file, error);
	}
	await refresh(machine, layout);
	return 'changed';
}

/** Removes a certificate. Rejects with {@link TrustError}. */
export async function removeFromSystem(machine: MachineToTrust, name: string): Promise<SystemStoreChange> {
	const layout = await layoutOf(machine);
	if (!layout) return 'no-store';
	const folder = path.join(machine.root, layout.folder);
	const file = `${name}${layout.extension}`;
	if (!(await readdir(folder)).includes(file)) return 'unchanged';
	requirePrivilege(machine);
	await unlink(path.join(folder, file)).catch(error => {
		throw unwritable(path.join(folder, file), error);
	});
	await refresh(machine, layout);
	return 'changed';
}

async function layoutOf(machine: MachineToTrust): Promise<Layout | undefined> {
	for (const layout of LAYOUTS) {
		const found = await access(path.join(machine.root, layout.folder)).then(
			() => true,
			() => false,
		);
		if (found) return layout;
	}
	return undefined;
}

function requirePrivilege(machine: MachineToTrust): void {
	if (machine.privileged) return;
	throw new TrustError('Only root can change the trust store of the system. Run the command again with sudo.');
}

async function refresh(machine: MachineToTrust, { name, refresh: [program, ...args] }: Layout): Promise<void> {
	const { status, output } = await machine.run(program, args);
	if (status === 0) return;
	if (status === undefined) {
		throw new TrustError(
			`\`${program}\`, which builds the ${name} trust store, is not installed. Install ca-certificates.`,
		);
	}
	throw new TrustError(`\`${program}\` ended with status ${status}: ${output.split('\n').at(-1) ?? ''}`);
}

function unwritable(file: string, error: unknown): TrustError {
	return new TrustError(`\`${file}\` cannot be changed: ${(error as NodeJS.ErrnoException).code}.`);
}

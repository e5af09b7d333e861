/** NSS databases, the trust stores of Firefox and Chromium. */
import { access, readdir } from 'node:fs/promises';
import path from 'node:path';
import type { MachineToTrust } from './machine.ts';
import { TrustError } from './trust-error.ts';

/** Folders below the home folder that are databases. */
const DATABASE_FOLDERS = ['.pki/nssdb', 'snap/chromium/current/.pki/nssdb'];
/** Folders below the home folder that contain databases. */
const PROFILE_FOLDERS = [
	'.mozilla/firefox',
	'.config/mozilla/firefox',
	'snap/firefox/common/.mozilla/firefox',
	'.var/app/org.mozilla.firefox/.mozilla/firefox',
];

export interface NssChangeResult {
	readonly changedCount: number;
	readonly foundCount: number;
}

/** Adds a certificate file under a name to every database of the user. Rejects with {@link TrustError}. */
export async function addToNss(machine: MachineToTrust, name: string, file: string): Promise<NssChangeResult> {
	return changeDatabases(machine, database => ['-A', '-d', `sql:${database}`, '-t', 'C,,', '-n', name, '-i', file]);
}

/** Removes a certificate from every database that has it. Rejects with {@link TrustError}. */
export async function removeFromNss(machine: MachineToTrust, name: string): Promise<NssChangeResult> {
	return changeDatabases(machine, database => ['-D', '-d', `sql:${database}`, '-n', name], name);
}

/** Runs a command for every database, or only for those that contain a certificate named `existingName`. */
async function changeDatabases(
	machine: MachineToTrust,
	commandArgs: (database: string) => readonly string[],
	existingName?: string,
): Promise<NssChangeResult> {
	const databases = await findDatabases(machine);
	let changedCount = 0;
	for (const database of databases) {
		const listResult = await machine.run('certutil', ['-L', '-d', `sql:${database}`, '-n', existingName ?? '-']);
		if (listResult.status === undefined) {
			throw new TrustError(
				'Browsers have NSS databases, but `certutil`, which is needed to change them, is not installed. Install libnss3-tools (nss-tools, nss).',
			);
		}
		if (existingName !== undefined && listResult.status !== 0) continue;
		const { status, output } = await machine.run('certutil', commandArgs(database));
		if (status !== 0) {
			throw new TrustError(
				`The NSS database \`${database}\` could not be changed: ${output.split('\n').at(-1) ?? status}`,
			);
		}
		changedCount++;
	}
	return { changedCount, foundCount: databases.length };
}

async function findDatabases({ home }: MachineToTrust): Promise<string[]> {
	if (!home) return [];
	const candidates = DATABASE_FOLDERS.map(folder => path.join(home, folder));
	for (const profileFolder of PROFILE_FOLDERS) {
		const entries = await readdir(path.join(home, profileFolder)).catch(() => []);
		candidates.push(...entries.map(entry => path.join(home, profileFolder, entry)));
	}
	const databases: string[] = [];
	for (const candidate of candidates) {
		// Databases without cert9.db have the old format, which current browsers do not read.
		const isDatabase = await access(path.join(candidate, 'cert9.db')).then(
			() => true,
			() => false,
		);
		if (isDatabase) databases.push(candidate);
	}
	return databases;
}

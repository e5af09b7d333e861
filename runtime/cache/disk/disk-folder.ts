/**
 * The folder of a cache's disk tier: the seed of its hashes, the position of applied purges, and the lock held by one process.
 */
import { randomInt } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { FileLocks } from '../../storage/file-locks.ts';
import type { StoreLock } from '../../storage/store.ts';

/** Returns the seed of a folder's hashes; a new folder gets a random one. Throws if the folder is not available. */
export function folderSeed(folder: string): number {
	mkdirSync(folder, { recursive: true, mode: 0o700 });
	const file = path.join(folder, 'seed');
	const newSeed = String(randomInt(1, 2 ** 31 - 1));
	try {
		writeFileSync(file, newSeed, { flag: 'wx', mode: 0o600 });
		return Number(newSeed);
	} catch (error) {
		if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
	}
	const seed = Number(readFileSync(file, 'utf8'));
	if (Number.isInteger(seed) && seed > 0 && seed < 2 ** 31) return seed;
	// There is no complete seed in the file, so nothing can have been stored with it.
	writeFileSync(file, newSeed, { mode: 0o600 });
	return Number(newSeed);
}

/** Takes the lock of a folder, unless a living process holds it. */
export function lockFolder(folder: string): Promise<StoreLock | undefined> {
	const locks = new FileLocks(folder, async folderPath => {
		await mkdir(folderPath, { recursive: true, mode: 0o700 });
	});
	return locks.tryTake('cache');
}

/** The file that records up to which position the purges of a cluster have been applied to the folder. */
const POSITION_FILE = 'purges';

/** Reports whether a folder contains responses. */
export async function holdsResponses(folder: string): Promise<boolean> {
	const names = await readdir(folder).catch(() => []);
	return names.some(name => name.endsWith('.segment'));
}

/** Returns the recorded position up to which the cluster's purges have been applied; undefined if none is recorded. */
export function readPurgePosition(folder: string): Promise<string | undefined> {
	return readFile(path.join(folder, POSITION_FILE), 'utf8').catch(() => undefined);
}

/**
 * Records the position up to which the cluster's purges have been applied. After a crash, the folder may contain an earlier
 * position, so that some purges are applied again. Rejects if the folder is not available.
 */
export async function writePurgePosition(folder: string, position: string): Promise<void> {
	const file = path.join(folder, POSITION_FILE);
	await writeFile(`${file}.new`, position, { mode: 0o600 });
	await rename(`${file}.new`, file);
}

/** The folder of a disk tier: the seed of its hashes, and the lock that only one process can hold. */
import { randomInt } from 'node:crypto';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
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
	// The seed was not written completely, so nothing can have been stored with it.
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

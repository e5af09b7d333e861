/** The plan of an import, written in advance. An interrupted import is rolled back according to its plan. */
import { constants } from 'node:fs';
import { lstat, open, readdir, readFile, rename, rm, unlink } from 'node:fs/promises';
import path from 'node:path';

/** The name prefix of the temporary folder into which an archive is unpacked. */
export const IMPORT_FOLDER_PREFIX = 'import.';
/** The lock for importing and for rolling back an import. */
export const IMPORT_LOCK = 'store_import';
/** Subfolder of the unpacked files, which are named by their keys. */
export const NEW_FILES_FOLDER = 'new';
/** Subfolder of the replaced files, which are named by their index in the plan. */
export const OLD_FILES_FOLDER = 'old';
/** Name of the plan, which lists the keys. It exists while only some of the files may be in place. */
const PLAN_FILE = 'plan.json';

/** Writes the plan: the keys in the order in which their files will be moved into place. */
export async function writePlan(importFolder: string, keys: readonly string[]): Promise<void> {
	const handle = await open(
		path.join(importFolder, PLAN_FILE),
		constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL,
		0o600,
	);
	try {
		await handle.writeFile(JSON.stringify(keys));
		await handle.sync();
	} finally {
		await handle.close();
	}
}

/** Deletes the plan. Called when all files are in place. */
export async function deletePlan(importFolder: string): Promise<void> {
	await unlink(path.join(importFolder, PLAN_FILE));
}

/** Reports whether a plan exists, that is, whether only some of the files may be in place. */
export async function hasPlan(importFolder: string): Promise<boolean> {
	return fileExists(path.join(importFolder, PLAN_FILE));
}

/** Reports whether an import is in progress or was interrupted. */
export async function hasUnfinishedImport(folder: string): Promise<boolean> {
	const fileNames = await readdir(folder).catch(() => []);
	return fileNames.some(name => name.startsWith(IMPORT_FOLDER_PREFIX));
}

/** Rolls back every interrupted import. The caller must hold {@link IMPORT_LOCK}. Rejects with system errors. */
export async function rollBackImports(folder: string): Promise<void> {
	for (const name of await readdir(folder).catch(() => [])) {
		if (!name.startsWith(IMPORT_FOLDER_PREFIX)) continue;
		const importFolder = path.join(folder, name);
		const keys = await readPlan(importFolder);
		for (let at = keys.length - 1; at >= 0; at--) await rollBackFile(folder, importFolder, keys[at]!, at);
		// The plan is deleted first. If only the unpacked files were gone, the next rollback would mistake old files for new ones.
		await rm(path.join(importFolder, PLAN_FILE), { force: true });
		await rm(importFolder, { recursive: true, force: true });
	}
}

/** Rolls back one file. Moves the new file back to where it was unpacked, so that an interrupted rollback can be repeated. */
async function rollBackFile(folder: string, importFolder: string, key: string, index: number): Promise<void> {
	const target = path.join(folder, ...key.split('/'));
	const unpackedFile = path.join(importFolder, NEW_FILES_FOLDER, ...key.split('/'));
	const replacedFile = path.join(importFolder, OLD_FILES_FOLDER, String(index));
	if (!(await fileExists(unpackedFile)) && (await fileExists(target))) await rename(target, unpackedFile);
	if (await fileExists(replacedFile)) await rename(replacedFile, target);
}

/** Reads the plan. A missing or incomplete plan is empty, because no file is moved before the plan is complete. */
async function readPlan(importFolder: string): Promise<readonly string[]> {
	try {
		return JSON.parse(await readFile(path.join(importFolder, PLAN_FILE), 'utf8')) as string[];
	} catch (error) {
		if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return [];
		throw error;
	}
}

async function fileExists(file: string): Promise<boolean> {
	return lstat(file).then(
		stats => !stats.isDirectory(),
		() => false,
	);
}

/** What an import notes before it changes the store, so that one that was cut short can be taken back as a whole. */
import { constants } from 'node:fs';
import { lstat, open, readdir, readFile, rename, rm, unlink } from 'node:fs/promises';
import path from 'node:path';

/** How the folder begins in which an archive is unpacked. */
export const ASIDE = 'import.';
/** The lock under which the store is imported into, or an import taken back. */
export const IMPORT_LOCK = 'store_import';
/** In that folder: what is restored, by its key. */
export const RESTORED = 'new';
/** What it replaces, by its number in the plan. */
export const REPLACED = 'old';
/** The keys, while neither all nor none of them are in place. */
const PLAN = 'plan.json';

/** Notes that the keys are about to be put in place, in this order. */
export async function notePlan(aside: string, keys: readonly string[]): Promise<void> {
	const handle = await open(path.join(aside, PLAN), constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
	try {
		await handle.writeFile(JSON.stringify(keys));
		await handle.sync();
	} finally {
		await handle.close();
	}
}

/** Notes that all of them are in place, or none. */
export async function forgetPlan(aside: string): Promise<void> {
	await unlink(path.join(aside, PLAN));
}

/** Whether some of the keys may be in place and others not. */
export async function hasPlan(aside: string): Promise<boolean> {
	return exists(path.join(aside, PLAN));
}

/** Whether a process has left an import unfinished, or one is under way. */
export async function hasUnfinished(folder: string): Promise<boolean> {
	const names = await readdir(folder).catch(() => []);
	return names.some(name => name.startsWith(ASIDE));
}

/** Takes back every import that was cut short; the caller holds {@link IMPORT_LOCK}. Rejects with the system's errors. */
export async function undoUnfinished(folder: string): Promise<void> {
	for (const name of await readdir(folder).catch(() => [])) {
		if (!name.startsWith(ASIDE)) continue;
		const aside = path.join(folder, name);
		const keys = await readPlan(aside);
		for (let at = keys.length - 1; at >= 0; at--) await undo(folder, aside, keys[at]!, at);
		// First, for without what is beside it the plan says something else.
		await rm(path.join(aside, PLAN), { force: true });
		await rm(aside, { recursive: true, force: true });
	}
}

/** What is in place goes back to where it was unpacked, so that a taking back that is cut short itself can begin anew. */
async function undo(folder: string, aside: string, key: string, at: number): Promise<void> {
	const target = path.join(folder, ...key.split('/'));
	const restored = path.join(aside, RESTORED, ...key.split('/'));
	const replaced = path.join(aside, REPLACED, String(at));
	if (!(await exists(restored)) && (await exists(target))) await rename(target, restored);
	if (await exists(replaced)) await rename(replaced, target);
}

/** Empty when nothing has been put in place: a plan is whole before that begins. */
async function readPlan(aside: string): Promise<readonly string[]> {
	try {
		return JSON.parse(await readFile(path.join(aside, PLAN), 'utf8')) as string[];
	} catch (error) {
		if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return [];
		throw error;
	}
}

async function exists(file: string): Promise<boolean> {
	return lstat(file).then(
		found => !found.isDirectory(),
		() => false,
	);
}

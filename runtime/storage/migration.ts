/** Copies all values of one store to another, for example from a folder to Redis. */
import { ArchiveError } from './archive-error.ts';
import type { Store, StoreKey } from './store.ts';

/** Maximum number of keys named in a message. */
const MAX_NAMED_KEYS = 5;

/** Numbers of values by the result of copying them. */
export interface MigrationTotals {
	readonly copied: number;
	/** Values that the target store already had. */
	readonly same: number;
}

/**
 * Copies every value and reads it back. The source is unchanged. Values that differ in the target are replaced only if `replace`
 * is true; otherwise nothing is written and the promise rejects with ArchiveError. Rejects with StoreError if a store fails; the
 * migration can then be repeated.
 */
export async function migrateStore(source: Store, target: Store, replace: boolean): Promise<MigrationTotals> {
	await source.recover?.();
	const keys = await source.list('');
	if (keys.length === 0)
		throw new ArchiveError(`The store (${source.description}) is empty; there is nothing to migrate.`);
	const missingKeys: StoreKey[] = [];
	const differentKeys: StoreKey[] = [];
	let sameCount = 0;
	for (const key of keys) {
		const [value, existingValue] = [await source.read(key), await target.read(key)];
		if (!value) continue;
		if (!existingValue) missingKeys.push(key);
		else if (existingValue.equals(value)) sameCount++;
		else differentKeys.push(key);
	}
	if (differentKeys.length > 0 && !replace) {
		const namedKeys = differentKeys.slice(0, MAX_NAMED_KEYS).map(key => `\`${key}\``);
		const moreText = differentKeys.length > MAX_NAMED_KEYS ? ` and ${differentKeys.length - MAX_NAMED_KEYS} more` : '';
		throw new ArchiveError(
			`The store (${target.description}) has other values at ${namedKeys.join(', ')}${moreText}. Nothing was written; to replace them, add --replace.`,
		);
	}
	let copiedCount = 0;
	for (const key of [...missingKeys, ...differentKeys]) {
		const value = await source.read(key);
		// A running server has removed the value since the keys were listed.
		if (!value) continue;
		await target.write(key, value);
		const readBack = await target.read(key);
		if (!readBack?.equals(value)) {
			throw new ArchiveError(`\`${key}\` was written to the store (${target.description}), but does not read back.`);
		}
		copiedCount++;
	}
	return { copied: copiedCount, same: sameCount };
}

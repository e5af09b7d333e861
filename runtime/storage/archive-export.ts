/** Exports the store as a tar archive, with one file of mode 600 per value. */
import { Header, Pax } from 'tar';
import { ArchiveError } from './archive-error.ts';
import type { Store } from './store.ts';

const BLOCK_BYTES = 512;

export interface ExportTotals {
	readonly values: number;
	/** Total size of the values in bytes. */
	readonly bytes: number;
}

/**
 * Writes every value, in the order of the keys. `write` resolves when more data may be written. Rejects with {@link ArchiveError}
 * if the store is empty, or with StoreError.
 */
export async function exportStore(store: Store, write: (bytes: Uint8Array) => Promise<void>): Promise<ExportTotals> {
	await store.recover?.();
	let valueCount = 0;
	let totalBytes = 0;
	for (const key of await store.list('')) {
		const value = await store.read(key);
		// A running server has removed the value since the keys were listed.
		if (!value) continue;
		const stat = await store.stat(key);
		await write(encodeHeader(key, value.length, new Date(stat?.modified ?? Date.now())));
		await write(value);
		const padding = (BLOCK_BYTES - (value.length % BLOCK_BYTES)) % BLOCK_BYTES;
		if (padding > 0) await write(Buffer.alloc(padding));
		valueCount++;
		totalBytes += value.length;
	}
	if (valueCount === 0)
		throw new ArchiveError(`The store (${store.description}) is empty; there is nothing to export.`);
	await write(Buffer.alloc(2 * BLOCK_BYTES));
	return { values: valueCount, bytes: totalBytes };
}

function encodeHeader(path: string, size: number, modified: Date): Buffer {
	// Fractions of a second would need an extended header for every value.
	const mtime = new Date(Math.floor(modified.getTime() / 1000) * 1000);
	const headerData = { path, size, mode: 0o600, mtime, type: 'File', uid: 0, gid: 0, uname: '', gname: '' } as const;
	const block = Buffer.alloc(BLOCK_BYTES);
	const needsExtendedHeader = new Header(headerData).encode(block, 0);
	return needsExtendedHeader ? Buffer.concat([new Pax({ path, size, mode: 0o600, mtime }).encode(), block]) : block;
}

/** The folders of files that the bench serves. */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { temporaryFolder } from '../../harness.ts';

/** Creates a folder readable by every server: 10 KB and 1 MB of letters, 10 KB of JSON. */
export function fileTree(): string {
	const folder = temporaryFolder();
	// When started by root, some servers read files as another user.
	chmodSync(folder, 0o755);
	writeFileSync(path.join(folder, '10k.txt'), Buffer.alloc(10_240, 'x'));
	writeFileSync(path.join(folder, '1m.txt'), Buffer.alloc(1_048_576, 'x'));
	writeFileSync(path.join(folder, '10k.json'), JSON.stringify(entries()));
	return folder;
}

/** Number of folders in {@link createManyFiles}. */
export const FOLDER_COUNT = 100;
/** Number of files in each folder. */
export const FILES_PER_FOLDER = 1000;

/** Creates 100,000 files of 4 KB: `/0/0.txt` to `/99/999.txt`. */
export function createManyFiles(): string {
	const made = temporaryFolder();
	chmodSync(made, 0o755);
	const bytes = Buffer.alloc(4096, 'x');
	for (let folder = 0; folder < FOLDER_COUNT; folder++) {
		mkdirSync(path.join(made, String(folder)));
		for (let file = 0; file < FILES_PER_FOLDER; file++)
			writeFileSync(path.join(made, String(folder), `${file}.txt`), bytes);
	}
	return made;
}

/** Returns about 10 KB of typical API output: keys repeat, values do not. */
function entries(): object[] {
	let state = 1;
	const next = (below: number): number => {
		state = (state * 48_271) % 2_147_483_647;
		return state % below;
	};
	return Array.from({ length: 92 }, (_, id) => ({
		id,
		name: `user-${next(100_000).toString(36)}`,
		email: `${next(1e9).toString(36)}@example.com`,
		active: next(2) === 1,
		score: next(10_000) / 100,
		tags: ['alpha', 'beta', 'gamma'].slice(next(3)),
	}));
}

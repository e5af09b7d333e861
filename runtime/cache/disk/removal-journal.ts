/**
 * A journal of removals of cached responses that cannot be recorded in the segments, because another process uses the folder,
 * because it is being closed, or because nothing can be appended. The next process that opens the folder applies the journal.
 * Each process has its own file, so that no lock is needed.
 */
import { randomUUID } from 'node:crypto';
import { type FileHandle, open, readdir, readFile, unlink } from 'node:fs/promises';
import path from 'node:path';
import type { PurgeSelection } from '../purging.ts';
import { syncFolder } from './segment-files.ts';
import { writeFully } from './write-fully.ts';

/** The responses that a line of the journal removes: those selected by a purge, those of a URL, those of a key, or all. */
export type RecordedRemoval =
	| { readonly purge: PurgeSelection }
	| { readonly url: readonly [host: string, path: string, query: string | null] }
	/** The two halves of a key's hash. */
	| { readonly key: readonly [a: number, b: number] }
	| { readonly everything: true };

/** Maximum size of one process's journal in bytes. When it is full, all responses are removed. */
const MAX_JOURNAL_BYTES = 1024 * 1024;

const FILE_NAME_PATTERN = /^forgotten-[0-9a-f-]{36}\.jsonl$/;

/** The journal of one process. */
export class RemovalJournal {
	readonly #folder: string;
	#file: Promise<FileHandle> | undefined;
	#writtenBytes = 0;
	/** True if the file's entry in the folder survives a crash of the machine. */
	#isEntryDurable = false;
	/** True if the journal removes everything, so that nothing needs to be added. */
	#isFull = false;
	#lastAppend: Promise<unknown> = Promise.resolve();

	constructor(folder: string) {
		this.#folder = folder;
	}

	/** Appends a removal; with `isDurable`, it survives a crash of the machine. Rejects if it cannot be written. */
	addRemoval(removal: RecordedRemoval, isDurable: boolean): Promise<void> {
		const appending = this.#lastAppend.then(() => this.#appendRemoval(removal, isDurable));
		this.#lastAppend = appending.catch(() => {});
		return appending;
	}

	/**
	 * Returns the removals recorded so far by all processes, and their files. A line that cannot be parsed is treated as the
	 * removal of every response.
	 */
	async read(): Promise<{ readonly removals: readonly RecordedRemoval[]; readonly files: readonly string[] }> {
		const files = (await readdir(this.#folder))
			.filter(name => FILE_NAME_PATTERN.test(name))
			.map(name => path.join(this.#folder, name));
		const removals: RecordedRemoval[] = [];
		for (const file of files) {
			try {
				for (const line of (await readFile(file, 'utf8')).split('\n')) {
					if (line !== '') removals.push(JSON.parse(line) as RecordedRemoval);
				}
			} catch {
				removals.push({ everything: true });
			}
		}
		return { removals, files };
	}

	/** Deletes journal files whose removals have been applied. */
	async remove(files: readonly string[]): Promise<void> {
		await this.close();
		for (const file of files) await unlink(file).catch(() => {});
	}

	async close(): Promise<void> {
		await this.#lastAppend;
		const file = this.#file;
		this.#startNewFile();
		await file?.then(handle => handle.close()).catch(() => {});
	}

	async #appendRemoval(removal: RecordedRemoval, isDurable: boolean): Promise<void> {
		if (this.#isFull) return;
		const isLast = this.#writtenBytes > MAX_JOURNAL_BYTES;
		// The entry begins with a newline, so that an incomplete line before it cannot corrupt it.
		const line = Buffer.from(`\n${JSON.stringify(isLast ? { everything: true } : removal)}\n`);
		this.#file ??= open(path.join(this.#folder, `forgotten-${randomUUID()}.jsonl`), 'ax', 0o600);
		try {
			const file = await this.#file;
			await writeFully(file, line, null);
			this.#writtenBytes += line.byteLength;
			if (isDurable || isLast) {
				await file.datasync();
				if (!this.#isEntryDurable) await syncFolder(this.#folder);
				this.#isEntryDurable = true;
			}
			this.#isFull = isLast;
		} catch (error) {
			const brokenFile = this.#file;
			this.#startNewFile();
			void brokenFile.then(handle => handle.close()).catch(() => {});
			throw error;
		}
	}

	/** Makes the next removal start a new journal file. */
	#startNewFile(): void {
		this.#file = undefined;
		this.#writtenBytes = 0;
		this.#isEntryDurable = false;
		this.#isFull = false;
	}
}

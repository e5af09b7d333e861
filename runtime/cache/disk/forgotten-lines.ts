/**
 * What is taken away while the segments of a folder cannot say so: because another process has the folder, because it is
 * being closed, or because nothing more can be appended to them. It stands in a file beside them, which whoever opens the
 * folder next obeys. Needs no lock: each process has a file of its own.
 */
import { randomUUID } from 'node:crypto';
import { type FileHandle, open, readdir, readFile, unlink } from 'node:fs/promises';
import path from 'node:path';
import type { PurgeSelection } from '../purging.ts';
import { syncFolder } from './segment-files.ts';

/** One thing that is taken away. */
export type Forgotten =
	| { readonly purge: PurgeSelection }
	| { readonly url: readonly [host: string, path: string, query: string | null] }
	/** Hash of a key. */
	| { readonly key: readonly [a: number, b: number] }
	| { readonly everything: true };

/** Bytes of lines of one process; with more of them everything goes. */
const MOST_BYTES = 1024 * 1024;

const NAME = /^forgotten-[0-9a-f-]{36}\.jsonl$/;

/** The lines of one process. */
export class ForgottenLines {
	readonly #folder: string;
	#file: Promise<FileHandle> | undefined;
	#bytes = 0;
	/** The folder itself has the file, even after a crash of the machine. */
	#isNamed = false;
	/** Everything goes already: nothing is to be added. */
	#isFull = false;
	#queue: Promise<unknown> = Promise.resolve();

	constructor(folder: string) {
		this.#folder = folder;
	}

	/** Writes one down; with `sync` it outlives a crash of the machine. Rejects when it cannot be written. */
	add(forgotten: Forgotten, sync: boolean): Promise<void> {
		const added = this.#queue.then(() => this.#append(forgotten, sync));
		this.#queue = added.catch(() => {});
		return added;
	}

	/** What every process has written down up to now, and in which files; what cannot be read is everything. */
	async read(): Promise<{ readonly forgotten: readonly Forgotten[]; readonly files: readonly string[] }> {
		const files = (await readdir(this.#folder))
			.filter(name => NAME.test(name))
			.map(name => path.join(this.#folder, name));
		const forgotten: Forgotten[] = [];
		for (const file of files) {
			try {
				for (const line of (await readFile(file, 'utf8')).split('\n')) {
					if (line !== '') forgotten.push(JSON.parse(line) as Forgotten);
				}
			} catch {
				forgotten.push({ everything: true });
			}
		}
		return { forgotten, files };
	}

	/** Takes files away that were obeyed. */
	async remove(files: readonly string[]): Promise<void> {
		await this.close();
		for (const file of files) await unlink(file).catch(() => {});
	}

	async close(): Promise<void> {
		await this.#queue;
		const file = this.#file;
		this.#begin();
		await file?.then(one => one.close()).catch(() => {});
	}

	async #append(forgotten: Forgotten, sync: boolean): Promise<void> {
		if (this.#isFull) return;
		const isLast = this.#bytes > MOST_BYTES;
		// What stands before it in part must not take it along.
		const line = Buffer.from(`\n${JSON.stringify(isLast ? { everything: true } : forgotten)}\n`);
		this.#file ??= open(path.join(this.#folder, `forgotten-${randomUUID()}.jsonl`), 'ax', 0o600);
		try {
			const file = await this.#file;
			const { bytesWritten } = await file.write(line);
			if (bytesWritten !== line.byteLength)
				throw new Error(`${bytesWritten} of ${line.byteLength} bytes were written.`);
			this.#bytes += bytesWritten;
			if (sync || isLast) {
				await file.datasync();
				if (!this.#isNamed) await syncFolder(this.#folder);
				this.#isNamed = true;
			}
			this.#isFull = isLast;
		} catch (error) {
			const broken = this.#file;
			this.#begin();
			void broken.then(one => one.close()).catch(() => {});
			throw error;
		}
	}

	/** The next line begins another file. */
	#begin(): void {
		this.#file = undefined;
		this.#bytes = 0;
		this.#isNamed = false;
		this.#isFull = false;
	}
}

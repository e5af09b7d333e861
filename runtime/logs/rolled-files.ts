/** What becomes of log files that were rolled: their names, their compression, and their end. */
import { createReadStream, createWriteStream, existsSync, lstatSync, readdirSync, unlinkSync } from 'node:fs';
import { chmod, readdir, rename, stat, unlink, utimes } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip, createZstdCompress } from 'node:zlib';
import { type LogRolling, ROLLING_DEFAULTS } from '../../compiler/modules/providers/log-writers/file-output.ts';
import { formatTime, timePattern } from '../../compiler/modules/templates/time-layout.ts';

const SUFFIXES = { none: '', gzip: '.gz', zstd: '.zst' } as const;

/** How names of files that are being compressed end. */
const UNFINISHED = '.unfinished';

/** The rolled files of one log file: `access-2026-11-21T09-30-00.000.log.gz` beside `access.log`. */
export class RolledFiles {
	readonly #file: string;
	readonly #rolling: LogRolling;
	readonly #mode: number;
	/** What names of rolled files fit: other logs of the folder may begin as this one does. */
	readonly #names: RegExp;
	#tidying: Promise<void> | undefined = undefined;
	#again = false;

	/** `mode` is that of the log file: what it becomes must not be read by more. */
	constructor(file: string, rolling: LogRolling, mode: number) {
		this.#file = file;
		this.#rolling = rolling;
		this.#mode = mode;
		const { name, ext } = path.parse(file);
		// Those of before the layout was chosen are looked after too; of one that has been chosen before nothing is known.
		const time = `(?:${timePattern(this.#layout)}|${timePattern(ROLLING_DEFAULTS.time_format)})`;
		this.#names = new RegExp(`^${RegExp.escape(name)}-${time}(?:-[0-9]{1,2})?${RegExp.escape(ext)}(?:\\.gz|\\.zst)?$`);
	}

	get #layout(): string {
		return (this.#rolling.time_format ?? ROLLING_DEFAULTS.time_format).replaceAll('/', '-');
	}

	/** Path for the file as it is now; `attempt` tells apart those of one moment. */
	nameAt(time: number, attempt: number): string {
		const text = formatTime(time, this.#layout, this.#rolling.local_time ? 'Local' : 'UTC').replaceAll('/', '-');
		const { dir, name, ext } = path.parse(this.#file);
		return path.join(dir, `${name}-${text}${attempt === 0 ? '' : `-${attempt}`}${ext}`);
	}

	/** Whether a file that was rolled to this path before has been compressed: its time may be told in days only. */
	wasCompressed(file: string): boolean {
		return existsSync(file + SUFFIXES.gzip) || existsSync(file + SUFFIXES.zstd);
	}

	/** Ends the rolling that a process was killed in: the file has its second name, and still its first. */
	finish(): void {
		const own = lstatSync(this.#file, { throwIfNoEntry: false });
		if (!own?.isFile() || own.nlink < 2) return;
		const dir = path.dirname(this.#file);
		for (const entry of readdirSync(dir)) {
			if (!this.#names.test(entry)) continue;
			const other = lstatSync(path.join(dir, entry), { throwIfNoEntry: false });
			if (other?.ino !== own.ino) continue;
			unlinkSync(this.#file);
			return;
		}
	}

	/** Compresses what is not yet, and removes what is too old or one too many. One run at a time; never rejects. */
	tidy(): Promise<void> {
		if (this.#tidying) this.#again = true;
		this.#tidying ??= this.#run();
		return this.#tidying;
	}

	async #run(): Promise<void> {
		do {
			this.#again = false;
			await this.#once().catch(() => {});
		} while (this.#again);
		this.#tidying = undefined;
	}

	async #once(): Promise<void> {
		const { compression = ROLLING_DEFAULTS.compression, keep = ROLLING_DEFAULTS.keep } = this.#rolling;
		const { keep_for = ROLLING_DEFAULTS.keep_for } = this.#rolling;
		const files = await this.#list();
		const now = Date.now();
		for (const [index, { file, time }] of files.entries()) {
			const surplus = keep > 0 && index >= keep;
			const old = keep_for > 0 && now - time > keep_for;
			// A process was killed between making the compressed one, which is whole, and this.
			const again = compression !== 'none' && files.some(other => other.file === file + SUFFIXES[compression]);
			if (surplus || old || again) await unlink(file).catch(() => {});
			else if (compression !== 'none' && !/\.(?:gz|zst)$/.test(file)) {
				await this.#compress(file, compression).catch(() => {});
			}
		}
	}

	/** Rolled files, the latest first. What a process that was killed has left half done goes. */
	async #list(): Promise<{ file: string; time: number }[]> {
		const dir = path.dirname(this.#file);
		const found: { file: string; time: number }[] = [];
		for (const entry of await readdir(dir)) {
			const isUnfinished = entry.endsWith(UNFINISHED);
			if (!this.#names.test(isUnfinished ? entry.slice(0, -UNFINISHED.length) : entry)) continue;
			const file = path.join(dir, entry);
			if (isUnfinished) {
				await unlink(file).catch(() => {});
				continue;
			}
			const facts = await stat(file).catch(() => undefined);
			if (facts?.isFile()) found.push({ file, time: facts.mtimeMs });
		}
		return found.sort((a, b) => b.time - a.time || (a.file < b.file ? 1 : -1));
	}

	/** Under its own name once it is whole: whoever kills the process loses nothing. */
	async #compress(file: string, compression: 'gzip' | 'zstd'): Promise<void> {
		const target = file + SUFFIXES[compression];
		const unfinished = target + UNFINISHED;
		const { atimeMs, mtimeMs } = await stat(file);
		const compressor = compression === 'gzip' ? createGzip() : createZstdCompress();
		await pipeline(
			createReadStream(file),
			compressor,
			createWriteStream(unfinished, { mode: this.#mode, flush: true }),
		);
		await chmod(unfinished, this.#mode);
		await utimes(unfinished, atimeMs / 1000, mtimeMs / 1000);
		await rename(unfinished, target);
		await unlink(file);
	}
}

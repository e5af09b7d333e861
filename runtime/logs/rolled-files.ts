/** Names, compresses and deletes rolled log files. */
import { createReadStream, createWriteStream, existsSync, lstatSync, readdirSync, unlinkSync } from 'node:fs';
import { chmod, readdir, rename, stat, unlink, utimes } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip, createZstdCompress } from 'node:zlib';
import type { LogRolling } from '../../compiler/document/log-settings.ts';
import { ROLLING_DEFAULTS } from '../../compiler/modules/providers/log-writers/file-output.ts';
import { formatTime, timePattern } from '../../compiler/modules/templates/time-layout.ts';

const COMPRESSION_SUFFIXES = { none: '', gzip: '.gz', zstd: '.zst' } as const;

/** Suffix of compressed files that are not complete yet. */
const UNFINISHED_SUFFIX = '.unfinished';

/** The rolled files of a log file: `access-2026-11-21T09-30-00.000.log.gz` next to `access.log`. */
export class RolledFiles {
	readonly #logFile: string;
	readonly #rolling: LogRolling;
	readonly #mode: number;
	readonly #onCleanedUp: (code: string | undefined) => void;
	/** Matches names of rolled files; other logs in the folder may have the same prefix. */
	readonly #namePattern: RegExp;
	#currentCleanup: Promise<void> | undefined = undefined;
	#needsRerun = false;

	/**
	 * @param mode The mode of the log file. Compressed files must not be readable by more users.
	 * @param onCleanedUp Called after each clean-up, with the system's error code if files could not be compressed or deleted.
	 */
	constructor(
		file: string,
		rolling: LogRolling,
		mode: number,
		onCleanedUp: (code: string | undefined) => void = () => {},
	) {
		this.#logFile = file;
		this.#rolling = rolling;
		this.#mode = mode;
		this.#onCleanedUp = onCleanedUp;
		const { name, ext } = path.parse(file);
		// Also matches the default time format, in which files may have been rolled before. Other formats that were configured before
		// are unknown.
		const time = `(?:${timePattern(this.#timeLayout)}|${timePattern(ROLLING_DEFAULTS.time_format)})`;
		this.#namePattern = new RegExp(
			`^${RegExp.escape(name)}-${time}(?:-[0-9]{1,2})?${RegExp.escape(ext)}(?:\\.gz|\\.zst)?$`,
		);
	}

	get #timeLayout(): string {
		return (this.#rolling.time_format ?? ROLLING_DEFAULTS.time_format).replaceAll('/', '-');
	}

	/** Returns the path to which the file is rolled. `attempt` distinguishes files with the same time. */
	rolledPath(time: number, attempt: number): string {
		const timeText = formatTime(time, this.#timeLayout, this.#rolling.local_time ? 'Local' : 'UTC').replaceAll(
			'/',
			'-',
		);
		const { dir, name, ext } = path.parse(this.#logFile);
		return path.join(dir, `${name}-${timeText}${attempt === 0 ? '' : `-${attempt}`}${ext}`);
	}

	/**
	 * Reports whether an earlier rolled file had this path and has been compressed. Paths that contain only the date can repeat.
	 */
	wasCompressed(file: string): boolean {
		return existsSync(file + COMPRESSION_SUFFIXES.gzip) || existsSync(file + COMPRESSION_SUFFIXES.zstd);
	}

	/** Completes a roll during which a process was killed: the file has its new name, but still has its old name as well. */
	finishRoll(): void {
		const logFile = lstatSync(this.#logFile, { throwIfNoEntry: false });
		if (!logFile?.isFile() || logFile.nlink < 2) return;
		const dir = path.dirname(this.#logFile);
		for (const entryName of readdirSync(dir)) {
			if (!this.#namePattern.test(entryName)) continue;
			const candidate = lstatSync(path.join(dir, entryName), { throwIfNoEntry: false });
			if (candidate?.ino !== logFile.ino) continue;
			unlinkSync(this.#logFile);
			return;
		}
	}

	/** Compresses files, and deletes files that are too old or too many. Only one run is in progress at a time. Never rejects. */
	cleanUp(): Promise<void> {
		if (this.#currentCleanup) this.#needsRerun = true;
		this.#currentCleanup ??= this.#runCleanups();
		return this.#currentCleanup;
	}

	async #runCleanups(): Promise<void> {
		do {
			this.#needsRerun = false;
			this.#onCleanedUp(await this.#cleanUpOnce().catch(codeUnlessGone));
		} while (this.#needsRerun);
		this.#currentCleanup = undefined;
	}

	/** Resolves to the error code of the first file that could not be compressed or deleted. Rejects if the folder cannot be read. */
	async #cleanUpOnce(): Promise<string | undefined> {
		const { compression = ROLLING_DEFAULTS.compression, keep = ROLLING_DEFAULTS.keep } = this.#rolling;
		const { keep_for = ROLLING_DEFAULTS.keep_for } = this.#rolling;
		const files = await this.#listRolledFiles();
		const now = Date.now();
		let firstCode: string | undefined;
		for (const [index, { file, time }] of files.entries()) {
			const isSurplus = keep > 0 && index >= keep;
			const isOld = keep_for > 0 && now - time > keep_for;
			// If both files exist, a process was killed after completing the compressed file and before deleting the original.
			const isDuplicate =
				compression !== 'none' && files.some(otherFile => otherFile.file === file + COMPRESSION_SUFFIXES[compression]);
			let code: string | undefined;
			if (isSurplus || isOld || isDuplicate) code = await unlink(file).then(() => undefined, codeUnlessGone);
			else if (compression !== 'none' && !/\.(?:gz|zst)$/.test(file)) {
				code = await this.#compressFile(file, compression).then(() => undefined, codeUnlessGone);
			}
			firstCode ??= code;
		}
		return firstCode;
	}

	/** Returns rolled files, newest first. Deletes incomplete files of a killed process. */
	async #listRolledFiles(): Promise<{ file: string; time: number }[]> {
		const dir = path.dirname(this.#logFile);
		const rolledFiles: { file: string; time: number }[] = [];
		for (const entryName of await readdir(dir)) {
			const isUnfinished = entryName.endsWith(UNFINISHED_SUFFIX);
			if (!this.#namePattern.test(isUnfinished ? entryName.slice(0, -UNFINISHED_SUFFIX.length) : entryName)) continue;
			const file = path.join(dir, entryName);
			if (isUnfinished) {
				await unlink(file).catch(() => {});
				continue;
			}
			const stats = await stat(file).catch(() => undefined);
			if (stats?.isFile()) rolledFiles.push({ file, time: stats.mtimeMs });
		}
		return rolledFiles.sort((a, b) => b.time - a.time || (a.file < b.file ? 1 : -1));
	}

	/** Compresses a file under a temporary name, so that nothing is lost if the process is killed. */
	async #compressFile(file: string, compression: 'gzip' | 'zstd'): Promise<void> {
		const compressedPath = file + COMPRESSION_SUFFIXES[compression];
		const unfinishedPath = compressedPath + UNFINISHED_SUFFIX;
		const { atimeMs, mtimeMs } = await stat(file);
		const compressor = compression === 'gzip' ? createGzip() : createZstdCompress();
		await pipeline(
			createReadStream(file),
			compressor,
			createWriteStream(unfinishedPath, { mode: this.#mode, flush: true }),
		);
		await chmod(unfinishedPath, this.#mode);
		await utimes(unfinishedPath, atimeMs / 1000, mtimeMs / 1000);
		await rename(unfinishedPath, compressedPath);
		await unlink(file);
	}
}

/** Returns an error's code, or undefined if it says that the file is gone, because another process may clean up, too. */
function codeUnlessGone(error: NodeJS.ErrnoException): string | undefined {
	return error.code === 'ENOENT' ? undefined : (error.code ?? 'EIO');
}

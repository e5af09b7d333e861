/** Reports log files that cannot be rolled, opened again or cleaned up, without flooding the remaining logs. */
import { systemReason } from '../files/system-reason.ts';
import type { LogEntry } from './log-entry.ts';

/**
 * What cannot be done with a log file: renaming it in order to begin a new one, opening its path again after it has been removed or
 * renamed, or compressing and deleting rolled files.
 */
export type FileTask = 'roll' | 'reopen' | 'clean_up';

const MESSAGES: {
	readonly [task in FileTask]: { readonly failed: string; readonly hint: string; readonly works: string };
} = {
	roll: {
		failed: 'a log file cannot be rolled, so it keeps growing',
		hint: "The server's user must be able to write in its folder, and the file system must have hard links.",
		works: 'a log file has been rolled again',
	},
	reopen: {
		failed: 'a log file was removed or renamed, and no new one can be created: entries still go to the old file',
		hint: "Let the server's user write in the folder. Entries in a removed file are lost when the server closes it.",
		works: 'a log file has been created again',
	},
	clean_up: {
		failed: 'rolled log files cannot be compressed or deleted, so they take more and more of the disk',
		hint: "The server's user must be able to write in their folder, and compression needs free space.",
		works: 'rolled log files are compressed and deleted again',
	},
};

/** Milliseconds after which a problem that lasts is reported again. */
const REPEAT_INTERVAL_MS = 3_600_000;

/** Reports the problems of one output: when they begin, every hour while they last, and when they end. */
export class FileProblems {
	readonly #output: string;
	readonly #log: (entry: LogEntry) => void;
	/** When each present problem was last reported, in milliseconds. */
	readonly #reportedAt = new Map<FileTask, number>();

	/** @param output Name of the output in reports. */
	constructor(output: string, log: (entry: LogEntry) => void) {
		this.#output = output;
		this.#log = log;
	}

	/** @param code The system's error code; undefined if the task has succeeded. */
	onResult(task: FileTask, code: string | undefined): void {
		const { failed, hint, works } = MESSAGES[task];
		if (code === undefined) {
			if (this.#reportedAt.delete(task)) this.#report('info', works, {});
			return;
		}
		const now = performance.now();
		const reportedAt = this.#reportedAt.get(task);
		if (reportedAt !== undefined && now - reportedAt < REPEAT_INTERVAL_MS) return;
		this.#reportedAt.set(task, now);
		this.#report('error', failed, { cause: systemReason(code), hint });
	}

	#report(level: 'info' | 'error', message: string, fields: { readonly [name: string]: string }): void {
		this.#log({ level, logger: 'logs', message, fields: { output: this.#output, ...fields } });
	}
}

/** Counts log lines that could not be written, and reports them without flooding the remaining logs. */
import { systemReason } from '../files/system-reason.ts';
import { FileProblems, type FileTask } from './file-problems.ts';
import type { LogEntry } from './log-entry.ts';

/** Whether lines belong to access logs or to the process log. */
export type LineKind = 'access' | 'process';

/** What a writer reports: lost lines, successful writes, and what happens to its file. */
export interface WriterEvents {
	/** Called when lines were lost. `cause` is the system's error code or a short description. */
	onLost(lineCount: number, kind: LineKind, cause: string): void;
	/** Called when a write has succeeded completely. */
	onWritten(): void;
	/** Called when a task on the log file has failed, with the system's error code, or has succeeded, with undefined. */
	onFileTask?(task: FileTask, code: string | undefined): void;
}

/** Ignores the events of writers whose losses are not counted. */
export const IGNORED_WRITER_EVENTS: WriterEvents = { onLost() {}, onWritten() {} };

/** The cause of a loss: the output has not written the previous lines yet. */
export const LOSS_TOO_SLOW = 'it does not keep up';
/** The cause of a loss: the output had been closed. */
export const LOSS_CLOSED = 'it was closed';

/** Milliseconds between two reports about the same output. */
const REPORT_INTERVAL_MS = 60_000;
const NEWLINE_BYTE = 10;

/** Counts and reports the lines that one output has lost. */
export class LogLosses implements WriterEvents {
	/** Lines lost since the start. */
	readonly lostLines: Record<LineKind, number> = { access: 0, process: 0 };
	readonly #output: string;
	readonly #log: (entry: LogEntry) => void;
	readonly #fileProblems: FileProblems;
	readonly #reportIntervalMs: number;
	#lastCause = '';
	#isFailing = false;
	/** Number of lines lost since the last report. */
	#unreportedLineCount = 0;
	/** Number of lines lost since the last report that the output works again; initially, since the start. */
	#lostSinceWorking = 0;
	/** Whether the current failure has been reported. */
	#isReported = false;
	#reportTimer: NodeJS.Timeout | undefined;

	/**
	 * @param output Name of the output in reports.
	 * @param reportIntervalMs Minimum milliseconds between reports. The first loss is reported at once.
	 */
	constructor(output: string, log: (entry: LogEntry) => void, reportIntervalMs: number = REPORT_INTERVAL_MS) {
		this.#output = output;
		this.#log = log;
		this.#fileProblems = new FileProblems(output, log);
		this.#reportIntervalMs = reportIntervalMs;
	}

	onLost(lineCount: number, kind: LineKind, cause: string): void {
		this.lostLines[kind] += lineCount;
		this.reportLosses(lineCount, cause);
	}

	/** Reports lost lines that are counted elsewhere. */
	reportLosses(lineCount: number, cause: string): void {
		if (lineCount === 0) return;
		this.#lastCause = cause;
		this.#unreportedLineCount += lineCount;
		this.#lostSinceWorking += lineCount;
		this.#isFailing = true;
		if (!this.#reportTimer) this.#sendReport();
	}

	onWritten(): void {
		if (!this.#isFailing) return;
		this.#isFailing = false;
		if (!this.#reportTimer) this.#sendReport();
	}

	onFileTask(task: FileTask, code: string | undefined): void {
		this.#fileProblems.onResult(task, code);
	}

	/** Stops reporting, because the output is being closed. */
	close(): void {
		clearTimeout(this.#reportTimer);
		if (this.#unreportedLineCount > 0) this.#sendReport();
		clearTimeout(this.#reportTimer);
	}

	#sendReport(): void {
		this.#reportTimer = undefined;
		const output = this.#output;
		if (this.#unreportedLineCount > 0) {
			const fields = { output, cause: systemReason(this.#lastCause), lost: this.#unreportedLineCount };
			this.#isReported = true;
			this.#unreportedLineCount = 0;
			this.#log({ level: 'error', logger: 'logs', message: 'log entries were lost', fields });
		} else if (!this.#isFailing && this.#isReported) {
			this.#isReported = false;
			this.#log({
				...{ level: 'info', logger: 'logs', message: 'a log output works again' },
				fields: { output, lost: this.#lostSinceWorking },
			});
			this.#lostSinceWorking = 0;
		} else return;
		this.#reportTimer = setTimeout(() => this.#sendReport(), this.#reportIntervalMs).unref();
	}
}

/** Counts the lines in a piece of text, including a last line without a newline. */
export function countLines(bytes: Buffer): number {
	if (bytes.length === 0) return 0;
	let lines = bytes.at(-1) === NEWLINE_BYTE ? 0 : 1;
	for (
		let newlineIndex = bytes.indexOf(NEWLINE_BYTE);
		newlineIndex !== -1;
		newlineIndex = bytes.indexOf(NEWLINE_BYTE, newlineIndex + 1)
	)
		lines++;
	return lines;
}

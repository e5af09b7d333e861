/** Log lines that could not be written: counted, and reported without flooding the log that still works. */
import type { LogEntry } from '../threads/messages.ts';

/** Whose lines: those of access logs, or those of the process log. */
export type LineKind = 'access' | 'process';

/** What a writer tells of its lines. */
export interface WriterEvents {
	/** Lines are lost; `cause` is the system's code, or a few words. */
	lost(lines: number, kind: LineKind, cause: string): void;
	/** Everything of a write has gone out. */
	written(): void;
}

/** For writers whose losses nobody counts. */
export const NO_EVENTS: WriterEvents = { lost() {}, written() {} };

/** Lost because earlier lines are not written yet. */
export const TOO_SLOW = 'it does not keep up';
/** Lost because the output was closed first. */
export const CLOSED = 'it was closed';

/** Milliseconds between two reports on one output. */
const QUIET = 60_000;
const NEWLINE = 10;

/** The losses of one output. */
export class LogLosses implements WriterEvents {
	/** Lines lost since the start. */
	readonly total: Record<LineKind, number> = { access: 0, process: 0 };
	readonly #output: string;
	readonly #log: (entry: LogEntry) => void;
	readonly #quiet: number;
	#cause = '';
	#isFailing = false;
	/** Lines lost since the last report, and since the output last worked. */
	#unreported = 0;
	#lost = 0;
	/** Whether a report says that the output fails. */
	#isReported = false;
	#timer: NodeJS.Timeout | undefined;

	/** `output` names it in reports: at once for the first loss, then every `quiet` milliseconds at most. */
	constructor(output: string, log: (entry: LogEntry) => void, quiet: number = QUIET) {
		this.#output = output;
		this.#log = log;
		this.#quiet = quiet;
	}

	lost(lines: number, kind: LineKind, cause: string): void {
		this.total[kind] += lines;
		this.report(lines, cause);
	}

	/** Reports lines that are counted elsewhere. */
	report(lines: number, cause: string): void {
		if (lines === 0) return;
		this.#cause = cause;
		this.#unreported += lines;
		this.#lost += lines;
		this.#isFailing = true;
		if (!this.#timer) this.#tell();
	}

	written(): void {
		if (!this.#isFailing) return;
		this.#isFailing = false;
		if (!this.#timer) this.#tell();
	}

	/** Ends reports, when the output is closed. */
	close(): void {
		clearTimeout(this.#timer);
		if (this.#unreported > 0) this.#tell();
		clearTimeout(this.#timer);
	}

	#tell(): void {
		this.#timer = undefined;
		const output = this.#output;
		if (this.#unreported > 0) {
			const fields = { output, cause: this.#cause, lost: this.#unreported };
			this.#isReported = true;
			this.#unreported = 0;
			this.#log({ level: 'error', logger: 'logs', message: 'log entries were lost', fields });
		} else if (!this.#isFailing && this.#isReported) {
			this.#isReported = false;
			this.#log({
				...{ level: 'info', logger: 'logs', message: 'a log output works again' },
				fields: { output, lost: this.#lost },
			});
			this.#lost = 0;
		} else return;
		this.#timer = setTimeout(() => this.#tell(), this.#quiet).unref();
	}
}

/** Number of lines in bytes, a last one without its end included. */
export function linesIn(bytes: Buffer): number {
	if (bytes.length === 0) return 0;
	let lines = bytes.at(-1) === NEWLINE ? 0 : 1;
	for (let at = bytes.indexOf(NEWLINE); at !== -1; at = bytes.indexOf(NEWLINE, at + 1)) lines++;
	return lines;
}

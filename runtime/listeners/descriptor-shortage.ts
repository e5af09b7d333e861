/** The log entries about connections for which the process has no file descriptor. */
import { systemReason } from '../files/system-reason.ts';
import type { LogEntry } from '../logs/log-entry.ts';
import { RecurringEvent } from '../logs/recurring-event.ts';

/** How to allow a process more open files. */
export const OPEN_FILES_HINT = 'Raise the limit of open files: LimitNOFILE in the systemd unit, otherwise ulimit -n.';

/** Reports the connections of one thread that could not be accepted or were turned away, each at most once per minute. */
export class DescriptorShortage {
	readonly #log: (entry: LogEntry) => void;
	readonly #failures = new RecurringEvent();
	readonly #refusals = new RecurringEvent();

	constructor(log: (entry: LogEntry) => void) {
		this.#log = log;
	}

	/** Reports that a connection could not be accepted. */
	onAcceptFailure(address: string, { code = 'EIO' }: NodeJS.ErrnoException, now: number): void {
		const failures = this.#failures.count(now);
		if (failures === undefined) return;
		const fields = {
			address,
			cause: systemReason(code),
			failures,
			...(code === 'EMFILE' && { hint: OPEN_FILES_HINT }),
		};
		this.#log({ level: 'error', logger: 'http', message: 'a connection could not be accepted', fields });
	}

	/** Reports that a connection is answered with 503, because the thread has as many connections as it may have. */
	onRefusal(maxConnections: number, now: number): void {
		const refused = this.#refusals.count(now);
		if (refused === undefined) return;
		const fields = { connections_per_thread: maxConnections, refused, hint: OPEN_FILES_HINT };
		this.#log({ level: 'error', logger: 'http', message: 'connections are refused: too many are open', fields });
	}
}

/** Notifies systemd (sd_notify(3)) by running systemd-notify, because Node has no Unix datagram sockets. */
import { spawn } from 'node:child_process';

const NOTIFY_PROGRAM = 'systemd-notify';

/** Milliseconds after which a notification is considered lost. */
const NOTIFY_TIMEOUT_MS = 10_000;

/** Maximum characters of the unit's status line. */
const MAX_STATUS_LENGTH = 300;

/** Sends notifications to the service manager that started this process. */
export class ServiceManager {
	readonly #env: NodeJS.ProcessEnv;
	readonly #onSendFailed: (cause: string) => void;
	readonly #waitForThreads: () => Promise<void>;
	#isAskingThreads = false;
	#lastNotification: Promise<void> = Promise.resolve();
	#watchdogTimer: NodeJS.Timeout | undefined;
	#hasFailed = false;

	/**
	 * @param onFailed Called at most once, when a notification could not be sent.
	 * @param waitForThreads Resolves when every serving thread has responded.
	 */
	constructor(env: NodeJS.ProcessEnv, onFailed: (cause: string) => void, waitForThreads: () => Promise<void>) {
		this.#env = env;
		this.#onSendFailed = onFailed;
		this.#waitForThreads = waitForThreads;
	}

	/** Reports that the server is ready. If the unit has a watchdog, also starts to notify it periodically. */
	notifyReady(): void {
		this.#notify('READY=1');
		const { WATCHDOG_USEC, WATCHDOG_PID } = this.#env;
		const watchdogPeriodMs = Number(WATCHDOG_USEC) / 1000;
		if (!(watchdogPeriodMs > 0) || (WATCHDOG_PID !== undefined && Number(WATCHDOG_PID) !== process.pid)) return;
		// The predecessor's last notification may be half a period old. If each process in a series of handovers first waited for
		// half a period, the watchdog might not be notified in time.
		this.#notify('WATCHDOG=1');
		// Notifies twice per period, as sd_watchdog_enabled(3) recommends. A hung process stops notifying.
		this.#watchdogTimer ??= setInterval(() => void this.#notifyWatchdog(), Math.max(100, watchdogPeriodMs / 2));
		this.#watchdogTimer.unref();
	}

	/**
	 * Notifies the watchdog once all threads have responded. If a thread hangs, the service must be restarted, because its
	 * connections would wait forever.
	 */
	async #notifyWatchdog(): Promise<void> {
		if (this.#isAskingThreads) return;
		this.#isAskingThreads = true;
		await this.#waitForThreads();
		this.#isAskingThreads = false;
		this.#notify('WATCHDOG=1');
	}

	/** Reports this process as the service's main process. Resolves to false if that failed. */
	async becomeMain(status: string): Promise<boolean> {
		this.#notify(`MAINPID=${process.pid}`, 'READY=1', statusAssignment(status));
		await this.#lastNotification;
		return !this.#hasFailed;
	}

	notifyReloading(): void {
		this.#notify('RELOADING=1');
	}

	/** Reports the end of a reload. `status` says how it ended, for `systemctl status`. */
	notifyReloaded(status: string): void {
		this.#notify('READY=1', statusAssignment(status));
	}

	/** Reports the beginning of a stop. The watchdog is still notified, because requests in flight may take time. */
	notifyStopping(): void {
		this.#notify('STOPPING=1');
	}

	/** Stops notifying the watchdog. Resolves when all notifications have been sent or have failed. */
	finish(): Promise<void> {
		clearInterval(this.#watchdogTimer);
		return this.#lastNotification;
	}

	/** Sends one notification after the previous one, because their order matters. */
	#notify(...assignments: string[]): void {
		this.#lastNotification = this.#lastNotification.then(() => this.#send(assignments));
	}

	#send(assignments: readonly string[]): Promise<void> {
		return new Promise(resolve => {
			const child = spawn(NOTIFY_PROGRAM, assignments, {
				env: this.#env,
				stdio: 'ignore',
				timeout: NOTIFY_TIMEOUT_MS,
				killSignal: 'SIGKILL',
			});
			const finish = (cause: string | undefined): void => {
				if (cause !== undefined) this.#reportFailureOnce(cause);
				resolve();
			};
			child.on('error', error => finish(error.message));
			child.on('exit', (status, signal) => finish(failureOf(status, signal)));
		});
	}

	#reportFailureOnce(cause: string): void {
		if (this.#hasFailed) return;
		this.#hasFailed = true;
		this.#onSendFailed(cause);
	}
}

/** Returns why systemd-notify failed; undefined if it did not fail. */
function failureOf(status: number | null, signal: NodeJS.Signals | null): string | undefined {
	// When the unit is stopped, SIGTERM also reaches systemd-notify. This is not a failure, because the service manager knows
	// that the service ends.
	if (status === 0 || signal === 'SIGTERM') return undefined;
	return `${NOTIFY_PROGRAM} exited with ${signal ?? `status ${status}`}`;
}

/** Returns the notification that sets the unit's status line. */
function statusAssignment(text: string): string {
	const line = text.replaceAll(/\s+/g, ' ').trim();
	return `STATUS=${line.length > MAX_STATUS_LENGTH ? `${line.slice(0, MAX_STATUS_LENGTH - 1)}…` : line}`;
}

/** Notifies systemd (sd_notify(3)) by running systemd-notify, because Node has no Unix datagram sockets. */
import { spawn } from 'node:child_process';

const PROGRAM = 'systemd-notify';

/** Milliseconds after which a notification is considered lost. */
const NOTIFY_TIMEOUT = 10_000;

/** Maximum characters of the unit's status line. */
const MAX_STATUS = 300;

/** Notifies the service manager that started this process. */
export class ServiceManager {
	readonly #env: NodeJS.ProcessEnv;
	readonly #failed: (cause: string) => void;
	readonly #alive: () => Promise<void>;
	#asking = false;
	#told: Promise<void> = Promise.resolve();
	#watchdog: NodeJS.Timeout | undefined;
	#hasFailed = false;

	/** @param failed Called once, if a notification could not be sent. @param alive Resolves when every serving thread has responded. */
	constructor(env: NodeJS.ProcessEnv, failed: (cause: string) => void, alive: () => Promise<void>) {
		this.#env = env;
		this.#failed = failed;
		this.#alive = alive;
	}

	/** Reports that the server is ready. From then on, the watchdog is notified if the unit has one. */
	ready(): void {
		this.#tell('READY=1');
		const { WATCHDOG_USEC, WATCHDOG_PID } = this.#env;
		const period = Number(WATCHDOG_USEC) / 1000;
		if (!(period > 0) || (WATCHDOG_PID !== undefined && Number(WATCHDOG_PID) !== process.pid)) return;
		// The predecessor's last sign of life may be half a period old. Without one of its own at once, a series of handovers gave none.
		this.#tell('WATCHDOG=1');
		// Notifies after half the period, as sd_watchdog_enabled(3) recommends. A hung process stops notifying.
		this.#watchdog ??= setInterval(() => void this.#tellOfLife(), Math.max(100, period / 2));
		this.#watchdog.unref();
	}

	/** Notifies the watchdog if all threads respond: a hung thread is as bad as a hung process, because its connections would wait forever. */
	async #tellOfLife(): Promise<void> {
		if (this.#asking) return;
		this.#asking = true;
		await this.#alive();
		this.#asking = false;
		this.#tell('WATCHDOG=1');
	}

	/** Reports this process as the service's main process. Resolves to false if that failed. */
	async isMain(status: string): Promise<boolean> {
		this.#tell(`MAINPID=${process.pid}`, 'READY=1', statusOf(status));
		await this.#told;
		return !this.#hasFailed;
	}

	reloading(): void {
		this.#tell('RELOADING=1');
	}

	/** Reports the end of a reload. `status` says how it ended, for `systemctl status`. */
	reloaded(status: string): void {
		this.#tell('READY=1', statusOf(status));
	}

	/** Reports the beginning of a stop. The watchdog is still notified, because requests in flight may take time. */
	stopping(): void {
		this.#tell('STOPPING=1');
	}

	/** Resolves when all notifications have been sent or have failed. The watchdog is no longer notified. */
	settled(): Promise<void> {
		clearInterval(this.#watchdog);
		return this.#told;
	}

	/** Sends notifications one after the other, because their order matters. */
	#tell(...state: string[]): void {
		this.#told = this.#told.then(() => this.#send(state));
	}

	#send(state: readonly string[]): Promise<void> {
		return new Promise(resolve => {
			const child = spawn(PROGRAM, state, {
				env: this.#env,
				stdio: 'ignore',
				timeout: NOTIFY_TIMEOUT,
				killSignal: 'SIGKILL',
			});
			const end = (cause: string | undefined): void => {
				if (cause !== undefined) this.#fail(cause);
				resolve();
			};
			child.on('error', error => end(error.message));
			child.on('exit', (status, signal) => end(failureOf(status, signal)));
		});
	}

	#fail(cause: string): void {
		if (this.#hasFailed) return;
		this.#hasFailed = true;
		this.#failed(cause);
	}
}

/** Returns why a notification failed; undefined if it did not. */
function failureOf(status: number | null, signal: NodeJS.Signals | null): string | undefined {
	// When the unit is stopped, SIGTERM reaches its children, too. The service manager then knows already.
	if (status === 0 || signal === 'SIGTERM') return undefined;
	return `${PROGRAM} exited with ${signal ?? `status ${status}`}`;
}

/** Returns the assignment of the unit's status line. */
function statusOf(text: string): string {
	const line = text.replaceAll(/\s+/g, ' ').trim();
	return `STATUS=${line.length > MAX_STATUS ? `${line.slice(0, MAX_STATUS - 1)}…` : line}`;
}

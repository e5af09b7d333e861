/** Notifies systemd (sd_notify(3)) by running systemd-notify, because Node has no Unix datagram sockets. */
import { spawn } from 'node:child_process';

const PROGRAM = 'systemd-notify';

/** Milliseconds after which a notification is considered lost. */
const NOTIFY_TIMEOUT = 10_000;

/** Notifies the service manager that started this process. */
export class ServiceManager {
	readonly #env: NodeJS.ProcessEnv;
	readonly #failed: (cause: string) => void;
	readonly #alive: () => Promise<void>;
	#asking = false;
	#told: Promise<void> = Promise.resolve();
	#watchdog: NodeJS.Timeout | undefined;
	#hasFailed = false;

	/** `failed` is called once, if a notification could not be sent. `alive` resolves when every serving thread has responded. */
	constructor(env: NodeJS.ProcessEnv, failed: (cause: string) => void, alive: () => Promise<void>) {
		this.#env = env;
		this.#failed = failed;
		this.#alive = alive;
	}

	/** The server is ready. From now on the watchdog is notified, if the unit has one. */
	ready(): void {
		this.#tell('READY=1');
		const { WATCHDOG_USEC, WATCHDOG_PID } = this.#env;
		const period = Number(WATCHDOG_USEC) / 1000;
		if (!(period > 0) || (WATCHDOG_PID !== undefined && Number(WATCHDOG_PID) !== process.pid)) return;
		// Half the period, as sd_watchdog_enabled(3) recommends. A process that hangs does not get here.
		this.#watchdog ??= setInterval(() => void this.#tellOfLife(), Math.max(100, period / 2));
		this.#watchdog.unref();
	}

	/** A hung thread is as bad as a hung process: its connections would wait forever. */
	async #tellOfLife(): Promise<void> {
		if (this.#asking) return;
		this.#asking = true;
		await this.#alive();
		this.#asking = false;
		this.#tell('WATCHDOG=1');
	}

	/** Tells which process is the service's: this one, which serves. Resolves to false if that could not be told. */
	async isMain(): Promise<boolean> {
		this.#tell(`MAINPID=${process.pid}`, 'READY=1');
		await this.#told;
		return !this.#hasFailed;
	}

	reloading(): void {
		this.#tell('RELOADING=1');
	}

	/** The reload has ended, successfully or not. */
	reloaded(): void {
		this.#tell('READY=1');
	}

	/** A stop has begun. The watchdog is still notified: requests in flight may take their time. */
	stopping(): void {
		this.#tell('STOPPING=1');
	}

	/** Resolves when all notifications have been sent or have failed; afterwards nothing is sent automatically. */
	settled(): Promise<void> {
		clearInterval(this.#watchdog);
		return this.#told;
	}

	/** Sends notifications one after another, because their order matters. */
	#tell(...state: string[]): void {
		this.#told = this.#told.then(() => this.#send(state));
	}

	#send(state: readonly string[]): Promise<void> {
		return new Promise(resolve => {
			const child = spawn(PROGRAM, state, { env: this.#env, stdio: 'ignore', timeout: NOTIFY_TIMEOUT });
			const end = (cause: string | undefined): void => {
				if (cause !== undefined && !this.#hasFailed) {
					this.#hasFailed = true;
					this.#failed(cause);
				}
				resolve();
			};
			child.on('error', error => end(error.message));
			child.on('exit', (status, signal) =>
				end(status === 0 ? undefined : `${PROGRAM} exited with ${signal ?? `status ${status}`}`),
			);
		});
	}
}

/** What systemd is told of the server's life (sd_notify(3)), by its own program: Node cannot send to its kind of socket. */
import { spawn } from 'node:child_process';

const PROGRAM = 'systemd-notify';

/** Milliseconds after which a message counts as lost. */
const PATIENCE = 10_000;

/** Tells the service manager that started this process. */
export class ServiceManager {
	readonly #env: NodeJS.ProcessEnv;
	readonly #failed: (cause: string) => void;
	readonly #alive: () => Promise<void>;
	#asking = false;
	#told: Promise<void> = Promise.resolve();
	#watchdog: NodeJS.Timeout | undefined;
	#hasFailed = false;

	/** `failed` is called once, when a message could not be sent. `alive` resolves when all that serves is seen to do so. */
	constructor(env: NodeJS.ProcessEnv, failed: (cause: string) => void, alive: () => Promise<void>) {
		this.#env = env;
		this.#failed = failed;
		this.#alive = alive;
	}

	/** The server serves. The watchdog is answered from now on, if the unit has one. */
	ready(): void {
		this.#tell('READY=1');
		const { WATCHDOG_USEC, WATCHDOG_PID } = this.#env;
		const period = Number(WATCHDOG_USEC) / 1000;
		if (!(period > 0) || (WATCHDOG_PID !== undefined && Number(WATCHDOG_PID) !== process.pid)) return;
		// Half of the time, as sd_watchdog_enabled(3) wants it. A process that hangs does not get here.
		this.#watchdog ??= setInterval(() => void this.#tellOfLife(), Math.max(100, period / 2));
		this.#watchdog.unref();
	}

	/** A thread that hangs is as bad as a process that does: its connections wait for ever. */
	async #tellOfLife(): Promise<void> {
		if (this.#asking) return;
		this.#asking = true;
		await this.#alive();
		this.#asking = false;
		this.#tell('WATCHDOG=1');
	}

	/** A reload has begun. */
	reloading(): void {
		this.#tell('RELOADING=1');
	}

	/** It is over, whatever came of it. */
	reloaded(): void {
		this.#tell('READY=1');
	}

	/** A stop has begun. The watchdog is answered on: requests may take their time. */
	stopping(): void {
		this.#tell('STOPPING=1');
	}

	/** Resolves when everything so far has been said, or could not be; nothing more is said by itself. */
	settled(): Promise<void> {
		clearInterval(this.#watchdog);
		return this.#told;
	}

	/** One after another: their order means something. */
	#tell(state: string): void {
		this.#told = this.#told.then(() => this.#send(state));
	}

	#send(state: string): Promise<void> {
		return new Promise(resolve => {
			const child = spawn(PROGRAM, [state], { env: this.#env, stdio: 'ignore', timeout: PATIENCE });
			const end = (cause: string | undefined): void => {
				if (cause !== undefined && !this.#hasFailed) {
					this.#hasFailed = true;
					this.#failed(cause);
				}
				resolve();
			};
			child.on('error', error => end(error.message));
			child.on('exit', (status, signal) =>
				end(status === 0 ? undefined : `${PROGRAM} ended with ${signal ?? `status ${status}`}`),
			);
		});
	}
}

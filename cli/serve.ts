/** The life of a server process: start, signals, reloads from the file, stop, exit status. */
import { availableParallelism } from 'node:os';
import { AdminBindError } from '../admin/bind.ts';
import { type AdminLog, type AdminServer, startAdmin } from '../admin/server.ts';
import type { ConfigInput } from '../compiler/dialects/dialect.ts';
import { takePassedSockets } from '../runtime/listeners/passed-sockets.ts';
import { exitWithoutThreads } from '../runtime/main/exit-without-threads.ts';
import { type Runtime, StartError, startRuntime } from '../runtime/main/runtime.ts';
import { Autosave, stateFolder } from './autosave.ts';
import { CommandFailure, EXIT } from './command.ts';
import { type ConfigurationSource, readConfiguration } from './configuration.ts';
import { sentenceOf } from './failure-report.ts';
import { refusal } from './refusal.ts';
import type { ServiceManager } from './service-manager.ts';
import { printError } from './terminal.ts';
import { version } from './version.ts';
import type { ConfigurationWatch } from './watch.ts';

/** What is served, and how. */
export interface ServeOptions {
	/** The configuration; undefined starts without sites. */
	readonly input: ConfigInput | undefined;
	/** Turns the Admin API on at its default address even if the configuration does not mention it. */
	readonly adminAnyway?: boolean;
	/** The file to read again on SIGUSR1; undefined if there is none. */
	readonly source?: Extract<ConfigurationSource, { kind: 'file' }> | undefined;
	/** The configuration was made from flags: mistakes are reported without places in a document that nobody wrote. */
	readonly madeOfFlags?: boolean;
	readonly verbose: boolean;
	/** Reload when a configuration file changes. */
	readonly watch?: boolean;
	/** Called when every listener is bound, including the Admin API's. */
	readonly onReady?: (runtime: Runtime) => void;
}

/** Size of libuv's thread pool, which all threads share for files and name lookups; it is fixed at its first use. */
const POOL_THREADS = Math.max(4, Math.min(64, availableParallelism() * 4));

/** Entries of the Admin API that wait for the end of the start. */
const MOST_ADMIN_ENTRIES = 1000;

/**
 * Serves until a signal or the Admin API ends it, then ends the process. @throws {@link CommandFailure} if it does not start
 */
export async function serve(options: ServeOptions): Promise<never> {
	process.env.UV_THREADPOOL_SIZE ??= String(POOL_THREADS);
	return new ServerProcess(options).run();
}

class ServerProcess {
	readonly #options: ServeOptions;
	readonly #ended: Promise<number>;
	#end: (status: number) => void = () => {};
	#runtime: Runtime | undefined;
	#admin: AdminServer | undefined;
	#autosave: Autosave | undefined;
	#watch: ConfigurationWatch | undefined;
	#manager: ServiceManager | undefined;
	/** Set once the configuration is served. */
	#isServing = false;
	readonly #adminEntries: Parameters<AdminLog>[] = [];
	#isReady = false;
	#stopping = false;
	/** Cause of a reload to be done as soon as the start is over. */
	#reloadWanted: string | undefined;
	#reloading: Promise<void> = Promise.resolve();

	constructor(options: ServeOptions) {
		this.#options = options;
		this.#ended = new Promise(resolve => {
			this.#end = resolve;
		});
	}

	async run(): Promise<never> {
		process.on('SIGINT', this.#interrupt);
		process.on('SIGTERM', this.#interrupt);
		process.on('SIGQUIT', this.#quit);
		process.on('SIGUSR1', this.#reloadFromSignal);
		process.on('SIGHUP', this.#hangUp);
		const { input, source, watch } = this.#options;
		if (watch && source && input) {
			const { ConfigurationWatch } = await import('./watch.ts');
			this.#watch = new ConfigurationWatch(input, () => this.#reloadSoon('a file changed'));
		}
		const started = this.#start();
		// A stop during the start wins; whatever the start still does or fails at no longer matters.
		const failed = (error: unknown) => {
			if (this.#stopping) return this.#ended;
			throw error;
		};
		const status = await Promise.race([this.#ended, started.then(() => this.#ended, failed)]);
		this.#watch?.close();
		// Remaining connections and threads must not keep a stopped server alive.
		if ((await this.#runtime?.threadsEnded) === false) exitWithoutThreads(status);
		process.exit(status);
	}

	async #start(): Promise<void> {
		const { input, verbose } = this.#options;
		const runtime = await startRuntime({
			input,
			verbose,
			passed: takePassedSockets(process.env, process.pid),
			version,
			// It reports that the server is not ready yet; sites are not served if it cannot listen.
			beforeListening: starting => this.#openAdmin(starting),
		}).catch(async error => {
			await this.#admin?.close();
			throw startFailure(error, this.#options);
		});
		process.removeAllListeners('uncaughtException');
		process.on('uncaughtException', this.#crash);
		if (this.#stopping) return;
		this.#isServing = true;
		for (const entry of this.#adminEntries.splice(0)) this.#logAdmin(...entry);
		await this.#tellManager(runtime);
		if (this.#stopping) return;
		this.#options.onReady?.(runtime);
		this.#isReady = true;
		if (this.#reloadWanted) this.#reloadSoon(this.#reloadWanted);
	}

	async #openAdmin(runtime: Runtime): Promise<void> {
		this.#runtime = runtime;
		this.#autosave = new Autosave(stateFolder(process.env), error =>
			runtime.log('error', 'admin', 'the configuration could not be saved', { cause: error.message }),
		);
		this.#admin = await startAdmin(runtime, {
			...(this.#options.adminAnyway ? { settings: {} } : {}),
			log: this.#logAdmin,
			onApplied: async document => {
				if (runtime.settings.persist_config === false) return undefined;
				return (await this.#autosave?.save(document))?.message;
			},
			onStop: () => this.#stop(),
		});
		// A stop during the start had nothing to close yet.
		if (this.#stopping) await this.#admin.close();
	}

	/** Logs entries of the Admin API. The configuration says where the process log goes, so entries wait until it is served. */
	readonly #logAdmin: AdminLog = (level, message, fields) => {
		if (this.#isServing) this.#runtime?.log(level, 'admin', message, fields);
		else if (this.#adminEntries.length < MOST_ADMIN_ENTRIES) this.#adminEntries.push([level, message, fields]);
	};

	async #tellManager(runtime: Runtime): Promise<void> {
		if (!process.env.NOTIFY_SOCKET) return;
		const { ServiceManager } = await import('./service-manager.ts');
		this.#manager = new ServiceManager(
			process.env,
			cause => runtime.log('warn', 'service', 'the service manager could not be told', { cause }),
			() => runtime.answering(),
		);
		this.#manager.ready();
	}

	/** The first signal stops gracefully, the second at once. */
	readonly #interrupt = (): void => {
		if (this.#stopping) this.#quit();
		else this.#stop();
	};

	readonly #quit = (): void => {
		this.#runtime?.kill();
		this.#end(EXIT.forced);
	};

	readonly #hangUp = (): void => {
		// With a file, reload like other servers do; without one, a closing terminal must not end the server.
		if (this.#options.source) this.#reloadSoon('SIGHUP');
		else this.#runtime?.log('info', 'signals', 'SIGHUP is ignored: the configuration did not come from a file');
	};

	readonly #reloadFromSignal = (): void => this.#reloadSoon('SIGUSR1');

	#reloadSoon(cause: string): void {
		if (!this.#isReady) this.#reloadWanted = cause;
		else if (this.#options.source) this.#reload(cause);
		else this.#runtime?.log('warn', 'signals', 'nothing can be reloaded: the configuration did not come from a file');
	}

	readonly #crash = (error: unknown): void => {
		this.#runtime?.log('error', 'main', 'an unexpected failure ends the server', { cause: sentenceOf(error) });
		printError(`error: unexpected internal failure: ${sentenceOf(error)}\n`);
		this.#runtime?.kill();
		this.#end(EXIT.endedInError);
	};

	#stop(): void {
		if (this.#stopping) return;
		this.#stopping = true;
		this.#watch?.close();
		const runtime = this.#runtime;
		if (!runtime || !this.#isServing) {
			runtime?.kill();
			void Promise.resolve(this.#admin?.close()).then(() => this.#end(EXIT.ok));
			return;
		}
		this.#manager?.stopping();
		runtime
			.stop()
			.then(() => this.#admin?.close())
			.then(() => this.#autosave?.settled())
			.then(() => this.#manager?.settled())
			.then(
				() => this.#end(EXIT.ok),
				error => {
					printError(`error: the stop failed: ${sentenceOf(error)}\n`);
					this.#end(EXIT.endedInError);
				},
			);
	}

	/** Reads the file and loads it; loads run one after another. */
	#reload(cause: string): Promise<void> {
		this.#reloading = this.#reloading.then(async () => {
			const { source } = this.#options;
			const runtime = this.#runtime;
			if (!source || !runtime || this.#stopping) return;
			runtime.log('info', 'config', 'reloading', { cause, source: source.name });
			this.#manager?.reloading();
			try {
				const input = await readConfiguration(source);
				this.#watch?.follow(input);
				const outcome = await runtime.load(input);
				// The log has the messages; a terminal also gets the source excerpts.
				if (outcome.result === 'refused' && process.stderr.isTTY) {
					printError(
						`${outcome.diagnostics.map(({ text }) => `${text}\n\n`).join('')}${refusal(input.name, outcome.diagnostics)}\n`,
					);
				}
			} catch (error) {
				runtime.log('error', 'config', 'the configuration could not be reloaded', { cause: sentenceOf(error) });
			} finally {
				this.#manager?.reloaded();
			}
		});
		return this.#reloading;
	}
}

/** Returns the message for a server that did not start. */
function startFailure(error: unknown, { input, madeOfFlags }: ServeOptions): unknown {
	if (error instanceof AdminBindError) {
		return new CommandFailure(`${error.message}: ${bindReason(error.code)}.`);
	}
	if (!(error instanceof StartError)) return error;
	if (error.failure.reason !== 'refused') return new CommandFailure(error.message);
	const { diagnostics } = error.failure;
	if (madeOfFlags) return new CommandFailure(error.message);
	const before = diagnostics.map(({ text }) => `${text}\n\n`).join('');
	return new CommandFailure(refusal(input?.name ?? 'The configuration', diagnostics), { before });
}

function bindReason(code: string): string {
	const reasons: { readonly [code: string]: string } = {
		EADDRINUSE: 'the address is in use',
		EACCES: 'permission denied',
		EADDRNOTAVAIL: 'no network interface of this machine has the address',
		EINVAL: 'it is not an address',
		ENOTFOUND: 'the host name cannot be resolved',
		ENOENT: 'the folder of the socket does not exist',
		EBADF: 'the process was not started with this descriptor',
		ENOTSOCK: 'it is not a socket',
	};
	return reasons[code] ?? code;
}

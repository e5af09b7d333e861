/** The life cycle of a server process: start, signals, reloads from the file, stop, exit status. */
import { closeSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import type { InheritedAdmin } from '../../admin/bind.ts';
import type { RollbackOutcome } from '../../admin/confirmation.ts';
import { type AdminLog, type AdminServer, configuredAddress, notSavedWarning, startAdmin } from '../../admin/server.ts';
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import type { AdminSettings } from '../../compiler/document/document.ts';
import {
	inheritedPassedSockets,
	type PassedSockets,
	takePassedSockets,
} from '../../runtime/listeners/passed-sockets.ts';
import type { Offer } from '../../runtime/main/handover/handover-protocol.ts';
import type { PredecessorChannel } from '../../runtime/main/handover/predecessor-channel.ts';
import type { HandoverResult, SuccessorProcess } from '../../runtime/main/handover/successor-process.ts';
import { type Runtime, StartError, startRuntime } from '../../runtime/main/runtime.ts';
import type { PublishedConfiguration } from '../../runtime/publications/published-configuration.ts';
import { exitWithoutThreads } from '../../runtime/sockets/exit-without-threads.ts';
import { EXIT_STATUS } from '../command/command.ts';
import { firstLineOf } from '../command/failure-report.ts';
import { printError } from '../command/terminal.ts';
import { version } from '../command/version.ts';
import { Autosave, stateFolder } from './autosave.ts';
import { FileReloader } from './file-reloader.ts';
import type { FleetStartChoice } from './fleet.ts';
import {
	type FleetStart,
	keptProgram,
	OWN_KEEPER,
	type OwnHandover,
	type Predecessor,
	type StartSettings,
	type SuccessorOffer,
	startSuccessor,
	type TentativeOffer,
} from './handover.ts';
import { reportToKeeper } from './keeper.ts';
import { RetiredServer } from './retired-server.ts';
import type { ServiceManager } from './service-manager.ts';
import { startFailure } from './start-failure.ts';
import { SuccessorGuard } from './successor-guard.ts';

/** What a server process serves, and how it was started. */
export interface ServeOptions extends StartSettings {
	/** The configuration; if undefined, the server starts without sites. */
	readonly input: ConfigInput | undefined;
	/** In a process that takes over, the channel to its predecessor and the predecessor's offer. */
	readonly succession?: { readonly channel: PredecessorChannel; readonly offer: Offer<SuccessorOffer> } | undefined;
	/** Returns what to serve if `input` is a publication of the cluster that cannot be loaded at the start. */
	readonly fallBack?: FleetStartChoice['fallBack'];
	/** Called when every listener is bound, including the Admin API's. */
	readonly onReady?: (runtime: Runtime) => void;
}

/** Number of threads in libuv's pool, which all threads share for files and name lookups; it is fixed at the pool's first use. */
const THREAD_POOL_SIZE = Math.max(4, Math.min(64, availableParallelism() * 4));

/** Maximum number of Admin API log entries held until the start is complete. */
const MAX_HELD_LOG_ENTRIES = 1000;

/**
 * Serves until a signal or the Admin API ends it, then ends the process. @throws `CommandFailure` if it does not start
 */
export async function serve(options: ServeOptions): Promise<never> {
	process.env.UV_THREADPOOL_SIZE ??= String(THREAD_POOL_SIZE);
	return new ServerProcess(options).run();
}

class ServerProcess {
	#options: ServeOptions;
	readonly #exitStatus: Promise<number>;
	#resolveExit: (status: number) => void = () => {};
	#runtime: Runtime | undefined;
	#adminServer: AdminServer | undefined;
	#autosave: Autosave | undefined;
	readonly #reloader: FileReloader;
	#serviceManager: ServiceManager | undefined;
	/** Loads the publications of the cluster; undefined if the server does not take its configuration from a cluster. */
	#publishedConfiguration: PublishedConfiguration | undefined;
	/** True once the configuration is served. */
	#isServing = false;
	readonly #heldAdminLogEntries: Parameters<AdminLog>[] = [];
	#isReady = false;
	#isStopping = false;
	/** The successor that has been started but does not serve yet. */
	#pendingSuccessor: SuccessorProcess | undefined;
	/**
	 * True if a stop was requested when the handover could no longer be aborted. The successor is then stopped after the
	 * handover.
	 */
	#stopsAfterHandover = false;
	/** Set once another process serves. */
	#retired: RetiredServer | undefined;
	/** Descriptor of the pipe to the first process; see {@link Keeper}. */
	#keeperPipe: number | undefined;

	constructor(options: ServeOptions) {
		this.#options = options;
		this.#reloader = new FileReloader(options, () => this.#serviceManager);
		this.#exitStatus = new Promise(resolve => {
			this.#resolveExit = resolve;
		});
	}

	async run(): Promise<never> {
		process.on('SIGINT', this.#onInterrupt);
		process.on('SIGTERM', this.#onInterrupt);
		process.on('SIGQUIT', this.#onQuit);
		process.on('SIGUSR1', this.#onReloadSignal);
		process.on('SIGHUP', this.#onHangUp);
		process.on('SIGUSR2', this.#onHandOverSignal);
		const { input, source, watch } = this.#options;
		if (watch && source && input) await this.#reloader.watch(input);
		const startPromise = this.#start();
		// If the server was stopped during its start, a failure of the start is not reported.
		const onFailure = (error: unknown) => {
			if (this.#isStopping) return this.#exitStatus;
			throw error;
		};
		const status = await Promise.race([this.#exitStatus, startPromise.then(() => this.#exitStatus, onFailure)]);
		this.#reloader.end();
		if (!this.#retired) reportToKeeper(this.#keeperPipe, `ended ${status}`);
		// Remaining connections and threads must not keep a stopped server alive.
		if ((await this.#runtime?.threadsEnded) === false) exitWithoutThreads(status);
		process.exit(status);
	}

	async #start(): Promise<void> {
		const { succession } = this.#options;
		const inheritance = succession?.offer.inheritance;
		const passedSockets = inheritance
			? inheritedPassedSockets(inheritance.sockets.passed)
			: takePassedSockets(process.env, process.pid);
		const runtime = await this.#startRuntime(passedSockets).catch(async error => {
			const runtimeOfLastGood = await this.#startWithLastGood(passedSockets, error);
			if (runtimeOfLastGood) return runtimeOfLastGood;
			// A successor throws the error as it is, because its predecessor reports the diagnostics.
			throw succession && error instanceof StartError ? error : startFailure(error, this.#options);
		});
		if (succession) await this.#takeOver(runtime, succession);
		process.removeAllListeners('uncaughtException');
		process.on('uncaughtException', this.#onUncaughtException);
		if (this.#isStopping) return;
		this.#isServing = true;
		for (const entry of this.#heldAdminLogEntries.splice(0)) this.#logAdmin(...entry);
		if (!succession) await this.#notifyManager(runtime);
		if (this.#isStopping) return;
		this.#options.onReady?.(runtime);
		this.#isReady = true;
		this.#reloader.begin(runtime);
		await this.#followPublications(runtime);
	}

	/** Starts the runtime. If that fails, closes the Admin API and rethrows the error. */
	async #startRuntime(passedSockets: PassedSockets): Promise<Runtime> {
		const { input, verbose, succession } = this.#options;
		try {
			return await startRuntime({
				input,
				verbose,
				passed: passedSockets,
				inheritance: succession?.offer.inheritance,
				onStep: succession && (step => succession.channel.reportStep(step)),
				version,
				// The Admin API opens first, and reports that the server is not ready yet. If the Admin API cannot listen, no site is
				// served.
				beforeListening: starting => this.#openAdmin(starting),
			});
		} catch (error) {
			await this.#adminServer?.close();
			this.#adminServer = undefined;
			throw error;
		}
	}

	/**
	 * Starts the runtime with the last good publication after the start with the published one has failed with `error`. Returns undefined
	 * if this machine has no other publication, or if it cannot be loaded either.
	 */
	async #startWithLastGood(passedSockets: PassedSockets, error: unknown): Promise<Runtime | undefined> {
		if (!(error instanceof StartError) || this.#isStopping) return undefined;
		const failedOptions = this.#options;
		const lastGood = await failedOptions.fallBack?.(error);
		if (!lastGood || this.#isStopping) return undefined;
		this.#options = { ...failedOptions, ...lastGood };
		try {
			return await this.#startRuntime(passedSockets);
		} catch (secondError) {
			if (!(secondError instanceof StartError)) throw startFailure(secondError, this.#options);
			if (this.#isStopping) return undefined;
			printError(`warning: ${lastGood.input.name} cannot be loaded either: ${secondError.message}\n`);
			this.#options = failedOptions;
			return undefined;
		}
	}

	async #followPublications(runtime: Runtime): Promise<void> {
		const { fleet, succession } = this.#options;
		if (!fleet) return;
		const { followPublications } = await import('./fleet.ts');
		if (this.#isStopping) return;
		// If the previous process has ended unexpectedly while it served a publication on trial, that has to be reported.
		const hasTakenOver = succession !== undefined && !succession.offer.process.replacesFailed;
		this.#publishedConfiguration = followPublications(runtime, fleet, hasTakenOver, {
			handOver: request => this.#handOver(request),
			isUnconfirmed: () => this.#adminServer?.unconfirmedGeneration !== undefined,
			rollBack: async cause => (await this.#adminServer?.rollBack(cause))?.result === 'handed_over',
		});
	}

	/** Starts serving in place of the predecessor. */
	async #takeOver(runtime: Runtime, succession: NonNullable<ServeOptions['succession']>): Promise<void> {
		const { channel, offer } = succession;
		await runtime.accept(await channel.reportReady(), channel);
		const { admin, saves, tentative } = offer.process;
		const usesInheritedAdmin = admin !== undefined && this.#adminServer === undefined;
		if (usesInheritedAdmin) await this.#listenOnAdmin(runtime, admin);
		await this.#notifyManager(runtime);
		// If this process must be confirmed, its predecessor stays the service's main process until then, so that it can take over
		// again.
		if (tentative) this.#serviceManager?.notifyReloaded('The new configuration awaits its confirmation.');
		else if (this.#serviceManager && !(await this.#serviceManager.becomeMain('Took over from another process.'))) {
			throw new StartError('systemd could not be told which process serves now.', { reason: 'failed' });
		}
		const { used, abandoned } = runtime.takeOver();
		const shouldSaveNow = saves && !tentative && runtime.settings.persist_config !== false;
		const saveFailure = shouldSaveNow && (await this.#autosave?.save(runtime.document));
		this.#keeperPipe = offer.process.keeper;
		reportToKeeper(this.#keeperPipe, `serving ${process.pid}`);
		const confirmDeadlineMs = tentative && this.#awaitConfirmation(runtime, channel, tentative, saves);
		const unconfirmedTerms =
			confirmDeadlineMs === undefined
				? undefined
				: { until: confirmDeadlineMs, used: [...used, ...(usesInheritedAdmin ? ['admin'] : [])] };
		await channel.reportDone(
			runtime.generation,
			saveFailure ? [notSavedWarning(saveFailure.message)] : [],
			abandoned,
			unconfirmedTerms,
		);
	}

	/**
	 * Awaits confirmation of the configuration. If it is not confirmed, hands over to a new process with the predecessor's program
	 * and configuration. Returns the deadline.
	 */
	#awaitConfirmation(
		runtime: Runtime,
		channel: PredecessorChannel,
		offer: TentativeOffer,
		shouldSave: boolean,
	): number {
		const { terms, program, input } = offer;
		const rollBack = async (): Promise<RollbackOutcome> => {
			void channel.report('reverting');
			const fleet = this.#previousFleet;
			let rollbackResult = await this.#handOver({ input, program: keptProgram(program), shouldSave: false, fleet });
			// Where processes cannot see each other's descriptors, the kept descriptor of the program's file cannot be used, and
			// the program is started by its path.
			if (rollbackResult.result === 'failed')
				rollbackResult = await this.#handOver({ input, program, shouldSave: false, fleet });
			return rollbackResult.result === 'done' ? { ...rollbackResult, result: 'handed_over' } : rollbackResult;
		};
		const onKept = (): void => {
			if (program.executable !== undefined) closeSync(program.executable);
			// The predecessor exits once it knows of the confirmation. If systemd did not know its new main process by then, it would
			// stop the service.
			const whenMain =
				this.#serviceManager?.becomeMain('The new configuration has been confirmed.') ?? Promise.resolve();
			void whenMain.then(() => channel.report('confirmed'));
		};
		return this.#adminServer!.awaitConfirmation(
			{ generation: runtime.generation, shouldSave, rollBack, onKept },
			terms,
		);
	}

	async #openAdmin(runtime: Runtime): Promise<void> {
		this.#runtime = runtime;
		this.#autosave = new Autosave(stateFolder(process.env), error =>
			runtime.log('error', 'admin', 'the configuration could not be saved', { cause: error.message }),
		);
		const { admin, tentative } = this.#options.succession?.offer.process ?? {};
		if (tentative && configuredAddress(this.#adminSettings) === undefined) {
			throw new StartError('Without the Admin API, nobody could confirm the new configuration.', { reason: 'failed' });
		}
		// If the predecessor still listens on the configured address, the Admin API is opened after the handover.
		if (admin && admin.wanted === configuredAddress(this.#adminSettings)) return;
		await this.#listenOnAdmin(runtime);
	}

	get #adminSettings(): AdminSettings | undefined {
		return this.#runtime?.admin ?? (this.#options.adminAnyway ? {} : undefined);
	}

	async #listenOnAdmin(runtime: Runtime, inheritedSocket?: InheritedAdmin): Promise<void> {
		this.#adminServer = await startAdmin(runtime, {
			...(this.#options.adminAnyway ? { settings: {} } : {}),
			log: this.#logAdmin,
			onApplied: async document => {
				if (runtime.settings.persist_config === false) return undefined;
				return (await this.#autosave?.save(document))?.message;
			},
			onStop: () => this.#stop(),
			handOver: request => this.#handOver(request),
			isConfiguredByCluster: this.#options.fleet !== undefined,
			inheritedSocket,
		});
		// If the server was stopped while the Admin API was being opened, #stop could not close it.
		if (this.#isStopping) await this.#adminServer.close();
	}

	/** Logs entries of the Admin API. They are held back until the configuration is served, because it determines where logs go. */
	readonly #logAdmin: AdminLog = (level, message, fields) => {
		if (this.#isServing) this.#runtime?.log(level, 'admin', message, fields);
		else if (this.#heldAdminLogEntries.length < MAX_HELD_LOG_ENTRIES)
			this.#heldAdminLogEntries.push([level, message, fields]);
	};

	async #notifyManager(runtime: Runtime): Promise<void> {
		if (!process.env.NOTIFY_SOCKET) return;
		const { ServiceManager } = await import('./service-manager.ts');
		this.#serviceManager = new ServiceManager(
			process.env,
			cause => runtime.log('warn', 'service', 'the service manager could not be told', { cause }),
			() => runtime.whenResponsive(),
		);
		this.#serviceManager.notifyReady();
	}

	/** The first signal stops the server gracefully; the second stops it at once. */
	readonly #onInterrupt = (signal: NodeJS.Signals): void => {
		if (this.#retired) this.#retired.forwardSignal(signal);
		else if (this.#isStopping) this.#onQuit('SIGQUIT');
		else this.#stop();
	};

	readonly #onQuit = (signal: NodeJS.Signals): void => {
		if (this.#retired) {
			this.#retired.forwardSignal(signal);
			return;
		}
		this.#runtime?.kill();
		this.#resolveExit(EXIT_STATUS.forced);
	};

	readonly #onHandOverSignal = (signal: NodeJS.Signals): void => {
		if (this.#retired) this.#retired.forwardSignal(signal);
		else if (!this.#isReady) this.#runtime?.log('warn', 'signals', 'SIGUSR2 is ignored until the server serves');
		else if (this.#adminServer?.unconfirmedGeneration !== undefined) {
			// SIGUSR2 is ignored, because the new process would have nothing to roll back to.
			const generation = this.#adminServer.unconfirmedGeneration;
			this.#runtime?.log('warn', 'signals', 'SIGUSR2 is ignored until the load is confirmed or rolled back', {
				generation,
			});
		} else void this.#handOver({ shouldSave: false });
	};

	/** Hands over to another process. Never rejects. */
	async #handOver(request: OwnHandover): Promise<HandoverResult> {
		const runtime = this.#runtime!;
		const predecessor = this.#asPredecessor;
		let handoverResult = { result: 'failed', message: 'The server is stopping.' } as HandoverResult;
		try {
			await runtime.handOver(async inheritance => {
				runtime.log('info', 'runtime', 'handing over to a new process', { binary: request.binary });
				this.#serviceManager?.notifyReloading();
				const guard = request.confirm && new SuccessorGuard(inheritance, predecessor.adminSocket);
				let usedGuard: SuccessorGuard | undefined;
				try {
					const successor = startSuccessor(request, inheritance, predecessor, () =>
						runtime.stopExclusiveWork(successor),
					);
					this.#pendingSuccessor = successor;
					const successorResult = successor.run();
					// From here on, the log can say that a process was started, because the successor will serve even if this
					// process dies.
					runtime.log('info', 'runtime', 'a new process has been started', { pid: successor.pid });
					handoverResult = await successorResult;
					if (handoverResult.result === 'failed') return undefined;
					if (guard && handoverResult.unconfirmed) {
						guard.watch(successor, handoverResult.unconfirmed, () => runtime.closeAbandoned());
						usedGuard = guard;
					}
					this.#retire(predecessor, successor, handoverResult.pid, usedGuard);
					return handoverResult.abandoned ?? [];
				} finally {
					this.#pendingSuccessor = undefined;
					if (usedGuard !== guard) guard?.settle();
				}
			});
		} catch (error) {
			handoverResult = { result: 'failed', message: firstLineOf(error) };
		}
		if (handoverResult.result === 'done') {
			runtime.log('info', 'runtime', 'a new process has taken over', { pid: handoverResult.pid });
			if (this.#stopsAfterHandover) process.kill(handoverResult.pid, 'SIGTERM');
			void this.#retired!.finish();
			return handoverResult;
		}
		runtime.rollLogs(true);
		if (!this.#isStopping) {
			void this.#serviceManager?.becomeMain(`Handover failed: ${handoverResult.message}`);
			runtime.log('error', 'runtime', 'the handover failed; serving on as before', { cause: handoverResult.message });
		}
		if (this.#stopsAfterHandover) this.#stop();
		return handoverResult;
	}

	get #asPredecessor(): Predecessor {
		const { adminAnyway, source, madeOfFlags, verbose, watch, background } = this.#options;
		const startSettings = { adminAnyway, source, madeOfFlags, verbose, watch, background, fleet: this.#currentFleet };
		const isFirstProcess = this.#keeperPipe === undefined && !background && !process.env.NOTIFY_SOCKET;
		return {
			startSettings,
			adminSocket: this.#adminServer?.socket,
			adminSettings: this.#adminSettings,
			keeperDescriptor: isFirstProcess ? OWN_KEEPER : this.#keeperPipe,
			input: this.#runtime && this.#runningInput(this.#runtime),
		};
	}

	/** The state with which a successor serves the same publication as this process; undefined without a cluster. */
	get #currentFleet(): FleetStart | undefined {
		const { fleet } = this.#options;
		return fleet && { ...fleet, ...this.#publishedConfiguration?.startOfSuccessor };
	}

	/**
	 * The state with which a successor serves the publication that this process began with, because it may have loaded another one
	 * since; undefined without a cluster.
	 */
	get #previousFleet(): FleetStart | undefined {
		const { fleet } = this.#options;
		return fleet && { ...fleet, failures: this.#publishedConfiguration?.failures ?? fleet.failures };
	}

	/** Returns the configuration being served, or undefined before the first load. */
	#runningInput(runtime: Runtime): ConfigInput | undefined {
		if (runtime.generation === 0) return undefined;
		return { format: 'json', text: runtime.document, name: 'the running configuration' };
	}

	/** Ends the tasks of a serving process, because another process serves now. */
	#retire(predecessor: Predecessor, successor: SuccessorProcess, pid: number, guard: SuccessorGuard | undefined): void {
		const runtime = this.#runtime!;
		this.#isStopping = true;
		const drain = async (): Promise<void> => {
			await Promise.all([runtime.stop(), this.#adminServer?.close()]);
			await this.#autosave?.whenWritten();
		};
		const channel = this.#options.succession?.channel;
		const serviceManager = () => this.#serviceManager;
		this.#retired = new RetiredServer({ runtime, predecessor, guard, channel, serviceManager, drain }, successor, pid);
		void this.#retired.exitStatus.then(this.#resolveExit);
		this.#reloader.end();
		this.#publishedConfiguration?.close();
		this.#adminServer?.keepSocketFile();
	}

	readonly #onHangUp = (): void => {
		if (this.#retired) {
			this.#retired.forwardSignal('SIGHUP');
			return;
		}
		// With a file, SIGHUP reloads, as in other servers. Without one, closing the terminal must not end the server.
		if (this.#options.source) this.#reloader.request('SIGHUP');
		else {
			const origin = this.#options.fleet ? 'comes from the cluster' : 'did not come from a file';
			this.#runtime?.log('info', 'signals', `SIGHUP is ignored: the configuration ${origin}`);
		}
	};

	readonly #onReloadSignal = (): void => {
		if (this.#retired) this.#retired.forwardSignal('SIGUSR1');
		else this.#reloader.request('SIGUSR1');
	};

	readonly #onUncaughtException = (error: unknown): void => {
		this.#runtime?.log('error', 'main', 'an unexpected failure ends the server', { cause: firstLineOf(error) });
		printError(`error: unexpected internal failure: ${firstLineOf(error)}\n`);
		this.#runtime?.kill();
		this.#resolveExit(EXIT_STATUS.endedInError);
	};

	#stop(): void {
		if (this.#isStopping) return;
		if (this.#pendingSuccessor?.abort('The server was told to stop.') === false) {
			this.#stopsAfterHandover = true;
			return;
		}
		this.#isStopping = true;
		this.#reloader.end();
		const runtime = this.#runtime;
		if (!runtime || !this.#isServing) {
			runtime?.kill();
			void Promise.resolve(this.#adminServer?.close()).then(() => this.#resolveExit(EXIT_STATUS.ok));
			return;
		}
		this.#serviceManager?.notifyStopping();
		Promise.resolve(this.#publishedConfiguration?.stop())
			.then(() => runtime.stop())
			.then(() => this.#adminServer?.close())
			.then(() => this.#autosave?.whenWritten())
			.then(() => this.#serviceManager?.finish())
			.then(
				() => this.#resolveExit(EXIT_STATUS.ok),
				error => {
					printError(`error: the stop failed: ${firstLineOf(error)}\n`);
					this.#resolveExit(EXIT_STATUS.endedInError);
				},
			);
	}
}

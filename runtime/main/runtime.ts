/**
 * The running server, which owns all state of the process. Its methods are in the order of a process's life: it starts, takes
 * over from a predecessor if there is one, loads configurations, hands over to a successor, and stops. After them come the other
 * methods that the command line and the Admin API use.
 */

import { socketText } from '../../compiler/codegen/plan/planned-socket.ts';
import type { DiagnosticReport } from '../../compiler/diagnostics/diagnostic.ts';
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import type { AdminSettings, Settings } from '../../compiler/document/document.ts';
import type { MetricsFormat } from '../../compiler/exchange/metrics-format.ts';
import type { ModuleEvent } from '../../compiler/exchange/module-events.ts';
import type { CacheEvent } from '../../compiler/exchange/response-cache.ts';
import type { PurgeSelection } from '../cache/purging.ts';
import type { Cluster } from '../cluster/cluster.ts';
import type { ConfigEdit, EditRefused, LoadPreview, LoadTerms } from '../compile/load-results.ts';
import type { RunningChannel } from '../concurrency-limits/running-exchange.ts';
import type { TakenSockets } from '../listeners/listener-sockets.ts';
import type { LogLevel } from '../logs/log-entry.ts';
import { cacheEvents } from '../metrics/cache-counters.ts';
import { ROW_SLOT } from '../metrics/counter-row.ts';
import { moduleEvents } from '../metrics/module-counters.ts';
import { NO_SCRAPE, type ScrapeResult, scrapeToString } from '../metrics/scrape-memory.ts';
import type { BequeathedDatagrams, BequeathedSockets } from '../sockets/bequeathed-sockets.ts';
import { chooseIoMode, environmentIoMode, ioMode, setIoMode } from '../sockets/io-mode.ts';
import { environmentTlsMode, expectedTlsMode } from '../sockets/tls-mode.ts';
import { startReclaimingProcessMemory, startReclaimingThreadMemory } from '../threads/memory-reclaimer.ts';
import type { StallKind } from '../threads/stop-answering.ts';
import type { UpstreamReport } from '../upstreams/pool-registry.ts';
import type { CacheReport } from './cache-registry.ts';
import { ConfigurationLoader } from './configuration-loader.ts';
import type { AdaptOutcome, LoadOutcome, PurgeResult, RuntimeControl } from './control.ts';
import type { HandedState } from './handover/handed-state.ts';
import { HandoverImpossible } from './handover/handover-impossible.ts';
import type { HandoverStep, Inheritance } from './handover/handover-protocol.ts';
import type { KeptSockets } from './handover/kept-sockets.ts';
import { createWarningEntries } from './load-outcomes.ts';
import { type ComponentOptions, RuntimeComponents } from './runtime-components.ts';
import { ServedConfiguration } from './served-configuration.ts';
import { Shutdown } from './shutdown.ts';
import {
	configurationRefusedError,
	StartError,
	StartForbidden,
	toStartError,
	unknownIoModeError,
	unknownTlsModeError,
} from './start-error.ts';
import { closeChannels } from './thread-pools.ts';
import type { WorkerPool } from './worker-pool.ts';
import { WorkerLostError } from './worker-pool-host.ts';

export { StartError, type StartFailure } from './start-error.ts';

/** Options for starting a server. */
export interface RuntimeOptions extends ComponentOptions {
	/** The configuration. Without one, only the Admin API is started, and the first load may add plaintext HTTP listeners. */
	readonly input?: ConfigInput | undefined;
	/** Called when this process, as a successor, begins a step of the handover. */
	readonly onStep?: ((step: HandoverStep) => void) | undefined;
	/**
	 * Called before any address is bound. The server already has the settings of its configuration, but is not ready: loads and
	 * reads of the configuration wait until it serves. If the callback rejects, startRuntime rejects with the same reason.
	 */
	readonly beforeListening?: ((runtime: Runtime) => Promise<void>) | undefined;
}

export interface BoundListener {
	readonly key: string;
	/** The IP address; '' for every interface. */
	readonly address: string;
	readonly port: number;
	readonly scheme: 'http' | 'https';
}

/** Starts a server. Resolves when every listener is bound and the configuration is served. Rejects with StartError. */
export async function startRuntime(options: RuntimeOptions = {}): Promise<Runtime> {
	const runtime = new Runtime(options);
	try {
		await runtime.begin();
		return runtime;
	} catch (error) {
		await runtime.abandon();
		throw error instanceof StartForbidden ? error.cause : toStartError(error);
	}
}

/** A running server. Created by {@link startRuntime}. */
export class Runtime implements RuntimeControl {
	readonly #options: RuntimeOptions;
	readonly #components: RuntimeComponents;
	readonly #served: ServedConfiguration;
	readonly #loader: ConfigurationLoader;
	readonly #shutdown: Shutdown;
	#startWarnings: readonly DiagnosticReport[] = [];
	/** True from a successful start, or from the takeover in a successor, until the shutdown begins. */
	#isServing = false;
	/** True in a successor until it takes over from its predecessor. */
	#awaitsTakeover: boolean;
	/** Functions that stop the periodic release of unused memory; see `#startReclaimingMemory`. */
	readonly #reclaimingStops: (() => void)[] = [];
	/** Settles once the start has succeeded or failed. Never rejects. */
	#startSettled: Promise<void> = Promise.resolve();

	constructor(options: RuntimeOptions) {
		this.#options = options;
		this.#awaitsTakeover = options.inheritance !== undefined;
		const phase = {
			isStopping: () => this.#shutdown.hasBegun,
			awaitsTakeover: () => this.#awaitsTakeover,
		};
		this.#components = new RuntimeComponents(options, {
			generation: () => this.generation,
			settings: () => this.settings,
			unreadyReason: () => this.unreadyReason,
			onThreadReplaced: index => {
				void this.#loader.runBetweenLoads(() => this.#served.bringUpThread(index));
			},
		});
		this.#served = new ServedConfiguration(this.#components, phase, options.onStep);
		this.#loader = new ConfigurationLoader(this.#components, this.#served, phase, options.input === undefined);
		this.#shutdown = new Shutdown(this.#components, {
			settings: () => this.settings,
			whenLoadsSettled: () => this.#loader.whenIdle(),
			onBegin: () => this.#onEnd(),
		});
	}

	/** Compiles, binds and serves. Called by startRuntime. */
	begin(): Promise<void> {
		// The start runs in the queue of loads, because the Admin API opens during the start, and loads may be requested from then on.
		const starting = this.#loader.runBetweenLoads(() =>
			this.#startServing().catch(error => {
				this.#shutdown.markStartFailed();
				throw error;
			}),
		);
		this.#startSettled = starting.catch(() => {});
		return starting;
	}

	async #startServing(): Promise<void> {
		const { input, onStep } = this.#options;
		onStep?.('compile');
		const ioText = process.env.SVC_IO;
		if (ioText && environmentIoMode() === undefined) throw unknownIoModeError(ioText);
		const tlsText = process.env.SVC_TLS;
		if (tlsText && environmentTlsMode() === undefined) throw unknownTlsModeError(tlsText);
		if (!input) {
			await this.#beforeListening();
			this.#components.threadPools.start({});
			if (this.#awaitsTakeover) return;
			this.#isServing = true;
			this.#startReclaimingMemory();
			this.log('info', 'runtime', 'started without a configuration', {
				threads: this.threads,
				io: ioMode(),
				tls: expectedTlsMode(),
			});
			void this.#servingPool?.whenStarted().then(() => this.#components.optimizerSettings.applyForServing());
			return;
		}
		// Starting the threads takes as long as compiling, so both happen concurrently. The number of threads is guessed, nearly
		// always correctly.
		this.#components.threadPools.start(expectedSettings(input));
		const candidate = await this.#components.compiler.prepareFirst(input);
		if (candidate.result !== 'swap') throw configurationRefusedError(candidate.diagnostics);
		this.#served.useSettings(candidate.facts.settings);
		onStep?.('bind');
		await this.#beforeListening();
		await this.#fitPool(candidate.facts.settings);
		const outcome = await this.#served.replace(candidate);
		if (outcome.result === 'refused') throw configurationRefusedError(outcome.diagnostics);
		if (outcome.result === 'failed') throw new StartError(outcome.message, { reason: 'failed' });
		this.#components.loadRecord.recordStart();
		this.#startWarnings = candidate.diagnostics;
		for (const entry of createWarningEntries(this.#startWarnings)) this.#components.processLog.writeEntry(entry);
		if (this.#awaitsTakeover) {
			onStep?.('check');
			await this.#servingPool!.checkAll();
		} else this.#markServing();
	}

	#startReclaimingMemory(): void {
		this.#reclaimingStops.push(startReclaimingThreadMemory(), startReclaimingProcessMemory());
	}

	#markServing(): void {
		this.#isServing = true;
		this.#startReclaimingMemory();
		this.#components.cluster?.join({
			caches: this.#components.cacheRegistry,
			version: this.#options.version ?? (() => 'unknown'),
			generation: () => this.generation,
		});
		this.#components.optimizerSettings.applyForServing();
		this.log('info', 'runtime', 'serving', {
			threads: this.threads,
			io: ioMode(),
			tls: expectedTlsMode(),
			listeners: this.#components.listenerSockets.servedAddresses.map(socketText),
		});
	}

	async #beforeListening(): Promise<void> {
		try {
			await this.#options.beforeListening?.(this);
		} catch (error) {
			throw new StartForbidden(error);
		}
	}

	/**
	 * Replaces the thread pool that was started in advance, if the settings require a different number of threads or a different I/O
	 * mode.
	 */
	async #fitPool(settings: Settings): Promise<void> {
		const io = chooseIoMode(settings.io);
		const { threadPools } = this.#components;
		if (this.threads === threadPools.threadCountFor(settings) && io === ioMode()) return;
		setIoMode(io);
		await threadPools.terminate();
		if (this.#shutdown.hasBegun) throw new WorkerLostError('The server is stopping.');
		threadPools.start(settings);
	}

	/**
	 * Starts to accept connections on the predecessor's sockets. Rejects if a thread fails to do so; the predecessor must then
	 * continue to serve alone.
	 * @param state The latest state of the predecessor.
	 * @param predecessor The channel to the predecessor.
	 */
	async accept(state?: HandedState, predecessor?: RunningChannel): Promise<void> {
		if (state?.running && predecessor)
			this.#components.runningExchange.beginWithPredecessor(predecessor, state.running);
		if (state) {
			this.#components.upstreamPools.restoreStates(state.upstreams);
			this.#components.limitTables.adoptStates(state.limits ?? []);
		}
		this.#awaitsTakeover = false;
		this.#components.logSinks.rolls = true;
		this.#components.tlsControl.activate();
		await this.#servingPool?.acceptAll();
		if (this.#shutdown.hasBegun) throw new WorkerLostError('The server is stopping.');
		this.#markServing();
	}

	/** Completes the takeover that {@link accept} began, once it is certain that the predecessor will not serve again. */
	takeOver(): TakenSockets {
		return this.#components.listenerSockets.takeOver();
	}

	load(input: ConfigInput, terms: LoadTerms = {}): Promise<LoadOutcome> {
		return this.#loader.load(input, terms);
	}

	edit(edit: ConfigEdit): Promise<LoadOutcome | EditRefused> {
		return this.#loader.edit(edit);
	}

	preview(input: ConfigInput, terms: LoadTerms = {}): Promise<LoadPreview> {
		return this.#loader.preview(input, terms);
	}

	adapt(input: ConfigInput): Promise<AdaptOutcome> {
		return this.#components.compiler.ask('adapt', { input });
	}

	async readConfig(path: readonly string[], id?: string): ReturnType<RuntimeControl['readConfig']> {
		await this.#startSettled;
		return this.#components.compiler.ask('read', { path, object: id });
	}

	get document(): string {
		return this.#components.compiler.runningDocument;
	}

	countRollback(succeeded: boolean): void {
		this.#components.loadRecord.recordRollback(succeeded, this.generation);
	}

	/**
	 * Hands over to a successor, between two loads. If the successor has taken over, `startSuccessor` resolves to the keys of the
	 * listeners whose sockets it does not use. In that case, this process stops accepting connections, and {@link stop} resolves once
	 * its open connections have ended. Otherwise, `startSuccessor` resolves to undefined, and this process continues as before.
	 */
	handOver(startSuccessor: (inheritance: Inheritance) => Promise<readonly string[] | undefined>): Promise<boolean> {
		return this.#loader.runBetweenLoads(async () => {
			if (this.#shutdown.hasBegun) return false;
			const datagrams = (await this.#servingPool?.bequeathAll()) ?? new Map<string, readonly BequeathedDatagrams[]>();
			try {
				const abandonedKeys = await startSuccessor(this.#createInheritance(datagrams));
				if (abandonedKeys) this.#shutdown.drainAfterHandover(abandonedKeys);
				return abandonedKeys !== undefined;
			} finally {
				closeChannels(datagrams);
			}
		});
	}

	/**
	 * Closes the sockets that the successor does not use, without waiting for handshakes any longer, because another process is about
	 * to bind their addresses.
	 */
	closeAbandoned(): void {
		this.#servingPool?.broadcast({ type: 'close_abandoned' });
	}

	/**
	 * Hands over again, after a first successor has failed, while this process drains or after it has drained. Resolves to the
	 * result of `startSuccessor`.
	 */
	async handOverAgain(
		keptSockets: KeptSockets,
		startSuccessor: (inheritance: Inheritance) => Promise<boolean>,
	): Promise<boolean> {
		this.closeAbandoned();
		const datagrams = (await this.#servingPool?.bequeathAll()) ?? new Map<string, readonly BequeathedDatagrams[]>();
		try {
			return await startSuccessor(keptSockets.createInheritance([...datagrams.values()].flat()));
		} finally {
			closeChannels(datagrams);
		}
	}

	/**
	 * Stops the activities that only one process may perform, before the successor accepts connections. Returns the state that the
	 * successor takes over.
	 */
	stopExclusiveWork(successor: RunningChannel): HandedState {
		this.rollLogs(false);
		return {
			upstreams: this.#components.upstreamPools.exportStates(),
			limits: this.#components.limitTables.exportStates(),
			running: this.#components.runningExchange.beginWithSuccessor(successor),
		};
	}

	/**
	 * Sets whether this process rolls log files. Two processes must not roll the same files, so this process stops before a
	 * successor starts.
	 */
	rollLogs(rolls: boolean): void {
		this.#components.logSinks.rolls = rolls;
	}

	/** Returns what a successor inherits. Throws HandoverImpossible. */
	#createInheritance(datagrams: ReadonlyMap<string, readonly BequeathedDatagrams[]>): Inheritance {
		const sockets: BequeathedSockets = this.#components.listenerSockets.toBequeathedSockets(
			key => this.#servingPool?.descriptorsOf(key) ?? [],
			datagrams,
		);
		const unpassableListener = sockets.listeners.find(({ descriptors }) => descriptors.length === 0);
		if (unpassableListener)
			throw new HandoverImpossible(`The sockets of ${unpassableListener.key} cannot be passed to another process.`);
		const ticketKeys = this.#components.tlsControl.ticketKeys.map(key => Buffer.from(key).toString('base64'));
		return { sockets, ticketKeys, limitSecret: this.#components.limitTables.secret };
	}

	stop(): Promise<void> {
		return this.#shutdown.stop();
	}

	kill(): void {
		this.#shutdown.kill();
	}

	/**
	 * Resolves to true once every thread has ended after a stop or kill, and to false if a thread cannot be ended without ending the
	 * process.
	 */
	get threadsEnded(): Promise<boolean> {
		return this.#shutdown.threadsEnded;
	}

	/** Cleans up after a failed start. Called by startRuntime. */
	abandon(): Promise<void> {
		return this.#shutdown.abandonStart();
	}

	/** Ends the activities that run only while the process serves. */
	#onEnd(): void {
		this.#isServing = false;
		for (const stopReclaiming of this.#reclaimingStops.splice(0)) stopReclaiming();
	}

	get ready(): boolean {
		return this.unreadyReason === undefined;
	}

	get unreadyReason(): string | undefined {
		if (!this.#isServing) return 'The server is not ready for requests.';
		const stalledThreads = this.#servingPool?.unresponsiveThreads ?? [];
		if (stalledThreads.length > 0) {
			const [threads, pronoun] = stalledThreads.length === 1 ? ['thread', 'it'] : ['threads', 'them'];
			return `Worker ${threads} ${stalledThreads.join(' and ')} did not answer; the server is replacing ${pronoun}.`;
		}
		return this.generation > 0 && this.#servingPool?.serves === false ? 'No worker thread is running.' : undefined;
	}

	get generation(): number {
		return this.#served.generation;
	}

	upstreams(): readonly UpstreamReport[] {
		return this.#components.upstreamPools.allReports();
	}

	/** Returns the contents of response caches and their counters. */
	caches(): { readonly stores: readonly CacheReport[]; readonly events: { readonly [event in CacheEvent]: number } } {
		return { stores: this.#components.cacheRegistry.reports(), events: cacheEvents(this.#components.threadTotals) };
	}

	/** The warnings about the configuration with which this process started. */
	get startWarnings(): readonly DiagnosticReport[] {
		return this.#startWarnings;
	}

	/** Returns how often an event that a module counts has happened since the start, summed over all threads. */
	moduleEvents(event: ModuleEvent): number {
		return moduleEvents(this.#components.threadTotals, event);
	}

	async purge(selection: PurgeSelection): Promise<PurgeResult> {
		const purges = await this.#components.cluster?.purges;
		if (!purges) return { purged: await this.#components.cacheRegistry.purge(selection) };
		const { purged, ...machines } = await purges.purge(selection);
		return { purged, machines };
	}

	get cluster(): Cluster | undefined {
		return this.#components.cluster;
	}

	/** Number of threads in the pool that accepts connections. */
	get threads(): number {
		return this.#components.threadPools.servingThreadCount;
	}

	/** Bound addresses with their real ports. */
	get listeners(): BoundListener[] {
		return this.#components.listenerSockets.servedAddresses.map(({ key, host, port, scheme }) => ({
			key,
			address: host,
			port,
			scheme,
		}));
	}

	/** Settings of the running document. */
	get settings(): Settings {
		return this.#served.settings;
	}

	get admin(): AdminSettings | undefined {
		const admin = this.settings.admin ?? (this.#options.input ? undefined : {});
		return admin?.off ? undefined : admin;
	}

	/** Absolute paths of the files that the running configuration was read from, including imports. */
	get files(): readonly string[] {
		return this.#served.files;
	}

	/** Writes to the process log. */
	log(level: LogLevel, logger: string, message: string, fields?: { readonly [name: string]: unknown }): void {
		this.#components.processLog.log(level, logger, message, fields);
	}

	get traffic(): { readonly requests: number; readonly serverErrors: number } {
		return {
			requests: this.#components.threadTotals.slotTotal(ROW_SLOT.requests),
			serverErrors: this.#components.threadTotals.slotTotal(ROW_SLOT.serverErrors),
		};
	}

	async renderMetrics(format: MetricsFormat): Promise<ScrapeResult> {
		return this.settings.metrics ? this.#components.metrics.render(format) : NO_SCRAPE;
	}

	/** Returns the metrics in Prometheus text format. */
	async metrics(): Promise<string> {
		return scrapeToString(await this.renderMetrics('prometheus'));
	}

	countAdminRequest(path: string, method: string, status: number): void {
		this.#components.metrics.countAdminRequest(path, method, status);
	}

	/** Ends a worker thread as a crash would, so that operators can test how it is replaced. */
	async terminateWorker(index: number): Promise<void> {
		await this.#servingPool?.killThread(index);
	}

	/** Makes a worker thread throw outside any request, or stop responding, so that operators can test how the server recovers. */
	crashWorker(index: number, kind: 'crash' | StallKind = 'crash'): void {
		this.#servingPool?.failThread(index, kind);
	}

	/** Resolves once every worker thread has responded, or has been terminated because it did not respond. */
	async whenResponsive(): Promise<void> {
		await this.#servingPool?.whenResponsive();
	}

	/** The threads that accept connections. */
	get #servingPool(): WorkerPool | undefined {
		return this.#components.threadPools.servingPool;
	}
}

/** Returns settings with the number of threads that a configuration seems to ask for, if any, before it is compiled. */
function expectedSettings({ text }: ConfigInput): Settings {
	const match = /\bthreads"?[ \t]*:?[ \t]*(\d{1,6})\b/.exec(text);
	return match ? { threads: Number(match[1]) } : {};
}

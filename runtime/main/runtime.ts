/** The running server: compiles, applies, counts, logs and stops. It owns all state of the process. */

import { randomBytes } from 'node:crypto';
import { socketText } from '../../compiler/codegen/plan/planned-socket.ts';
import type { DiagnosticReport } from '../../compiler/diagnostics/diagnostic.ts';
import type { ConfigInput } from '../../compiler/dialects/dialect.ts';
import type { AdminSettings, Settings } from '../../compiler/document/document.ts';
import type { MetricsFormat } from '../../compiler/exchange/metrics-format.ts';
import type { CacheEvent } from '../../compiler/exchange/response-cache.ts';
import type { PurgeSelection } from '../cache/purging.ts';
import { Cluster } from '../cluster/cluster.ts';
import type { PrepareResult } from '../compile/compiler-messages.ts';
import type { ConfigEdit, EditRefused, LoadPreview, LoadTerms, RestartReason } from '../compile/load-results.ts';
import { ConcurrencyTables } from '../concurrency-limits/concurrency-tables.ts';
import { ListenerSockets } from '../listeners/listener-sockets.ts';
import { ListenError } from '../listeners/port-probe.ts';
import type { LogEntry, LogLevel } from '../logs/log-entry.ts';
import { LogOutputError, LogSinks } from '../logs/log-sinks.ts';
import { machineText } from '../logs/machine-text.ts';
import { type PreparedProcessLog, ProcessLog } from '../logs/process-log.ts';
import { cacheEvents } from '../metrics/cache-counters.ts';
import { ROW_SLOT } from '../metrics/counter-row.ts';
import { moduleEvents } from '../metrics/module-counters.ts';
import { NO_SCRAPE, type ScrapeResult, scrapeToString } from '../metrics/scrape-memory.ts';
import { ThreadTotals } from '../metrics/thread-totals.ts';
import { ThreadVitals } from '../metrics/thread-vitals.ts';
import { PageWorkQueue } from '../page-work/page-work-queue.ts';
import { AccountFiles } from '../passwords/account-files.ts';
import { PasswordQueue } from '../passwords/password-queue.ts';
import { NO_WAIT, type RequestWaits } from '../protocols/protocol.ts';
import { LimitTables } from '../rate-limits/limit-tables.ts';
import type { BequeathedDatagrams, BequeathedSockets } from '../sockets/bequeathed-sockets.ts';
import { chooseIoMode, environmentIoMode, ioMode, setIoMode } from '../sockets/io-mode.ts';
import { environmentTlsMode, tlsMode } from '../sockets/tls-mode.ts';
import { CONTROL_GENERATION, CONTROL_SLOTS } from '../threads/control-words.ts';
import { hostFacts } from '../threads/host-facts.ts';
import { raiseInliningBudget } from '../threads/inlining-budget.ts';
import { startProcessMemoryRelief, startThreadMemoryRelief } from '../threads/memory-relief.ts';
import type { StallKind } from '../threads/stop-answering.ts';
import { withTimeLimit } from '../threads/within.ts';
import { TlsControl } from '../tls/tls-control.ts';
import { SpanExport } from '../tracing/span-export.ts';
import { PoolRegistry, type UpstreamReport } from '../upstreams/pool-registry.ts';
import type { DocumentFacts, GenerationDelta, WorkerStartData } from '../worker/worker-messages.ts';
import { CacheRegistry, type CacheReport } from './cache-registry.ts';
import { CompileService } from './compile-service.ts';
import { CompilerFailure } from './compiler-client.ts';
import type { AdaptOutcome, LoadOutcome, PurgeResult, RuntimeControl } from './control.ts';
import { expectedSettings } from './expected-settings.ts';
import type { HandedState } from './handover/handed-state.ts';
import { HandoverImpossible } from './handover/handover-impossible.ts';
import type { Inheritance } from './handover/handover-protocol.ts';
import type { KeptSockets } from './handover/kept-sockets.ts';
import {
	createLoadEntry,
	outcomeOfError,
	refusedOutcome,
	STOPPING_OUTCOME,
	threadsUnchangedWarning,
	tooManyThreadsReason,
} from './load-outcomes.ts';
import { LoadRecord } from './load-record.ts';
import { RuntimeMetrics } from './runtime-metrics.ts';
import type { BoundListener, RuntimeOptions } from './runtime-options.ts';
import { waitBeforeStop } from './shutdown-delay.ts';
import {
	configurationRefusedError,
	StartError,
	StartForbidden,
	toStartError,
	unknownIoModeError,
	unknownTlsModeError,
} from './start-error.ts';
import { answerThreadRequest } from './thread-answers.ts';
import { closeChannels, HANDOVER_WAITS, ThreadPools } from './thread-pools.ts';
import { type WorkerPool, workerThreadCount } from './worker-pool.ts';
import { NoResponsiveThread, WorkerLostError, type WorkerPoolHost } from './worker-pool-host.ts';

/** Options for starting a server, and its sockets. */
export type { BoundListener, RuntimeOptions } from './runtime-options.ts';
export { StartError, type StartFailure } from './start-error.ts';

/**
 * Milliseconds that idle connections may wait for another request before a stop, if a service manager holds the listening sockets.
 * The manager probably starts the server again, and clients that reconnect must wait until the server has started.
 */
const RESTART_WAITS: RequestWaits = { nextRequestMs: 1000, firstRequestMs: 1000 };
/** Maximum milliseconds for writing the last log lines when the server stops. */
const FLUSH_TIMEOUT_MS = 1000;
/** Maximum milliseconds for exporting the last spans when the server stops. */
const EXPORT_TIMEOUT_MS = 3000;

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
	readonly #controlMemory = new SharedArrayBuffer(CONTROL_SLOTS * Int32Array.BYTES_PER_ELEMENT);
	readonly #controlWords = new Int32Array(this.#controlMemory);
	readonly #threadTotals = new ThreadTotals();
	readonly #threadDeps: Pick<WorkerStartData, 'terminal' | 'verbose' | 'workingDirectory' | 'environment'>;
	readonly #logSinks: LogSinks;
	readonly #upstreamPools: PoolRegistry;
	readonly #limitTables: LimitTables;
	readonly #concurrencyTables = new ConcurrencyTables();
	readonly #cacheRegistry: CacheRegistry;
	readonly #log: ProcessLog;
	readonly #compiler: CompileService;
	readonly #metrics: RuntimeMetrics;
	readonly #mainThreadVitals = new ThreadVitals();
	readonly #passwords: PasswordQueue;
	readonly #accountFiles = new AccountFiles((...entry) => this.log(...entry));
	readonly #pageWork: PageWorkQueue;
	readonly #spanExport: SpanExport;
	readonly #tlsControl: TlsControl;
	/** The cluster that the option `cluster` configures. Only a restart can change it. */
	#cluster: Cluster | undefined;
	readonly #listenerSockets: ListenerSockets;
	/** Log outputs that could not be opened during the current load. */
	readonly #sinkErrors: LogOutputError[] = [];
	readonly #threadPools: ThreadPools;
	#settings: Settings = {};
	#configFiles: readonly string[] = [];
	#isReady = false;
	/** True in a successor until it takes over from its predecessor. */
	#awaitsTakeover: boolean;
	#generation = 0;
	#passwordStalls = 0;
	#threadsEnded: Promise<boolean> | undefined;
	readonly #loadRecord = new LoadRecord();
	/** Settles after the last queued operation. Operations that must not overlap are queued: loads, and starting new threads. */
	#lastOperation: Promise<unknown> = Promise.resolve();
	#stopPromise: Promise<void> | undefined;
	/** Functions that stop the memory relief of this thread and of the process. */
	readonly #reliefStops: (() => void)[] = [];
	/** Settles once the start has succeeded or failed. Never rejects. */
	#startSettled: Promise<void> = Promise.resolve();

	constructor(options: RuntimeOptions) {
		this.#options = options;
		const workingDirectory = options.workingDirectory ?? process.cwd();
		const environment = { ...(options.environment ?? process.env) };
		const isTerminal = options.writers?.stderr === undefined && process.stderr.isTTY === true;
		this.#threadDeps = { terminal: isTerminal, verbose: options.verbose === true, workingDirectory, environment };
		const expandText = machineText(hostFacts(workingDirectory, environment));
		const { inheritance } = options;
		const log = (entry: LogEntry) => this.#log.writeEntry(entry);
		this.#listenerSockets = new ListenerSockets(expandText, log, options.passed, inheritance?.sockets);
		this.#awaitsTakeover = inheritance !== undefined;
		this.#logSinks = new LogSinks(options.writers ?? {}, workingDirectory, expandText, (entry, key) =>
			this.#log.reportFailure(entry, key),
		);
		this.#logSinks.rolls = !this.#awaitsTakeover;
		this.#log = new ProcessLog(this.#logSinks, isTerminal, options.verbose === true, expandText);
		this.#upstreamPools = new PoolRegistry({
			log: (level, logger, message, fields) => this.log(level, logger, message, fields),
			expand: text => expandText(text),
			environment,
			provideTls: material => this.#tlsControl.provideUpstreams(material),
		});
		this.#compiler = new CompileService(
			{ workingDirectory, environment, etagKey: randomBytes(32) },
			(level, ...entry) => this.log(level, 'runtime', ...entry),
		);
		this.#passwords = PasswordQueue.onThreads((reason, stalled) => {
			if (stalled) this.#passwordStalls++;
			this.log('error', 'http.authentication', reason);
		});
		this.#pageWork = new PageWorkQueue(reason => this.log('error', 'http.handlers.templates', reason));
		this.#spanExport = new SpanExport(environment, (level, message, fields) =>
			this.log(level, 'tracing', message, fields),
		);
		this.#tlsControl = new TlsControl({
			workingDirectory,
			environment,
			ticketKeys: inheritance?.ticketKeys.map(key => Buffer.from(key, 'base64')),
			cluster: () => this.#cluster,
			broadcast: update => this.#threadPools.broadcast({ type: 'tls', update }),
			log: (level, logger, message, fields) => this.log(level, logger, message, fields),
		});
		this.#limitTables = new LimitTables(inheritance?.limitSecret, () => this.#cluster?.limits);
		this.#cacheRegistry = new CacheRegistry({
			workingDirectory,
			log: (...entry) => this.log(...entry),
			onDiskAdded: () => this.#cluster?.onDiskOpened(),
		});
		this.#threadPools = new ThreadPools(this.#controlMemory, this.#poolHost());
		this.#metrics = new RuntimeMetrics(this.#threadTotals, {
			version: options.version ?? (() => 'unknown'),
			ready: () => this.ready,
			generation: () => this.#generation,
			lastReload: () => this.#loadRecord.lastReload,
			rollbacks: () => this.#loadRecord.rollbacks(this.#generation),
			workerRestarts: () => this.#threadPools.restartCount,
			threadStalls: () => ({
				worker: this.#threadPools.stallCount,
				compiler: this.#compiler.stallCount,
				passwords: this.#passwordStalls,
			}),
			accessLogDropped: () => this.#logSinks.lostLines('access'),
			processLogDropped: () => this.#logSinks.lostLines('process'),
			upstreams: () => this.#upstreamPools.reports(),
			upstreamsWaited: () => this.#upstreamPools.waiting,
			caches: () => this.#cacheRegistry.reports(),
			concurrency: () => this.#concurrencyTables.reports(),
			cluster: () => this.#cluster?.report(),
			spansExported: () => this.#spanExport.exportedCount,
			spansDropped: () => this.#spanExport.droppedCount,
			certificates: () => this.#tlsControl.readings(),
			vitals: [
				['main', this.#mainThreadVitals],
				['compiler', this.#compiler.vitals],
			],
		});
	}

	/** The threads that accept connections. */
	get #servingPool(): WorkerPool | undefined {
		return this.#threadPools.servingPool;
	}

	get ready(): boolean {
		return this.unreadyReason === undefined;
	}

	get unreadyReason(): string | undefined {
		if (!this.#isReady) return 'The server is not ready for requests.';
		const stalledThreads = this.#servingPool?.unresponsiveThreads ?? [];
		if (stalledThreads.length > 0) {
			const [threads, pronoun] = stalledThreads.length === 1 ? ['thread', 'it'] : ['threads', 'them'];
			return `Worker ${threads} ${stalledThreads.join(' and ')} did not answer; the server is replacing ${pronoun}.`;
		}
		return this.#generation > 0 && this.#servingPool?.serves === false ? 'No worker thread is running.' : undefined;
	}

	get generation(): number {
		return this.#generation;
	}

	upstreams(): readonly UpstreamReport[] {
		return this.#upstreamPools.allReports();
	}

	/** Returns the contents of response caches and their counters. */
	caches(): { readonly stores: readonly CacheReport[]; readonly events: { readonly [event in CacheEvent]: number } } {
		return { stores: this.#cacheRegistry.reports(), events: cacheEvents(this.#threadTotals) };
	}

	/** Returns how often an event that a module counts has happened since the start, summed over all threads. */
	moduleEvents(event: string): number {
		return moduleEvents(this.#threadTotals, event);
	}

	async purge(selection: PurgeSelection): Promise<PurgeResult> {
		const purges = await this.#cluster?.purges;
		if (!purges) return { purged: await this.#cacheRegistry.purge(selection) };
		const { purged, ...machines } = await purges.purge(selection);
		return { purged, machines };
	}

	get cluster(): Cluster | undefined {
		return this.#cluster;
	}

	/** Number of worker threads. */
	get threads(): number {
		return this.#servingPool?.size ?? 0;
	}

	/** Bound addresses with their real ports. */
	get listeners(): BoundListener[] {
		return this.#listenerSockets.servedAddresses.map(({ key, host, port, scheme }) => ({
			key,
			address: host,
			port,
			scheme,
		}));
	}

	/** Settings of the running document. */
	get settings(): Settings {
		return this.#settings;
	}

	get admin(): AdminSettings | undefined {
		const admin = this.#settings.admin ?? (this.#options.input ? undefined : {});
		return admin?.off ? undefined : admin;
	}

	/** Absolute paths of the files that the running configuration was read from, including imports. */
	get files(): readonly string[] {
		return this.#configFiles;
	}

	/** Writes to the process log. */
	log(level: LogLevel, logger: string, message: string, fields?: { readonly [name: string]: unknown }): void {
		this.#log.log(level, logger, message, fields);
	}

	load(input: ConfigInput, terms: LoadTerms = {}): Promise<LoadOutcome> {
		const unconfigured = !this.#options.input;
		const recordedOutcome = this.#recordChange(input.name, async () => {
			const previousDocument = terms.reversible ? this.document : undefined;
			const outcome = await this.#applyCandidate(() =>
				this.#compiler.ask('prepare', { input, unconfigured, ...terms }),
			);
			return outcome.result === 'applied' && previousDocument !== undefined
				? { ...outcome, replacedDocument: previousDocument }
				: outcome;
		});
		return recordedOutcome as Promise<LoadOutcome>;
	}

	edit(edit: ConfigEdit): Promise<LoadOutcome | EditRefused> {
		const unconfigured = !this.#options.input;
		const apply = () => this.#applyCandidate(() => this.#compiler.ask('edit', { edit, unconfigured }));
		return this.#recordChange(`${edit.method} of the Admin API`, apply);
	}

	preview(input: ConfigInput, terms: LoadTerms = {}): Promise<LoadPreview> {
		// Previews are serialized with loads, because the compile thread keeps only one candidate document.
		const unconfigured = !this.#options.input;
		return this.#runSerially(async () => {
			const { preview, facts } = await this.#compiler.ask('preview', { input, unconfigured, ...terms });
			const reason = preview.result === 'swap' && facts && this.#threadShortage(facts.settings);
			return reason ? { ...preview, result: 'restart_required', reasons: [reason] } : preview;
		});
	}

	adapt(input: ConfigInput): Promise<AdaptOutcome> {
		return this.#compiler.ask('adapt', { input });
	}

	async readConfig(path: readonly string[], id?: string): ReturnType<RuntimeControl['readConfig']> {
		await this.#startSettled;
		return this.#compiler.ask('read', { path, object: id });
	}

	get document(): string {
		return this.#compiler.runningDocument;
	}

	get traffic(): { readonly requests: number; readonly serverErrors: number } {
		return {
			requests: this.#threadTotals.slotTotal(ROW_SLOT.requests),
			serverErrors: this.#threadTotals.slotTotal(ROW_SLOT.serverErrors),
		};
	}

	async renderMetrics(format: MetricsFormat): Promise<ScrapeResult> {
		return this.#settings.metrics ? this.#metrics.render(format) : NO_SCRAPE;
	}

	/** Returns the metrics in Prometheus text format. */
	async metrics(): Promise<string> {
		return scrapeToString(await this.renderMetrics('prometheus'));
	}

	countAdminRequest(path: string, method: string, status: number): void {
		this.#metrics.countAdminRequest(path, method, status);
	}

	countRollback(succeeded: boolean): void {
		this.#loadRecord.recordRollback(succeeded, this.#generation);
	}

	stop(): Promise<void> {
		this.#stopPromise ??= this.#stop();
		return this.#stopPromise;
	}

	kill(): void {
		this.#endRelief();
		this.#isReady = false;
		this.#stopPromise ??= Promise.resolve();
		this.#upstreamPools.close();
		void this.#endThreads();
		void this.#tlsControl.close();
		this.#cluster?.close();
		this.#listenerSockets.close();
		this.#log.close();
	}

	/**
	 * Resolves to true once every thread has ended after a stop or kill, and to false if a thread cannot be ended without ending the
	 * process.
	 */
	get threadsEnded(): Promise<boolean> {
		return this.#threadsEnded ?? Promise.resolve(true);
	}

	/**
	 * Starts to accept connections on the predecessor's sockets. Rejects if a thread fails to do so; the predecessor must then
	 * continue to serve alone.
	 * @param state The latest state of the predecessor.
	 */
	async accept(state?: HandedState): Promise<void> {
		if (state) {
			this.#upstreamPools.restoreStates(state.upstreams);
			this.#limitTables.adoptStates(state.limits ?? []);
		}
		this.#awaitsTakeover = false;
		this.#logSinks.rolls = true;
		this.#tlsControl.activate();
		await this.#servingPool?.acceptAll();
		this.#markServing();
	}

	/** Completes the takeover that {@link accept} began, once it is certain that the predecessor will not serve again. */
	takeOver(): void {
		this.#listenerSockets.takeOver();
	}

	/**
	 * Hands over to a successor, between two loads. `startSuccessor` resolves to true if the successor has taken over. In that case,
	 * this process stops accepting connections, and {@link stop} resolves once its open connections have ended. Otherwise, this
	 * process continues as before.
	 */
	handOver(startSuccessor: (inheritance: Inheritance) => Promise<boolean>): Promise<boolean> {
		return this.#runSerially(async () => {
			if (this.#stopPromise) return false;
			const datagrams = (await this.#servingPool?.bequeathAll()) ?? new Map<string, readonly BequeathedDatagrams[]>();
			try {
				const succeeded = await startSuccessor(this.#createInheritance(datagrams));
				if (succeeded) this.#stopPromise ??= this.#stop(true);
				return succeeded;
			} finally {
				closeChannels(datagrams);
			}
		});
	}

	/**
	 * Hands over again, after a first successor has failed, while this process drains or after it has drained. Resolves to the
	 * result of `startSuccessor`.
	 */
	async handOverAgain(
		keptSockets: KeptSockets,
		startSuccessor: (inheritance: Inheritance) => Promise<boolean>,
	): Promise<boolean> {
		const datagrams = (await this.#servingPool?.bequeathAll()) ?? new Map<string, readonly BequeathedDatagrams[]>();
		try {
			return await startSuccessor(keptSockets.createInheritance([...datagrams.values()].flat()));
		} finally {
			closeChannels(datagrams);
		}
	}

	/** Returns which inherited sockets are used; see `UnconfirmedTerms.used`. */
	get usedSockets(): string[] {
		return this.#listenerSockets.servedAddresses.flatMap(({ key, http3 }) =>
			http3 === undefined ? [key] : [key, `udp ${key}`],
		);
	}

	/**
	 * Stops the activities that only one process may perform, before the successor accepts connections. Returns the state that the
	 * successor takes over.
	 */
	stopExclusiveWork(): HandedState {
		this.rollLogs(false);
		return { upstreams: this.#upstreamPools.exportStates(), limits: this.#limitTables.exportStates() };
	}

	/** Sets whether this process rolls log files. Two processes must not roll the same files, so this process stops before a successor starts. */
	rollLogs(rolls: boolean): void {
		this.#logSinks.rolls = rolls;
	}

	/** Returns what a successor inherits. Throws HandoverImpossible. */
	#createInheritance(datagrams: ReadonlyMap<string, readonly BequeathedDatagrams[]>): Inheritance {
		const sockets: BequeathedSockets = this.#listenerSockets.toBequeathedSockets(
			key => this.#servingPool?.descriptorsOf(key) ?? [],
			datagrams,
		);
		const unpassableListener = sockets.listeners.find(({ descriptors }) => descriptors.length === 0);
		if (unpassableListener)
			throw new HandoverImpossible(`The sockets of ${unpassableListener.key} cannot be passed to another process.`);
		const ticketKeys = this.#tlsControl.ticketKeys.map(key => Buffer.from(key).toString('base64'));
		return { sockets, ticketKeys, limitSecret: this.#limitTables.secret };
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

	/** Compiles, binds and serves. Called by startRuntime. */
	begin(): Promise<void> {
		// Loads may be requested as soon as the Admin API listens.
		const starting = this.#runSerially(() =>
			this.#startServing().catch(error => {
				this.#stopPromise ??= Promise.resolve();
				throw error;
			}),
		);
		this.#startSettled = starting.catch(() => {});
		return starting;
	}

	async #startServing(): Promise<void> {
		this.#reliefStops.push(startThreadMemoryRelief(), startProcessMemoryRelief());
		const { input, onStep } = this.#options;
		onStep?.('compile');
		const ioText = process.env.SVC_IO;
		if (ioText && environmentIoMode() === undefined) throw unknownIoModeError(ioText);
		const tlsText = process.env.SVC_TLS;
		if (tlsText && environmentTlsMode() === undefined) throw unknownTlsModeError(tlsText);
		if (!input) {
			await this.#beforeListening();
			this.#startPool({});
			if (this.#awaitsTakeover) return;
			this.#isReady = true;
			this.log('info', 'runtime', 'started without a configuration', {
				threads: this.threads,
				io: ioMode(),
				tls: tlsMode(),
			});
			return;
		}
		// Starting the threads takes as long as compiling, so both happen concurrently. The number of threads is guessed, nearly
		// always correctly.
		this.#startPool(expectedSettings(input));
		const prepareResult = await this.#compiler.ask('prepare', { input, unconfigured: false });
		if (prepareResult.result !== 'swap') throw configurationRefusedError(prepareResult.diagnostics);
		this.#useSettings(prepareResult.facts.settings);
		onStep?.('bind');
		await this.#beforeListening();
		await this.#fitPool(prepareResult.facts.settings);
		const outcome = await this.#swapGeneration(prepareResult.facts, prepareResult.delta, prepareResult.diagnostics);
		if (outcome.result === 'refused') throw configurationRefusedError(outcome.diagnostics);
		if (outcome.result === 'failed') throw new StartError(outcome.message, { reason: 'failed' });
		this.#loadRecord.recordStart();
		for (const { message } of prepareResult.diagnostics) this.log('warn', 'config', message);
		if (this.#awaitsTakeover) {
			onStep?.('check');
			await this.#servingPool!.checkAll();
		} else this.#markServing();
	}

	#markServing(): void {
		this.#isReady = true;
		this.#cluster?.join({
			caches: this.#cacheRegistry,
			version: this.#options.version ?? (() => 'unknown'),
			generation: () => this.#generation,
		});
		raiseInliningBudget();
		this.log('info', 'runtime', 'serving', {
			threads: this.threads,
			io: ioMode(),
			tls: tlsMode(),
			listeners: this.#listenerSockets.servedAddresses.map(socketText),
		});
	}

	/** Applies the settings of the configuration that is about to be served. */
	#useSettings(settings: Settings): void {
		this.#settings = settings;
		if (!settings.metrics) return;
		this.#mainThreadVitals.requestRecording();
		this.#mainThreadVitals.recordIfWanted();
		this.#compiler.vitals.requestRecording();
		this.#threadTotals.requestVitals();
	}

	#joinCluster({ cluster }: Settings): void {
		if (cluster) this.#cluster ??= new Cluster(cluster, { log: (...entry) => this.log(...entry) });
	}

	async #beforeListening(): Promise<void> {
		try {
			await this.#options.beforeListening?.(this);
		} catch (error) {
			throw new StartForbidden(error);
		}
	}

	/** Cleans up after a failed start. Called by startRuntime. */
	async abandon(): Promise<void> {
		this.#endRelief();
		this.#stopPromise ??= Promise.resolve();
		this.#upstreamPools.close();
		this.#listenerSockets.close();
		await Promise.all([this.#endThreads(), this.#tlsControl.close()]);
		this.#cluster?.close();
		this.#log.close();
		await this.#logSinks.flush(FLUSH_TIMEOUT_MS);
	}

	/**
	 * Replaces the thread pool that was started in advance, if the settings require a different number of threads or a different I/O
	 * mode.
	 */
	async #fitPool(settings: Settings): Promise<void> {
		const io = chooseIoMode(settings.io);
		if (this.#servingPool?.size === this.#threadCountFor(settings) && io === ioMode()) return;
		setIoMode(io);
		await this.#threadPools.terminate();
		if (this.#stopPromise) throw new WorkerLostError('The server is stopping.');
		this.#startPool(settings);
	}

	#startPool(settings: Settings): void {
		this.#threadPools.start(this.#threadCountFor(settings));
	}

	#threadCountFor(settings: Settings): number {
		return workerThreadCount(this.#options.threads ?? settings.threads);
	}

	/** Returns the reason for a restart if this process cannot start the threads that the settings ask for. */
	#threadShortage(settings: Settings): RestartReason | undefined {
		const threadCount = this.#threadCountFor(settings);
		const { freeThreads } = this.#threadPools;
		return threadCount !== this.threads && threadCount > freeThreads
			? tooManyThreadsReason(threadCount, freeThreads)
			: undefined;
	}

	#poolHost(): WorkerPoolHost {
		return {
			totals: this.#threadTotals,
			deps: this.#threadDeps,
			log: entry => this.#log.writeEntry(entry),
			writeAccessLines: (sink, lines, entries) => this.#logSinks.write(sink, lines, entries),
			onAccessDropped: (sink, entries) => this.#logSinks.onDroppedByThread(sink, entries),
			onSinkOpened: (_sink, output) => {
				try {
					this.#logSinks.acquire(output);
				} catch (error) {
					if (!(error instanceof LogOutputError)) throw error;
					this.#sinkErrors.push(error);
				}
			},
			onSinkReleased: sink => this.#logSinks.release(sink),
			pools: this.#upstreamPools,
			limits: this.#limitTables,
			concurrency: this.#concurrencyTables,
			caches: this.#cacheRegistry,
			onTracingOpened: () => this.#spanExport.openExporter(),
			queueSpans: (text, spans) => this.#spanExport.queueSpans(text, spans),
			answer: question => {
				const queues = { passwords: this.#passwords, accountFiles: this.#accountFiles, pageWork: this.#pageWork };
				const services = {
					metrics: this.#metrics,
					tls: this.#tlsControl,
					caches: this.#cacheRegistry,
					settings: this.#settings,
				};
				const sharedLimits = this.#cluster?.limits;
				return answerThreadRequest(question, {
					...queues,
					...services,
					sharedLimits,
					unreadyReason: this.unreadyReason,
				});
			},
			introductoryMessages: () => this.#tlsControl.initialUpdates().map(update => ({ type: 'tls', update })),
			onChallengesReceived: (index, number) => this.#tlsControl.onChallengesApplied(index, number),
			onThreadEnded: index => this.#tlsControl.onThreadEnded(index),
			onThreadReplaced: index => void this.#runSerially(() => this.#bringUp(index)),
		};
	}

	/** Makes a change and records its outcome. Changes are serialized. */
	#recordChange(source: string, apply: () => Promise<LoadOutcome | EditRefused>): Promise<LoadOutcome | EditRefused> {
		return this.#runSerially(async () => {
			const outcome = await apply();
			if (outcome.result === 'edit_refused') return outcome;
			this.#loadRecord.recordLoad(outcome);
			this.#log.writeEntry(createLoadEntry(source, outcome));
			return outcome;
		});
	}

	/** Applies the candidate that `prepare` creates on the compile thread. */
	async #applyCandidate(
		prepare: () => Promise<PrepareResult | EditRefused>,
		isRetry = false,
	): Promise<LoadOutcome | EditRefused> {
		if (this.#stopPromise) return STOPPING_OUTCOME;
		try {
			const prepareResult = await prepare();
			if (prepareResult.result === 'unchanged') {
				const { diagnostics } = prepareResult;
				await this.#tlsControl.checkTrust();
				return { result: 'applied', generation: this.#generation, unchanged: true, diagnostics };
			}
			if (prepareResult.result !== 'swap') return prepareResult;
			if (this.#stopPromise) return STOPPING_OUTCOME;
			const reason = this.#threadShortage(prepareResult.facts.settings);
			if (reason) {
				await this.#compiler.ask('discard', {});
				return { result: 'restart_required', reasons: [reason], diagnostics: prepareResult.diagnostics };
			}
			const threadCount = this.#threadCountFor(prepareResult.facts.settings);
			this.#threadPools.closeIdleConnections();
			const outcome = await this.#swapGeneration(prepareResult.facts, prepareResult.delta, prepareResult.diagnostics);
			return outcome.result === 'applied' && threadCount !== this.threads
				? await this.#resizePool(threadCount, outcome)
				: outcome;
		} catch (error) {
			if (error instanceof NoResponsiveThread) {
				if (isRetry) return { result: 'failed', message: error.message };
				for (const index of (await this.#servingPool?.whenStarted()) ?? []) await this.#bringUp(index);
				return this.#applyCandidate(prepare, true);
			}
			if (error instanceof ListenError) return refusedOutcome('listen', error.message);
			if (error instanceof CompilerFailure) {
				this.log('error', 'runtime', 'compiling failed', { cause: error.stackTrace ?? error.message });
				return { result: 'failed', message: error.message };
			}
			throw error;
		}
	}

	/**
	 * Activates a new generation in two phases: first every thread builds it, then one store to shared memory activates it on all
	 * threads. Rejects with ListenError and `NoResponsiveThread`.
	 */
	async #swapGeneration(
		facts: DocumentFacts,
		delta: GenerationDelta,
		diagnostics: readonly DiagnosticReport[],
	): Promise<LoadOutcome> {
		const pool = this.#servingPool!;
		const generation = this.#generation + 1;
		this.#sinkErrors.length = 0;
		let processLog: PreparedProcessLog | undefined;
		try {
			processLog = this.#log.prepare(facts.settings);
			const listeners = await this.#listenerSockets.prepareAddresses(facts.listeners);
			this.#joinCluster(facts.settings);
			// All certificates and trusted authorities are sent to the threads before any of them builds the generation.
			if (this.#awaitsTakeover) this.#options.onStep?.('threads');
			await this.#tlsControl.prepare(facts.certificates, facts.settings);
			await pool.prepareAll({ generation, delta, listeners });
			if (this.#sinkErrors[0]) throw this.#sinkErrors[0];
			await this.#logSinks.whenAllOpened();
			await this.#compiler.commitCandidate(facts.certificates?.names ?? []);
			if (this.#stopPromise) throw new WorkerLostError('The server is stopping.');
			this.#generation = generation;
			this.#useSettings(facts.settings);
			this.#configFiles = facts.files;
			Atomics.store(this.#controlWords, CONTROL_GENERATION, generation);
			this.#upstreamPools.setNamedPools(facts.pools);
			pool.activateAll();
			// Until this process takes over, the predecessor manages certificates and answers challenges.
			if (!this.#awaitsTakeover) this.#tlsControl.activate();
			this.#log.activate(processLog);
			this.#listenerSockets.serve(listeners);
			return { result: 'applied', generation, unchanged: false, diagnostics };
		} catch (error) {
			pool.discardAll();
			this.#tlsControl.discard();
			if (processLog) this.#log.release(processLog);
			this.#listenerSockets.discardUnserved();
			await this.#compiler.ask('discard', {}).catch(() => {});
			return outcomeOfError(error, diagnostics);
		}
	}

	/**
	 * Changes the number of threads after a load that asks for it. If the change fails, the load is in effect nevertheless, and its
	 * outcome contains a warning.
	 */
	async #resizePool(threadCount: number, outcome: Extract<LoadOutcome, { result: 'applied' }>): Promise<LoadOutcome> {
		const previousThreads = this.threads;
		try {
			const { facts, delta } = await this.#compiler.ask('snapshot', {});
			const listeners = await this.#listenerSockets.prepareAddresses(facts.listeners);
			const request = { generation: this.#generation, delta, listeners };
			await this.#threadPools.resize(threadCount, request, this.#settings.grace_period);
			this.log('info', 'runtime', 'changed the number of worker threads', {
				threads: threadCount,
				before: previousThreads,
			});
			return outcome;
		} catch (error) {
			const cause = error instanceof Error ? error.message : String(error);
			this.log('error', 'runtime', 'the number of worker threads could not be changed', {
				threads: previousThreads,
				cause,
			});
			return { ...outcome, diagnostics: [...outcome.diagnostics, threadsUnchangedWarning(previousThreads, cause)] };
		}
	}

	/** Sends a new thread the state that the other threads have. */
	async #bringUp(index: number): Promise<void> {
		const pool = this.#servingPool;
		if (!pool || this.#stopPromise || this.#generation === 0) return;
		try {
			const { facts, delta } = await this.#compiler.ask('snapshot', {});
			const listeners = await this.#listenerSockets.prepareAddresses(facts.listeners);
			if (await pool.bringUp(index, { generation: this.#generation, delta, listeners })) {
				this.log('info', 'runtime', 'a worker thread was replaced', { thread: index });
			}
		} catch (error) {
			if (this.#stopPromise) return;
			const cause = error instanceof Error ? error.message : String(error);
			this.log('error', 'runtime', 'a worker thread could not load the configuration', { thread: index, cause });
			pool.giveUp(index);
		}
	}

	#endRelief(): void {
		for (const stopRelief of this.#reliefStops.splice(0)) stopRelief();
	}

	/** @param hasSuccessor True if another process serves new connections on the same sockets. */
	async #stop(hasSuccessor = false): Promise<void> {
		this.#endRelief();
		this.#isReady = false;
		if (hasSuccessor) this.#listenerSockets.leaveFiles();
		else await waitBeforeStop(this.#settings.shutdown_delay, this.#controlWords, this.#log);
		const message = hasSuccessor ? 'handed over; finishing open connections' : 'stopping';
		this.log('info', 'runtime', message, { grace_period_ms: this.#settings.grace_period ?? null });
		const requestWaits = hasSuccessor
			? HANDOVER_WAITS
			: this.#listenerSockets.hasPassedSockets
				? RESTART_WAITS
				: NO_WAIT;
		this.#upstreamPools.close();
		// From here on, the system refuses new connections, because the listening sockets are closed.
		this.#listenerSockets.close();
		// The successor waits until this process has released the folders of disk caches.
		if (hasSuccessor) void this.#cacheRegistry.close();
		await withTimeLimit(this.#threadPools.drain(requestWaits), this.#settings.grace_period);
		await Promise.all([
			// What the threads have counted is reported to the cluster once they have ended.
			this.#endThreads().then(() => this.#cluster?.leave()),
			this.#spanExport.close(EXPORT_TIMEOUT_MS),
			withTimeLimit(this.#cacheRegistry.close(), FLUSH_TIMEOUT_MS),
			this.#tlsControl.close(),
		]);
		this.#cluster?.close();
		if (!hasSuccessor) await this.#lastOperation.catch(() => {});
		this.log('info', 'runtime', hasSuccessor ? 'ended after a handover' : 'stopped');
		this.#log.close();
		await this.#logSinks.flush(FLUSH_TIMEOUT_MS);
	}

	#endThreads(): Promise<boolean> {
		const endAll = () => [
			this.#threadPools.terminate(),
			this.#compiler.end(),
			this.#passwords.end(),
			this.#pageWork.end(),
		];
		this.#threadsEnded ??= Promise.all(endAll()).then(ended => !ended.includes(false));
		return this.#threadsEnded;
	}

	#runSerially<T>(operation: () => Promise<T>): Promise<T> {
		const operationResult = this.#lastOperation.then(operation);
		this.#lastOperation = operationResult.catch(() => {});
		return operationResult;
	}
}

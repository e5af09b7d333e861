/** Creates the components of the main thread of a running server, and connects them. */

import type { Settings } from '../../compiler/document/document.ts';
import { Cluster } from '../cluster/cluster.ts';
import { ConcurrencyTables } from '../concurrency-limits/concurrency-tables.ts';
import { RunningExchange } from '../concurrency-limits/running-exchange.ts';
import { ListenerSockets } from '../listeners/listener-sockets.ts';
import type { PassedSockets } from '../listeners/passed-sockets.ts';
import { LogOutputError, LogSinks, type StandardWriters } from '../logs/log-sinks.ts';
import { machineText } from '../logs/machine-text.ts';
import { ProcessLog } from '../logs/process-log.ts';
import { ThreadTotals } from '../metrics/thread-totals.ts';
import { ThreadVitals } from '../metrics/thread-vitals.ts';
import { PageWorkQueue } from '../page-work/page-work-queue.ts';
import { AccountFiles } from '../passwords/account-files.ts';
import { PasswordQueue } from '../passwords/password-queue.ts';
import { LimitTables } from '../rate-limits/limit-tables.ts';
import { randomKey } from '../sockets/random-key.ts';
import { CONTROL_SLOTS } from '../threads/control-words.ts';
import { hostFacts } from '../threads/host-facts.ts';
import { OptimizerSettings } from '../threads/optimizer-settings.ts';
import { TlsControl } from '../tls/tls-control.ts';
import { SpanExport } from '../tracing/span-export.ts';
import { PoolRegistry } from '../upstreams/pool-registry.ts';
import { CacheRegistry } from './cache-registry.ts';
import { CompileService } from './compile-service.ts';
import type { Inheritance } from './handover/handover-protocol.ts';
import { LoadRecord } from './load-record.ts';
import { RuntimeMetrics } from './runtime-metrics.ts';
import { answerThreadRequest } from './thread-answers.ts';
import { ThreadPools } from './thread-pools.ts';
import type { WorkerPoolHost } from './worker-pool-host.ts';

/** Options of a server that do not come from its configuration, such as its environment variables. */
export interface ComponentOptions {
	/** Base folder for relative paths of a configuration that is not a file; defaults to the process's working directory. */
	readonly workingDirectory?: string | undefined;
	/** Environment variables that configurations see; defaults to the process's. */
	readonly environment?: { readonly [name: string]: string | undefined } | undefined;
	/** Sockets passed by a service manager. */
	readonly passed?: PassedSockets | undefined;
	/** The sockets and keys left by the predecessor. If set, the server accepts no connections until `Runtime.accept`. */
	readonly inheritance?: Inheritance | undefined;
	/** Number of worker threads; overrides the setting `threads`. */
	readonly threads?: number | undefined;
	/** Sets the process log to level debug, overriding the configuration. */
	readonly verbose?: boolean | undefined;
	/** Returns the version of this build, for metrics. Called when metrics are first read. */
	readonly version?: (() => string) | undefined;
	/** Replaces standard output and standard error as log outputs. */
	readonly writers?: StandardWriters | undefined;
}

/** Callbacks of the components' owner, the running server. */
export interface ComponentsOwner {
	/** Returns the number of the generation that is being served; 0 before the first. */
	generation(): number;
	/** Returns the settings of the running document. */
	settings(): Settings;
	/** Returns why the server is not ready, as a sentence; undefined if it is ready. */
	unreadyReason(): string | undefined;
	/** Called when a worker thread has been started in place of a dead one. It cannot serve before it has the configuration. */
	onThreadReplaced(index: number): void;
}

/** The components of the main thread. Creating them starts no thread and opens no socket. */
export class RuntimeComponents {
	/** Memory through which this thread tells all worker threads which generation to serve; see `control-words.ts`. */
	readonly controlMemory = new SharedArrayBuffer(CONTROL_SLOTS * Int32Array.BYTES_PER_ELEMENT);
	readonly controlWords = new Int32Array(this.controlMemory);
	readonly logSinks: LogSinks;
	readonly processLog: ProcessLog;
	/** Log outputs that could not be opened during the current load. */
	readonly logOutputErrors: LogOutputError[] = [];
	readonly loadRecord = new LoadRecord();
	readonly optimizerSettings = new OptimizerSettings();
	readonly compiler: CompileService;
	readonly listenerSockets: ListenerSockets;
	readonly threadPools: ThreadPools;
	readonly threadTotals = new ThreadTotals();
	readonly mainThreadVitals = new ThreadVitals();
	readonly metrics: RuntimeMetrics;
	readonly upstreamPools: PoolRegistry;
	readonly limitTables: LimitTables;
	readonly concurrencyTables = new ConcurrencyTables(() => Buffer.from(this.limitTables.secret, 'base64'));
	readonly runningExchange = new RunningExchange(this.concurrencyTables);
	readonly cacheRegistry: CacheRegistry;
	readonly passwords: PasswordQueue;
	readonly accountFiles = new AccountFiles((...entry) => this.processLog.log(...entry));
	readonly pageWork: PageWorkQueue;
	readonly spanExport: SpanExport;
	readonly tlsControl: TlsControl;
	#cluster: Cluster | undefined;
	#passwordStalls = 0;

	constructor(options: ComponentOptions, owner: ComponentsOwner) {
		const { inheritance } = options;
		const workingDirectory = options.workingDirectory ?? process.cwd();
		const environment = { ...(options.environment ?? process.env) };
		const isTerminal = options.writers?.stderr === undefined && process.stderr.isTTY === true;
		const isVerbose = options.verbose === true;
		const expandText = machineText(hostFacts(workingDirectory, environment));
		this.logSinks = new LogSinks(options.writers ?? {}, workingDirectory, expandText, (entry, key) =>
			this.processLog.reportFailure(entry, key),
		);
		// Two processes must not roll the same files: a successor does so once it has taken over.
		this.logSinks.rolls = inheritance === undefined;
		this.processLog = new ProcessLog(this.logSinks, isTerminal, isVerbose, expandText);
		const log: ProcessLog['log'] = (...entry) => this.processLog.log(...entry);
		this.listenerSockets = new ListenerSockets(
			expandText,
			entry => this.processLog.writeEntry(entry),
			options.passed,
			inheritance?.sockets,
		);
		this.upstreamPools = new PoolRegistry({
			log,
			expand: text => expandText(text),
			environment,
			provideTls: material => this.tlsControl.provideUpstreams(material),
		});
		this.compiler = new CompileService(
			{ workingDirectory, environment, etagKey: randomKey(32) },
			(level, ...entry) => log(level, 'runtime', ...entry),
			this.optimizerSettings,
		);
		this.passwords = PasswordQueue.onThreads((reason, stalled) => {
			if (stalled) this.#passwordStalls++;
			log('error', 'http.authentication', reason);
		});
		this.pageWork = new PageWorkQueue(reason => log('error', 'http.handlers.templates', reason));
		this.spanExport = new SpanExport(environment, (level, message, fields) => log(level, 'tracing', message, fields));
		this.tlsControl = new TlsControl({
			workingDirectory,
			environment,
			ticketKeys: inheritance?.ticketKeys.map(key => Buffer.from(key, 'base64')),
			cluster: () => this.#cluster,
			broadcast: update => this.threadPools.broadcast({ type: 'tls', update }),
			log,
		});
		this.limitTables = new LimitTables(inheritance?.limitSecret, () => this.#cluster?.limits);
		this.cacheRegistry = new CacheRegistry({
			workingDirectory,
			log,
			onDiskAdded: () => this.#cluster?.onDiskOpened(),
			sharedResponses: () => this.#cluster?.responses,
		});
		const threadDeps = { terminal: isTerminal, verbose: isVerbose, workingDirectory, environment };
		this.threadPools = new ThreadPools(this.controlMemory, this.#createPoolHost(threadDeps, owner), options.threads);
		this.metrics = this.#createMetrics(options, owner);
	}

	/** The cluster that the option `cluster` configures. Only a restart can change it. */
	get cluster(): Cluster | undefined {
		return this.#cluster;
	}

	/** Opens the cluster if the settings configure one and it is not open yet. */
	openCluster({ cluster }: Settings): void {
		if (cluster) this.#cluster ??= new Cluster(cluster, { log: (...entry) => this.processLog.log(...entry) });
	}

	/** Starts to record the vitals of each thread (event-loop lag, garbage collection, heap) for the metrics. */
	recordVitals(): void {
		this.mainThreadVitals.requestRecording();
		this.mainThreadVitals.recordIfWanted();
		this.compiler.vitals.requestRecording();
		this.threadTotals.requestVitals();
	}

	#createPoolHost(deps: WorkerPoolHost['deps'], owner: ComponentsOwner): WorkerPoolHost {
		return {
			totals: this.threadTotals,
			deps,
			log: entry => this.processLog.writeEntry(entry),
			writeAccessLines: (sink, lines, entries) => this.logSinks.write(sink, lines, entries),
			onAccessDropped: (sink, entries) => this.logSinks.onDroppedByThread(sink, entries),
			onSinkOpened: (_sink, output) => {
				try {
					this.logSinks.acquire(output);
				} catch (error) {
					if (!(error instanceof LogOutputError)) throw error;
					this.logOutputErrors.push(error);
				}
			},
			onSinkReleased: sink => this.logSinks.release(sink),
			pools: this.upstreamPools,
			limits: this.limitTables,
			concurrency: this.concurrencyTables,
			caches: this.cacheRegistry,
			onTracingOpened: () => this.spanExport.openExporter(),
			queueSpans: (text, spans) => this.spanExport.queueSpans(text, spans),
			answer: request =>
				answerThreadRequest(request, {
					passwords: this.passwords,
					accountFiles: this.accountFiles,
					pageWork: this.pageWork,
					metrics: this.metrics,
					tls: this.tlsControl,
					caches: this.cacheRegistry,
					sharedLimits: this.#cluster?.limits,
					settings: owner.settings(),
					unreadyReason: owner.unreadyReason(),
				}),
			introductoryMessages: () => this.tlsControl.initialUpdates().map(update => ({ type: 'tls', update })),
			onChallengesReceived: (index, number) => this.tlsControl.onChallengesApplied(index, number),
			onRoomWanted: listener => void this.threadPools.broadcast({ type: 'make_room', listener }),
			onThreadEnded: index => this.tlsControl.onThreadEnded(index),
			onThreadReplaced: index => owner.onThreadReplaced(index),
		};
	}

	#createMetrics({ version }: ComponentOptions, owner: ComponentsOwner): RuntimeMetrics {
		return new RuntimeMetrics(this.threadTotals, {
			version: version ?? (() => 'unknown'),
			ready: () => owner.unreadyReason() === undefined,
			generation: () => owner.generation(),
			lastReload: () => this.loadRecord.lastReload,
			rollbacks: () => this.loadRecord.rollbacks(owner.generation()),
			workerRestarts: () => this.threadPools.restartCount,
			threadStalls: () => ({
				worker: this.threadPools.stallCount,
				compiler: this.compiler.stallCount,
				passwords: this.#passwordStalls,
			}),
			accessLogDropped: () => this.logSinks.lostLines('access'),
			processLogDropped: () => this.logSinks.lostLines('process'),
			upstreams: () => this.upstreamPools.reports(),
			requestsWaitingForUpstream: () => this.upstreamPools.waiting,
			caches: () => this.cacheRegistry.reports(),
			concurrency: () => this.concurrencyTables.reports(),
			cluster: () => this.#cluster?.report(),
			spansExported: () => this.spanExport.exportedCount,
			spansDropped: () => this.spanExport.droppedCount,
			certificates: () => this.tlsControl.readings(),
			vitals: [
				['main', this.mainThreadVitals],
				['compiler', this.compiler.vitals],
			],
		});
	}
}

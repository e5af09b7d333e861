/** A worker thread: carries out the steps that the main thread requests, above all the building and the switch of generations. */
import type { MessagePort } from 'node:worker_threads';
import type { HostFacts } from '../../compiler/codegen/placeholders/placeholder.ts';
import type { Settings } from '../../compiler/document/document.ts';
import { compileClientIp, compilePeerTrust } from '../../compiler/exchange/client-ip.ts';
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import { StepPlaceTable } from '../../compiler/exchange/step-place.ts';
import { descriptorLimit, maxConnectionsPerThread } from '../listeners/descriptor-limit.ts';
import { levelRank } from '../logs/encoders.ts';
import type { LogEntry } from '../logs/log-entry.ts';
import { machineText } from '../logs/machine-text.ts';
import { counterRow, threadVitalsIn } from '../metrics/counter-row.ts';
import { ModuleCounters } from '../metrics/module-counters.ts';
import { SeriesPages } from '../metrics/series-pages.ts';
import { DEFAULT_LIMITS } from '../protocols/http1/limits.ts';
import { shareDescriptors } from '../sockets/owned-descriptors.ts';
import { threadPoller } from '../sockets/socket-poller.ts';
import { CONTROL_STOPS_AT } from '../threads/control-words.ts';
import { hostFacts } from '../threads/host-facts.ts';
import { startReclaimingThreadMemory } from '../threads/memory-reclaimer.ts';
import { stallThread } from '../threads/stop-answering.ts';
import { ThreadActivity } from '../threads/thread-activity.ts';
import { ThreadTls } from '../tls/thread-tls.ts';
import { createSampler } from '../tracing/sampler.ts';
import { toBuildProblem } from './build-problem.ts';
import { Generations } from './generation.ts';
import { BuildAborted, GenerationBuild, type SharedDocumentParts } from './generation-builder.ts';
import { MainThreadClient } from './main-thread-client.ts';
import type { RequestHostThread } from './request-host.ts';
import { ThreadLeases } from './thread-leases.ts';
import { UpstreamDeps } from './upstream-deps.ts';
import { WorkerListeners } from './worker-listeners.ts';
import { WorkerLog } from './worker-log.ts';
import type { MessageFromWorker, MessageToWorker, WorkerStartData } from './worker-messages.ts';

type PrepareMessage = Extract<MessageToWorker, { type: 'prepare' }>;

/** Runs the thread until the main thread ends it. */
export function runWorker(port: MessagePort, startData: WorkerStartData): void {
	// Creates the poller now, so that the poller's self-test runs before the first connection.
	threadPoller();
	shareDescriptors(startData.descriptors);
	const activity = new ThreadActivity(startData.activity);
	const worker = new DataPlaneWorker(port, startData, activity);
	const vitals = threadVitalsIn(startData.counters);
	port.on('message', (message: MessageToWorker) => {
		activity.enterPhase('message');
		worker.handleMessage(message);
		vitals.recordIfWanted();
		// The phase ends here even if the message has started a build, which continues in later turns of the event loop.
		activity.leavePhase('message');
	});
	activity.startHeartbeats();
	startReclaimingThreadMemory();
	// An unhandled rejection in a handler must affect only its request, not the thread's other connections.
	process.on('unhandledRejection', reason => {
		const cause = reason instanceof Error ? (reason.stack ?? reason.message) : String(reason);
		worker.log({ level: 'error', logger: 'runtime', message: 'unhandled promise rejection', fields: { cause } });
	});
}

class DataPlaneWorker implements RequestHostThread {
	readonly generations: Generations;
	readonly counters: Float64Array;
	readonly activity: ThreadActivity;
	readonly limits = DEFAULT_LIMITS;
	readonly tls = new ThreadTls(
		number => this.#sendMessage({ type: 'challenges_taken', number }),
		challenge => this.#mainThread.ask({ about: 'challenge', challenge }),
	);
	isDraining = false;
	logsDebug = false;
	readonly #port: MessagePort;
	readonly #startData: WorkerStartData;
	readonly #hostFacts: HostFacts;
	readonly #log: WorkerLog;
	readonly #upstreamDeps: UpstreamDeps;
	readonly #leases: ThreadLeases;
	readonly #mainThread = new MainThreadClient(message => this.#sendMessage(message));
	readonly #seriesPages: SeriesPages;
	readonly #listeners: WorkerListeners;
	readonly #routePlaces = new StepPlaceTable('');
	#sharedParts: SharedDocumentParts = { settings: {}, upstreams: {}, routes: {} };
	#nextSharedParts: SharedDocumentParts | undefined;
	#currentBuild: GenerationBuild | undefined;
	#clientIp = compileClientIp({});
	#trustsPeer = compilePeerTrust({});

	constructor(port: MessagePort, startData: WorkerStartData, activity: ThreadActivity) {
		const { index, rows, threads, environment } = startData;
		this.activity = activity;
		this.#port = port;
		this.#startData = startData;
		const controlWords = new Int32Array(startData.control);
		const stopsAt = (): number => Atomics.load(controlWords, CONTROL_STOPS_AT) * 1000;
		this.#hostFacts = hostFacts(startData.workingDirectory, environment, stopsAt);
		this.counters = counterRow(startData.counters);
		const sendMessage = (message: MessageFromWorker): void => this.#sendMessage(message);
		const log = new WorkerLog(index, controlWords, this.counters, sendMessage);
		this.#log = log;
		this.#seriesPages = new SeriesPages(
			buffer => this.#sendMessage({ type: 'page', buffer }),
			series => this.#sendMessage({ type: 'series', series }),
		);
		const moduleCounters = new ModuleCounters(this.#seriesPages);
		this.#upstreamDeps = new UpstreamDeps({
			threadCount: threads,
			environment,
			counters: this.counters,
			moduleCounters,
			provideTls: material => this.#mainThread.ask({ about: 'upstream_tls', material }),
			clientIp: x => this.#clientIp(x),
			trustsPeer: x => this.#trustsPeer(x),
			log: entry => log.log(entry),
		});
		this.#leases = new ThreadLeases({
			index,
			rowCount: rows,
			threadCount: threads,
			counters: this.counters,
			moduleCounters,
			accessLogs: {
				isTerminal: startData.terminal,
				clientIp: x => this.#clientIp(x),
				expand: machineText(this.#hostFacts),
			},
			pools: this.#upstreamDeps,
			sendMessage,
			askMainThread: question => this.#mainThread.ask(question),
			batchPort: sink => log.accessPort(sink),
			sampler: createSampler(environment),
			spanPort: log.spanPort,
		});
		this.generations = new Generations(controlWords, this.#leases.leaseRegistry);
		this.#listeners = new WorkerListeners({
			thread: this,
			row: index,
			rows,
			sharePorts: startData.sharePorts,
			maxConnections: maxConnectionsPerThread(descriptorLimit(), threads),
			seriesPages: this.#seriesPages,
			servedParts: () => this.#sharedParts,
			sharedMemory: (key, slots, common) => this.#leases.listenerMemory(key, slots, common),
			obtainCertificate: certificate => this.#mainThread.ask({ about: 'certificate', certificate }),
			sendMessage,
			onDrained: () => {
				this.#leases.flushLogs();
				this.#sendMessage({ type: 'drained' });
			},
		});
	}

	clientIp(x: Exchange): string {
		return this.#clientIp(x);
	}

	handleMessage(message: MessageToWorker): void {
		switch (message.type) {
			case 'prepare':
				void this.#prepareGeneration(message);
				return;
			case 'activate':
				this.#activateGeneration();
				return;
			case 'discard':
				this.#discardBuild();
				return;
			case 'memory':
				this.#leases.handleMemory(message.key, message.buffer);
				return;
			case 'tls':
				this.tls.applyUpdate(message.update);
				return;
			case 'answer':
				this.#mainThread.handleReply(message);
				return;
			case 'check':
				void this.#runStep(message.attempt, () => this.#listeners.check());
				return;
			case 'accept':
				void this.#runStep(message.attempt, () => this.#listeners.acceptDeferred());
				return;
			case 'bequeath':
				this.#sendMessage({
					type: 'bequeathed',
					attempt: message.attempt,
					datagrams: this.#listeners.collectDatagrams(),
				});
				return;
			case 'drain':
				this.#drain(message);
				return;
			case 'close_abandoned':
				void this.#listeners.closeAbandoned();
				return;
			case 'make_room':
				this.#listeners.makeRoom(message.listener);
				return;
			case 'ping':
				this.#sendMessage({ type: 'pong', number: message.number });
				return;
			case 'stall':
			case 'spin':
			case 'block':
				stallThread(message.type);
				return;
			case 'crash':
				// The error is thrown outside any promise or request, so that only the thread's own handler sees it.
				setImmediate(() => {
					throw new Error('This crash was requested.');
				});
				return;
		}
	}

	log(entry: LogEntry): void {
		this.#log.log(entry);
	}

	onConnectionEnded(): void {
		// The protocol decrements its connection count only after this call, so the check is deferred.
		setImmediate(() => this.#listeners.reportIfDrained());
	}

	async #prepareGeneration({ attempt, generation, delta, listeners }: PrepareMessage): Promise<void> {
		this.#currentBuild?.abort();
		const log = (entry: LogEntry): void => this.log(entry);
		const build = new GenerationBuild(this.#leases, this.#hostFacts, log, this.#routePlaces, this.activity);
		this.#currentBuild = build;
		try {
			const buildResult = await build.run(delta, generation, this.generations, this.#sharedParts);
			if (this.#currentBuild !== build) {
				for (const site of build.builtSites) this.generations.releaseSite(site);
				return;
			}
			this.generations.prepare(buildResult.generation);
			this.#nextSharedParts = buildResult.shared;
			await this.#listeners.prepare(listeners, buildResult.shared);
			if (this.#currentBuild !== build) return;
			this.#sendMessage({ type: 'prepared', attempt });
		} catch (error) {
			if (error instanceof BuildAborted) return;
			this.#discardBuild();
			this.#sendMessage({ type: 'refused', attempt, ...toBuildProblem(error) });
		}
	}

	/** Runs a step that the main thread has requested, and replies with the attempt's number and the result. */
	async #runStep(attempt: number, run: () => Promise<void>): Promise<void> {
		try {
			await run();
			this.#sendMessage({ type: 'prepared', attempt });
		} catch (error) {
			this.#sendMessage({ type: 'refused', attempt, ...toBuildProblem(error) });
		}
	}

	#activateGeneration(): void {
		this.#currentBuild = undefined;
		this.generations.currentGeneration();
		this.#sharedParts = this.#nextSharedParts ?? this.#sharedParts;
		this.#clientIp = compileClientIp(this.#sharedParts.settings);
		this.#trustsPeer = compilePeerTrust(this.#sharedParts.settings);
		if (this.#sharedParts.settings.metrics) this.#upstreamDeps.startMeasuring(this.#seriesPages);
		const usedHandles = new Set(this.generations.newest.sites.flatMap(({ leases }) => leases));
		this.#leases.retirePools(handle => usedHandles.has(handle));
		this.logsDebug = this.#startData.verbose || wantsDebug(this.#sharedParts.settings);
		this.#nextSharedParts = undefined;
		this.#listeners.activate();
	}

	#discardBuild(): void {
		this.#currentBuild?.abort();
		this.#currentBuild = undefined;
		this.#nextSharedParts = undefined;
		this.generations.discard();
		this.#listeners.discardPending();
	}

	#drain({ waits, abandoned }: Extract<MessageToWorker, { type: 'drain' }>): void {
		this.#discardBuild();
		this.isDraining = true;
		this.#listeners.drain(waits, abandoned);
	}

	#sendMessage(message: MessageFromWorker): void {
		this.#port.postMessage(message);
	}
}

/** Reports whether any process log accepts debug entries. If none does, no debug entries are created. */
function wantsDebug(settings: Settings): boolean {
	if (settings.debug) return true;
	return Object.values(settings.logs ?? {}).some(log => levelRank(log.level) === levelRank('debug'));
}

/** A worker thread: its listeners, its generations, and its communication with the main thread. */
import { isDeepStrictEqual } from 'node:util';
import type { MessagePort } from 'node:worker_threads';
import type { HostFacts } from '../../compiler/codegen/placeholders/placeholder.ts';
import { socketText } from '../../compiler/codegen/plan/planned-socket.ts';
import type { Settings } from '../../compiler/document/document.ts';
import { serverSettingsFor } from '../../compiler/document/server-settings.ts';
import { compileClientIp, compilePeerTrust } from '../../compiler/exchange/client-ip.ts';
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import { StepPlaceTable } from '../../compiler/exchange/step-place.ts';
import { protocolsOf } from '../../compiler/modules/options/servers/protocols.ts';
import { descriptorLimit, maxConnectionsPerThread } from '../listeners/descriptor-limit.ts';
import { DescriptorShortage } from '../listeners/descriptor-shortage.ts';
import { http3UnavailableError, withoutHttp3Entry } from '../listeners/http3-probe.ts';
import type { ListenerAddress } from '../listeners/listener-address.ts';
import { ListenerGates } from '../listeners/listener-gates.ts';
import { PlaceMaker } from '../listeners/place-maker.ts';
import { ListenError, listenError } from '../listeners/port-probe.ts';
import { protocolLimits } from '../listeners/protocol-limits.ts';
import {
	checkQuicListener,
	createQuicListener,
	missingForQuic,
	type QuicListener,
	type QuicListenerDeps,
	waitForQuic,
} from '../listeners/quic-listener.ts';
import { WorkerListener } from '../listeners/worker-listener.ts';
import { levelRank } from '../logs/encoders.ts';
import { LOG_ENTRY_WEIGHT, type LogEntry } from '../logs/log-entry.ts';
import { machineText } from '../logs/machine-text.ts';
import { RecurringEvent } from '../logs/recurring-event.ts';
import { counterRow, ROW_SLOT, threadVitalsIn } from '../metrics/counter-row.ts';
import { HttpObserver } from '../metrics/http-observer.ts';
import { ModuleCounters } from '../metrics/module-counters.ts';
import { overloadSlot } from '../metrics/refusals.ts';
import { SeriesPages } from '../metrics/series-pages.ts';
import { bufferedBytesPerThread, RequestBodyMemory } from '../protocols/fastcgi/buffered-request-body.ts';
import { createHttp1Server } from '../protocols/http1/http1-server.ts';
import { DEFAULT_LIMITS } from '../protocols/http1/limits.ts';
import { createCleartextServer } from '../protocols/http2/cleartext-server.ts';
import { createHttp2Server } from '../protocols/http2/http2-server.ts';
import type { ProtocolServer } from '../protocols/protocol.ts';
import type { BequeathedDatagrams } from '../sockets/bequeathed-sockets.ts';
import { shareDescriptors } from '../sockets/owned-descriptors.ts';
import { threadPoller } from '../sockets/socket-poller.ts';
import { CONTROL_LOG_IN_TRANSIT, CONTROL_STOPS_AT, MAX_LOG_IN_TRANSIT_CHARS } from '../threads/control-words.ts';
import { hostFacts } from '../threads/host-facts.ts';
import { startReclaimingThreadMemory } from '../threads/memory-reclaimer.ts';
import { stallThread } from '../threads/stop-answering.ts';
import { ThreadActivity } from '../threads/thread-activity.ts';
import { HANDSHAKE_SLOT_COUNT, HandshakeRate } from '../tls/handshake-rate.ts';
import { advertisesHttp3 } from '../tls/quic-certificates.ts';
import { ThreadTls } from '../tls/thread-tls.ts';
import { TlsObserver } from '../tls/tls-observer.ts';
import { createTlsServer, type TlsServer } from '../tls/tls-server.ts';
import { createSampler } from '../tracing/sampler.ts';
import { availabilityEntry } from '../upstreams/availability.ts';
import type { PoolDeps } from '../upstreams/pool-deps.ts';
import { UpstreamObserver } from '../upstreams/upstream-observer.ts';
import { toBuildProblem } from './build-problem.ts';
import { Generations } from './generation.ts';
import { BuildAborted, GenerationBuild, type SharedDocumentParts } from './generation-builder.ts';
import { MainThreadClient } from './main-thread-client.ts';
import { RequestHost, type RequestHostThread } from './request-host.ts';
import { ThreadLeases } from './thread-leases.ts';
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
	readonly #hostsByListener = new Map<WorkerListener, RequestHost>();
	readonly #listenerGates: ListenerGates;
	readonly tls = new ThreadTls(
		number => this.#sendMessage({ type: 'challenges_taken', number }),
		challenge => this.#mainThread.ask({ about: 'challenge', challenge }),
	);
	isDraining = false;
	logsDebug = false;
	readonly #port: MessagePort;
	readonly #startData: WorkerStartData;
	readonly #hostFacts: HostFacts;
	readonly #controlWords: Int32Array;
	readonly #moduleCounters: ModuleCounters;
	readonly #leases: ThreadLeases;
	readonly #mainThread = new MainThreadClient(message => this.#sendMessage(message));
	readonly #seriesPages: SeriesPages;
	readonly #tlsObserver: TlsObserver;
	readonly #handshakeRates = new Map<string, HandshakeRate>();
	readonly #listeners = new Map<string, WorkerListener>();
	/** The HTTP/3 sides of listeners, by key. */
	readonly #quicListeners = new Map<string, QuicListener>();
	/** The HTTP/3 sides of listeners, by key, that were bound for a generation that is not served yet. */
	readonly #pendingQuicListeners = new Map<string, QuicListener>();
	/** TCP listeners bound for a generation that is not served yet. */
	#pendingListeners: WorkerListener[] = [];
	readonly #routePlaces = new StepPlaceTable('');
	#sharedParts: SharedDocumentParts = { settings: {}, upstreams: {}, routes: {} };
	#nextSharedParts: SharedDocumentParts | undefined;
	#currentBuild: GenerationBuild | undefined;
	#hasReportedDrained = false;
	/** The listeners that still accept connections while the thread drains. */
	readonly #abandonedListeners = new Set<WorkerListener>();
	readonly #bodyMemoryRefusals = new RecurringEvent();
	readonly #descriptorShortage = new DescriptorShortage(entry => this.log(entry));
	/** Number of dropped access log entries that have not been reported to the main thread yet, by log writer. */
	readonly #droppedEntries = new Map<string, number>();
	#nextDropReportAt = 0;
	readonly #maxConnections: number;
	readonly #placeMaker = new PlaceMaker(
		() => this.#listenerProtocols(),
		connections => this.#countClosedIdle(connections),
	);
	#clientIp = compileClientIp({});
	#trustsPeer = compilePeerTrust({});
	#upstreamObserver: UpstreamObserver | undefined;

	constructor(port: MessagePort, startData: WorkerStartData, activity: ThreadActivity) {
		this.activity = activity;
		this.#port = port;
		this.#startData = startData;
		const controlWords = new Int32Array(startData.control);
		const stopsAt = (): number => Atomics.load(controlWords, CONTROL_STOPS_AT) * 1000;
		this.#hostFacts = hostFacts(startData.workingDirectory, startData.environment, stopsAt);
		this.#controlWords = controlWords;
		this.counters = counterRow(startData.counters);
		this.#maxConnections = maxConnectionsPerThread(descriptorLimit(), startData.threads);
		this.#seriesPages = new SeriesPages(
			buffer => this.#sendMessage({ type: 'page', buffer }),
			series => this.#sendMessage({ type: 'series', series }),
		);
		this.#moduleCounters = new ModuleCounters(this.#seriesPages);
		this.#leases = new ThreadLeases({
			index: startData.index,
			rowCount: startData.rows,
			threadCount: startData.threads,
			counters: this.counters,
			moduleCounters: this.#moduleCounters,
			accessLogs: {
				isTerminal: startData.terminal,
				clientIp: x => this.#clientIp(x),
				expand: machineText(this.#hostFacts),
			},
			pools: this.#poolDeps(),
			sendMessage: message => this.#sendMessage(message),
			askMainThread: question => this.#mainThread.ask(question),
			batchPort: sink => ({
				postText: (text, entries) => this.#sendMessage({ type: 'access', sink, text, entries }),
				postSegment: (memory, length, entries) =>
					this.#sendMessage({ type: 'access_segment', sink, lines: { memory, length }, entries }),
				reportDropped: entries => this.#countDroppedEntries(sink, entries),
				charsInTransit: controlWords,
				charsInTransitSlot: CONTROL_LOG_IN_TRANSIT + startData.index,
			}),
			sampler: createSampler(startData.environment),
			spanPort: {
				postText: (text, spans) => this.#sendMessage({ type: 'spans', text, spans }),
				reportDropped: spans => {
					this.counters[ROW_SLOT.spansDropped]! += spans;
				},
				charsInTransit: controlWords,
				charsInTransitSlot: CONTROL_LOG_IN_TRANSIT + startData.index,
			},
		});
		this.#listenerGates = new ListenerGates({
			row: startData.index,
			rows: startData.rows,
			sharedMemory: (key, slots) => this.#leases.listenerMemory(key, slots),
			clientIp: x => this.#clientIp(x),
			counters: this.counters,
		});
		this.generations = new Generations(controlWords, this.#leases.leaseRegistry);
		this.#tlsObserver = new TlsObserver(this.#seriesPages);
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
				void this.#runStep(message.attempt, () => this.#checkListeners());
				return;
			case 'accept':
				void this.#runStep(message.attempt, () => this.#acceptDeferred());
				return;
			case 'bequeath':
				this.#sendMessage({ type: 'bequeathed', attempt: message.attempt, datagrams: this.#collectDatagrams() });
				return;
			case 'drain':
				this.#drain(message);
				return;
			case 'close_abandoned':
				void this.#closeAbandoned();
				return;
			case 'make_room':
				this.#listeners.get(message.listener)?.makeRoom();
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
		const slot = CONTROL_LOG_IN_TRANSIT + this.#startData.index;
		// A flood of errors must not fill the main thread's memory.
		if (Atomics.load(this.#controlWords, slot) > MAX_LOG_IN_TRANSIT_CHARS) {
			this.counters[ROW_SLOT.processLogDropped]!++;
			return;
		}
		Atomics.add(this.#controlWords, slot, LOG_ENTRY_WEIGHT);
		this.#sendMessage({ type: 'log', entry });
	}

	/**
	 * Counts dropped entries, and reports them in batches, because a log that is too slow drops thousands of entries per second.
	 */
	#countDroppedEntries(sink: string, entryCount: number): void {
		this.counters[ROW_SLOT.accessLogDropped]! += entryCount;
		this.#droppedEntries.set(sink, (this.#droppedEntries.get(sink) ?? 0) + entryCount);
		const now = performance.now();
		if (now < this.#nextDropReportAt) return;
		this.#nextDropReportAt = now + 1000;
		for (const [writerKey, count] of this.#droppedEntries)
			this.#sendMessage({ type: 'access_dropped', sink: writerKey, entries: count });
		this.#droppedEntries.clear();
	}

	onConnectionEnded(): void {
		// The protocol decrements its connection count only after this call, so the check is deferred.
		setImmediate(() => this.#reportDrained());
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
			await this.#bindListeners(listeners, buildResult.shared);
			for (const address of listeners) {
				await this.#listenerGates.prepare(address, buildResult.shared.settings);
				await this.#prepareHandshakeRate(address);
			}
			if (this.#currentBuild !== build) return;
			this.#sendMessage({ type: 'prepared', attempt });
		} catch (error) {
			if (error instanceof BuildAborted) return;
			this.#discardBuild();
			this.#sendMessage({ type: 'refused', attempt, ...toBuildProblem(error) });
		}
	}

	async #bindListeners(listeners: readonly ListenerAddress[], shared: SharedDocumentParts): Promise<void> {
		if (listeners.some(({ http3 }) => http3 !== undefined)) await waitForQuic();
		for (const address of listeners) {
			if (this.#listeners.has(address.key)) continue;
			const host = new RequestHost(address.key, this);
			const { metrics } = shared.settings;
			const serverName = serverSettingsFor(shared.settings, address).name ?? socketText(address);
			if (metrics) host.observer = new HttpObserver(this.#seriesPages, serverName, metrics);
			const listener = new WorkerListener(
				address,
				address.scheme === 'https'
					? this.#createTlsServer(address, host)
					: createCleartextServer(host, () => host.protocols),
				{
					countRefusal: reason => host.countRefusal(reason),
					hasRoom: () => this.#hasRoom(),
					countDisplaced: connections => this.#countClosedIdle(connections),
					askForRoom: () => this.#sendMessage({ type: 'room_wanted', listener: address.key }),
					onAcceptFailed: error => this.#onAcceptFailure(address, error),
				},
			);
			this.#hostsByListener.set(listener, host);
			this.#pendingListeners.push(listener);
			if (!address.deferred) await this.#startListening(listener);
		}
		for (const address of listeners) if (!address.deferred) this.#bindQuic(address);
	}

	async #startListening(listener: WorkerListener): Promise<void> {
		const { address } = listener;
		const sockets = await listener.bind(this.#startData.sharePorts).catch(error => {
			throw listenError(error, address);
		});
		if (sockets.length > 0) this.#sendMessage({ type: 'listening', key: address.key, sockets });
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

	async #checkListeners(): Promise<void> {
		for (const listener of this.#listeners.values()) {
			const { address, protocol } = listener;
			try {
				await listener.check();
				if (address.http3 === undefined || !isTlsServer(protocol)) continue;
				await checkQuicListener(this.#quicDeps(listener, protocol, address.port));
			} catch (error) {
				const problem = (error as Error).message;
				throw new ListenError('EIO', socketText(address), `a test request failed: ${problem}`);
			}
		}
	}

	/** Begins to accept connections on the addresses whose listening was deferred because the predecessor still serves them. */
	async #acceptDeferred(): Promise<void> {
		for (const listener of this.#listeners.values()) {
			if (listener.isBound) continue;
			await this.#startListening(listener);
			this.#bindQuic(listener.address);
			this.#configureListener(listener);
		}
	}

	/**
	 * Binds the UDP socket of a listener that offers HTTP/3. Throws ListenError if binding fails although the configuration names
	 * `h3`.
	 */
	#bindQuic(address: ListenerAddress): void {
		const { key, http3 } = address;
		if (http3 === undefined || this.#quicListeners.has(key) || this.#pendingQuicListeners.has(key)) return;
		const listener =
			this.#listeners.get(key) ?? this.#pendingListeners.find(candidate => candidate.address.key === key)!;
		const boundAddress = listener.boundAddress;
		const { protocol } = listener;
		if (boundAddress === undefined || !isTlsServer(protocol)) {
			throw new ListenError('ENOTSUP', socketText(address), 'HTTP/3 (`h3`) needs an IP address and a port of its own');
		}
		const bindOptions = {
			address: boundAddress.address,
			port: boundAddress.port,
			only6: address.only6 === true,
			shared: this.#startData.sharePorts,
		};
		try {
			const quic = createQuicListener(
				bindOptions,
				this.#quicDeps(listener, protocol, boundAddress.port),
				address.datagrams,
			);
			this.#pendingQuicListeners.set(key, quic);
		} catch (error) {
			const missing = missingForQuic();
			const code = (error as NodeJS.ErrnoException).code ?? 'EIO';
			const reason = missing === undefined ? `the UDP port cannot be bound (${code})` : missing;
			if (http3 === 'named') throw http3UnavailableError(code, address, reason);
			this.log(withoutHttp3Entry(address, reason));
		}
	}

	#quicDeps(listener: WorkerListener, protocol: TlsServer, port: number): QuicListenerDeps {
		const host = this.#hostsByListener.get(listener)!;
		return {
			tls: this.tls,
			host,
			counters: host.http3,
			selector: () => protocol.selector,
			connectionTerms: protocol.connectionTerms,
			obtain: certificate => this.#mainThread.ask({ about: 'certificate', certificate }),
			admit: client => listener.admit(client),
			onHandshakeCompleted: (version, resumed) => this.#tlsObserver.countCompleted(version, resumed),
			countFailure: reason => this.#onHandshakeFailure(port, reason),
			log: entry => this.log(entry),
			onConnectionEnded: () => this.#onQuicEnd(listener.address.key),
		};
	}

	/** Returns the UDP sockets for a successor of this process. */
	#collectDatagrams(): [key: string, datagrams: BequeathedDatagrams[]][] {
		const openListeners = [...this.#quicListeners].filter(([, quic]) => this.isDraining || !quic.draining);
		return openListeners.map(([key, quic]) => [key, quic.bequeath()]);
	}

	#protocolsOf(address: ListenerAddress, { protocols, settings }: SharedDocumentParts): readonly string[] {
		return protocols?.[address.key] ?? protocolsOf(serverSettingsFor(settings, address));
	}

	/** Called when a listener that no longer offers HTTP/3 has closed its last HTTP/3 connection. */
	#onQuicEnd(key: string): void {
		const quic = this.#quicListeners.get(key);
		if (quic?.draining && quic.connections === 0 && !this.isDraining) {
			setImmediate(() => {
				if (!quic.draining || quic.connections > 0 || this.#quicListeners.get(key) !== quic) return;
				this.#quicListeners.delete(key);
				quic.close();
			});
		}
		if (this.isDraining) this.onConnectionEnded();
	}

	/** Gets the memory of the handshake counters that all threads of a TLS listener share. */
	async #prepareHandshakeRate({ scheme, key }: ListenerAddress): Promise<void> {
		if (scheme !== 'https' || this.#handshakeRates.has(key)) return;
		const memory = await this.#leases.listenerMemory(`handshakes ${key}`, HANDSHAKE_SLOT_COUNT);
		this.#handshakeRates.set(key, new HandshakeRate(memory));
	}

	/** Creates the TLS server that passes a listener's connections to its protocols. */
	#createTlsServer({ port }: ListenerAddress, host: RequestHost): ProtocolServer {
		const server = createTlsServer({
			tls: this.tls,
			port,
			protocols: () => host.protocols,
			http1: createHttp1Server(host),
			http2: createHttp2Server(host),
			obtain: certificate => this.#mainThread.ask({ about: 'certificate', certificate }),
			countHandshake: (version, resumed) => this.#tlsObserver.countCompleted(version, resumed),
			countFailure: reason => this.#onHandshakeFailure(port, reason),
			onConnectionEnded: () => this.onConnectionEnded(),
		});
		host.onNewGeneration = table => {
			host.tlsChecks = server.requestChecksFor(table?.tls);
		};
		return server;
	}

	#onHandshakeFailure(port: number, reason: string): void {
		this.#tlsObserver.countFailed(reason);
		if (!this.logsDebug) return;
		this.log({ level: 'debug', logger: 'tls.handshake', message: 'a handshake failed', fields: { port, reason } });
	}

	#activateGeneration(): void {
		this.#currentBuild = undefined;
		this.generations.currentGeneration();
		this.#sharedParts = this.#nextSharedParts ?? this.#sharedParts;
		this.#clientIp = compileClientIp(this.#sharedParts.settings);
		this.#trustsPeer = compilePeerTrust(this.#sharedParts.settings);
		if (this.#sharedParts.settings.metrics) this.#upstreamObserver ??= new UpstreamObserver(this.#seriesPages);
		const usedHandles = new Set(this.generations.newest.sites.flatMap(({ leases }) => leases));
		this.#leases.retirePools(handle => usedHandles.has(handle));
		this.logsDebug = this.#startData.verbose || wantsDebug(this.#sharedParts.settings);
		this.#nextSharedParts = undefined;
		for (const listener of this.#listeners.values()) this.#configureListener(listener);
		for (const listener of this.#pendingListeners.splice(0)) {
			this.#listeners.set(listener.address.key, listener);
			this.#configureListener(listener);
			listener.open();
		}
	}

	/** Applies the current settings to a listener. */
	#configureListener(listener: WorkerListener): void {
		const serverSettings = serverSettingsFor(this.#sharedParts.settings, listener.address);
		const host = this.#hostsByListener.get(listener)!;
		host.logsSteps = serverSettings.trace === true && this.logsDebug;
		host.logsCredentials = serverSettings.log_credentials === true;
		host.protocols = this.#protocolsOf(listener.address, this.#sharedParts);
		const newLimits = protocolLimits(serverSettings);
		// Protocols detect a change by the object's identity.
		if (!isDeepStrictEqual(newLimits, host.limits)) host.limits = newLimits;
		const { protocol, address } = listener;
		const tlsJson = this.generations.newest.tables.get(address.key)?.tls;
		if (isTlsServer(protocol) && tlsJson !== undefined) {
			protocol.configure(tlsJson);
			host.tlsChecks = protocol.requestChecksFor(tlsJson);
			const handshakeRate = this.#handshakeRates.get(address.key);
			handshakeRate?.configure(serverSettings.limits ?? {});
			protocol.limitHandshakes(handshakeRate, serverSettings.timeouts?.handshake);
			this.#configureQuic(protocol, host, address.key);
			this.#quicListeners
				.get(address.key)
				?.limitHandshakes(handshakeRate, serverSettings.timeouts?.handshake, serverSettings.quic);
		}
		host.admission = this.#listenerGates.applyLimits(listener.address, serverSettings.limits);
		listener.configure(serverSettings, host.admission);
	}

	/** Opens or drains a listener's HTTP/3 side, and sets the `Alt-Svc` value for other clients. */
	#configureQuic(protocol: TlsServer, host: RequestHost, key: string): void {
		const pendingQuic = this.#pendingQuicListeners.get(key);
		if (pendingQuic !== undefined) {
			this.#pendingQuicListeners.delete(key);
			this.#quicListeners.set(key, pendingQuic);
		}
		const quic = this.#quicListeners.get(key);
		const offersHttp3 = quic !== undefined && host.protocols.includes('h3');
		if (quic !== undefined) {
			protocol.http3Side = quic;
			if (offersHttp3) quic.open();
			else if (!quic.draining) {
				quic.drain();
				this.#onQuicEnd(key);
			}
		}
		host.altSvc = offersHttp3 ? quic.altSvcValue : undefined;
		const { selector } = protocol;
		const allPoliciesAdvertise = selector.settings.policies.every(advertisesHttp3);
		host.advertisesHttp3 = allPoliciesAdvertise
			? undefined
			: name => advertisesHttp3(selector.policy(selector.policyIndexOf(name)));
	}

	/**
	 * Reports whether descriptors are left for a connection. Without this check, a flood of connections would use up the
	 * descriptors that the Admin API and logs need.
	 */
	#hasRoom(): boolean {
		let connectionCount = 0;
		for (const listener of this.#listeners.values()) connectionCount += listener.connections;
		if (connectionCount < this.#maxConnections) {
			this.#placeMaker.resetFreedSlots();
			return true;
		}
		if (this.#placeMaker.makeRoom()) return true;
		this.counters[overloadSlot('descriptors')]!++;
		this.#descriptorShortage.onRefusal(this.#maxConnections, performance.now());
		return false;
	}

	#countClosedIdle(connections: number): void {
		this.counters[ROW_SLOT.gaveWay]! += connections;
	}

	*#listenerProtocols(): Generator<ProtocolServer> {
		for (const { protocol } of this.#listeners.values()) yield protocol;
	}

	#onAcceptFailure(address: ListenerAddress, error: NodeJS.ErrnoException): void {
		this.counters[ROW_SLOT.acceptFailures]!++;
		// Closes idle connections, which frees descriptors for new connections.
		this.#placeMaker.makeRoom();
		this.#descriptorShortage.onAcceptFailure(socketText(address), error, performance.now());
	}

	#poolDeps(): PoolDeps {
		const observer = () => this.#upstreamObserver;
		return {
			clientIp: x => this.#clientIp(x),
			trustsPeer: x => this.#trustsPeer(x),
			environment: this.#startData.environment,
			provideTls: material => this.#mainThread.ask({ about: 'upstream_tls', material }),
			shedCounter: pool => this.#moduleCounters.shedCounter(pool),
			onCutShort: (upstream, cause) =>
				this.log({
					level: 'warn',
					logger: 'http.reverse_proxy',
					message: 'a response was cut short',
					fields: { upstream, cause },
				}),
			onAvailabilityChange: change => this.log(availabilityEntry(change)),
			onStderr: (text, status) => this.#logFastcgiStderr(text, status),
			requestBodyMemory: new RequestBodyMemory(bufferedBytesPerThread(this.#startData.threads), () =>
				this.#onBodyMemoryExhausted(),
			),
			get upstreamObserver() {
				return observer();
			},
		};
	}

	/** Counts a request that is refused because of other requests with buffered bodies, and logs it at most once per minute. */
	#onBodyMemoryExhausted(): void {
		this.counters[overloadSlot('buffered_bodies')]!++;
		const refused = this.#bodyMemoryRefusals.count(performance.now());
		if (refused === undefined) return;
		this.log({
			level: 'warn',
			logger: 'http.reverse_proxy.transport.fastcgi',
			message: 'requests are refused: too many bodies without a Content-Length are in memory',
			fields: { bytes_per_thread: bufferedBytesPerThread(this.#startData.threads), refused },
		});
	}

	/** Logs what a FastCGI application wrote to standard error. */
	#logFastcgiStderr(text: string, status: number): void {
		const level = status >= 400 ? 'error' : 'warn';
		for (const line of text.split(/\r?\n/)) {
			if (line.trim() === '') continue;
			this.log({ level, logger: 'http.reverse_proxy.transport.fastcgi', message: line, fields: { status } });
		}
	}

	#discardBuild(): void {
		this.#currentBuild?.abort();
		this.#currentBuild = undefined;
		this.#nextSharedParts = undefined;
		this.generations.discard();
		for (const quic of this.#pendingQuicListeners.values()) quic.close();
		this.#pendingQuicListeners.clear();
		for (const listener of this.#pendingListeners.splice(0)) {
			this.#hostsByListener.delete(listener);
			listener.close();
		}
	}

	#drain({ waits, abandoned }: Extract<MessageToWorker, { type: 'drain' }>): void {
		this.#discardBuild();
		this.isDraining = true;
		const abandonedKeys = new Set(abandoned);
		for (const [key, listener] of this.#listeners) {
			if (abandonedKeys.has(key)) this.#abandonedListeners.add(listener);
			listener.drain(waits, this.#abandonedListeners.has(listener));
		}
		this.#reportDrained();
	}

	async #closeAbandoned(): Promise<void> {
		await Promise.all([...this.#abandonedListeners].map(listener => listener.finishAccepting()));
		this.#abandonedListeners.clear();
		this.#reportDrained();
	}

	#reportDrained(): void {
		if (this.#hasReportedDrained || this.#abandonedListeners.size > 0) return;
		for (const { protocol } of this.#listeners.values()) if (protocol.connections > 0) return;
		this.#hasReportedDrained = true;
		this.#leases.flushLogs();
		this.#sendMessage({ type: 'drained' });
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

/** Reports whether a listener's connections begin with TLS. Does not load the code of TLS, unlike `instanceof`. */
function isTlsServer(protocol: ProtocolServer): protocol is TlsServer {
	return protocol.performsTls === true;
}

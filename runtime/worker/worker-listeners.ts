/** The listeners of a worker thread: bound for a generation, opened when it is served, configured with each load, and drained at the end. */
import { isDeepStrictEqual } from 'node:util';
import { socketText } from '../../compiler/codegen/plan/planned-socket.ts';
import { serverSettingsFor } from '../../compiler/document/server-settings.ts';
import { protocolsOf } from '../../compiler/modules/options/servers/protocols.ts';
import type { CertificateRequestedByClient } from '../certificates/certificate-feed.ts';
import { ConnectionRoom } from '../listeners/connection-room.ts';
import type { ListenerAddress } from '../listeners/listener-address.ts';
import { ListenerGates } from '../listeners/listener-gates.ts';
import { ListenError, listenError } from '../listeners/port-probe.ts';
import { protocolLimits } from '../listeners/protocol-limits.ts';
import { joinQuicThreads, waitForQuic } from '../listeners/quic-listener.ts';
import { WorkerListener } from '../listeners/worker-listener.ts';
import { HttpObserver } from '../metrics/http-observer.ts';
import type { SeriesPages } from '../metrics/series-pages.ts';
import { createHttp1Server } from '../protocols/http1/http1-server.ts';
import { createCleartextServer } from '../protocols/http2/cleartext-server.ts';
import { createHttp2Server } from '../protocols/http2/http2-server.ts';
import type { ProtocolServer, RequestWaits } from '../protocols/protocol.ts';
import type { BequeathedDatagrams } from '../sockets/bequeathed-sockets.ts';
import { HANDSHAKE_SLOT_COUNT, HandshakeRate } from '../tls/handshake-rate.ts';
import { TlsObserver } from '../tls/tls-observer.ts';
import { createTlsServer, type TlsServer } from '../tls/tls-server.ts';
import type { SharedDocumentParts } from './generation-builder.ts';
import { RequestHost, type RequestHostThread } from './request-host.ts';
import type { MessageFromWorker } from './worker-messages.ts';
import { type TlsListener, WorkerQuic } from './worker-quic.ts';

export interface WorkerListenersDeps {
	/** What the hosts of all listeners share. */
	readonly thread: RequestHostThread;
	/** Index of the thread's row in shared memory. */
	readonly row: number;
	/** Number of rows in shared memory. */
	readonly rows: number;
	/** Whether several threads bind each address. */
	readonly sharePorts: boolean;
	/** Maximum number of connections of the thread. */
	readonly maxConnections: number;
	readonly seriesPages: SeriesPages;
	/** Returns the settings and protocols of the generation that is served. */
	servedParts(): SharedDocumentParts;
	/** Returns memory that all threads share under a key: a number of slots for each thread, and a number of common ones. */
	sharedMemory(key: string, slotCount: number, commonCount?: number): Promise<SharedArrayBuffer>;
	/** Obtains a certificate that a handshake needs. Resolves to true once it has been published. */
	obtainCertificate(certificate: CertificateRequestedByClient): Promise<boolean>;
	sendMessage(message: MessageFromWorker): void;
	/** Called once, when every connection of the draining thread has ended. */
	onDrained(): void;
}

export class WorkerListeners {
	readonly #deps: WorkerListenersDeps;
	/** The listeners of the generation that is served, by key. */
	readonly #listeners = new Map<string, WorkerListener>();
	/** Listeners bound for a generation that is not served yet. */
	#pendingListeners: WorkerListener[] = [];
	readonly #hostsByListener = new Map<WorkerListener, RequestHost>();
	readonly #gates: ListenerGates;
	readonly #room: ConnectionRoom;
	readonly #tlsObserver: TlsObserver;
	readonly #handshakeRates = new Map<string, HandshakeRate>();
	readonly #quic: WorkerQuic;
	/** The listeners that still accept connections while the thread drains. */
	readonly #abandonedListeners = new Set<WorkerListener>();
	#hasReportedDrained = false;

	constructor(deps: WorkerListenersDeps) {
		const { thread, row, rows, sharePorts, seriesPages } = deps;
		this.#deps = deps;
		this.#gates = new ListenerGates({
			row,
			rows,
			sharedMemory: (key, slots) => deps.sharedMemory(key, slots),
			clientIp: x => thread.clientIp(x),
			counters: thread.counters,
		});
		this.#room = new ConnectionRoom(deps.maxConnections, thread.counters, this.#listeners, entry => thread.log(entry));
		this.#tlsObserver = new TlsObserver(seriesPages);
		this.#quic = new WorkerQuic({
			thread,
			sharePorts,
			obtainCertificate: certificate => deps.obtainCertificate(certificate),
			onHandshakeCompleted: (version, resumed) => this.#tlsObserver.countCompleted(version, resumed),
			onHandshakeFailed: (port, reason) => this.#onHandshakeFailed(port, reason),
		});
	}

	/** Binds the listeners that a generation needs and the thread does not have. Rejects with ListenError if that is not possible. */
	async prepare(addresses: readonly ListenerAddress[], shared: SharedDocumentParts): Promise<void> {
		await this.#bind(addresses, shared);
		for (const address of addresses) {
			await this.#gates.prepare(address, shared.settings);
			await this.#prepareHandshakeRate(address);
		}
	}

	/** Applies the settings of a generation that is now served to all listeners, and opens those that were bound for it. */
	activate(): void {
		for (const listener of this.#listeners.values()) this.#configure(listener);
		for (const listener of this.#pendingListeners.splice(0)) {
			this.#listeners.set(listener.address.key, listener);
			this.#configure(listener);
			listener.open();
		}
	}

	/** Closes the listeners that were bound for a generation that will not be served. */
	discardPending(): void {
		this.#quic.discardPending();
		for (const listener of this.#pendingListeners.splice(0)) {
			this.#hostsByListener.delete(listener);
			listener.close();
		}
	}

	/** Answers a request on each listener without using its socket. Rejects with ListenError if one does not answer. */
	async check(): Promise<void> {
		for (const listener of this.#listeners.values()) {
			const { address } = listener;
			try {
				await listener.check();
				const tlsListener = address.http3 === undefined ? undefined : this.#tlsListener(listener);
				if (tlsListener !== undefined) await this.#quic.check(tlsListener);
			} catch (error) {
				const problem = (error as Error).message;
				throw new ListenError('EIO', socketText(address), `a test request failed: ${problem}`);
			}
		}
	}

	/** Begins to accept connections on the addresses whose listening was deferred because the predecessor still serves them. */
	async acceptDeferred(): Promise<void> {
		for (const listener of this.#listeners.values()) {
			if (listener.isBound) continue;
			await this.#startListening(listener);
			this.#quic.bind(listener.address, this.#tlsListener(listener));
			this.#configure(listener);
		}
	}

	/** Closes idle connections of a listener, because another thread needs room for new ones. */
	makeRoom(key: string): void {
		this.#listeners.get(key)?.makeRoom();
	}

	/** Returns the UDP sockets for a successor of this process. */
	collectDatagrams(): [key: string, datagrams: BequeathedDatagrams[]][] {
		return this.#quic.collectDatagrams();
	}

	/**
	 * Stops accepting connections and finishes the open ones. The listeners with the keys `abandoned` accept connections until
	 * {@link closeAbandoned} is called, because no other process does.
	 */
	drain(waits: RequestWaits, abandoned: readonly string[]): void {
		const abandonedKeys = new Set(abandoned);
		for (const [key, listener] of this.#listeners) {
			if (abandonedKeys.has(key)) this.#abandonedListeners.add(listener);
			listener.drain(waits, this.#abandonedListeners.has(listener));
		}
		this.reportIfDrained();
	}

	async closeAbandoned(): Promise<void> {
		await Promise.all([...this.#abandonedListeners].map(listener => listener.finishAccepting()));
		this.#abandonedListeners.clear();
		this.reportIfDrained();
	}

	/** Calls `onDrained` if every connection of the draining thread has ended. Must be called when one has ended. */
	reportIfDrained(): void {
		if (this.#hasReportedDrained || this.#abandonedListeners.size > 0) return;
		for (const { protocol } of this.#listeners.values()) if (protocol.connections > 0) return;
		this.#hasReportedDrained = true;
		this.#deps.onDrained();
	}

	async #bind(addresses: readonly ListenerAddress[], shared: SharedDocumentParts): Promise<void> {
		if (addresses.some(({ http3 }) => http3 !== undefined)) await this.#prepareQuic();
		for (const address of addresses) {
			if (this.#listeners.has(address.key)) continue;
			const listener = this.#createListener(address, shared);
			this.#pendingListeners.push(listener);
			if (!address.deferred) await this.#startListening(listener);
		}
		for (const address of addresses) {
			if (address.deferred) continue;
			const { key } = address;
			const listener = this.#listeners.get(key) ?? this.#pendingListeners.find(one => one.address.key === key)!;
			this.#quic.bind(address, this.#tlsListener(listener));
		}
	}

	#createListener(address: ListenerAddress, { settings }: SharedDocumentParts): WorkerListener {
		const { thread, seriesPages, sendMessage } = this.#deps;
		const host = new RequestHost(address.key, thread);
		const { metrics } = settings;
		const serverName = serverSettingsFor(settings, address).name ?? socketText(address);
		if (metrics) host.observer = new HttpObserver(seriesPages, serverName, metrics);
		const protocol =
			address.scheme === 'https'
				? this.#createTlsServer(address, host)
				: createCleartextServer(host, () => host.protocols);
		const listener = new WorkerListener(address, protocol, {
			countRefusal: reason => host.countRefusal(reason),
			hasRoom: () => this.#room.hasRoom(),
			countDisplaced: connections => this.#room.countDisplaced(connections),
			askForRoom: () => sendMessage({ type: 'room_wanted', listener: address.key }),
			onAcceptFailed: error => this.#room.onAcceptFailed(address, error),
		});
		this.#hostsByListener.set(listener, host);
		return listener;
	}

	/** Creates the TLS server that passes a listener's connections to its protocols. */
	#createTlsServer({ port }: ListenerAddress, host: RequestHost): ProtocolServer {
		const { thread, obtainCertificate } = this.#deps;
		const server = createTlsServer({
			tls: thread.tls,
			port,
			protocols: () => host.protocols,
			http1: createHttp1Server(host),
			http2: createHttp2Server(host),
			obtain: obtainCertificate,
			countHandshake: (version, resumed) => this.#tlsObserver.countCompleted(version, resumed),
			countFailure: reason => this.#onHandshakeFailed(port, reason),
			onConnectionEnded: () => thread.onConnectionEnded(),
		});
		host.onNewGeneration = table => {
			host.tlsChecks = server.requestChecksFor(table?.tls);
		};
		return server;
	}

	async #startListening(listener: WorkerListener): Promise<void> {
		const { address } = listener;
		const sockets = await listener.bind(this.#deps.sharePorts).catch(error => {
			throw listenError(error, address);
		});
		if (sockets.length > 0) this.#deps.sendMessage({ type: 'listening', key: address.key, sockets });
	}

	/** Waits until HTTP/3 can be used, and gets the memory with which threads find each other's HTTP/3 connections. */
	async #prepareQuic(): Promise<void> {
		const { row, rows } = this.#deps;
		await waitForQuic();
		await joinQuicThreads(row, rows, (slots, common) => this.#deps.sharedMemory('quic connections', slots, common));
	}

	/** Gets the memory of the handshake counters that all threads of a TLS listener share. */
	async #prepareHandshakeRate({ scheme, key }: ListenerAddress): Promise<void> {
		if (scheme !== 'https' || this.#handshakeRates.has(key)) return;
		const memory = await this.#deps.sharedMemory(`handshakes ${key}`, HANDSHAKE_SLOT_COUNT);
		this.#handshakeRates.set(key, new HandshakeRate(memory));
	}

	/** Applies the current settings to a listener. */
	#configure(listener: WorkerListener): void {
		const { thread } = this.#deps;
		const shared = this.#deps.servedParts();
		const { address } = listener;
		const serverSettings = serverSettingsFor(shared.settings, address);
		const host = this.#hostsByListener.get(listener)!;
		host.logsSteps = serverSettings.trace === true && thread.logsDebug;
		host.logsCredentials = serverSettings.log_credentials === true;
		host.protocols = shared.protocols?.[address.key] ?? protocolsOf(serverSettings);
		const newLimits = protocolLimits(serverSettings);
		// Protocols detect a change by the object's identity.
		if (!isDeepStrictEqual(newLimits, host.limits)) host.limits = newLimits;
		const tlsListener = this.#tlsListener(listener);
		const tlsJson = thread.generations.newest.tables.get(address.key)?.tls;
		if (tlsListener !== undefined && tlsJson !== undefined) {
			const { protocol } = tlsListener;
			const { limits, timeouts, quic } = serverSettings;
			protocol.configure(tlsJson);
			host.tlsChecks = protocol.requestChecksFor(tlsJson);
			const handshakeRate = this.#handshakeRates.get(address.key);
			handshakeRate?.configure(limits ?? {});
			protocol.limitHandshakes(handshakeRate, timeouts?.handshake);
			this.#quic.configure(tlsListener, handshakeRate, timeouts?.handshake, quic);
		}
		host.admission = this.#gates.applyLimits(address, serverSettings.limits);
		listener.configure(serverSettings, host.admission);
	}

	/**
	 * Returns a listener with its TLS server; undefined if its connections do not begin with TLS. Does not load the code of TLS,
	 * unlike `instanceof`.
	 */
	#tlsListener(listener: WorkerListener): TlsListener | undefined {
		const { protocol } = listener;
		if (protocol.performsTls !== true) return undefined;
		return { listener, protocol: protocol as TlsServer, host: this.#hostsByListener.get(listener)! };
	}

	#onHandshakeFailed(port: number, reason: string): void {
		const { thread } = this.#deps;
		this.#tlsObserver.countFailed(reason);
		if (!thread.logsDebug) return;
		thread.log({ level: 'debug', logger: 'tls.handshake', message: 'a handshake failed', fields: { port, reason } });
	}
}

/** One listening socket of one worker thread. Every thread binds the same address, and the kernel distributes connections. */
import type { AddressInfo, Socket } from 'node:net';
import type { ProxyProtocolWrapper, ServerSettings } from '../../compiler/document/server-settings.ts';
import { DEFAULT_KEEPALIVE_MS } from '../../compiler/modules/options/servers/keepalive.ts';
import { unmapAddress } from '../protocols/http1/socket-info.ts';
import { type ConnectionPeer, type ProtocolServer, type RequestWaits, UNIX_PEER } from '../protocols/protocol.ts';
import { createListeningSocket } from '../sockets/create-listening-socket.ts';
import { DirectSocket } from '../sockets/direct-socket.ts';
import type { ListeningOwner, ListeningSocket, SocketDescriptors, TcpKeepAlive } from '../sockets/listening-socket.ts';
import { hasDirectTls } from '../sockets/tls-handle.ts';
import type { Admission } from './admission.ts';
import type { ListenerAddress } from './listener-address.ts';
import { PlaceMaker } from './place-maker.ts';
import { bindOptions } from './port-probe.ts';
import { checkProtocol } from './protocol-check.ts';
import { ProxyReader } from './proxy-reader.ts';
import { RoomQueue } from './room-queue.ts';
import { ConnectionRejecter } from './turn-away.ts';

/** Callbacks for connections that are accepted or rejected before they reach the protocol. */
export interface ListenerEvents {
	/** Called when a connection was closed for one of the reasons in runtime/metrics/refusals.ts. */
	countRefusal(reason: string): void;
	/** Reports whether there is room for another connection. If not, the rejection has been counted. */
	hasRoom(): boolean;
	/** Called when connections were closed to make room for other connections. */
	countDisplaced(connections: number): void;
	/** Asks the other threads to close idle connections of the listener. */
	askForRoom(): void;
	/** Called when a connection could not be accepted: EMFILE, ENFILE, ENOBUFS, ENOMEM. */
	onAcceptFailed(error: NodeJS.ErrnoException): void;
}

/** A listener. It is bound first, and accepts connections once its generation is activated. */
export class WorkerListener implements ListeningOwner {
	readonly address: ListenerAddress;
	readonly protocol: ProtocolServer;
	/**
	 * Usually one socket. After a handover to fewer threads, the thread may have the sockets of several threads of the predecessor.
	 */
	readonly #sockets: readonly ListeningSocket[];
	readonly #firstSocket: ListeningSocket;
	#isBound = false;
	readonly #events: ListenerEvents;
	#heldConnections: Socket[] | undefined = [];
	#admission: Admission | undefined;
	#proxyReader: ProxyReader | undefined;
	/** Connections whose PROXY header has not arrived. */
	readonly #socketsAwaitingHeader = new Set<Socket>();
	readonly #rejecter = new ConnectionRejecter();
	readonly #placeMaker: PlaceMaker;
	readonly #roomQueue: RoomQueue;
	#settings: ServerSettings = {};

	constructor(address: ListenerAddress, protocol: ProtocolServer, events: ListenerEvents) {
		this.address = address;
		this.protocol = protocol;
		this.#events = events;
		this.#placeMaker = new PlaceMaker(
			() => [protocol],
			connections => events.countDisplaced(connections),
		);
		this.#roomQueue = new RoomQueue(
			() => this.#admission?.hasConnectionRoom !== false,
			() => events.askForRoom(),
		);
		this.#sockets = Array.from({ length: address.inherited?.length || 1 }, () => createListeningSocket(this));
		this.#firstSocket = this.#sockets[0]!;
		// Connections that arrive before the first settings get the default keep-alive settings.
		for (const socket of this.#sockets) socket.configure(keepAliveOf({}));
	}

	/** Sets the settings for new connections. Throws RangeError for an invalid IP range. */
	configure(settings: ServerSettings, admission: Admission | undefined): void {
		const proxySettings = settings.listener_wrappers?.find(
			(wrapper): wrapper is ProxyProtocolWrapper => wrapper.wrapper === 'proxy_protocol',
		);
		this.#proxyReader = proxySettings && new ProxyReader(proxySettings, reason => this.#events.countRefusal(reason));
		this.#admission = admission;
		this.#settings = settings;
		for (const socket of this.#sockets) socket.configure(keepAliveOf(settings));
	}

	/**
	 * Binds the listener. Rejects with the system's error. Resolves to the descriptors of the sockets, which the main thread keeps;
	 * to an empty list if the sockets cannot be duplicated.
	 * @param shared True if other threads bind the same address.
	 */
	async bind(shared: boolean): Promise<SocketDescriptors[]> {
		const { port, descriptor, inherited } = this.address;
		const descriptors = inherited ?? (descriptor === undefined ? [] : [descriptor]);
		for (const [at, socket] of this.#sockets.entries()) {
			const inheritedDescriptor = descriptors[at];
			await socket.listen(
				inheritedDescriptor === undefined
					? { port, reusePort: shared, ...bindOptions(this.address) }
					: { descriptor: inheritedDescriptor },
			);
		}
		this.#isBound = true;
		return this.#sockets.flatMap(socket => socket.duplicate() ?? []);
	}

	/** True once the listener is bound. A deferred listener is bound only when the thread is told to accept connections. */
	get isBound(): boolean {
		return this.#isBound;
	}

	/**
	 * Checks that the protocol still responds: sends it a malformed request, over a loopback connection that bypasses the listener's
	 * socket. No site sees the request. Rejects if there is no response.
	 */
	check(): Promise<void> {
		return checkProtocol(this.protocol, this.address.scheme);
	}

	// Members that the listening sockets use (ListeningOwner).

	/**
	 * True if accepted connections must be Node streams: while waiting for the first settings, to read a PROXY header, and for
	 * Node's TLS.
	 */
	get needsStream(): boolean {
		if (this.#heldConnections !== undefined || this.#proxyReader !== undefined) return true;
		return this.address.scheme === 'https' && !hasDirectTls();
	}

	onAccepted(socket: Socket | DirectSocket): void {
		if (!this.#heldConnections || socket instanceof DirectSocket) {
			this.#handleSocket(socket);
			return;
		}
		socket.on('error', ignoreError);
		this.#heldConnections.push(socket);
	}

	onAcceptFailed(error: NodeJS.ErrnoException): void {
		this.#events.onAcceptFailed(error);
	}

	/** Starts to accept connections, beginning with those that have arrived since binding. */
	open(): void {
		const heldConnections = this.#heldConnections;
		this.#heldConnections = undefined;
		for (const socket of heldConnections ?? []) {
			socket.off('error', ignoreError);
			// The client has closed its side without sending anything, so it expects no response. The protocol would miss the `end` event,
			// which has already been emitted.
			if (socket.readableEnded) socket.destroy();
			else this.#handleSocket(socket);
		}
	}

	/** Number of open sockets, including those that have not reached the protocol. */
	get connections(): number {
		return this.#socketsAwaitingHeader.size + this.protocol.connections - (this.protocol.connectionsWithoutSocket ?? 0);
	}

	/** The IP address and port that are bound; undefined for a Unix socket or an inherited socket. */
	get boundAddress(): AddressInfo | undefined {
		return this.address.host.includes('/') ? undefined : this.#firstSocket.address;
	}

	/**
	 * Counts a connection that another socket of this listener, such as its UDP socket, has accepted. Returns a function to call
	 * when the connection ends, or undefined if there are too many connections.
	 */
	admit(address: string): (() => void) | undefined {
		const admission = this.#admission;
		return admission?.limitsConnections ? admission.admit(address, this.#placeMaker) : () => {};
	}

	/** Closes idle connections, because another thread needs room for new ones. */
	makeRoom(): void {
		// While connections wait here, too, this thread has no idle ones: the request may be its own.
		if (!this.#roomQueue.hasWaiting) this.#placeMaker.closeIdle();
	}

	/**
	 * Stops accepting connections. Open connections end after their current exchange or the next one; see `ProtocolServer.drain`.
	 * @param continuesAccepting True to accept connections until {@link finishAccepting} is called. They are treated like open ones.
	 */
	drain(requestWaits: RequestWaits, continuesAccepting = false): void {
		if (!continuesAccepting) this.#stopListening(requestWaits.nextRequestMs > 0);
		this.protocol.drain(requestWaits);
	}

	/** Accepts the connections that are waiting, and stops listening. Must be called after {@link drain}. */
	async finishAccepting(): Promise<void> {
		await Promise.all(this.#sockets.map(socket => socket.acceptWaiting()));
		this.#stopListening(true);
	}

	/** Closes the listener and every connection at once. */
	close(): void {
		this.#stopListening();
		this.protocol.close();
	}

	#handleSocket(socket: Socket | DirectSocket): void {
		if (!this.#events.hasRoom()) {
			this.#refuse(socket, this.#admission?.retryAfter ?? '1');
			return;
		}
		this.#firstSocket.prepare(socket);
		const proxyReader = this.#proxyReader;
		if (!proxyReader || socket instanceof DirectSocket) {
			this.#admit(socket, undefined);
			return;
		}
		const maxConnections = this.#settings.limits?.connections ?? 0;
		if (maxConnections > 0 && this.#socketsAwaitingHeader.size >= maxConnections) {
			socket.on('error', ignoreError);
			socket.destroy();
			return;
		}
		const forget = (): void => void this.#socketsAwaitingHeader.delete(socket);
		this.#socketsAwaitingHeader.add(socket);
		socket.once('close', forget);
		proxyReader.read(socket, this.#firstSocket.isUnix, peer => {
			socket.off('close', forget);
			forget();
			this.#admit(socket, peer);
		});
	}

	/**
	 * @param proxyPeer The peer that a PROXY header names.
	 * @param hasWaited True if the connection has waited for room.
	 */
	#admit(socket: Socket | DirectSocket, proxyPeer: ConnectionPeer | undefined, hasWaited = false): void {
		const peer = proxyPeer ?? (this.#firstSocket.isUnix ? UNIX_PEER : undefined);
		const admission = this.#admission;
		if (admission?.limitsConnections) {
			const address = peer?.remoteAddress ?? socket.remoteAddress;
			if (address === undefined) {
				// The connection was reset before it was accepted. Its address is unknown, so it cannot be counted, and no client is waiting
				// for a response.
				if (!(socket instanceof DirectSocket)) socket.on('error', ignoreError);
				socket.destroy();
				return;
			}
			const release = admission.admit(
				unmapAddress(address),
				this.#placeMaker,
				() => !hasWaited && proxyPeer === undefined && this.#waitForRoom(socket),
			);
			if (release === 'waits') return;
			if (!release) {
				this.#refuse(socket, admission.retryAfter);
				return;
			}
			if (socket instanceof DirectSocket) socket.onClosed = release;
			else socket.once('close', release);
		}
		this.protocol.accept(socket, this.address.scheme, peer);
	}

	/** Lets a connection wait until other threads have closed idle ones. Returns false if it must be rejected at once. */
	#waitForRoom(socket: Socket | DirectSocket): boolean {
		const isStream = !(socket instanceof DirectSocket);
		const isWaiting = this.#roomQueue.add(socket, () => {
			if (isStream) socket.off('error', ignoreError);
			if (!socket.destroyed) this.#admit(socket, undefined, true);
		});
		if (isWaiting && isStream) socket.on('error', ignoreError);
		return isWaiting;
	}

	#refuse(socket: Socket | DirectSocket, retryAfterSeconds: string): void {
		const stream = socket instanceof DirectSocket ? socket.toSocket() : socket;
		this.#rejecter.refuse(stream, this.address.scheme, retryAfterSeconds);
	}

	#stopListening(keepsWaitingSockets = false): void {
		for (const socket of this.#sockets) socket.close();
		for (const socket of this.#heldConnections ?? []) socket.destroy();
		this.#heldConnections = undefined;
		if (!keepsWaitingSockets) for (const socket of this.#socketsAwaitingHeader) socket.destroy();
		this.#roomQueue.close();
		this.#rejecter.close();
	}
}

/** Returns the TCP keep-alive settings; undefined to turn keep-alive off. The system accepts only whole seconds, at least 1. */
function keepAliveOf(settings: ServerSettings): TcpKeepAlive | undefined {
	const { keepalive_interval: intervalMs = DEFAULT_KEEPALIVE_MS, keepalive_idle: idleMs = DEFAULT_KEEPALIVE_MS } =
		settings;
	if (intervalMs < 0) return undefined;
	return { idleMs: Math.max(1000, idleMs), intervalMs: Math.max(1000, intervalMs), count: settings.keepalive_count };
}

function ignoreError(): void {}

/** One listening socket of one worker thread. Every thread binds the same address, and the kernel distributes connections. */
import type { AddressInfo, Socket } from 'node:net';
import type { ProxyProtocolWrapper, ServerSettings } from '../../compiler/document/server-settings.ts';
import { DEFAULT_KEEPALIVE_MS } from '../../compiler/modules/options/servers/keepalive.ts';
import { unmapAddress } from '../protocols/http1/socket-info.ts';
import { type ConnectionPeer, type ProtocolServer, type RequestWaits, UNIX_PEER } from '../protocols/protocol.ts';
import { DirectSocket } from '../sockets/direct-socket.ts';
import {
	createListeningSocket,
	type ListeningOwner,
	type ListeningSocket,
	type SocketDescriptors,
	type TcpKeepAlive,
} from '../sockets/listening-socket.ts';
import { HAS_DIRECT_TLS } from '../sockets/tls-handle.ts';
import type { Admission } from './admission.ts';
import type { ListenerAddress } from './listener-address.ts';
import { PlaceMaker } from './place-maker.ts';
import { bindOptions } from './port-probe.ts';
import { checkProtocol } from './protocol-check.ts';
import { ProxyReader } from './proxy-reader.ts';
import { ConnectionRejecter } from './turn-away.ts';

/** Events about connections that never reach the protocol. */
export interface ListenerEvents {
	/** Called when a connection was closed for one of the reasons in runtime/metrics/refusals.ts. */
	refused(reason: string): void;
	/** Reports whether there is room for another connection. If not, the rejection has been counted. */
	hasRoom(): boolean;
	/** Called when connections were closed to make room for others. */
	gaveWay(connections: number): void;
	/** Called when a connection could not be accepted: EMFILE, ENFILE, ENOBUFS, ENOMEM. */
	acceptFailed(error: NodeJS.ErrnoException): void;
}

/** A listener. It is bound first, and accepts connections once its generation is activated. */
export class WorkerListener implements ListeningOwner {
	readonly address: ListenerAddress;
	readonly protocol: ProtocolServer;
	/** Usually one socket; several if the thread continues with the sockets of several threads of the predecessor. */
	readonly #sockets: readonly ListeningSocket[];
	readonly #socket: ListeningSocket;
	#isBound = false;
	readonly #events: ListenerEvents;
	#held: Socket[] | undefined = [];
	#admission: Admission | undefined;
	#proxyReader: ProxyReader | undefined;
	/** Connections whose PROXY header has not arrived. */
	readonly #unread = new Set<Socket>();
	readonly #away = new ConnectionRejecter();
	readonly #places: PlaceMaker;
	#settings: ServerSettings = {};

	constructor(address: ListenerAddress, protocol: ProtocolServer, events: ListenerEvents) {
		this.address = address;
		this.protocol = protocol;
		this.#events = events;
		this.#places = new PlaceMaker(
			() => [protocol],
			connections => events.gaveWay(connections),
		);
		this.#sockets = Array.from({ length: address.inherited?.length || 1 }, () => createListeningSocket(this));
		this.#socket = this.#sockets[0]!;
		// For connections that arrive before the first settings do.
		for (const socket of this.#sockets) socket.configure(keepAliveOf({}));
	}

	/** Sets the settings for new connections. Throws RangeError for an invalid IP range. */
	configure(settings: ServerSettings, admission: Admission | undefined): void {
		const header = settings.listener_wrappers?.find(
			(found): found is ProxyProtocolWrapper => found.wrapper === 'proxy_protocol',
		);
		this.#proxyReader = header && new ProxyReader(header, reason => this.#events.refused(reason));
		this.#admission = admission;
		this.#settings = settings;
		for (const socket of this.#sockets) socket.configure(keepAliveOf(settings));
	}

	/**
	 * Binds the listener. Rejects with the system's error. Resolves to the descriptors of the sockets, which the main thread keeps; none
	 * if they cannot be duplicated.
	 * @param shared True if other threads bind the same address.
	 */
	async bind(shared: boolean): Promise<SocketDescriptors[]> {
		const { port, descriptor, inherited } = this.address;
		const given = inherited ?? (descriptor === undefined ? [] : [descriptor]);
		for (const [at, socket] of this.#sockets.entries()) {
			const from = given[at];
			await socket.listen(
				from === undefined ? { port, reusePort: shared, ...bindOptions(this.address) } : { descriptor: from },
			);
		}
		this.#isBound = true;
		return this.#sockets.flatMap(socket => socket.duplicate() ?? []);
	}

	/** False until a deferred listener has been bound. */
	get isBound(): boolean {
		return this.#isBound;
	}

	/**
	 * Checks that the protocol still responds: sends it a malformed request, over a connection in memory that bypasses the
	 * listener's socket. No site sees the request. Rejects if there is no response.
	 */
	check(): Promise<void> {
		return checkProtocol(this.protocol, this.address.scheme);
	}

	// Implements ListeningOwner.

	/** True if connections must be streams: while waiting for the first settings, to read a PROXY header, and for Node's TLS. */
	get needsStream(): boolean {
		if (this.#held !== undefined || this.#proxyReader !== undefined) return true;
		return this.address.scheme === 'https' && !HAS_DIRECT_TLS;
	}

	accepted(socket: Socket | DirectSocket): void {
		if (!this.#held || socket instanceof DirectSocket) {
			this.#take(socket);
			return;
		}
		socket.on('error', ignore);
		this.#held.push(socket);
	}

	acceptFailed(error: NodeJS.ErrnoException): void {
		this.#events.acceptFailed(error);
	}

	/** Starts to accept connections, beginning with those that have arrived since binding. */
	open(): void {
		const held = this.#held;
		this.#held = undefined;
		for (const socket of held ?? []) {
			socket.off('error', ignore);
			// The socket's `end` event has already been emitted, so protocols would miss it. The client sent nothing and expects
			// nothing.
			if (socket.readableEnded) socket.destroy();
			else this.#take(socket);
		}
	}

	/** Number of open sockets, including those that have not reached the protocol. */
	get connections(): number {
		return this.#unread.size + this.protocol.connections - (this.protocol.withoutSocket ?? 0);
	}

	/** The IP address and port that are bound; undefined for a Unix socket and one that was inherited. */
	get bound(): AddressInfo | undefined {
		return this.address.host.includes('/') ? undefined : this.#socket.address;
	}

	/** Counts a connection from another socket. Returns a function to call at its end, or undefined if there are too many. */
	admit(address: string): (() => void) | undefined {
		const admission = this.#admission;
		return admission?.boundsConnections ? admission.connected(address, this.#places) : () => {};
	}

	/** Stops accepting. Open connections end after their current exchange or the next one; see `ProtocolServer.drain`. */
	drain(waits: RequestWaits): void {
		this.#stopListening(waits.next > 0);
		this.protocol.drain(waits);
	}

	/** Closes the listener and every connection at once. */
	close(): void {
		this.#stopListening();
		this.protocol.close();
	}

	#take(socket: Socket | DirectSocket): void {
		if (!this.#events.hasRoom()) {
			this.#refuse(socket, this.#admission?.retryAfter ?? '1');
			return;
		}
		this.#socket.prepare(socket);
		const reader = this.#proxyReader;
		if (!reader || socket instanceof DirectSocket) {
			this.#admit(socket, undefined);
			return;
		}
		const most = this.#settings.limits?.connections ?? 0;
		if (most > 0 && this.#unread.size >= most) {
			socket.on('error', ignore);
			socket.destroy();
			return;
		}
		const gone = (): void => void this.#unread.delete(socket);
		this.#unread.add(socket);
		socket.once('close', gone);
		reader.read(socket, this.#socket.isUnix, peer => {
			socket.off('close', gone);
			gone();
			this.#admit(socket, peer);
		});
	}

	/** @param named The peer according to a PROXY header. */
	#admit(socket: Socket | DirectSocket, named: ConnectionPeer | undefined): void {
		const peer = named ?? (this.#socket.isUnix ? UNIX_PEER : undefined);
		const admission = this.#admission;
		if (admission?.boundsConnections) {
			const address = peer?.remoteAddress ?? socket.remoteAddress;
			if (address === undefined) {
				// The connection was reset before it was accepted. Its address is unknown, so it cannot be counted, and nobody waits for a response.
				if (!(socket instanceof DirectSocket)) socket.on('error', ignore);
				socket.destroy();
				return;
			}
			const ended = admission.connected(unmapAddress(address), this.#places);
			if (!ended) {
				this.#refuse(socket, admission.retryAfter);
				return;
			}
			if (socket instanceof DirectSocket) socket.whenClosed = ended;
			else socket.once('close', ended);
		}
		this.protocol.accept(socket, this.address.scheme, peer);
	}

	#refuse(socket: Socket | DirectSocket, retryAfter: string): void {
		const given = socket instanceof DirectSocket ? socket.toSocket() : socket;
		this.#away.refuse(given, this.address.scheme, retryAfter);
	}

	#stopListening(gently = false): void {
		for (const socket of this.#sockets) socket.close();
		for (const socket of this.#held ?? []) socket.destroy();
		this.#held = undefined;
		if (!gently) for (const socket of this.#unread) socket.destroy();
		this.#away.close();
	}
}

/** Returns the TCP keep-alive settings; undefined to turn keep-alive off. The system counts in whole seconds, at least 1. */
function keepAliveOf(settings: ServerSettings): TcpKeepAlive | undefined {
	const { keepalive_interval: interval = DEFAULT_KEEPALIVE_MS, keepalive_idle: idle = DEFAULT_KEEPALIVE_MS } = settings;
	if (interval < 0) return undefined;
	return { idle: Math.max(1000, idle), interval: Math.max(1000, interval), count: settings.keepalive_count };
}

function ignore(): void {}

/**
 * The QUIC connections on one UDP socket of one thread. The kernel selects the socket by the addresses and ports of both ends
 * (SO_REUSEPORT), so all datagrams of a connection reach the same thread as long as its client keeps its address and port. A
 * connection follows its client to another port (see port-changes.ts), but not to another IP address.
 */

import { performance } from 'node:perf_hooks';
import type { BequeathedDatagrams, InheritedDatagrams } from '../bequeathed-sockets.ts';
import { readSocketAddress } from '../socket-address.ts';
import { ClientShares, COUNT_PERIOD_MS } from './client-shares.ts';
import type { AddressProof } from './connection-objects.ts';
import { type DatagramPath, SENT_DATAGRAM_BYTES } from './datagram-memory.ts';
import type { RelayedDatagram } from './datagram-relay.ts';
import { DeadlineHeap } from './deadline-heap.ts';
import type { InternalError } from './internal-error.ts';
import { createVersionNegotiation } from './packet-header.ts';
import type { QuicConnection } from './quic-connection.ts';
import { type EngineOwner, QuicEngine } from './quic-engine.ts';
import * as BOUND from './quic-limits.ts';
import { DEFAULT_QUIC_LIMITS, type QuicLimits } from './quic-limits.ts';
import type { HandshakeResult, QuicRefusal } from './quic-results.ts';
import type { QuicThread } from './quic-thread.ts';
import { type ChooseCertificate, QuicTls } from './quic-tls.ts';
import type { RetryTokens } from './retry-tokens.ts';
import { DatagramRouter } from './router.ts';
import type { HandshakeAlert } from './server-handshake.ts';
import { type SharingEndpoint, SocketSharing } from './socket-sharing.ts';
import type { PeerEndpoint } from './thread-peers.ts';
import { type UdpAddress, UdpSocket } from './udp-socket.ts';

/** Callbacks and settings of an endpoint's owner. */
export interface QuicEndpointOwner {
	/** Called when a handshake is complete. The owner must set `connection.owner`. */
	onConnected(connection: QuicConnection): void;
	/** Called when a handshake has ended, with its result, and the TLS alert with which it failed, if any. */
	onHandshakeEnded(result: HandshakeResult, resumed: boolean, alert?: HandshakeAlert): void;
	/**
	 * Called when a client has proven its address. Returns undefined if the client may not open another connection. Otherwise,
	 * returns a function to call when the connection ends.
	 */
	admit(address: string): (() => void) | undefined;
	/** Called when a connection has ended, or a handshake has failed. */
	onConnectionEnded(): void;
	onRefused(reason: QuicRefusal): void;
	countDatagrams(received: number, sent: number, lost: number): void;
	/** Called when a connection uses another port of its client. */
	onPortChanged(): void;
	/** Maximum milliseconds that a handshake may take. */
	readonly handshakeLimitMs: number;
	readonly chooseCertificate: ChooseCertificate;
	/** Limits that differ from the defaults. */
	readonly limits?: Partial<QuicLimits> | undefined;
	/** Returns the key of the client that has an address. Connections with equal keys are counted as one client's. */
	clientKey(address: string): string;
	/** Called when OpenSSL has closed a connection because of an error of its own. */
	onInternalError(error: InternalError): void;
	/** Called when a connection was closed because our code threw an error. */
	onError(error: unknown): void;
}

/** Maximum milliseconds by which a timer may fire too early. */
const TIMER_SLACK_MS = 0.5;

interface EndedConnection {
	readonly path: DatagramPath;
	readonly datagram: Uint8Array;
	readonly rememberUntil: number;
	answersLeft: number;
}

interface Client {
	/** Unfinished handshakes with this client, oldest first, in which it has not yet proven its address. */
	readonly unprovenHandshakes: Set<QuicEngine>;
	/** Number of unfinished handshakes in which the client has proven its address. */
	provenHandshakeCount: number;
	connectionCount: number;
}

/** The client whose limits a connection counts toward, and the function that stops counting the connection. */
interface Claim {
	readonly client: Client;
	readonly key: string;
	/** The function returned by `admit`, to call when the connection ends. Undefined until the address is proven. */
	release: (() => void) | undefined;
}

/** The QUIC endpoint of one listener on one thread. */
export class QuicEndpoint implements SharingEndpoint, EngineOwner, PeerEndpoint {
	readonly tls: QuicTls;
	readonly port: number;
	readonly #thread: QuicThread;
	readonly #socket: UdpSocket;
	readonly #owner: QuicEndpointOwner;
	readonly #router = new DatagramRouter<QuicEngine>();
	readonly #claimByEngine = new Map<QuicEngine, Claim>();
	readonly #clientByKey = new Map<string, Client>();
	readonly #deadlines = new DeadlineHeap<QuicEngine>();
	/** Unfinished handshakes, oldest first. */
	readonly #handshakes = new Set<QuicEngine>();
	/** Unfinished handshakes whose clients have not proven their addresses. */
	readonly #unprovenHandshakes = new Set<QuicEngine>();
	#limits: QuicLimits;
	readonly #initialPackets = new ClientShares();
	readonly #handshakeStarts = new ClientShares();
	#retryCount = 0;
	#retryWindowStart = 0;
	#startedHandshakeCount = 0;
	#startedWindowStart = 0;
	/** The handshake that is being evicted in favor of another one. */
	#evictedHandshake: QuicEngine | undefined;
	/** Recently ended connections, by each of their connection IDs. */
	readonly #endedConnections = new Map<string, EndedConnection>();
	#dirtyEngines: QuicEngine[] = [];
	/** True while several engines run one after the other. Their datagrams are sent together afterwards. */
	#isBatching = false;
	#timer: NodeJS.Timeout | undefined;
	#timerDueAt = Infinity;
	#isDraining = false;
	#isClosed = false;
	/** `performance.now()` at the first of the datagrams that were read together; 0 if none has been delivered yet. */
	#batchTime = 0;
	#receivedCount = 0;
	#sentCount = 0;
	#lostCount = 0;
	readonly #sharing: SocketSharing;
	readonly #timerCallback: () => void = () => this.#onTimer();

	/**
	 * Binds the socket, or takes a duplicate of an inherited one, with its channels. Throws an error with the system's code.
	 */
	constructor(thread: QuicThread, address: UdpAddress, owner: QuicEndpointOwner, inherited?: InheritedDatagrams) {
		this.#thread = thread;
		this.#owner = owner;
		this.#limits = { ...DEFAULT_QUIC_LIMITS, ...owner.limits };
		const { descriptor } = inherited ?? address;
		this.#socket = new UdpSocket(thread.library, thread.datagramMemory, { ...address, descriptor });
		this.port = address.port || this.#socket.port;
		try {
			this.tls = new QuicTls(thread, owner.chooseCertificate);
			this.#sharing = new SocketSharing(thread.library, this.#socket, this, inherited, thread.peers);
		} catch (error) {
			this.#socket.close();
			throw error;
		}
	}

	/** Starts receiving datagrams. */
	open(): void {
		this.#sharing.open();
		this.#thread.peers?.endpoints.add(this);
	}

	/**
	 * Returns descriptors for a successor: the socket, and channels to this endpoint and to processes before this one, which the
	 * caller must close. Returns undefined if the socket belongs to another thread, or if there are no descriptors left.
	 */
	bequeath(): BequeathedDatagrams | undefined {
		return this.#sharing.bequeath();
	}

	/** Sets the limits for new handshakes. Limits that are not given have their defaults. */
	set limits(limits: Partial<QuicLimits>) {
		this.#limits = { ...DEFAULT_QUIC_LIMITS, ...limits };
	}

	/** Number of connections, including unfinished handshakes. */
	get connectionCount(): number {
		return this.#claimByEngine.size;
	}

	/** Accepts new connections again after `drain`. */
	resume(): void {
		this.#isDraining = false;
	}

	/**
	 * Stops accepting new connections. The protocol must end the existing ones. If `finishesHandshakes` is true, because
	 * another process now accepts connections, unfinished handshakes may complete; otherwise, they are aborted.
	 */
	drain(finishesHandshakes = false): void {
		this.#isDraining = true;
		if (finishesHandshakes) {
			this.#sharing.finalizeHandover();
			return;
		}
		for (const engine of [...this.#handshakes]) engine.destroy();
	}

	/** Closes all connections at once, and closes the socket. */
	close(): void {
		if (this.#isClosed) return;
		for (const engine of [...this.#claimByEngine.keys()]) engine.destroy();
		this.#isClosed = true;
		this.#thread.peers?.endpoints.delete(this);
		this.#sharing.close();
		if (this.#timer !== undefined) clearTimeout(this.#timer);
		this.#timer = undefined;
		this.#socket.close();
		this.tls.close();
		this.#reportCounts();
	}

	*connectionIds(): Generator<string> {
		yield* this.#router.registeredIds();
		yield* this.#endedConnections.keys();
	}

	/** Passes a datagram on to the process or thread that has its connection. Returns false if no other process or thread has it. */
	#passDatagramOn(start: number, end: number, addressOffset: number): boolean {
		return this.#sharing.passOn(start, end, addressOffset, this.#router.header);
	}

	takeFromPeer(id: string, datagram: RelayedDatagram): boolean {
		if (!this.#router.hasId(id) && !this.#sharing.hasPredecessorWith(id)) return false;
		// The thread that has read the datagram has counted it.
		this.#receivedCount--;
		this.#sharing.deliverFromPeer(datagram);
		return true;
	}

	onDatagram(bytes: Buffer, start: number, end: number, addressOffset: number): void {
		this.#receivedCount++;
		this.#batchTime ||= performance.now();
		const now = this.#batchTime;
		const target = this.#router.route(bytes, start, end, now);
		switch (target) {
			case 'drop':
				if (this.#passDatagramOn(start, end, addressOffset)) return;
				if (!this.#answerEnded(now, end - start)) this.#owner.onRefused('noise');
				return;
			case 'negotiate':
				this.#socket.sendOne(
					this.#socket.pathOf(addressOffset),
					createVersionNegotiation(this.#router.header, Math.random() * 256),
				);
				this.#sentCount++;
				return;
			case 'new': {
				if (this.#answerEnded(now, end - start) || this.#passDatagramOn(start, end, addressOffset)) return;
				const engine = this.#beginHandshake(bytes, addressOffset, now);
				if (engine !== undefined) this.#enqueue(engine, start, end);
				return;
			}
		}
		if (!this.#socket.isFromPeer(target.path, addressOffset)) {
			this.#handleOtherPort(target, start, end, addressOffset, now);
			return;
		}
		// A client knows a connection ID that we chose only if it receives what is sent to its address.
		if (!target.isAddressProven && this.#router.header.destinationId !== target.firstId && !this.#recordProof(target))
			return;
		this.#enqueue(target, start, end);
	}

	/** Handles a datagram of a connection that does not come from the address and port to which the connection sends. */
	#handleOtherPort(engine: QuicEngine, start: number, end: number, addressOffset: number, now: number): void {
		const socket = this.#socket;
		if (!engine.isEstablished || !socket.isFromHost(engine.path, addressOffset) || !engine.mayTryPort(now)) {
			this.#owner.onRefused('moved');
			return;
		}
		engine.processFromPort(start, end - start, socket.withPortOf(engine.path, addressOffset));
	}

	onDatagramsRead(): void {
		this.#batchTime = 0;
		this.#socket.flushReplies();
		// `#dirtyEngines` is emptied before any engine runs. Running an engine cannot add to it, because engines
		// become dirty only when datagrams are received.
		const dirtyEngines = this.#dirtyEngines;
		this.#dirtyEngines = [];
		this.#isBatching = true;
		for (const engine of dirtyEngines) {
			engine.run();
			// The datagram looked like the first packet of a connection, but could not be decrypted. Under load, its engine is not
			// kept.
			if (!engine.hasBegun && this.#handshakes.size > BOUND.PRESSURE_HANDSHAKES) engine.destroy();
		}
		this.#isBatching = false;
		this.#socket.flush();
		this.#reportCounts();
	}

	makeRoom(): number {
		return this.#socket.makeRoom();
	}

	send(engine: QuicEngine, datagramCount: number): void {
		const { outgoingPayloads, outgoingLengths, waitingCount } = this.#socket.memory;
		const count = engine.permittedCount(outgoingLengths, waitingCount, datagramCount);
		if (count === 0) return;
		if (!engine.isEstablished) {
			// If OpenSSL answers with a Retry packet (type bits 0xf0), it has not accepted our token.
			const firstOffset = waitingCount * SENT_DATAGRAM_BYTES;
			if (engine.answersRetry) this.#thread.retryTokens?.recordResult((outgoingPayloads[firstOffset]! & 0xf0) !== 0xf0);
			for (let i = waitingCount; i < waitingCount + count; i++) {
				const id = this.#router.registerFromPacket(
					outgoingPayloads,
					i * SENT_DATAGRAM_BYTES,
					i * SENT_DATAGRAM_BYTES + outgoingLengths[i]!,
					engine,
				);
				// Announces a new connection ID before the packet is sent, so that the client cannot use it earlier.
				if (id !== undefined) this.#sharing.announceId(id);
				engine.keepDatagram(
					outgoingPayloads.subarray(i * SENT_DATAGRAM_BYTES, i * SENT_DATAGRAM_BYTES + outgoingLengths[i]!),
				);
			}
		}
		if (engine.isClosing) {
			const lastIndex = waitingCount + count - 1;
			const start = lastIndex * SENT_DATAGRAM_BYTES;
			engine.lastDatagram = new Uint8Array(outgoingPayloads.subarray(start, start + outgoingLengths[lastIndex]!));
		}
		this.#socket.appendWaiting(engine.path, count);
		this.#sentCount += count;
	}

	flush(): void {
		if (!this.#isBatching) this.#socket.flush();
	}

	onEstablished(engine: QuicEngine): void {
		this.#handshakes.delete(engine);
		for (const id of engine.registeredIds) this.#thread.peers?.add(id);
		const claim = this.#claimByEngine.get(engine);
		if (claim) claim.client.provenHandshakeCount--;
		this.#owner.onHandshakeEnded('ok', engine.facts.resumed);
		this.#owner.onConnected(engine);
	}

	setDeadline(engine: QuicEngine, dueAt: number): void {
		const latestDueAt = engine.isEstablished ? Infinity : engine.startedAt + this.#handshakeLimitOf(engine);
		this.#deadlines.setDeadline(engine, Math.min(dueAt, latestDueAt));
		this.#scheduleTimer();
	}

	onEnded(engine: QuicEngine): void {
		const claim = this.#claimByEngine.get(engine);
		if (claim === undefined) return;
		this.#claimByEngine.delete(engine);
		this.#deadlines.delete(engine);
		this.#unprovenHandshakes.delete(engine);
		claim.client.unprovenHandshakes.delete(engine);
		if (this.#handshakes.delete(engine)) {
			if (engine.isAddressProven) claim.client.provenHandshakeCount--;
			const hasTimedOut = performance.now() + TIMER_SLACK_MS - engine.startedAt >= this.#owner.handshakeLimitMs;
			if (engine === this.#evictedHandshake) this.#owner.onRefused('evicted');
			else if (engine.hasBegun)
				this.#owner.onHandshakeEnded(hasTimedOut ? 'timeout' : 'failed', false, engine.failureAlert);
			else this.#owner.onRefused('noise');
		}
		if (engine.isAddressProven) claim.client.connectionCount--;
		const { client } = claim;
		if (client.connectionCount === 0 && client.unprovenHandshakes.size === 0) this.#clientByKey.delete(claim.key);
		this.#rememberEnded(engine);
		for (const id of engine.registeredIds) this.#thread.peers?.remove(id);
		this.#router.forgetTarget(engine);
		claim.release?.();
		this.#owner.onConnectionEnded();
	}

	onPortChanged(): void {
		this.#owner.onPortChanged();
	}

	onError(error: unknown): void {
		this.#owner.onRefused('internal_error');
		this.#owner.onError(error);
	}

	onInternalError(error: InternalError): void {
		this.#owner.onInternalError(error);
	}

	onHandshakeResumed(engine: QuicEngine): void {
		// The engine runs later, because the certificate may have been found during a callback of its own handshake.
		setImmediate(() => engine.run());
	}

	/** Returns the maximum milliseconds that an unfinished handshake may take in total. */
	#handshakeLimitOf(engine: QuicEngine): number {
		const { handshakeLimitMs } = this.#owner;
		return engine.hasBegun ? handshakeLimitMs : Math.min(handshakeLimitMs, BOUND.UNOPENED_PACKET_MS);
	}

	#enqueue(engine: QuicEngine, start: number, end: number): void {
		engine.receive(start, end - start);
		if (engine.isDirty) return;
		engine.isDirty = true;
		this.#dirtyEngines.push(engine);
	}

	#beginHandshake(bytes: Buffer, addressOffset: number, now: number): QuicEngine | undefined {
		if (this.#isDraining) return this.#refuse('draining');
		const limits = this.#limits;
		const { peerAddresses } = this.#socket.memory;
		// The cheapest checks come first, so that rejecting the packets of a flood costs little more than receiving them.
		const packetRate = (this.#initialPackets.countPacket(peerAddresses, addressOffset, now) * 1000) / COUNT_PERIOD_MS;
		const { header } = this.#router;
		const retryTokens = this.#thread.retryTokens;
		const isAddressProven =
			header.tokenEnd > header.tokenStart &&
			retryTokens?.isUsable === true &&
			retryTokens.acceptsToken(bytes, header, peerAddresses, addressOffset);
		// Attackers may forge packets with a client's address. Only packets with a valid token are certain to come from the client
		// itself.
		if (!isAddressProven && packetRate > limits.maxClientInitialRate) return this.#refuse('client_rate');
		const isLoaded = this.#unprovenHandshakes.size >= limits.retryAbove || packetRate > limits.maxClientInitialRate / 4;
		if (isLoaded && !isAddressProven && retryTokens?.isUsable === true)
			return this.#sendRetry(retryTokens, addressOffset, now);
		if (isLoaded && !isAddressProven && !this.#mayBeginHandshake(now)) return this.#refuse('too_many_handshakes');
		const { address } = readSocketAddress(peerAddresses, addressOffset);
		const clientKey = this.#owner.clientKey(address);
		const client = this.#clientByKey.get(clientKey) ?? {
			unprovenHandshakes: new Set(),
			provenHandshakeCount: 0,
			connectionCount: 0,
		};
		if (
			client.connectionCount >= limits.maxConnectionsPerClient ||
			client.provenHandshakeCount >= limits.maxHandshakesPerClient
		) {
			return this.#refuse('client_limit');
		}
		if (isAddressProven) {
			const startRate = (this.#handshakeStarts.countPacket(peerAddresses, addressOffset, now) * 1000) / COUNT_PERIOD_MS;
			if (startRate > limits.maxHandshakeRate / 4) return this.#refuse('client_limit');
			if (!this.#mayBeginHandshake(now)) return this.#refuse('too_many_handshakes');
		} else if (client.unprovenHandshakes.size > 0) {
			const maxUnproven = Math.min(
				limits.maxHandshakesPerClient - client.provenHandshakeCount,
				Math.ceil(limits.retryAbove / 2),
			);
			// An attacker may send packets that seem to come from this client. Handshakes that such packets begin must not lock out
			// the client, which can prove its address after a Retry packet.
			if (client.unprovenHandshakes.size >= maxUnproven && retryTokens?.isUsable === true)
				return this.#sendRetry(retryTokens, addressOffset, now);
			if (client.provenHandshakeCount + client.unprovenHandshakes.size >= limits.maxHandshakesPerClient)
				this.#evictHandshake(client);
		}
		if (this.#claimByEngine.size >= limits.maxConnections && !this.#evictHandshake())
			return this.#refuse('too_many_connections');
		if (this.#handshakes.size >= limits.maxHandshakes && !this.#evictHandshake())
			return this.#refuse('too_many_handshakes');
		const addressProof: AddressProof = isAddressProven ? 'token' : isLoaded ? 'retry' : 'handshake';
		let engine: QuicEngine;
		try {
			const path = this.#socket.pathOf(addressOffset);
			engine = new QuicEngine(this.#thread, this, path, clientKey, now, header.destinationId, addressProof);
		} catch {
			return this.#refuse('no_memory');
		}
		client.unprovenHandshakes.add(engine);
		this.#clientByKey.set(clientKey, client);
		this.#claimByEngine.set(engine, { client, key: clientKey, release: undefined });
		this.#handshakes.add(engine);
		this.#unprovenHandshakes.add(engine);
		this.#router.register(engine.firstId, engine);
		return isAddressProven && !this.#recordProof(engine) ? undefined : engine;
	}

	/** Makes a client prove its address before any state is kept for it (RFC 9000 §8.1.2). */
	#sendRetry(retryTokens: RetryTokens, addressOffset: number, now: number): undefined {
		if (now - this.#retryWindowStart >= COUNT_PERIOD_MS) {
			this.#retryWindowStart = now;
			this.#retryCount = 0;
		}
		if (++this.#retryCount > (this.#limits.maxRetryRate * COUNT_PERIOD_MS) / 1000)
			return this.#refuse('too_many_handshakes');
		const { peerAddresses } = this.#socket.memory;
		this.#socket.reply(addressOffset, (to, at) =>
			retryTokens.writeRetry(this.#router.header, peerAddresses, addressOffset, to, at),
		);
		this.#sentCount++;
		return this.#refuse('retry');
	}

	/**
	 * Records that a client has proven its address. From now on, the connection counts toward the client's limits. If they are
	 * exceeded, destroys the engine and returns false.
	 */
	#recordProof(engine: QuicEngine): boolean {
		const claim = this.#claimByEngine.get(engine);
		if (claim === undefined) return false;
		const { client } = claim;
		const isFull = client.connectionCount >= this.#limits.maxConnectionsPerClient;
		const release = isFull ? undefined : this.#owner.admit(engine.remoteAddress);
		if (release === undefined) {
			this.#refuse(isFull ? 'client_limit' : 'admission');
			engine.destroy();
			return false;
		}
		claim.release = release;
		engine.isAddressProven = true;
		this.#unprovenHandshakes.delete(engine);
		client.unprovenHandshakes.delete(engine);
		client.provenHandshakeCount++;
		client.connectionCount++;
		return true;
	}

	#mayBeginHandshake(now: number): boolean {
		if (now - this.#startedWindowStart >= COUNT_PERIOD_MS) {
			this.#startedWindowStart = now;
			this.#startedHandshakeCount = 0;
		}
		return ++this.#startedHandshakeCount <= (this.#limits.maxHandshakeRate * COUNT_PERIOD_MS) / 1000;
	}

	/**
	 * Evicts a client's oldest handshake with an unproven address. By default, the client is the one with the most of these
	 * handshakes. Returns false if there are none.
	 */
	#evictHandshake(client = this.#clientWithMostUnproven()): boolean {
		const oldestHandshake = client?.unprovenHandshakes.values().next().value;
		if (oldestHandshake === undefined) return false;
		this.#evictedHandshake = oldestHandshake;
		oldestHandshake.destroy();
		this.#evictedHandshake = undefined;
		return true;
	}

	#clientWithMostUnproven(): Client | undefined {
		let candidate: Client | undefined;
		for (const engine of this.#unprovenHandshakes) {
			const client = this.#claimByEngine.get(engine)?.client;
			if (client !== undefined && client.unprovenHandshakes.size > (candidate?.unprovenHandshakes.size ?? 0))
				candidate = client;
		}
		return candidate;
	}

	#refuse(reason: QuicRefusal): undefined {
		this.#owner.onRefused(reason);
	}

	#rememberEnded(engine: QuicEngine): void {
		const datagram = engine.lastDatagram;
		if (!engine.isClosing || datagram === undefined || this.#endedConnections.size >= BOUND.MAX_CLOSING_CONNECTIONS)
			return;
		const rememberUntil = performance.now() + BOUND.CLOSING_STATE_MS;
		const newEntry = { path: engine.path, datagram, rememberUntil, answersLeft: BOUND.MAX_CLOSING_ANSWERS };
		for (const id of engine.registeredIds) this.#endedConnections.set(id, newEntry);
		setTimeout(() => {
			for (const [id, endedConnection] of this.#endedConnections)
				if (endedConnection === newEntry) this.#endedConnections.delete(id);
		}, BOUND.CLOSING_STATE_MS).unref();
	}

	/**
	 * Reports whether a datagram belongs to a connection that has ended recently. The first few of these datagrams are answered with
	 * the connection's last datagram.
	 */
	#answerEnded(now: number, length: number): boolean {
		const endedConnection = this.#endedConnections.get(this.#router.header.destinationId);
		if (endedConnection === undefined) return false;
		if (
			endedConnection.answersLeft > 0 &&
			now < endedConnection.rememberUntil &&
			endedConnection.datagram.length <= BOUND.MAX_AMPLIFICATION * length
		) {
			endedConnection.answersLeft--;
			this.#socket.sendOne(endedConnection.path, endedConnection.datagram);
			this.#sentCount++;
		}
		return true;
	}

	#scheduleTimer(): void {
		const { earliestDueAt } = this.#deadlines;
		if (earliestDueAt >= this.#timerDueAt) return;
		if (this.#timer !== undefined) clearTimeout(this.#timer);
		this.#timerDueAt = earliestDueAt;
		if (earliestDueAt === Infinity) return;
		this.#timer = setTimeout(this.#timerCallback, Math.max(0, Math.min(earliestDueAt - performance.now(), 60_000)));
	}

	#onTimer(): void {
		this.#timerDueAt = Infinity;
		this.#timer = undefined;
		const now = performance.now() + TIMER_SLACK_MS;
		// All due engines are collected before any of them runs, so that an engine that is due again immediately waits for the next
		// timer.
		const dueEngines: QuicEngine[] = [];
		for (let engine = this.#deadlines.takeDue(now); engine !== undefined; engine = this.#deadlines.takeDue(now))
			dueEngines.push(engine);
		this.#isBatching = true;
		for (const engine of dueEngines) {
			if (!engine.isEstablished && now - engine.startedAt >= this.#handshakeLimitOf(engine)) engine.destroy();
			else engine.onDeadline();
		}
		this.#isBatching = false;
		this.#socket.flush();
		this.#scheduleTimer();
		this.#reportCounts();
	}

	#reportCounts(): void {
		const newlyLostCount = this.#socket.lostCount - this.#lostCount;
		this.#lostCount = this.#socket.lostCount;
		this.#owner.countDatagrams(this.#receivedCount, this.#sentCount, newlyLostCount);
		this.#receivedCount = 0;
		this.#sentCount = 0;
	}
}

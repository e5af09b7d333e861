/**
 * One QUIC connection. Each has an OpenSSL listener of its own, because a listener shared by several connections examines all of
 * them for each datagram: each idle connection adds 8 to 10 µs of CPU time to a request that takes 28 µs by itself. Once OpenSSL
 * has created the connection, only the connection runs, not its listener; see channel-runs.ts. Datagrams that OpenSSL sends pass
 * through the thread's pair of memory BIOs, which is empty except during the calls here. Everything here runs on one thread.
 * Every OpenSSL object is freed exactly once, by `destroy`.
 */

import { readSocketAddress } from '../socket-address.ts';
import type { ChannelRuns } from './channel-runs.ts';
import {
	ACCEPT_NO_BLOCK,
	type AddressProof,
	acceptConnection,
	askCloseInfo,
	createListener,
	nextEventAt,
	shutDownConnection,
	startListening,
	storedCloseInfo,
} from './connection-objects.ts';
import type { DatagramPath } from './datagram-memory.ts';
import type { Deadline } from './deadline-heap.ts';
import { HandshakeDatagrams } from './handshake-datagrams.ts';
import { describeInternalError, INTERNAL_ERROR, type InternalError } from './internal-error.ts';
import type { LossDetection } from './loss-probes.ts';
import { PortChanges } from './port-changes.ts';
import type {
	QuicClose,
	QuicConnection,
	QuicConnectionOwner,
	QuicHandshakeFacts,
	QuicStream,
} from './quic-connection.ts';
import * as BOUND from './quic-limits.ts';
import { EngineStream } from './quic-stream.ts';
import type { QuicThread } from './quic-thread.ts';
import type { QuicTls } from './quic-tls.ts';
import type { RouteTarget } from './router.ts';
import { type HandshakeAlert, ServerHandshake } from './server-handshake.ts';

const NO_LISTENER = 'OpenSSL makes no QUIC listener.';
const STREAM_UNI = 1n;
const STREAM_NO_BLOCK = 2n;
/** Maximum milliseconds by which rounding changes the time of an event. */
const ROUNDING_MS = 0.001;

/** The endpoint to which an engine belongs. */
export interface EngineOwner {
	readonly tls: QuicTls;
	readonly port: number;
	/** Makes room in `DatagramMemory.outgoingPayloads`. Returns the number of datagrams that fit, at least one. */
	makeRoom(): number;
	/** Sends `count` datagrams of an engine, which are in `DatagramMemory.outgoingPayloads` after those that wait to be sent. */
	send(engine: QuicEngine, count: number): void;
	/** Called after each run of an engine, so that its datagrams are sent. */
	flush(): void;
	/** Called when the handshake is complete. The protocol sets `engine.owner`, or closes the engine. */
	onEstablished(engine: QuicEngine): void;
	/** Sets the engine's next deadline, by `performance.now()`; Infinity for none. */
	setDeadline(engine: QuicEngine, dueAt: number): void;
	/** Called when the engine uses another port of its client. */
	onPortChanged(): void;
	/** Called when the engine has been freed. */
	onEnded(engine: QuicEngine): void;
	/** Called when the handshake no longer waits for a certificate. */
	onHandshakeResumed(engine: QuicEngine): void;
	/** Called when OpenSSL has closed the connection because of an error of its own. */
	onInternalError(error: InternalError): void;
	/** Called when the engine or its protocol has thrown an error. The engine is destroyed afterwards. */
	onError(error: unknown): void;
}

/** State of the graceful end of a connection. */
interface Ending {
	readonly code: number;
	/** Time at which to stop waiting for acknowledgments, by `performance.now()`. */
	readonly giveUpAt: number;
	/** Time at which the last datagram from the peer arrived, by `performance.now()`. */
	lastHeardAt: number;
}

/** A QUIC connection, or an attempt to establish one. */
export class QuicEngine implements QuicConnection, RouteTarget, Deadline {
	readonly registeredIds: Set<string> = new Set();
	/** The path on which datagrams are sent. Its peer's port may change, its IP address does not. */
	path: DatagramPath;
	/** Key of the client whose limits the connection counts toward. */
	readonly clientKey: string;
	readonly startedAt: number;
	owner: QuicConnectionOwner | undefined = undefined;
	dueAt = Infinity;
	heapIndex = -1;
	/** True if datagrams have been received since the last call of `run`. */
	isDirty = false;
	isEstablished = false;
	/** True once the client has sent a connection ID that we chose, which proves that it receives what is sent to its address. */
	isAddressProven = false;
	/** True if the client's first packet had the token of a Retry packet that we sent. */
	readonly answersRetry: boolean;
	/** The connection ID of the client's first packet to this engine. */
	readonly firstId: string;
	/** True once the connection is closing. The datagrams sent from then on notify the peer of that. */
	isClosing = false;
	/** The last datagram sent since `isClosing` was set. */
	lastDatagram: Uint8Array | undefined = undefined;
	/** The datagrams sent in the handshake; undefined once it is complete. */
	#handshakeDatagrams: HandshakeDatagrams | undefined = new HandshakeDatagrams();
	/** Number of written bytes, on all streams, that the peer has not acknowledged. */
	bufferedBytes = 0;
	readonly remoteAddress: string;
	remotePort: number;
	readonly thread: QuicThread;
	readonly #owner: EngineOwner;
	readonly #handshake: ServerHandshake;
	#listener: bigint;
	#connection = 0n;
	/** The connection's `QUIC_CHANNEL`; 0 until the connection exists, and if `channelRuns` is undefined. */
	#channel = 0n;
	/**
	 * Offsets, in `DatagramMemory.received`, and lengths of the datagrams received since the last run: the first `#rangesEnd`
	 * numbers. The array is not shortened, which would be slow.
	 */
	readonly #receivedRanges: number[] = [];
	#rangesEnd = 0;
	/** The streams, in the order in which they were opened. May contain released ones; see `#openStreams`. */
	#streams: EngineStream[] = [];
	#hasReleasedStreams = false;
	/** Streams that were written completely and released, but have many unacknowledged bytes. */
	readonly #lingeringStreams = new Set<EngineStream>();
	/** The time of OpenSSL's next event, and the time for which the deadline is set, by `performance.now()`. */
	#nextEventAt = 0;
	#scheduledAt = Infinity;
	/** The parts of OpenSSL that detect losses; undefined until the connection is established, and if they are not known. */
	#lossDetection: LossDetection | undefined = undefined;
	/** Number of bytes written to all streams. */
	#writtenBytes = 0;
	/** Number of loss probes that are still to be prepared, unless more data is written. */
	#preparationsLeft = 0;
	/** Undefined if no datagram has come from another port of the client. */
	#portChanges: PortChanges | undefined = undefined;
	/** The path of the handshake, which OpenSSL sees as the source of all datagrams. */
	readonly #firstPath: DatagramPath;
	/** True if the connection may have sent a loss probe and has received nothing since. */
	#isProbing = false;
	/** True if this run has found that the connection is not closing. */
	#isKnownOpen = false;
	#facts: QuicHandshakeFacts = { cipherSuite: '', serverName: '', resumed: false };
	#isRunning = false;
	#isGone = false;
	#hasBegun = false;
	/** True while OpenSSL is running, possibly in a callback. Nothing may be freed then. */
	#isInOpenssl = false;
	/** Ends the connection after OpenSSL has returned. Set if the end was requested while OpenSSL was running. */
	#pendingEnd: (() => void) | undefined = undefined;
	#gracefulEnd: Ending | undefined = undefined;
	#hasHeardPeer = false;
	/** Number of bytes that may still be sent to an unproven address. */
	#creditBytes = 0;

	/** Throws if OpenSSL cannot allocate the connection. */
	constructor(
		thread: QuicThread,
		owner: EngineOwner,
		path: DatagramPath,
		clientKey: string,
		now: number,
		firstId: string,
		addressProof: AddressProof,
	) {
		this.thread = thread;
		this.#owner = owner;
		this.path = path;
		this.#firstPath = path;
		this.clientKey = clientKey;
		this.startedAt = now;
		this.firstId = firstId;
		const { address, port } = readSocketAddress(path.peer, 0);
		this.remoteAddress = address;
		this.remotePort = port;
		this.#handshake = new ServerHandshake(owner.tls, address, path.localAddress, () => {
			if (!this.#isGone) owner.onHandshakeResumed(this);
		});
		this.answersRetry = addressProof === 'token';
		this.#listener = createListener(thread, owner.tls.context, addressProof);
		if (this.#listener === 0n) throw new Error(NO_LISTENER);
		if (!startListening(thread, this.#listener)) {
			this.#free();
			throw new Error(NO_LISTENER);
		}
	}

	get facts(): QuicHandshakeFacts {
		return this.#facts;
	}

	/** The TLS alert that ended the handshake; undefined if the owner chose the alert itself. */
	get failureAlert(): HandshakeAlert | undefined {
		return this.#handshake.failureAlert;
	}

	get localAddress(): string {
		return this.path.localAddress;
	}

	get localPort(): number {
		return this.#owner.port;
	}

	/** True once OpenSSL has sent a datagram, which means that it could decrypt a packet of the client. */
	get hasBegun(): boolean {
		return this.#hasBegun;
	}

	/** True once everything has been freed. */
	get isGone(): boolean {
		return this.#isGone;
	}

	/** Accepts a datagram. Its bytes are in `DatagramMemory.received`, and stay valid until `run` is called. */
	receive(offset: number, length: number): void {
		if (this.#isGone) return;
		this.#hasHeardPeer = true;
		if (!this.isAddressProven) this.#creditBytes += BOUND.MAX_AMPLIFICATION * length;
		this.#receivedRanges[this.#rangesEnd++] = offset;
		this.#receivedRanges[this.#rangesEnd++] = length;
	}

	/**
	 * Reports whether datagrams from other ports of the client can be handled, and one more may be decrypted now.
	 * @param now `performance.now()`.
	 */
	mayTryPort(now: number): boolean {
		const { packetNumbers } = this.thread;
		if (this.#isGone || this.#lossDetection === undefined || packetNumbers === undefined) return false;
		this.#portChanges ??= new PortChanges(packetNumbers, this.#lossDetection, this.path);
		return this.#portChanges.mayTry(now);
	}

	/**
	 * Processes a datagram that has come from another port of the client, after those that were received before. If it shows that the
	 * client uses this port now, the connection does so, too; see port-changes.ts. {@link mayTryPort} must have returned true.
	 */
	processFromPort(offset: number, length: number, path: DatagramPath): void {
		this.run();
		if (this.#isGone || this.#portChanges === undefined) return;
		this.receive(offset, length);
		this.#portChanges.expect(path);
		this.run();
		this.#portChanges?.cancel();
	}

	/** Uses the port from which the client sends now. Called after OpenSSL has processed datagrams. */
	#updatePort(portChanges: PortChanges): void {
		const path = portChanges.update(performance.now());
		if (path === this.path || this.#isGone) return;
		this.path = path;
		this.remotePort = readSocketAddress(path.peer, 0).port;
		// The client acknowledges the frame that this sends, which proves that it receives what is sent to the port.
		if (this.#lossDetection !== undefined) this.thread.lossProbes?.prepare(this.#lossDetection);
		this.#owner.onPortChanged();
		this.owner?.onPortChanged(this.remotePort);
	}

	/**
	 * Returns how many of the engine's datagrams may be sent. At most three times the bytes received from an unproven address may be
	 * sent to it (RFC 9000 §8.1). OpenSSL may produce more, because it may exceed this limit with its last datagram.
	 * The excess datagrams are dropped, as if they had been lost.
	 */
	permittedCount(lengths: Uint32Array, firstIndex: number, count: number): number {
		if (this.isAddressProven) return count;
		for (let i = 0; i < count; i++) {
			const length = lengths[firstIndex + i]!;
			if (length > this.#creditBytes) return i;
			this.#creditBytes -= length;
		}
		return count;
	}

	/** Handles received datagrams, expired deadlines and written data. Must not be called from callbacks of OpenSSL. */
	run(): void {
		if (this.#isGone || this.#isRunning) return;
		if (this.thread.currentTarget !== undefined) {
			this.#runLater();
			return;
		}
		this.#isRunning = true;
		this.isDirty = false;
		try {
			this.#runOnce();
		} catch (error) {
			this.#owner.onError(error);
			this.destroy();
		} finally {
			this.#isRunning = false;
		}
		this.#owner.flush();
	}

	/**
	 * Runs the engine in the next turn of the event loop, because a callback of another connection, which is using the pair of BIOs,
	 * is in progress.
	 */
	#runLater(): void {
		// In the next turn, the receive buffer will contain other datagrams, so these datagrams are dropped, as if lost on the way.
		this.#rangesEnd = 0;
		setImmediate(() => this.run());
	}

	#runOnce(): void {
		this.#isKnownOpen = false;
		const hasReceived = this.#rangesEnd > 0;
		const wasEstablished = this.isEstablished;
		this.#processDatagrams();
		if (!this.#isGone && this.#connection !== 0n && !this.isEstablished) this.#checkEstablished();
		if (this.isEstablished && !this.#isGone && this.#gracefulEnd === undefined) this.#deliverEvents();
		if (this.#gracefulEnd !== undefined && !this.#isGone) this.#continueEnd(this.#gracefulEnd);
		if (this.#isGone) return;
		// When the handshake ends, TLS still has to send tickets.
		this.#sendOutput(wasEstablished);
		if (this.#isGone) return;
		if (hasReceived && !this.isEstablished) this.#retransmitHandshake();
		const { channelRuns } = this.thread;
		// An open connection has a next event: at the latest, its idle timeout. Without one, it has been closed since it was polled.
		if (channelRuns === undefined || channelRuns.dueAt === Infinity) this.#isKnownOpen = false;
		if (this.#connection !== 0n && !this.#isKnownOpen && this.#checkClosed()) return;
		this.#scheduleNextRun();
	}

	/**
	 * Sets the time of the connection's next run, and prepares the loss probe that OpenSSL may send in it (see loss-probes.ts). It sends
	 * one if the deadline for that has passed. If it receives the acknowledgment of a probe, the next deadline may have passed, too.
	 *
	 * The number is limited, because a prepared probe must be acknowledged itself. Otherwise, an idle connection whose client
	 * acknowledges late would send probes without end.
	 */
	#prepareRun(channelRuns: ChannelRuns, hasReceived: boolean): void {
		const now = channelRuns.updateTime();
		const detection = this.#lossDetection;
		const { lossProbes } = this.thread;
		if (detection === undefined || lossProbes === undefined || this.#preparationsLeft === 0) return;
		const isDue = now + ROUNDING_MS >= this.#nextEventAt && lossProbes.isDue(detection, channelRuns.time);
		if (!isDue && !(this.#isProbing && hasReceived)) return;
		this.#isProbing = isDue;
		this.#preparationsLeft--;
		lossProbes.prepare(detection);
	}

	/** Called when a stream has written bytes. As long as all of them fit into one packet, no probe need be prepared. */
	onWritten(bytes: number): void {
		this.#writtenBytes += bytes;
		if (this.#writtenBytes <= BOUND.MIN_PACKET_BYTES) return;
		const preparations = BOUND.MIN_PREPARED_PROBES + this.bufferedBytes / BOUND.BYTES_PER_PREPARED_PROBE;
		this.#preparationsLeft = Math.max(this.#preparationsLeft, Math.floor(preparations));
	}

	/** Runs the engine because its deadline has passed, unless OpenSSL's next event has been postponed since the deadline was set. */
	onDeadline(): void {
		const isPostponed = this.#scheduledAt < this.#nextEventAt;
		this.#scheduledAt = Infinity;
		if (isPostponed && !this.#isGone) this.#setDeadline(this.#nextEventAt);
		else this.run();
	}

	flush(): void {
		this.run();
	}

	/** Keeps a copy of a datagram that is sent in an unfinished handshake. */
	keepDatagram(datagram: Uint8Array): void {
		this.#handshakeDatagrams?.keep(datagram);
	}

	#retransmitHandshake(): void {
		if (this.isClosing) return;
		this.#handshakeDatagrams?.retransmitIfDue(datagram => {
			this.#owner.makeRoom();
			this.thread.datagramMemory.putDatagram(datagram);
			this.#owner.send(this, 1);
		});
	}

	openUni(): QuicStream | undefined {
		if (!this.isEstablished || this.#isGone) return undefined;
		const { functions } = this.thread.library;
		const ssl = functions.SSL_new_stream(this.#connection, STREAM_UNI | STREAM_NO_BLOCK) as bigint;
		if (ssl === 0n) {
			functions.ERR_clear_error();
			return undefined;
		}
		const stream = this.#createStream(ssl);
		// All streams that we open are control streams, which carry a few bytes.
		if (this.#channel !== 0n) this.thread.sendBufferShrinker?.shrinkStreamBuffer(this.#channel, stream.id);
		return stream;
	}

	close(code: number): void {
		if (this.#isGone) return;
		this.isClosing = true;
		// While an OpenSSL callback is in progress, another connection may be using the pair of BIOs.
		if (this.#connection !== 0n && this.thread.currentTarget === undefined) {
			this.#shutDown(code, false);
			this.#sendOutput(false);
		}
		this.#end({ byPeer: false, isTransportError: false, code });
		this.#owner.flush();
	}

	end(code: number): void {
		if (this.#isGone || this.#gracefulEnd !== undefined) return;
		const now = performance.now();
		this.#gracefulEnd = { code, giveUpAt: now + BOUND.MAX_FLUSH_MS, lastHeardAt: now };
		this.#hasHeardPeer = false;
		this.run();
	}

	/**
	 * Continues the graceful end of the connection. Before OpenSSL can flush the streams, all of their data must have been passed to
	 * it.
	 */
	#continueEnd(gracefulEnd: Ending): void {
		const now = performance.now();
		if (this.#hasHeardPeer) gracefulEnd.lastHeardAt = now;
		this.#hasHeardPeer = false;
		// OpenSSL would wait for streams that have not been accepted. They are accepted here, so that the owner can reject them.
		this.#acceptStreams();
		this.#flushLingering();
		if (this.#isGone) return;
		if (now >= gracefulEnd.giveUpAt || now - gracefulEnd.lastHeardAt >= BOUND.MAX_FLUSH_SILENCE_MS) {
			this.close(gracefulEnd.code);
			return;
		}
		for (const streams of [this.#lingeringStreams, this.#openStreams()]) {
			for (const stream of streams) if (stream.hasUnsent) return;
		}
		this.#shutDown(gracefulEnd.code, true);
	}

	#shutDown(code: number, flushes: boolean): void {
		// OpenSSL sends CONNECTION_CLOSE only within a period that begins now. If no connection has run for a while, its time is old.
		this.thread.channelRuns?.updateTime();
		shutDownConnection(this.thread, this.#connection, code, flushes);
		if (askCloseInfo(this.thread, this.#connection)) this.isClosing = true;
		this.#takeDatagrams();
	}

	destroy(): void {
		this.#end(this.isEstablished ? { byPeer: false, isTransportError: false, code: 0 } : undefined);
	}

	/**
	 * Frees a stream that its owner has released. If it has many unacknowledged bytes, it is kept until fewer are left, so that
	 * these bytes count toward the connection's limit.
	 */
	onStreamReleased(stream: EngineStream): void {
		this.#hasReleasedStreams = true;
		if (stream.isFinished && !stream.isSettled && !this.#isGone) {
			this.#lingeringStreams.add(stream);
			return;
		}
		stream.free();
	}

	/** Returns the streams that have not been released. The array does not change while it is iterated over, except for new streams. */
	#openStreams(): EngineStream[] {
		if (this.#hasReleasedStreams) {
			this.#hasReleasedStreams = false;
			this.#streams = this.#streams.filter(stream => !stream.isReleased);
		}
		return this.#streams;
	}

	/** Lets OpenSSL process received datagrams, and takes the datagrams it wants to send. */
	#processDatagrams(): void {
		const received = this.#receivedRanges;
		const end = this.#rangesEnd;
		const { datagramPipe: pipe, channelRuns } = this.thread;
		const { peerPointer } = this.#firstPath;
		let receivedIndex = 0;
		do {
			if (channelRuns !== undefined) {
				this.#prepareRun(channelRuns, end > 0);
				receivedIndex = pipe.injectDatagrams(this.#listener, received, receivedIndex, end, peerPointer);
				// OpenSSL created the connection when it got the client's first datagram. The handshake begins with the connection's
				// first run.
				if (this.#connection === 0n) this.#acceptConnection();
				this.#handleEvents();
			} else if (receivedIndex < end) {
				receivedIndex = pipe.putDatagrams(this.#listener, received, receivedIndex, end, peerPointer);
				this.#handleEvents();
				pipe.dropUnread();
			} else this.#handleEvents();
			if (this.#isGone) return;
			if (this.#portChanges !== undefined) this.#updatePort(this.#portChanges);
			if (!this.isEstablished) {
				if (this.#connection === 0n) this.#acceptConnection();
				// If the handshake has failed, the datagrams taken below contain the reason. They are kept, and sent again if the
				// client retries.
				if (this.#connection !== 0n && askCloseInfo(this.thread, this.#connection)) this.isClosing = true;
			}
			if (pipe.hasOutput) this.#takeDatagrams();
		} while (receivedIndex < end && !this.#isGone);
		this.#rangesEnd = 0;
	}

	#handleEvents(): void {
		const { thread } = this;
		if (this.isEstablished && thread.channelRuns !== undefined) {
			thread.channelRuns.runEstablished(this.#channel);
			this.#nextEventAt = thread.channelRuns.dueAt;
			thread.library.functions.ERR_clear_error();
			return;
		}
		thread.currentTarget = this.#handshake;
		this.#isInOpenssl = true;
		if (thread.channelRuns === undefined) thread.library.functions.SSL_handle_events(this.#listener);
		else if (this.#channel !== 0n) thread.channelRuns.run(this.#channel);
		this.#isInOpenssl = false;
		thread.currentTarget = undefined;
		this.#owner.tls.restoreTicketKey();
		thread.library.functions.ERR_clear_error();
		this.#pendingEnd?.();
	}

	#acceptConnection(): void {
		const { thread } = this;
		const connection = acceptConnection(thread, this.#listener);
		if (connection === 0n) return;
		this.#connection = connection;
		if (thread.channelRuns === undefined) return;
		this.#channel = thread.channelRuns.channelOf(connection);
		thread.sendBufferShrinker?.onConnectionCreated(this.#channel);
	}

	#checkEstablished(): void {
		const { library } = this.thread;
		if ((library.functions.SSL_is_init_finished(this.#connection) as number) !== 1) return;
		this.isEstablished = true;
		this.#handshakeDatagrams = undefined;
		this.#owner.tls.releaseKeyShare(this.#connection);
		if (this.#channel !== 0n) {
			this.thread.sendBufferShrinker?.shrinkTlsBuffer(this.#channel);
			this.#lossDetection = this.thread.lossProbes?.detectionOf(this.#channel);
		}
		this.#facts = this.#handshake.readFacts(library, this.#connection);
		this.#owner.onEstablished(this);
	}

	#deliverEvents(): void {
		const { owner } = this;
		if (owner === undefined) return;
		this.#acceptStreams();
		this.#flushLingering();
		if (this.#isGone) return;
		const { polledStreams } = this.thread;
		const streams = this.#openStreams();
		const streamCount = streams.length;
		this.#isKnownOpen = polledStreams.poll(this.#connection, streams);
		// If all streams together are near the limit, the number of acknowledged bytes is read for each of them.
		const isNearLimit = this.bufferedBytes > BOUND.MAX_CONNECTION_UNACKED_BYTES / 2;
		// The results are copied first, because delivering a stream's events may run other connections, which poll as well.
		for (let i = 0; i < streamCount; i++) {
			const stream = streams[i]!;
			stream.polledEvents = polledStreams.eventsOf(i);
			if (isNearLimit || stream.needsRoom) stream.refreshBuffered();
		}
		for (let i = 0; i < streamCount; i++) {
			if (this.#isGone) return;
			streams[i]!.deliverEvents();
		}
		if (!this.#isGone) owner.onEventsDelivered();
	}

	#acceptStreams(): void {
		const { functions } = this.thread.library;
		const count = functions.SSL_get_accept_stream_queue_len(this.#connection) as number;
		for (let i = 0; i < count && !this.#isGone; i++) {
			const ssl = functions.SSL_accept_stream(this.#connection, ACCEPT_NO_BLOCK) as bigint;
			if (ssl === 0n) {
				functions.ERR_clear_error();
				break;
			}
			this.owner?.onStreamOpened(this.#createStream(ssl));
		}
	}

	/** Writes the remaining data of released streams, and frees streams for which {@link EngineStream.isSettled} is true. */
	#flushLingering(): void {
		for (const stream of this.#lingeringStreams) {
			stream.refreshBuffered();
			stream.flushPending();
			if (!stream.isSettled) continue;
			this.#lingeringStreams.delete(stream);
			stream.free();
		}
	}

	#createStream(ssl: bigint): EngineStream {
		const id = this.thread.library.functions.SSL_get_stream_id(ssl) as number;
		const stream = new EngineStream(this, ssl, id);
		this.#streams.push(stream);
		return stream;
	}

	/**
	 * Sends datagrams until OpenSSL has no more. OpenSSL stops whenever the pair of BIOs is full, so it is asked repeatedly.
	 * `withoutTls` is true if TLS has nothing to send.
	 */
	#sendOutput(withoutTls: boolean): void {
		const { channelRuns, library } = this.thread;
		for (let round = 0; round < BOUND.MAX_OUTPUT_ROUNDS; round++) {
			if (channelRuns !== undefined) this.#prepareRun(channelRuns, false);
			if (channelRuns !== undefined && withoutTls) {
				channelRuns.send(this.#channel);
				this.#nextEventAt = channelRuns.dueAt;
				library.functions.ERR_clear_error();
			} else this.#handleEvents();
			if (this.#isGone || this.#takeDatagrams() < BOUND.MORE_OUTPUT_DATAGRAMS) return;
		}
	}

	/** Takes all datagrams that OpenSSL has sent. Returns their number. */
	#takeDatagrams(): number {
		const { datagramPipe: pipe } = this.thread;
		let takenCount = 0;
		for (;;) {
			const maxCount = this.#owner.makeRoom();
			const count = pipe.takeDatagrams(maxCount);
			takenCount += count;
			if (count === 0) return takenCount;
			this.#hasBegun = true;
			this.#owner.send(this, count);
			if (count < maxCount) return takenCount;
		}
	}

	#checkClosed(): boolean {
		if (!askCloseInfo(this.thread, this.#connection)) return false;
		const closeInfo = storedCloseInfo(this.thread);
		if (!closeInfo.byPeer && closeInfo.isTransportError && closeInfo.code === INTERNAL_ERROR)
			this.#owner.onInternalError(describeInternalError(this.thread, this.#channel));
		if (!this.isEstablished) this.#handshake.recordFailure(closeInfo.code, closeInfo.byPeer);
		this.#end(closeInfo);
		return true;
	}

	#scheduleNextRun(): void {
		const { channelRuns } = this.thread;
		const gracefulEnd = this.#gracefulEnd;
		if (channelRuns !== undefined && this.isEstablished && gracefulEnd === undefined) {
			const dueAt = this.#earlierPortEvent(channelRuns.dueAt);
			this.#nextEventAt = dueAt;
			// Most runs postpone the next event. The deadline is then changed when it has passed, not in each run.
			if (dueAt < this.#scheduledAt || this.heapIndex < 0) this.#setDeadline(dueAt);
			return;
		}
		let dueAt = Infinity;
		if (channelRuns === undefined) dueAt = nextEventAt(this.thread, this.#listener);
		else if (this.#channel !== 0n) dueAt = this.#earlierPortEvent(channelRuns.dueAt);
		if (gracefulEnd !== undefined)
			dueAt = Math.min(dueAt, gracefulEnd.giveUpAt, gracefulEnd.lastHeardAt + BOUND.MAX_FLUSH_SILENCE_MS);
		this.#scheduledAt = Infinity;
		this.#owner.setDeadline(this, dueAt);
	}

	/** Returns the earlier of a time and that at which the client's port may have to be changed back. */
	#earlierPortEvent(dueAt: number): number {
		return this.#portChanges === undefined ? dueAt : Math.min(dueAt, this.#portChanges.dueAt);
	}

	#setDeadline(dueAt: number): void {
		this.#scheduledAt = dueAt;
		this.#owner.setDeadline(this, dueAt);
	}

	#end(closeInfo: QuicClose | undefined): void {
		if (this.#isGone) return;
		if (this.#isInOpenssl) {
			this.#pendingEnd ??= () => this.#end(closeInfo);
			return;
		}
		this.#isGone = true;
		this.#pendingEnd = undefined;
		const { owner, isEstablished } = this;
		this.#free();
		this.#owner.onEnded(this);
		if (!isEstablished || owner === undefined) return;
		try {
			owner.onClosed(closeInfo ?? { byPeer: false, isTransportError: true, code: 0 });
		} catch (error) {
			this.#owner.onError(error);
		}
	}

	#free(): void {
		const { functions } = this.thread.library;
		for (const stream of this.#openStreams()) stream.free();
		for (const stream of this.#lingeringStreams) stream.free();
		this.#streams = [];
		this.#lingeringStreams.clear();
		if (this.#connection !== 0n) functions.SSL_free(this.#connection);
		this.#connection = 0n;
		this.#channel = 0n;
		this.#lossDetection = undefined;
		this.#portChanges = undefined;
		if (this.#listener !== 0n) functions.SSL_free(this.#listener);
		this.#listener = 0n;
		this.#rangesEnd = 0;
		if (this.thread.currentTarget === undefined) this.thread.datagramPipe.dropUntaken();
		functions.ERR_clear_error();
	}
}

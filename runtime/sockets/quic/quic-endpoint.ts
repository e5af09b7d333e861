/**
 * The QUIC connections on one UDP socket of one thread. The kernel chooses the socket by the addresses and ports of both ends
 * (SO_REUSEPORT), so all datagrams of a connection reach one thread for as long as its client keeps its address; OpenSSL's
 * server does not let connections move to another one anyway.
 */
import { DeadlineHeap } from './deadline-heap.ts';
import { versionNegotiation } from './packet-header.ts';
import type { QuicConnection } from './quic-connection.ts';
import { type EngineOwner, QuicEngine } from './quic-engine.ts';
import * as BOUND from './quic-limits.ts';
import { DEFAULT_QUIC_LIMITS, type QuicLimits } from './quic-limits.ts';
import type { HandshakeResult, QuicRefusal } from './quic-results.ts';
import type { QuicThread } from './quic-thread.ts';
import { type ChooseCertificate, QuicTls } from './quic-tls.ts';
import { Router } from './router.ts';
import { readSocketAddress } from './socket-address.ts';
import { type DatagramPath, type DatagramSink, SENT_BYTES, type UdpAddress, UdpSocket } from './udp-socket.ts';

/** What an endpoint tells its owner. */
export interface QuicEndpointOwner {
	/** A handshake is done. The owner sets `connection.owner`. */
	connected(connection: QuicConnection): void;
	/** A handshake ended, one way or another. */
	handshake(result: HandshakeResult, resumed: boolean): void;
	/** Whether one more connection of a client, whose address is proven, may begin: what to call at its end, or undefined if not. */
	admit(address: string): (() => void) | undefined;
	/** A connection, or the attempt at one, is over. */
	ended(): void;
	refused(reason: QuicRefusal): void;
	datagrams(received: number, sent: number, lost: number): void;
	/** Milliseconds that a handshake may take. */
	readonly handshakeLimit: number;
	readonly choose: ChooseCertificate;
	/** Undefined for the defaults. */
	readonly limits?: Partial<QuicLimits> | undefined;
	/** What counts as one client. */
	clientKey(address: string): string;
	/** A connection was ended because something threw: a defect of ours. */
	failed(error: unknown): void;
}

interface Closing {
	readonly path: DatagramPath;
	readonly datagram: Uint8Array;
	readonly until: number;
	answers: number;
}

interface Client {
	/** Handshakes with this address, which may be someone else's; oldest first. */
	readonly unproven: Set<QuicEngine>;
	/** Unfinished handshakes of the client itself. */
	handshakes: number;
	connections: number;
}

/** What an engine has taken, to be given back once. */
interface Claim {
	readonly client: Client;
	readonly key: string;
	/** Once the address is proven. */
	leave: (() => void) | undefined;
}

/** The endpoint of one listener on one thread. */
export class QuicEndpoint implements DatagramSink, EngineOwner {
	readonly tls: QuicTls;
	readonly port: number;
	readonly #thread: QuicThread;
	readonly #socket: UdpSocket;
	readonly #owner: QuicEndpointOwner;
	readonly #router = new Router<QuicEngine>();
	readonly #engines = new Map<QuicEngine, Claim>();
	readonly #clients = new Map<string, Client>();
	readonly #deadlines = new DeadlineHeap<QuicEngine>();
	/** Handshakes that have not ended, oldest first. */
	readonly #handshaking = new Set<QuicEngine>();
	/** Those of them with addresses that are not proven. */
	readonly #unproven = new Set<QuicEngine>();
	readonly #limits: QuicLimits;
	#begun = 0;
	#begunFrom = 0;
	/** The handshake that gives way to another one. */
	#evicted: QuicEngine | undefined;
	/** By an id of an ended connection. */
	readonly #closing = new Map<string, Closing>();
	#dirty: QuicEngine[] = [];
	#timer: NodeJS.Timeout | undefined;
	#timerAt = Infinity;
	#draining = false;
	#closed = false;
	#received = 0;
	#sent = 0;
	#lost = 0;
	readonly #look: () => void = () => this.#onTimer();

	/** Binds. Throws an error with the system's code. */
	constructor(thread: QuicThread, address: UdpAddress, owner: QuicEndpointOwner) {
		this.#thread = thread;
		this.#owner = owner;
		this.#limits = { ...DEFAULT_QUIC_LIMITS, ...owner.limits };
		this.port = address.port;
		this.#socket = new UdpSocket(thread.library, thread.datagrams, address);
		try {
			this.tls = new QuicTls(thread, owner.choose);
		} catch (error) {
			this.#socket.close();
			throw error;
		}
	}

	/** Takes datagrams from now on. */
	open(): void {
		this.#socket.open(this);
	}

	/** Connections and unfinished handshakes. */
	get connections(): number {
		return this.#engines.size;
	}

	/** Takes new connections again after `drain`. */
	resume(): void {
		this.#draining = false;
	}

	/** Takes no new connections. Those that exist are the protocol's to end. */
	drain(): void {
		this.#draining = true;
		for (const engine of [...this.#handshaking]) engine.destroy();
	}

	/** Ends all connections at once and closes the socket. */
	close(): void {
		if (this.#closed) return;
		for (const engine of [...this.#engines.keys()]) engine.destroy();
		this.#closed = true;
		if (this.#timer !== undefined) clearTimeout(this.#timer);
		this.#timer = undefined;
		this.#socket.close();
		this.tls.close();
		this.#report();
	}

	datagram(bytes: Buffer, start: number, end: number, name: number): void {
		this.#received++;
		const now = performance.now();
		const target = this.#router.route(bytes, start, end, now);
		switch (target) {
			case 'drop':
				if (!this.#answerEnded(now)) this.#owner.refused('noise');
				return;
			case 'negotiate':
				this.#socket.sendOne(this.#socket.pathOf(name), versionNegotiation(this.#router.header, Math.random() * 256));
				this.#sent++;
				return;
			case 'new': {
				if (this.#answerEnded(now)) return;
				const engine = this.#begin(name, now);
				if (engine !== undefined) this.#give(engine, start, end);
				return;
			}
		}
		if (target.peerKey !== this.#socket.keyOf(name)) {
			this.#owner.refused('moved');
			return;
		}
		// Only who gets what is sent to that address knows an id that we chose.
		if (!target.proven && this.#router.header.destination !== target.firstId && !this.#prove(target)) return;
		this.#give(target, start, end);
	}

	received(): void {
		// What these cause to be written may make others dirty only by further datagrams.
		const dirty = this.#dirty;
		this.#dirty = [];
		for (const engine of dirty) {
			engine.run();
			// What looked like a first packet could not be opened: under pressure nothing is kept for it.
			if (!engine.begun && this.#handshaking.size > BOUND.MANY_HANDSHAKES) engine.destroy();
		}
		this.#report();
	}

	send(engine: QuicEngine, lengths: Uint32Array, count: number): void {
		const { sent } = this.#socket.memory;
		if (!engine.established) {
			for (let i = 0; i < count; i++) {
				this.#router.learnFrom(sent, i * SENT_BYTES, i * SENT_BYTES + lengths[i]!, engine);
			}
		}
		if (engine.closing) {
			const last = (count - 1) * SENT_BYTES;
			engine.lastSent = new Uint8Array(sent.subarray(last, last + lengths[count - 1]!));
		}
		this.#socket.send(engine.path, lengths, count);
		this.#sent += count;
	}

	established(engine: QuicEngine): void {
		this.#handshaking.delete(engine);
		const claim = this.#engines.get(engine);
		if (claim) claim.client.handshakes--;
		this.#owner.handshake('ok', engine.facts.resumed);
		this.#owner.connected(engine);
	}

	deadline(engine: QuicEngine, due: number): void {
		const latest = engine.established ? Infinity : engine.startedAt + this.#limitOf(engine);
		this.#deadlines.set(engine, Math.min(due, latest));
		this.#wind();
	}

	ended(engine: QuicEngine): void {
		const claim = this.#engines.get(engine);
		if (claim === undefined) return;
		this.#engines.delete(engine);
		this.#deadlines.delete(engine);
		this.#unproven.delete(engine);
		claim.client.unproven.delete(engine);
		if (this.#handshaking.delete(engine)) {
			if (engine.proven) claim.client.handshakes--;
			const late = performance.now() - engine.startedAt >= this.#owner.handshakeLimit;
			if (engine === this.#evicted) this.#owner.refused('evicted');
			else if (engine.begun) this.#owner.handshake(late ? 'timeout' : 'failed', false);
			else this.#owner.refused('noise');
		}
		if (engine.proven) claim.client.connections--;
		const { client } = claim;
		if (client.connections === 0 && client.unproven.size === 0) this.#clients.delete(claim.key);
		this.#rememberClosing(engine);
		this.#router.forget(engine);
		claim.leave?.();
		this.#owner.ended();
	}

	failed(error: unknown): void {
		this.#owner.refused('internal_error');
		this.#owner.failed(error);
	}

	resumed(engine: QuicEngine): void {
		// The lookup may end within the handshake's own turn.
		setImmediate(() => engine.run());
	}

	/** Milliseconds that an unfinished handshake has in all. */
	#limitOf(engine: QuicEngine): number {
		const { handshakeLimit } = this.#owner;
		return engine.begun ? handshakeLimit : Math.min(handshakeLimit, BOUND.UNOPENED_TIME);
	}

	#give(engine: QuicEngine, start: number, end: number): void {
		if (!engine.inject(start, end - start)) {
			engine.run();
			engine.inject(start, end - start);
		}
		if (engine.dirty) return;
		engine.dirty = true;
		this.#dirty.push(engine);
	}

	#begin(name: number, now: number): QuicEngine | undefined {
		if (this.#draining) return this.#refuse('draining');
		const limits = this.#limits;
		if (this.#engines.size >= limits.maxConnections && !this.#evict(this.#unproven)) {
			return this.#refuse('too_many_connections');
		}
		const validate = this.#unproven.size >= limits.retryAbove;
		// Before anything is done for it: a flood must cost little more than the reading of it.
		if (validate && !this.#mayBegin(now)) return this.#refuse('too_many_handshakes');
		const { address } = readSocketAddress(this.#socket.memory.names, name);
		const key = this.#owner.clientKey(address);
		const client = this.#clients.get(key) ?? { unproven: new Set(), handshakes: 0, connections: 0 };
		if (client.connections >= limits.maxConnectionsPerClient || client.handshakes >= limits.maxHandshakesPerClient) {
			return this.#refuse('client_limit');
		}
		// Others may use its address: they must not shut it out.
		if (client.handshakes + client.unproven.size >= limits.maxHandshakesPerClient) this.#evict(client.unproven);
		if (this.#handshaking.size >= limits.maxHandshakes && !this.#evict(this.#unproven)) {
			return this.#refuse('too_many_handshakes');
		}
		let engine: QuicEngine;
		try {
			const peerKey = this.#socket.keyOf(name);
			const { destination } = this.#router.header;
			const path = this.#socket.pathOf(name);
			engine = new QuicEngine(this.#thread, this, path, peerKey, key, now, destination, validate);
		} catch {
			return this.#refuse('no_memory');
		}
		client.unproven.add(engine);
		this.#clients.set(key, client);
		this.#engines.set(engine, { client, key, leave: undefined });
		this.#handshaking.add(engine);
		this.#unproven.add(engine);
		this.#router.learn(engine.firstId, engine);
		return engine;
	}

	/** The client's address is its own: what is counted by address is charged to it from now on. */
	#prove(engine: QuicEngine): boolean {
		const claim = this.#engines.get(engine);
		if (claim === undefined) return false;
		const { client } = claim;
		const full = client.connections >= this.#limits.maxConnectionsPerClient;
		const leave = full ? undefined : this.#owner.admit(engine.remoteAddress);
		if (leave === undefined) {
			this.#refuse(full ? 'client_limit' : 'admission');
			engine.destroy();
			return false;
		}
		claim.leave = leave;
		engine.proven = true;
		this.#unproven.delete(engine);
		client.unproven.delete(engine);
		client.handshakes++;
		client.connections++;
		return true;
	}

	#mayBegin(now: number): boolean {
		if (now - this.#begunFrom >= 100) {
			this.#begunFrom = now;
			this.#begun = 0;
		}
		return ++this.#begun <= this.#limits.maxHandshakeRate / 10;
	}

	/** Ends the oldest of these handshakes, whose addresses are not proven. Returns false if the set is empty. */
	#evict(among: ReadonlySet<QuicEngine>): boolean {
		const [oldest] = among;
		if (oldest === undefined) return false;
		this.#evicted = oldest;
		oldest.destroy();
		this.#evicted = undefined;
		return true;
	}

	#refuse(reason: QuicRefusal): undefined {
		this.#owner.refused(reason);
	}

	#rememberClosing(engine: QuicEngine): void {
		const datagram = engine.lastSent;
		if (!engine.closing || datagram === undefined || this.#closing.size >= BOUND.MAX_CLOSING) return;
		const until = performance.now() + BOUND.CLOSING_TIME;
		const closing = { path: engine.path, datagram, until, answers: BOUND.CLOSING_ANSWERS };
		for (const id of engine.ids) this.#closing.set(id, closing);
		setTimeout(() => {
			for (const [id, one] of this.#closing) if (one === closing) this.#closing.delete(id);
		}, BOUND.CLOSING_TIME).unref();
	}

	/** Answers a datagram for a connection that has ended, a few times. Returns true if it was for one. */
	#answerEnded(now: number): boolean {
		const closing = this.#closing.get(this.#router.header.destination);
		if (closing === undefined) return false;
		if (closing.answers > 0 && now < closing.until) {
			closing.answers--;
			this.#socket.sendOne(closing.path, closing.datagram);
			this.#sent++;
		}
		return true;
	}

	#wind(): void {
		const { next } = this.#deadlines;
		if (next >= this.#timerAt) return;
		if (this.#timer !== undefined) clearTimeout(this.#timer);
		this.#timerAt = next;
		if (next === Infinity) return;
		this.#timer = setTimeout(this.#look, Math.max(0, Math.min(next - performance.now(), 60_000)));
	}

	#onTimer(): void {
		this.#timerAt = Infinity;
		this.#timer = undefined;
		const now = performance.now() + 0.5;
		// A deadline that is due again at once waits for the next turn.
		const due: QuicEngine[] = [];
		for (let engine = this.#deadlines.take(now); engine !== undefined; engine = this.#deadlines.take(now))
			due.push(engine);
		for (const engine of due) {
			if (!engine.established && now - engine.startedAt >= this.#limitOf(engine)) engine.destroy();
			else engine.run();
		}
		this.#wind();
		this.#report();
	}

	#report(): void {
		const lost = this.#socket.lost - this.#lost;
		this.#lost = this.#socket.lost;
		this.#owner.datagrams(this.#received, this.#sent, lost);
		this.#received = 0;
		this.#sent = 0;
	}
}

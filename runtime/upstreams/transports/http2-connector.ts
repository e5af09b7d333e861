/** HTTP/2 connections to one upstream, each with many concurrent requests. */
import type { UpstreamError } from '../../../compiler/exchange/leases.ts';
import type { ClientCall, ClientOptions } from '../../protocols/http1/client-call.ts';
import { type ClientCoders, ClientSession, type SessionKeeper } from '../../protocols/http2/client-session.ts';
import type { Dialer } from '../../sockets/dialer.ts';
import type { UpstreamSocket } from '../../sockets/upstream-socket.ts';
import { CallQueue } from './call-queue.ts';
import type { IdleLimits, UpstreamConnector } from './connector.ts';
import { type ConnectionRequester, WaitingCall } from './waiting-call.ts';

export interface Http2Settings {
	readonly options: ClientOptions;
	readonly limits: IdleLimits;
	readonly scheme: 'http' | 'https';
	readonly coders: () => ClientCoders;
	readonly onIdle: () => boolean;
	/** Maximum connections of this thread; 0 for no limit. */
	readonly maxConnections: number;
}

export class Http2Connector implements UpstreamConnector, ConnectionRequester, SessionKeeper {
	/** Opens connections; undefined if another connector opens them. */
	readonly #dialer: Dialer | undefined;
	readonly #settings: Http2Settings;
	#sessions: ClientSession[] = [];
	/** Requests that arrived while a connection was being opened. They will share this connection. */
	readonly #followingCalls = new CallQueue();
	/** Requests that wait for a free stream because no more connections may be opened. */
	readonly #waitingCalls = new CallQueue();
	/** Passes a request to the connector that opens connections for this one. Does nothing if this connector opens them itself. */
	sendElsewhere: (call: ClientCall) => void = () => {};
	#isDialing = false;
	#isClosed = false;

	constructor(dialer: Dialer | undefined, settings: Http2Settings) {
		this.#dialer = dialer;
		this.#settings = settings;
	}

	get idleCount(): number {
		let count = 0;
		for (const session of this.#sessions) if (session.activeCount === 0) count++;
		return count;
	}

	get isUnused(): boolean {
		return this.#sessions.length === 0 && !this.#isDialing;
	}

	send(call: ClientCall, wantsNewConnection: boolean): void {
		if (this.sendOnExisting(call, wantsNewConnection)) return;
		if (this.#isDialing) this.#followingCalls.add(call);
		else if (!this.queueIfFull(call)) this.#dial(call);
	}

	/**
	 * If no further connection may be opened, sends a request on an existing connection or queues it, and returns true. Otherwise
	 * returns false.
	 */
	queueIfFull(call: ClientCall): boolean {
		const { maxConnections } = this.#settings;
		if (maxConnections === 0 || this.#sessions.length < maxConnections) return false;
		// A retry that asks for a new connection may get an existing one, because it might wait forever for a new one.
		if (!this.sendOnExisting(call, false)) this.#waitingCalls.add(call);
		return true;
	}

	/** Called when another connection may be opened: opens it for the first waiting request, and the others share it. */
	serveWaiting(): void {
		const { maxConnections } = this.#settings;
		while (this.#waitingCalls.size > 0 && this.#sessions.length < maxConnections) {
			const call = this.#waitingCalls.shift()!;
			if (this.#dialer) this.send(call, false);
			else this.sendElsewhere(call);
		}
	}

	/**
	 * Sends the request on an existing connection with a free stream. Returns false if there is none, or if a new connection is
	 * wanted.
	 */
	sendOnExisting(call: ClientCall, wantsNewConnection: boolean): boolean {
		if (wantsNewConnection) return false;
		for (const session of this.#sessions) {
			if (!session.hasRoom) continue;
			session.sendRequest(call);
			return true;
		}
		return false;
	}

	/** Implements ConnectionRequester. Also called for sockets that another connector opened. */
	onConnected(socket: UpstreamSocket, call: ClientCall): void {
		this.#isDialing = false;
		const { scheme, options, coders } = this.#settings;
		const session = new ClientSession(socket, scheme, options, coders(), this);
		this.#sessions.push(session);
		session.sendRequest(call);
		this.#serveFollowing();
		this.onSessionFreed(session);
	}

	/** Implements ConnectionRequester: no connection could be opened, or the request that opened it was canceled. */
	onNotConnected(error: UpstreamError | undefined): void {
		this.#isDialing = false;
		// The requests that would have shared the connection fail with its error. If only the request that opened it was canceled,
		// the others are sent again.
		if (error) this.#followingCalls.failAll(error);
		else this.#serveFollowing();
		this.serveWaiting();
	}

	sweep(now: number): void {
		const { timeoutMs, maxCount } = this.#settings.limits;
		let idleCount = 0;
		for (const session of [...this.#sessions]) {
			if (session.activeCount > 0) continue;
			if (session.idleSince <= now - timeoutMs || ++idleCount > maxCount) session.end();
		}
	}

	close(): void {
		this.#isClosed = true;
		for (const session of [...this.#sessions]) session.retire();
	}

	/** Implements SessionKeeper: the session may have a free stream. */
	onSessionFreed(session: ClientSession): void {
		while (this.#waitingCalls.size > 0 && session.hasRoom) session.sendRequest(this.#waitingCalls.shift()!);
	}

	/** Implements SessionKeeper: the session has no open streams. */
	onSessionIdle(session: ClientSession): void {
		const { limits, onIdle } = this.#settings;
		session.idleSince = performance.now();
		if (this.#isClosed || limits.timeoutMs <= 0 || limits.maxCount <= 0 || !onIdle()) session.end();
	}

	/** Implements SessionKeeper: the session accepts no more requests. */
	onSessionLost(session: ClientSession): void {
		this.#sessions = this.#sessions.filter(other => other !== session);
		this.serveWaiting();
	}

	#dial(call: ClientCall): void {
		this.#isDialing = true;
		new WaitingCall(this.#dialer!, call, this);
	}

	#serveFollowing(): void {
		while (!this.#isDialing && this.#followingCalls.size > 0) this.send(this.#followingCalls.shift()!, false);
	}
}

/** Connections of HTTP/2 to one upstream: many calls at a time on each. */
import type { UpstreamError } from '../../../compiler/exchange/leases.ts';
import type { ClientCall, ClientOptions } from '../../protocols/http1/client-call.ts';
import { type ClientCoders, ClientSession, type SessionKeeper } from '../../protocols/http2/client-session.ts';
import type { UpstreamSocket } from '../../sockets/upstream-socket.ts';
import { CallQueue } from './call-queue.ts';
import type { IdleLimits, UpstreamConnector } from './connector.ts';
import type { Dialer } from './dialer.ts';
import { type DialedFor, WaitingCall } from './waiting-call.ts';

/** Settings of the connections. */
export interface Http2Settings {
	readonly options: ClientOptions;
	readonly limits: IdleLimits;
	readonly scheme: 'http' | 'https';
	readonly coders: () => ClientCoders;
	readonly idled: () => boolean;
	/** Connections of this thread; 0 for no bound. */
	readonly maxConnections: number;
}

/** The connections. */
export class Http2Connector implements UpstreamConnector, DialedFor, SessionKeeper {
	/** Undefined: wires are dialed elsewhere. */
	readonly #dialer: Dialer | undefined;
	readonly #settings: Http2Settings;
	#sessions: ClientSession[] = [];
	/** Calls that came while a connection was under way: they share it. */
	readonly #following = new CallQueue();
	/** Calls that wait for room on one of as many connections as there may be. */
	readonly #waiting = new CallQueue();
	/** Sends what waited when wires are dialed elsewhere. */
	elsewhere: (call: ClientCall) => void = () => {};
	#dialing = false;
	#closed = false;

	constructor(dialer: Dialer | undefined, settings: Http2Settings) {
		this.#dialer = dialer;
		this.#settings = settings;
	}

	get idle(): number {
		let count = 0;
		for (const session of this.#sessions) if (session.active === 0) count++;
		return count;
	}

	get unused(): boolean {
		return this.#sessions.length === 0 && !this.#dialing;
	}

	send(call: ClientCall, fresh: boolean): void {
		if (this.carry(call, fresh)) return;
		if (this.#dialing) this.#following.add(call);
		else if (!this.holds(call)) this.#dial(call);
	}

	/** Keeps a call until there is room, when there may be no further connection; false when there may. */
	holds(call: ClientCall): boolean {
		const { maxConnections } = this.#settings;
		if (maxConnections === 0 || this.#sessions.length < maxConnections) return false;
		// One that asked for a fresh connection takes what there is: nothing on it might end any more.
		if (!this.carry(call, false)) this.#waiting.add(call);
		return true;
	}

	/** There may be a connection more: the first of the calls that wait has it made, the others share what comes of it. */
	serveWaiting(): void {
		const { maxConnections } = this.#settings;
		while (this.#waiting.size > 0 && this.#sessions.length < maxConnections) {
			const call = this.#waiting.shift()!;
			if (this.#dialer) this.send(call, false);
			else this.elsewhere(call);
		}
	}

	/** Puts the call on a connection that is there and has room; false when none is. */
	carry(call: ClientCall, fresh: boolean): boolean {
		if (fresh) return false;
		for (const session of this.#sessions) {
			if (!session.hasRoom) continue;
			session.carry(call);
			return true;
		}
		return false;
	}

	/** DialedFor, also of wires that were dialed elsewhere. */
	connected(wire: UpstreamSocket, call: ClientCall): void {
		this.#dialing = false;
		const { scheme, options, coders } = this.#settings;
		const session = new ClientSession(wire, scheme, options, coders(), this);
		this.#sessions.push(session);
		session.carry(call);
		this.#serveFollowing();
		this.sessionFreed(session);
	}

	/** DialedFor */
	notConnected(error: UpstreamError | undefined): void {
		this.#dialing = false;
		// They wait no longer than if each had dialed.
		if (error) this.#following.fail(error);
		else this.#serveFollowing();
		this.serveWaiting();
	}

	sweep(now: number): void {
		const { timeout, count } = this.#settings.limits;
		let idle = 0;
		for (const session of [...this.#sessions]) {
			if (session.active > 0) continue;
			if (session.idleSince <= now - timeout || ++idle > count) session.end();
		}
	}

	close(): void {
		this.#closed = true;
		for (const session of [...this.#sessions]) session.retire();
	}

	/** Of a session: it may have room. */
	sessionFreed(session: ClientSession): void {
		while (this.#waiting.size > 0 && session.hasRoom) session.carry(this.#waiting.shift()!);
	}

	/** Of a session: nothing is on it any more. */
	sessionIdle(session: ClientSession): void {
		const { limits, idled } = this.#settings;
		session.idleSince = performance.now();
		if (this.#closed || limits.timeout <= 0 || limits.count <= 0 || !idled()) session.end();
	}

	/** Of a session: it takes no more calls. */
	sessionLost(session: ClientSession): void {
		this.#sessions = this.#sessions.filter(one => one !== session);
		this.serveWaiting();
	}

	#dial(call: ClientCall): void {
		this.#dialing = true;
		new WaitingCall(this.#dialer!, call, this);
	}

	#serveFollowing(): void {
		while (!this.#dialing && this.#following.size > 0) this.send(this.#following.shift()!, false);
	}
}

/** Connections of HTTP/2 to one upstream: many calls at a time on each. */
import { type ClientHttp2Session, connect } from 'node:http2';
import type { ClientCall, ClientOptions } from '../../protocols/http1/client-call.ts';
import type { Wire, WireHolder } from '../../protocols/wire.ts';
import { CallQueue } from './call-queue.ts';
import type { Dialer } from './dialer.ts';
import { type ExchangeSession, Http2Exchange } from './http2-exchange.ts';
import type { IdleLimits, UpstreamLink } from './link.ts';
import { type DialedFor, WaitingCall } from './waiting-call.ts';

/** Bytes that an upstream may send ahead on one stream, and on a connection. */
const STREAM_WINDOW = 262_144;
const CONNECTION_WINDOW = 4_194_304;
/** Streams of one connection until the upstream has said how many it allows. */
const FIRST_STREAMS = 100;

/** Settings of the connections. */
export interface Http2Settings {
	readonly options: ClientOptions;
	readonly limits: IdleLimits;
	readonly scheme: 'http' | 'https';
	readonly idled: () => boolean;
}

/** The connections. */
export class Http2Link implements UpstreamLink, DialedFor {
	/** Undefined: wires are dialed elsewhere. */
	readonly #dialer: Dialer | undefined;
	readonly #settings: Http2Settings;
	#sessions: Session[] = [];
	/** Calls that came while a connection was under way: they share it. */
	readonly #following = new CallQueue();
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
		else this.#dial(call);
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
	connected(wire: Wire, call: ClientCall): void {
		this.#dialing = false;
		const session = new Session(wire, this.#settings, this);
		this.#sessions.push(session);
		session.carry(call);
		this.#serveFollowing();
	}

	/** DialedFor */
	notConnected(): void {
		this.#dialing = false;
		this.#serveFollowing();
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

	/** Of a session: nothing is on it any more. */
	sessionIdle(session: Session): void {
		const { limits, idled } = this.#settings;
		session.idleSince = performance.now();
		if (this.#closed || limits.timeout <= 0 || limits.count <= 0 || !idled()) session.end();
	}

	/** Of a session: it takes no more calls. */
	sessionLost(session: Session): void {
		this.#sessions = this.#sessions.filter(one => one !== session);
	}

	#dial(call: ClientCall): void {
		this.#dialing = true;
		new WaitingCall(this.#dialer!, call, this);
	}

	#serveFollowing(): void {
		while (!this.#dialing && this.#following.size > 0) this.send(this.#following.shift()!, false);
	}
}

/** One connection. */
class Session implements ExchangeSession, WireHolder {
	readonly http2: ClientHttp2Session;
	readonly scheme: 'http' | 'https';
	active = 0;
	idleSince = 0;
	proven = false;
	failure: Error | undefined = undefined;
	lastStream: number | undefined = undefined;
	readonly #link: Http2Link;
	readonly #options: ClientOptions;
	#retired = false;
	/** Those that wait for the upstream's settings; undefined once these have come, or never will. */
	#unsettled: (() => void)[] | undefined = [];

	constructor(wire: Wire, settings: Http2Settings, link: Http2Link) {
		this.#link = link;
		this.#options = settings.options;
		this.scheme = settings.scheme;
		wire.holder = this;
		this.http2 = connect(`${settings.scheme}://upstream`, {
			createConnection: () => wire.socket,
			settings: {
				enablePush: false,
				initialWindowSize: STREAM_WINDOW,
				maxHeaderListSize: settings.options.maxResponseHead,
			},
			maxHeaderListPairs: 2000,
		} as never);
		this.http2.on('connect', () => {
			if (!this.http2.destroyed) this.http2.setLocalWindowSize(CONNECTION_WINDOW);
		});
		this.http2.on('remoteSettings', () => this.#settle());
		this.http2.on('error', error => {
			this.failure ??= error;
		});
		this.http2.on('goaway', (code, lastStreamId) => {
			this.lastStream = lastStreamId;
			if (code !== 0) this.failure ??= new Error(`the upstream ended the connection with code ${code}`);
			this.#lost();
		});
		this.http2.on('close', () => {
			this.failure ??= new Error('the connection was closed');
			this.#settle();
			this.#lost();
		});
	}

	get hasRoom(): boolean {
		if (this.#retired || this.http2.closed || this.http2.destroyed) return false;
		return this.active < (this.http2.remoteSettings?.maxConcurrentStreams ?? FIRST_STREAMS);
	}

	carry(call: ClientCall): void {
		this.active++;
		new Http2Exchange(this, call, this.#options).begin();
	}

	whenSettled(listener: () => void): void {
		if (this.#unsettled) this.#unsettled.push(listener);
		else listener();
	}

	exchangeEnded(whole: boolean): void {
		if (whole) this.proven = true;
		if (--this.active > 0) return;
		if (this.#retired) this.end();
		else this.#link.sessionIdle(this);
	}

	/** Takes no more calls, and ends when the last has ended. */
	retire(): void {
		if (this.active === 0) this.end();
		else this.#lost();
	}

	end(): void {
		this.#lost();
		if (!this.http2.destroyed) this.http2.close();
	}

	// WireHolder: the session has taken the socket over.

	received(): boolean {
		return true;
	}

	ended(): void {}

	closed(): void {}

	#settle(): void {
		const waiting = this.#unsettled ?? [];
		this.#unsettled = undefined;
		for (const listener of waiting) listener();
	}

	#lost(): void {
		if (this.#retired) return;
		this.#retired = true;
		this.#link.sessionLost(this);
	}
}

/** TLS connections to an upstream that negotiates HTTP/2 or HTTP/1.1 during the handshake (RFC 7301). */
import type { UpstreamError } from '../../../compiler/exchange/leases.ts';
import type { ClientCall } from '../../protocols/http1/client-call.ts';
import type { Dialer } from '../../sockets/dialer.ts';
import type { UpstreamSocket } from '../../sockets/upstream-socket.ts';
import { CallQueue } from './call-queue.ts';
import type { UpstreamConnector } from './connector.ts';
import type { Http2Connector } from './http2-connector.ts';
import type { SerialConnector } from './serial-connector.ts';
import { type ConnectionRequester, WaitingCall } from './waiting-call.ts';

/** Connections over HTTP/1.1 and HTTP/2. A new connection is expected to negotiate the same protocol as the last one. */
export class NegotiatedConnector implements UpstreamConnector, ConnectionRequester {
	readonly #dialer: Dialer;
	readonly #http1: SerialConnector;
	readonly #http2: Http2Connector;
	/** Requests that arrived during a handshake; with HTTP/2, they share its connection. */
	readonly #following = new CallQueue();
	#expectsHttp1 = false;
	#dialing = false;

	/**
	 * @param dialer Offers both protocols.
	 * @param one Dials with HTTP/1.1 only, and takes over sockets that negotiated it.
	 * @param two Takes over sockets that negotiated HTTP/2.
	 */
	constructor(dialer: Dialer, one: SerialConnector, two: Http2Connector) {
		this.#dialer = dialer;
		this.#http1 = one;
		this.#http2 = two;
		two.elsewhere = call => this.send(call, false);
	}

	get idle(): number {
		return this.#http1.idle + this.#http2.idle;
	}

	get unused(): boolean {
		return !this.#dialing && this.#http1.unused && this.#http2.unused;
	}

	send(call: ClientCall, fresh: boolean): void {
		// Upgrades use HTTP/1.1, because few upstreams support extended CONNECT over HTTP/2.
		if (call.request.upgrade !== undefined || this.#expectsHttp1) this.#http1.send(call, fresh);
		else if (this.#http2.carry(call, fresh)) return;
		else if (this.#dialing) this.#following.add(call);
		else if (!this.#http2.holds(call)) this.#dial(call);
	}

	sweep(now: number): void {
		this.#http1.sweep(now);
		this.#http2.sweep(now);
	}

	close(): void {
		this.#http1.close();
		this.#http2.close();
	}

	/** Implements DialedFor. */
	connected(socket: UpstreamSocket, call: ClientCall): void {
		this.#dialing = false;
		if (socket.protocol === 'h2') this.#http2.connected(socket, call);
		else {
			this.#expectsHttp1 = true;
			this.#http1.adopt(socket, call);
		}
		this.#serveFollowing();
		this.#http2.serveWaiting();
	}

	/** Implements DialedFor. */
	notConnected(error: UpstreamError | undefined): void {
		this.#dialing = false;
		// Each waiting request is treated as if it had opened the connection itself.
		if (error) this.#following.fail(error);
		else this.#serveFollowing();
		this.#http2.serveWaiting();
	}

	#dial(call: ClientCall): void {
		this.#dialing = true;
		new WaitingCall(this.#dialer, call, this);
	}

	#serveFollowing(): void {
		while (!this.#dialing && this.#following.size > 0) this.send(this.#following.shift()!, false);
	}
}

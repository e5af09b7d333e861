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
	readonly #http1Connector: SerialConnector;
	readonly #http2Connector: Http2Connector;
	/** Requests that arrived during a handshake. If the handshake negotiates HTTP/2, they share its connection. */
	readonly #followingCalls = new CallQueue();
	#expectsHttp1 = false;
	#isDialing = false;

	/**
	 * @param dialer Offers both protocols.
	 * @param http1 Dials with HTTP/1.1 only, and takes over sockets that negotiated it.
	 * @param http2 Takes over sockets that negotiated HTTP/2.
	 */
	constructor(dialer: Dialer, http1: SerialConnector, http2: Http2Connector) {
		this.#dialer = dialer;
		this.#http1Connector = http1;
		this.#http2Connector = http2;
		http2.sendElsewhere = call => this.send(call, false);
	}

	get idleCount(): number {
		return this.#http1Connector.idleCount + this.#http2Connector.idleCount;
	}

	get isUnused(): boolean {
		return !this.#isDialing && this.#http1Connector.isUnused && this.#http2Connector.isUnused;
	}

	send(call: ClientCall, wantsNewConnection: boolean): void {
		// Upgrades use HTTP/1.1, because few upstreams support extended CONNECT over HTTP/2.
		if (call.request.upgrade !== undefined || this.#expectsHttp1) this.#http1Connector.send(call, wantsNewConnection);
		else if (this.#http2Connector.sendOnExisting(call, wantsNewConnection)) return;
		else if (this.#isDialing) this.#followingCalls.add(call);
		else if (!this.#http2Connector.queueIfFull(call)) this.#dial(call);
	}

	sweep(now: number): void {
		this.#http1Connector.sweep(now);
		this.#http2Connector.sweep(now);
	}

	close(): void {
		this.#http1Connector.close();
		this.#http2Connector.close();
	}

	/**
	 * Implements ConnectionRequester: the handshake is complete, and the socket goes to the connector for the negotiated protocol.
	 */
	onConnected(socket: UpstreamSocket, call: ClientCall): void {
		this.#isDialing = false;
		if (socket.protocol === 'h2') this.#http2Connector.onConnected(socket, call);
		else {
			this.#expectsHttp1 = true;
			this.#http1Connector.adopt(socket, call);
		}
		this.#serveFollowing();
		this.#http2Connector.serveWaiting();
	}

	/** Implements ConnectionRequester: no connection could be opened, or the request that opened it was canceled. */
	onNotConnected(error: UpstreamError | undefined): void {
		this.#isDialing = false;
		// The requests that would have shared the connection fail with its error. If only the request that opened it was canceled,
		// the others are sent again.
		if (error) this.#followingCalls.failAll(error);
		else this.#serveFollowing();
		this.#http2Connector.serveWaiting();
	}

	#dial(call: ClientCall): void {
		this.#isDialing = true;
		new WaitingCall(this.#dialer, call, this);
	}

	#serveFollowing(): void {
		while (!this.#isDialing && this.#followingCalls.size > 0) this.send(this.#followingCalls.shift()!, false);
	}
}

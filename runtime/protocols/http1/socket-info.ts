/** Addresses and TLS properties of a socket, for exchanges. */
import type { TLSSocket } from 'node:tls';
import type { ConnectionInfo, TlsInfo } from '../../../compiler/exchange/exchange.ts';
import type { ClientSocket } from '../../sockets/client-socket.ts';
import { DirectSocket } from '../../sockets/direct-socket.ts';
import type { ConnectionPeer } from '../protocol.ts';
import { tlsInfoOf } from '../tls-info.ts';

/** The addresses of a connection. They are read from the socket once. */
export class SocketInfo implements ConnectionInfo {
	readonly tls: TlsInfo | undefined;
	readonly scheme: 'http' | 'https';
	readonly #socket: ClientSocket;
	#remoteAddress: string | undefined = undefined;
	#remotePort: number | undefined = undefined;
	#localAddress: string | undefined = undefined;
	#localPort: number | undefined = undefined;
	#isAddressLost = false;

	/** For scheme `https`, the TLS handshake must be complete. `peer` is set if the addresses come from a PROXY header. */
	constructor(socket: ClientSocket, scheme: 'http' | 'https', peer: ConnectionPeer | undefined) {
		this.#socket = socket;
		this.scheme = scheme;
		this.tls = scheme === 'https' ? readTlsInfo(socket) : undefined;
		if (peer) {
			this.#remoteAddress = peer.remoteAddress;
			this.#remotePort = peer.remotePort;
			this.#localAddress = peer.localAddress;
			this.#localPort = peer.localPort;
		} else if (!(socket instanceof DirectSocket)) {
			this.readAddresses();
		}
	}

	/** Reads the client's address now for later use, because the system forgets it when the client resets its connection. */
	readAddresses(): void {
		if (this.#remoteAddress === undefined) {
			const address = this.#socket.remoteAddress;
			this.#isAddressLost = address === undefined;
			this.#remoteAddress = addressOrPlaceholder(address);
		}
		this.#remotePort ??= this.#socket.remotePort ?? 0;
	}

	/**
	 * False if the client's address was no longer available when it was first read. Requests of such a client must not be handled,
	 * because resetting a connection right after a request could otherwise bypass every rule about addresses.
	 */
	get isAddressKnown(): boolean {
		this.readAddresses();
		return !this.#isAddressLost;
	}

	get remoteAddress(): string {
		this.readAddresses();
		return this.#remoteAddress!;
	}

	get remotePort(): number {
		this.#remotePort ??= this.#socket.remotePort ?? 0;
		return this.#remotePort;
	}

	get localAddress(): string {
		this.#localAddress ??= unmapAddress(this.#socket.localAddress);
		return this.#localAddress;
	}

	get localPort(): number {
		this.#localPort ??= this.#socket.localPort ?? 0;
		return this.#localPort;
	}
}

function readTlsInfo(socket: ClientSocket): TlsInfo | undefined {
	return socket instanceof DirectSocket ? socket.tls : tlsInfoOf(socket as ClientSocket & TLSSocket);
}

/**
 * Returns 0.0.0.0 for a client that has disconnected. An empty address would make it look like the peer of a Unix socket, which
 * may be trusted.
 */
function addressOrPlaceholder(address: string | undefined): string {
	return address === undefined ? '0.0.0.0' : unmapAddress(address);
}

/** Converts an IPv4-mapped IPv6 address to IPv4, for rules and logs. Returns '' for undefined. */
export function unmapAddress(address: string | undefined): string {
	if (address === undefined) return '';
	return address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
}

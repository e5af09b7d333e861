/** A connection from accept to the end of its TLS handshake. */
import type { Socket } from 'node:net';
import type { ConnectionPeer } from '../protocols/protocol.ts';
import type { DenseSetMember } from '../sockets/dense-set.ts';
import type { DirectSocket, PeekOwner } from '../sockets/direct-socket.ts';
import type { ClientHelloCollector } from './client-hello.ts';
import type { HandshakeSelector } from './handshake-selector.ts';

/** The server that performs the handshakes. */
export interface HandshakeOwner {
	/** The buffer into which connections without a Node stream are read, shared by all of them. */
	readonly peekMemory: Buffer;
	/** Receives bytes of the ClientHello. The buffer is reused after the call. */
	onHelloBytes(pending: PendingHandshake, bytes: Buffer): void;
	/** Called when the client has closed its side. */
	onEnd(pending: PendingHandshake): void;
	/** Called when the connection is closed. */
	forgetHandshake(pending: PendingHandshake): void;
}

/** The state of a connection until its handshake ends. */
export class PendingHandshake implements PeekOwner, DenseSetMember {
	/** Implements DenseSetMember: the position in the server's set of unfinished handshakes. */
	positionInSet = -1;
	readonly owner: HandshakeOwner;
	socket: Socket | DirectSocket;
	readonly peer: ConnectionPeer | undefined;
	/**
	 * The handshake settings that were current when the connection was accepted. A reload during the handshake does not change
	 * them.
	 */
	readonly selector: HandshakeSelector;
	/** The beginning of a ClientHello that is not complete yet. */
	helloCollector: ClientHelloCollector | undefined = undefined;
	/** The bytes that have been read but not yet passed to the handshake. */
	pendingBytes: Buffer | undefined = undefined;
	/** True once the ClientHello has been read or found invalid. */
	isPeekDone = false;
	serverName = '';
	policyIndex = 0;
	/** The session ticket that the client offers. */
	sessionTicket: Buffer | undefined = undefined;
	/**
	 * The value of {@link ThreadTls.trustLosses} when the handshake began. If it has changed by the end, a trusted certificate has
	 * been removed.
	 */
	trustLosses = 0;
	/** The time, by `performance.now()`, at which an unfinished handshake is aborted. */
	deadline: number;

	constructor(
		owner: HandshakeOwner,
		socket: Socket | DirectSocket,
		peer: ConnectionPeer | undefined,
		selector: HandshakeSelector,
		deadline: number,
	) {
		this.owner = owner;
		this.socket = socket;
		this.peer = peer;
		this.selector = selector;
		this.deadline = deadline;
	}

	// Implements PeekOwner, which is used for connections without a Node stream.

	onPeeked(count: number): void {
		if (!this.isPeekDone) this.owner.onHelloBytes(this, this.owner.peekMemory.subarray(0, count));
	}

	onPeerEnded(): void {
		this.owner.onEnd(this);
	}

	onClosed(): void {
		this.owner.forgetHandshake(this);
	}

	onReceived(): void {}

	onDrained(): void {}
}

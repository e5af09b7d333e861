/** A connection from its first byte to the end of its handshake. */
import type { Socket } from 'node:net';
import type { DirectSocket, PeekHolder } from '../protocols/direct-socket.ts';
import type { ConnectionPeer } from '../protocols/protocol.ts';
import type { HandshakeChoice } from './handshake-choice.ts';

/** Who greets. */
export interface Greeter {
	/** What connections without a stream are read into, one after another. */
	readonly peekMemory: Buffer;
	/** Bytes of a ClientHello, which may be overwritten afterwards. */
	hello(greeting: Greeting, bytes: Buffer): void;
	/** The client has closed its side. */
	left(greeting: Greeting): void;
	/** The connection is gone. */
	forget(greeting: Greeting): void;
}

/** The connection. */
export class Greeting implements PeekHolder {
	readonly greeter: Greeter;
	socket: Socket | DirectSocket;
	readonly peer: ConnectionPeer | undefined;
	/** As they were when it began: a load in between changes nothing for it. */
	readonly choice: HandshakeChoice;
	/** What has come so far, until the handshake has it. */
	read: Buffer | undefined = undefined;
	/** Nothing more is read: the ClientHello is whole, or it never will be. */
	over = false;
	serverName = '';
	policy = 0;
	/** The session ticket that the client offers. */
	ticket: Buffer | undefined = undefined;
	/** `distrustings` of the thread's TLS when its handshake began. */
	distrustings = 0;
	/** `performance.now()` at which it has to be over. */
	deadline: number;

	constructor(
		greeter: Greeter,
		socket: Socket | DirectSocket,
		peer: ConnectionPeer | undefined,
		choice: HandshakeChoice,
		deadline: number,
	) {
		this.greeter = greeter;
		this.socket = socket;
		this.peer = peer;
		this.choice = choice;
		this.deadline = deadline;
	}

	// PeekHolder, for a connection without a stream.

	peeked(count: number): void {
		if (!this.over) this.greeter.hello(this, this.greeter.peekMemory.subarray(0, count));
	}

	ended(): void {
		this.greeter.left(this);
	}

	closed(): void {
		this.greeter.forget(this);
	}

	received(): void {}

	drained(): void {}
}

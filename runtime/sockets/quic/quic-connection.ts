/** A QUIC connection as a protocol sees it: streams, and nothing of how they are carried. */

/** What a handshake agreed on. */
export interface QuicFacts {
	/** IANA name of the cipher suite. */
	readonly cipherSuite: string;
	/** The server name that the client sent, in lower case; '' without one. */
	readonly serverName: string;
	readonly resumed: boolean;
}

/** How a connection ended. */
export interface QuicClose {
	/** The peer ended it, or lost it; false if we did. */
	readonly byPeer: boolean;
	/** The code is one of QUIC itself (RFC 9000 §20.1), not of the protocol above it. */
	readonly transport: boolean;
	readonly code: number;
}

/** Callbacks of a connection's owner. */
export interface QuicConnectionOwner {
	/** The peer has opened a stream. The owner sets `stream.owner` within the call. */
	opened(stream: QuicStream): void;
	/** All events that came together have been delivered. What the owner writes now leaves together. */
	settled(): void;
	/** The connection is over; its streams are unusable. Called once. */
	closed(close: QuicClose): void;
}

/** An established connection. */
export interface QuicConnection {
	owner: QuicConnectionOwner | undefined;
	readonly facts: QuicFacts;
	/** Addresses are without brackets; IPv4 as such. */
	readonly remoteAddress: string;
	readonly remotePort: number;
	readonly localAddress: string;
	readonly localPort: number;
	/** Opens a stream on which only we send; undefined while the peer allows no more, or at the end of the connection. */
	openUni(): QuicStream | undefined;
	/** Sends what was written since the last event. Needed outside of callbacks only. */
	flush(): void;
	/**
	 * Ends the connection with a code of the protocol once the peer has acknowledged all that was written, or has had the time
	 * to. Streams that the peer opens meanwhile are the owner's to reject.
	 */
	end(code: number): void;
	/** Ends the connection at once with a code of the protocol; the owner's `closed` follows within the call. */
	close(code: number): void;
	/** Ends it at once, without a word to the peer. */
	destroy(): void;
}

/** Callbacks of a stream's owner. */
export interface QuicStreamOwner {
	/** Bytes have come, and with `end` no more will. They are valid during the call only. Returns false to pause reading. */
	data(bytes: Buffer, end: boolean): boolean;
	/** The peer has reset its sending side. */
	reset(code: number): void;
	/** The peer does not want our bytes any more (STOP_SENDING). */
	stopped(): void;
	/** There is room to write, after {@link QuicStream.awaitRoom}. Called once for each wait. */
	drained(): void;
}

/** A stream as its owner sees it. */
export interface QuicStream {
	owner: QuicStreamOwner | undefined;
	/** Its number in QUIC (RFC 9000 §2.1). */
	readonly id: number;
	/** Both sides may send. */
	readonly bidirectional: boolean;
	/** Bytes that should be written now, at most; a frame's header more does no harm. */
	readonly room: number;
	/** Asks for `drained` when there is room. */
	awaitRoom(): void;
	/** Writes `bytes[start, end)`, which must fit in `room`; with `fin` it is the last. Returns false if the stream cannot send any more. */
	write(bytes: Uint8Array, start: number, end: number, fin: boolean): boolean;
	/** Pauses or resumes reading; bytes that come meanwhile are held by flow control. */
	pause(paused: boolean): void;
	/** Ends our sending side abruptly with a code. */
	reset(code: number): void;
	/** Neither side is needed any more: asks the peer to stop, if it still sends. No callback follows. */
	release(): void;
}

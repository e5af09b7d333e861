/** The interface through which a protocol uses a QUIC connection: streams, regardless of how they are transported. */
import type { QuicClientAuth } from './quic-tls.ts';

export interface QuicHandshakeFacts {
	/** IANA name of the cipher suite. */
	readonly cipherSuite: string;
	/** The server name that the client sent, in lowercase; '' if it sent none. */
	readonly serverName: string;
	readonly resumed: boolean;
	/** How the client authenticated; undefined if no certificate was requested. */
	readonly client?: QuicClientFacts | undefined;
}

/** The result of requesting a certificate from a client. */
export interface QuicClientFacts {
	/** What the handshake demanded of the client. */
	readonly auth: QuicClientAuth;
	/** The client's certificate in DER; undefined if the client sent none. */
	readonly certificate: Buffer | undefined;
	readonly verified: boolean;
}

/** How a connection ended. */
export interface QuicClose {
	/** True if the peer closed the connection or it was lost; false if we closed it. */
	readonly byPeer: boolean;
	/**
	 * True if `code` is an error code of QUIC itself (RFC 9000 §20.1); false if it belongs to the application protocol, such as
	 * HTTP/3.
	 */
	readonly isTransportError: boolean;
	readonly code: number;
}

/** Callbacks of a connection's owner. */
export interface QuicConnectionOwner {
	/** Called when the peer has opened a stream. The owner must set `stream.owner` during the call. */
	onStreamOpened(stream: QuicStream): void;
	/** Called after a group of events has been delivered. Data that the owner writes during the call is sent together. */
	onEventsDelivered(): void;
	/** Called when the connection uses another port of the peer, because a NAT between the two has changed it. */
	onPortChanged(remotePort: number): void;
	/** Called once, when the connection has closed. Its streams can no longer be used. */
	onClosed(close: QuicClose): void;
}

/** An established QUIC connection. */
export interface QuicConnection {
	owner: QuicConnectionOwner | undefined;
	readonly facts: QuicHandshakeFacts;
	/** The peer's address, without brackets. IPv4 addresses are not mapped to IPv6. */
	readonly remoteAddress: string;
	/** The peer's port. It may change; see {@link QuicConnectionOwner.onPortChanged}. */
	readonly remotePort: number;
	readonly localAddress: string;
	readonly localPort: number;
	/**
	 * Opens a unidirectional stream for sending. Returns undefined if the peer allows no more such streams, or the connection has
	 * closed.
	 */
	openUni(): QuicStream | undefined;
	/** Sends the data written so far. Needed only for data that is not written in a callback of the owner. */
	flush(): void;
	/**
	 * Ends the connection with an error code of the application protocol, once the peer has acknowledged everything written, or
	 * after a timeout. The owner must reject streams that the peer opens meanwhile.
	 */
	end(code: number): void;
	/**
	 * Closes the connection immediately, with an error code of the application protocol. The owner's `onClosed` is called during
	 * this call.
	 */
	close(code: number): void;
	/** Closes the connection immediately, without notifying the peer. */
	destroy(): void;
}

/** Callbacks of a stream's owner. */
export interface QuicStreamOwner {
	/**
	 * Called when bytes have been received; they are valid only during the call. `isEnd` means that no more will follow. Returns
	 * false to pause reading.
	 */
	onData(bytes: Buffer, isEnd: boolean): boolean;
	/** Called when the peer has reset its sending side. */
	onReset(code: number): void;
	/** Called when the peer has asked us to stop sending (STOP_SENDING). */
	onStopped(): void;
	/** Called once after each {@link QuicStream.awaitRoom}, when there is room to write. */
	onDrained(): void;
}

/** The interface through which its owner uses a QUIC stream. */
export interface QuicStream {
	owner: QuicStreamOwner | undefined;
	/** The stream ID (RFC 9000 §2.1). */
	readonly id: number;
	/** True if both sides may send. */
	readonly isBidirectional: boolean;
	/** Number of bytes that may be written now. Exceeding it by the size of a frame header is harmless. */
	readonly roomBytes: number;
	/** Requests that `onDrained` be called when there is room. */
	awaitRoom(): void;
	/**
	 * Writes `bytes[start, end)`, which must fit in `roomBytes`. `endsStream` ends the stream after these bytes. Returns false if
	 * the stream can no longer send.
	 */
	write(bytes: Uint8Array, start: number, end: number, endsStream: boolean): boolean;
	/** Pauses or resumes reading. While paused, flow control stops the peer. */
	pause(isPaused: boolean): void;
	/** Resets our sending side with an error code. */
	reset(code: number): void;
	/**
	 * Releases a stream that is no longer needed. If the peer still sends, it is asked to stop. No callback is called afterwards.
	 */
	release(): void;
}

/** The TLS handshake with a client, performed by OpenSSL on the bytes that are read from the connection's descriptor. */
import { X509Certificate } from 'node:crypto';
import { type ClientProof, type HandshakeFacts, NO_FACTS } from './direct-handshake.ts';
import { CONNECTION_RESET, systemError } from './handle-status.ts';
import { type OpensslConnection, WANT_READ, WANT_WRITE, ZERO_RETURN } from './openssl-connection.ts';
import type { OpensslContext } from './openssl-context.ts';
import { type CallbackTarget, type CipherFacts, MAX_INPUT_BYTES } from './openssl-thread.ts';
import { WOULD_BLOCK } from './socket-poller.ts';

/** OpenSSL's verification results X509_V_OK and X509_V_ERR_CERT_HAS_EXPIRED. */
const VERIFY_OK = 0;
const CERTIFICATE_EXPIRED = 10;

/** How far a handshake is. With `closed`, we have closed the connection. After `failed`, the error is in the handshake. */
export type HandshakeProgress = 'waiting' | 'completed' | 'failed' | 'closed';

/** The handshake of one connection, which also answers OpenSSL's callbacks. */
export class OpensslHandshake implements CallbackTarget {
	/** True if the socket may have more to read for which the poller reports no event. */
	hasMore: boolean;
	/** Why the handshake has failed. */
	error: Error | undefined = undefined;
	readonly #connection: OpensslConnection;
	/** The settings. The connection keeps them as long as the SSL object exists; see {@link OpensslContext.context}. */
	readonly #context: OpensslContext;
	#negotiatedProtocol: string | false = false;

	/** @param hasMore True if there may be more to read for which the poller reports no event. */
	constructor(connection: OpensslConnection, context: OpensslContext, hasMore: boolean) {
		this.hasMore = hasMore;
		this.#connection = connection;
		this.#context = context;
	}

	/** Processes bytes that have already been read from the socket, and continues reading. */
	handleFirstBytes(bytes: Uint8Array): HandshakeProgress {
		const address = this.#context.thread.library.addressOf(bytes);
		const { length } = bytes;
		// The client cannot complete a handshake before the server has answered, so the loop ends early only if the handshake fails.
		for (let at = 0; at < length; at += MAX_INPUT_BYTES) {
			const progress = this.#continue(address + BigInt(at), Math.min(MAX_INPUT_BYTES, length - at));
			if (progress !== 'waiting') return progress;
		}
		return this.hasMore ? this.read(true) : 'waiting';
	}

	/**
	 * Reads the available bytes of the handshake. With `hasEnd`, which means that no further event follows, reads until the socket
	 * is empty.
	 */
	read(hasEnd: boolean): HandshakeProgress {
		const { handshakeInputAddress: inputAddress, handshakeInput: input } = this.#context.thread;
		const connection = this.#connection;
		for (;;) {
			const count = connection.receive(inputAddress, input.length);
			if (count === WOULD_BLOCK) return 'waiting';
			if (count <= 0) return this.#fail(systemError(count === 0 ? CONNECTION_RESET : count, 'read'));
			// The first read after the handshake depends on whether the socket may have more data.
			this.hasMore = hasEnd || count === input.length;
			const progress = this.#continue(inputAddress, count);
			if (progress !== 'waiting' || !this.hasMore) return progress;
		}
	}

	/** Continues the handshake with the bytes at an address. */
	#continue(address: bigint, length: number): HandshakeProgress {
		const { thread } = this.#context;
		const connection = this.#connection;
		if (!thread.writeInput(address, length)) return this.#fail(thread.takeError());
		for (;;) {
			const reason = connection.accept(this);
			if (connection.isClosed) return 'closed';
			switch (reason) {
				case 0:
					return this.#complete();
				case WANT_WRITE:
					// The BIO pair was full, and `accept` has emptied it.
					continue;
				case WANT_READ:
					thread.inputRead();
					if (connection.positionInSet < 0) connection.keepBuffers();
					return 'waiting';
				default: {
					const error = thread.takeError();
					// `ZERO_RETURN` is not an error of OpenSSL: the client has ended the connection with `close_notify`.
					return this.#fail(reason === ZERO_RETURN ? systemError(CONNECTION_RESET, 'read') : error);
				}
			}
		}
	}

	/** Makes OpenSSL use the descriptor from now on, after what it has not read of the handshake's input. */
	#complete(): HandshakeProgress {
		const { thread } = this.#context;
		const unreadInput = thread.takeUnreadInput();
		if (unreadInput !== -1n && this.#connection.connectToSocket(unreadInput)) return 'completed';
		return this.#fail(thread.takeError());
	}

	#fail(error: Error): HandshakeProgress {
		this.error = error;
		return 'failed';
	}

	/** What the handshake negotiated, and whether it resumed a session. */
	get facts(): HandshakeFacts {
		const connection = this.#connection;
		if (connection.isClosed) return NO_FACTS;
		return new OpensslFacts(connection.cipher, this.#negotiatedProtocol, connection.isSessionReused);
	}

	/**
	 * The client's certificate, and the result of its verification by OpenSSL. In a resumed session, both are from the handshake
	 * that created the session.
	 */
	get clientProof(): ClientProof {
		const connection = this.#connection;
		const der = connection.isClosed ? undefined : connection.clientCertificate;
		if (der === undefined) return NO_CLIENT;
		const result = connection.verificationResult;
		return {
			certificate: new X509Certificate(der),
			authorized: result === VERIFY_OK,
			authorizationError: result === CERTIFICATE_EXPIRED ? 'CERT_HAS_EXPIRED' : undefined,
		};
	}

	// Implements CallbackTarget.

	get protocols(): Uint8Array {
		return this.#context.protocols;
	}

	get protocolsAddress(): bigint {
		return this.#context.protocolsAddress;
	}

	get ocspResponse(): Uint8Array | undefined {
		return this.#context.duties.ocspResponse;
	}

	onNegotiated(at: number, length: number): void {
		this.#negotiatedProtocol = this.#context.protocols.toString('latin1', at, at + length);
	}

	onSecretLine(line: string): void {
		this.#context.duties.onSecret?.(line);
	}
}

/** The facts of a handshake, as Node's TLS objects report them. */
class OpensslFacts implements HandshakeFacts {
	readonly #cipher: CipherFacts | undefined;
	readonly #protocol: string | false;
	readonly #isReused: boolean;

	constructor(cipher: CipherFacts | undefined, protocol: string | false, isReused: boolean) {
		this.#cipher = cipher;
		this.#protocol = protocol;
		this.#isReused = isReused;
	}

	getProtocol(): string | null {
		return this.#cipher?.version ?? null;
	}

	getCipher(): CipherFacts | undefined {
		return this.#cipher;
	}

	getALPNNegotiatedProtocol(): string | false {
		return this.#protocol;
	}

	isSessionReused(): boolean {
		return this.#isReused;
	}
}

const NO_CLIENT: ClientProof = { certificate: undefined, authorized: false, authorizationError: undefined };

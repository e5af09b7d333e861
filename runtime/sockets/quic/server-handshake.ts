/**
 * The server's side of the TLS handshake of one QUIC connection. Handles OpenSSL's callbacks, and keeps what the ClientHello and
 * the chosen certificate say until the connection is established.
 */
import type { QuicHandshakeFacts } from './quic-connection.ts';
import type { QuicLibrary } from './quic-library.ts';
import type { CallbackTarget } from './quic-thread.ts';
import type { QuicClientAuth, QuicTls } from './quic-tls.ts';

/** Offset of the error codes that stand for TLS alerts: an error code is this number plus the alert (RFC 9001 §4.8). */
const CRYPTO_ERROR_BASE = 0x100;
const INTERNAL_ERROR_ALERT = 80;
const HANDSHAKE_FAILURE_ALERT = 40;
const NO_PROTOCOL_ALERT = 120;
/**
 * Result with which the ClientHello callback pauses the handshake. OpenSSL calls the callback again when it next handles events.
 */
const PAUSE_HANDSHAKE = -1;

/** A TLS alert (RFC 8446 §6) that ended a handshake. */
export interface HandshakeAlert {
	readonly alert: number;
	readonly byPeer: boolean;
}

/** The TLS handshake of one connection. */
export class ServerHandshake implements CallbackTarget {
	ocspResponse: Uint8Array | undefined = undefined;
	/** The TLS alert that ended the handshake; undefined if the owner chose the alert itself. */
	failureAlert: HandshakeAlert | undefined = undefined;
	readonly #tls: QuicTls;
	readonly #remoteAddress: string;
	readonly #localAddress: string;
	readonly #onCertificateReady: () => void;
	#serverName = '';
	#clientAuth: QuicClientAuth | undefined = undefined;
	#onSecretLine: ((line: string) => void) | undefined = undefined;
	#awaitsCertificate = false;
	/** The alert with which the handshake is to fail. */
	#refusalAlert: number | undefined = undefined;

	/** @param onCertificateReady Called when the handshake no longer waits for a certificate. OpenSSL must then handle events. */
	constructor(tls: QuicTls, remoteAddress: string, localAddress: string, onCertificateReady: () => void) {
		this.#tls = tls;
		this.#remoteAddress = remoteAddress;
		this.#localAddress = localAddress;
		this.#onCertificateReady = onCertificateReady;
	}

	onClientHello(ssl: bigint): number {
		if (this.#refusalAlert !== undefined) return this.#refusalAlert;
		const tls = this.#tls;
		const hello = tls.readHello(ssl);
		this.#serverName = hello.serverName;
		if (!hello.offersHttp3) return this.#fail(NO_PROTOCOL_ALERT);
		const addresses = { remoteAddress: this.#remoteAddress, localAddress: this.#localAddress };
		const choice = tls.chooseCertificate({ ...hello, ...addresses }, () => this.#resume());
		if (choice === 'wait') {
			this.#awaitsCertificate = true;
			return PAUSE_HANDSHAKE;
		}
		if ('alert' in choice) return this.#refuse(choice.alert);
		if (!tls.canNegotiate(ssl, choice, hello)) return this.#fail(HANDSHAKE_FAILURE_ALERT);
		this.ocspResponse = choice.ocsp;
		this.#clientAuth = choice.clientAuth;
		this.#onSecretLine = choice.keyLog;
		tls.selectTicketKey(ssl);
		return tls.applyChoice(ssl, choice) ? 1 : INTERNAL_ERROR_ALERT;
	}

	/** Fails the handshake with an alert that the owner did not choose, so that it is reported to the owner. */
	#fail(alert: number): number {
		this.failureAlert = { alert, byPeer: false };
		return this.#refuse(alert);
	}

	/**
	 * Fails the handshake with an alert. OpenSSL does not send an alert before it has sent another packet, so the handshake is
	 * paused until OpenSSL has sent an acknowledgment.
	 */
	#refuse(alert: number): number {
		this.#refusalAlert = alert;
		return PAUSE_HANDSHAKE;
	}

	#resume(): void {
		if (!this.#awaitsCertificate) return;
		this.#awaitsCertificate = false;
		this.#onCertificateReady();
	}

	verifyClient(storeContext: bigint): boolean {
		return this.#clientAuth !== undefined && this.#tls.verifyClient(storeContext, this.#clientAuth);
	}

	onSecretLine(line: string): void {
		this.#onSecretLine?.(line);
	}

	/** Records the TLS alert that the error code of a failed handshake's connection contains, unless we chose the alert. */
	recordFailure(code: number, byPeer: boolean): void {
		if (this.#refusalAlert !== undefined || code < CRYPTO_ERROR_BASE || code > CRYPTO_ERROR_BASE + 255) return;
		this.failureAlert = { alert: code - CRYPTO_ERROR_BASE, byPeer };
	}

	/** Returns what the completed handshake has negotiated. `connection` is the `SSL` of the connection. */
	readFacts(library: QuicLibrary, connection: bigint): QuicHandshakeFacts {
		const { functions } = library;
		const auth = this.#clientAuth;
		const cipher = functions.SSL_get_current_cipher(connection) as bigint;
		const cipherNamePointer = cipher === 0n ? 0n : (functions.SSL_CIPHER_standard_name(cipher) as bigint);
		return {
			cipherSuite: cipherNamePointer === 0n ? '' : library.readText(cipherNamePointer),
			serverName: this.#serverName,
			resumed: (functions.SSL_session_reused(connection) as number) === 1,
			client: auth && {
				auth,
				certificate: this.#tls.clientCertificate(connection),
				verified: this.#tls.isVerified(connection),
			},
		};
	}
}

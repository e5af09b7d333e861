/** What the QUIC sockets of one thread share: the library functions, memory, and the callbacks for OpenSSL. */
import { registerStapleCallback } from '../ocsp-staple.ts';
import { threadPoller } from '../socket-poller.ts';
import { type ChannelRuns, findChannelRuns } from './channel-runs.ts';
import { DatagramMemory } from './datagram-memory.ts';
import { DatagramPipe } from './datagram-pipe.ts';
import { findLossProbes, type LossProbes } from './loss-probes.ts';
import { findPacketNumbers, type PacketNumberReader } from './packet-numbers.ts';
import { PolledStreams } from './polled-streams.ts';
import { type QuicLibrary, quicSupport } from './quic-library.ts';
import { makeRetryTokens, type RetryTokens } from './retry-tokens.ts';
import { findSendBufferShrinker, type SendBufferShrinker } from './send-buffers.ts';
import { ThreadPeers } from './thread-peers.ts';

/** Maximum bytes read from a stream at a time. */
export const MAX_READ_BYTES = 65_536;

/** Receives OpenSSL's callbacks while its connection runs. Implemented by `ServerHandshake`. */
export interface CallbackTarget {
	/**
	 * Handles a ClientHello. Returns 1 to continue, −1 to pause the handshake until events are handled again, or the number of an
	 * alert to send.
	 */
	onClientHello(ssl: bigint): number;
	/** Verifies a client's certificate. `storeContext` is an `X509_STORE_CTX`. Returns false to reject the certificate. */
	verifyClient(storeContext: bigint): boolean;
	/** Receives a line of the NSS key log. */
	onSecretLine(line: string): void;
	/** The OCSP response to staple, in DER. */
	readonly ocspResponse: Uint8Array | undefined;
}

const HELLO_SUCCESS = 1;
const HELLO_RETRY = -1;
const HELLO_ERROR = 0;
const INTERNAL_ERROR = 80;
const ALPN_OK = 0;
const ALPN_FATAL = 2;
const MAX_ALPN_BYTES = 1024;

/** What the QUIC sockets of one thread share. */
export class QuicThread {
	readonly library: QuicLibrary;
	readonly datagramMemory: DatagramMemory;
	readonly datagramPipe: DatagramPipe;
	readonly polledStreams: PolledStreams;
	/** Runs connections without their listeners; undefined if this release of OpenSSL is not known to support that. */
	readonly channelRuns: ChannelRuns | undefined = findChannelRuns();
	/** Prepares the loss probes of connections; undefined if this release of OpenSSL is not known to need or support that. */
	readonly lossProbes: LossProbes | undefined = findLossProbes();
	#packetNumbers: PacketNumberReader | 'unknown' | undefined = 'unknown';
	/** Shrinks buffers of connections; undefined if this release of OpenSSL is not known to support that. */
	readonly sendBufferShrinker: SendBufferShrinker | undefined = findSendBufferShrinker();
	/** The connections of other threads; undefined if there are no other threads. */
	peers: ThreadPeers | undefined = undefined;
	readonly readBuffer: Buffer = Buffer.allocUnsafeSlow(MAX_READ_BYTES);
	readonly readBufferPointer: bigint;
	/** Buffer for bytes being written to a stream. */
	readonly writeBuffer: Buffer = Buffer.allocUnsafeSlow(MAX_READ_BYTES);
	readonly writeBufferPointer: bigint;
	/** Buffer for the results of calls. Each result has an offset of its own. */
	readonly results: Buffer = Buffer.allocUnsafeSlow(128).fill(0);
	readonly resultsPointer: bigint;
	/** The handshake of the connection whose events are being handled. */
	currentTarget: CallbackTarget | undefined;
	readonly clientHelloCallback: bigint;
	readonly alpnCallback: bigint;
	readonly statusCallback: bigint;
	readonly verifyCallback: bigint;
	readonly keyLogCallback: bigint;
	/** Writes and verifies the tokens of Retry packets; undefined if OpenSSL lacks a function that this needs. */
	readonly retryTokens: RetryTokens | undefined = makeRetryTokens();
	readonly #h3Protocol: Buffer = Buffer.allocUnsafeSlow(2);

	constructor(library: QuicLibrary) {
		this.library = library;
		this.datagramMemory = new DatagramMemory(library);
		this.datagramPipe = new DatagramPipe(library, this.datagramMemory);
		this.polledStreams = new PolledStreams(library);
		this.readBufferPointer = library.addressOf(this.readBuffer);
		this.writeBufferPointer = library.addressOf(this.writeBuffer);
		this.resultsPointer = library.addressOf(this.results);
		this.#h3Protocol.write('h3');
		const h3Pointer = library.addressOf(this.#h3Protocol);
		// None of these callbacks may throw, because nothing between them and OpenSSL could catch the error.
		this.clientHelloCallback = library.registerCallback(
			'int32',
			['pointer', 'pointer', 'pointer'],
			(ssl: bigint, alert: bigint) => {
				let result = INTERNAL_ERROR;
				try {
					result = this.currentTarget?.onClientHello(ssl) ?? INTERNAL_ERROR;
				} catch {
					// The client gets the alert for an internal error. The code that chooses certificates has already reported what
					// failed.
				}
				if (result === HELLO_SUCCESS || result === HELLO_RETRY) return result;
				library.writeInt32(alert, result);
				return HELLO_ERROR;
			},
		);
		const alpnTypes = ['pointer', 'pointer', 'pointer', 'pointer', 'uint32', 'pointer'];
		const chooseAlpn = (
			_ssl: bigint,
			outAddress: bigint,
			outLengthAddress: bigint,
			listAddress: bigint,
			length: number,
		): number => {
			try {
				if (length > MAX_ALPN_BYTES || !offersHttp3(library.copyBytes(listAddress, length))) return ALPN_FATAL;
				library.writeUint64(outAddress, h3Pointer);
				library.writeUint8(outLengthAddress, 2);
				return ALPN_OK;
			} catch {
				return ALPN_FATAL;
			}
		};
		this.alpnCallback = library.registerCallback('int32', alpnTypes, chooseAlpn);
		this.verifyCallback = library.registerCallback('int32', ['pointer', 'pointer'], (store: bigint): number => {
			try {
				return this.currentTarget?.verifyClient(store) === true ? 1 : 0;
			} catch {
				return 0;
			}
		});
		this.keyLogCallback = library.registerCallback(
			'void',
			['pointer', 'pointer'],
			(_ssl: bigint, line: bigint): void => {
				try {
					this.currentTarget?.onSecretLine(library.readText(line));
				} catch {
					// The connection continues; only the log of TLS secrets lacks this line.
				}
			},
		);
		this.statusCallback = registerStapleCallback(library, () => this.currentTarget?.ocspResponse);
	}

	/**
	 * Reads the packet numbers of connections; undefined if this release of OpenSSL is not known to support that. It is looked for when
	 * a connection first needs it.
	 */
	get packetNumbers(): PacketNumberReader | undefined {
		if (this.#packetNumbers === 'unknown') this.#packetNumbers = findPacketNumbers();
		return this.#packetNumbers;
	}
}

/** Maximum turns of the event loop to wait for the thread's poller. One is enough if the system supports polling. */
const MAX_POLLER_TURNS = 200;

/**
 * Resolves once the thread's poller works, because datagrams are read only then. If it never works, resolves after
 * {@link MAX_POLLER_TURNS} turns.
 */
export async function waitForPoller(): Promise<void> {
	for (let turn = 0; turn < MAX_POLLER_TURNS && threadPoller() === undefined; turn++) {
		await new Promise(resolve => setTimeout(resolve, 1));
	}
}

let currentThread: QuicThread | undefined;

/** Returns what the QUIC sockets of this thread share, or undefined if HTTP/3 is unavailable. */
export function quicThread(): QuicThread | undefined {
	if (currentThread !== undefined) return currentThread;
	const { library } = quicSupport();
	if (library !== undefined) currentThread = new QuicThread(library);
	return currentThread;
}

/**
 * Lets this thread and the others that have the same memory pass datagrams to each other. Does nothing after the first call, or if
 * HTTP/3 is unavailable. The parameters are those of {@link ThreadPeers}. The thread's poller must work; see {@link waitForPoller}.
 */
export function joinQuicPeers(memory: SharedArrayBuffer, rowCount: number, row: number): void {
	const thread = quicThread();
	if (thread !== undefined) thread.peers ??= new ThreadPeers(thread.library, memory, rowCount, row);
}

/** Reports whether an ALPN protocol list (RFC 7301 §3.1) contains `h3`. */
export function offersHttp3(list: Buffer): boolean {
	for (let at = 0; at < list.length; at += 1 + list[at]!) {
		if (list[at] === 2 && list[at + 1] === 0x68 && list[at + 2] === 0x33) return true;
	}
	return false;
}

/**
 * The calls of OpenSSL that begin and end a QUIC connection, and their constants. No call leaves an error in OpenSSL's error
 * queue.
 */
import type { QuicClose } from './quic-connection.ts';
import * as BOUND from './quic-limits.ts';
import type { QuicThread } from './quic-thread.ts';

const LISTENER_VALIDATE = 0n;
const LISTENER_NO_VALIDATE = 2n;
export const ACCEPT_NO_BLOCK = 1n;
const POLICY_ACCEPT = 1;
const CLASS_GENERIC = 0;
const CLASS_FEATURE_REQUEST = 1;
const VALUE_IDLE_TIMEOUT = 5;
const VALUE_EVENT_HANDLING = 6;
const EVENT_HANDLING_EXPLICIT = 2n;
/** Flags of SSL_shutdown_ex. NO_FLUSH: do not wait until the unsent data of streams has been sent. */
const SHUTDOWN_RAPID = 1n;
const SHUTDOWN_NO_FLUSH = 2n;
const SHUTDOWN_NO_BLOCK = 4n;
const CLOSED_LOCALLY = 1;
const CLOSED_BY_TRANSPORT = 2;
/** Offsets in `QuicThread.results`, where OpenSSL stores results. */
const RESULT_OFFSETS = { time: 48n, infinite: 64n, close: 72n } as const;
const CTRL_MODE = 33;
/** Modes for SSL_CTRL_MODE: SSL_MODE_ENABLE_PARTIAL_WRITE and SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER. */
const PARTIAL_MOVING_WRITES = 3n;

/**
 * How a client proves its address: by completing the handshake, by answering a Retry packet that OpenSSL sends, or with the token
 * of a Retry packet that we sent before.
 */
export type AddressProof = 'handshake' | 'retry' | 'token';

/** Creates a listener for one connection, attached to the thread's pair of BIOs. Returns 0 if OpenSSL cannot allocate it. */
export function createListener(thread: QuicThread, context: bigint, addressProof: AddressProof): bigint {
	const { functions } = thread.library;
	const listener =
		addressProof === 'token'
			? (thread.retryTokens?.createListener(context) ?? 0n)
			: (functions.SSL_new_listener(
					context,
					addressProof === 'retry' ? LISTENER_VALIDATE : LISTENER_NO_VALIDATE,
				) as bigint);
	if (listener === 0n) {
		functions.ERR_clear_error();
		return 0n;
	}
	thread.channelRuns?.useSteadyClock(listener);
	thread.datagramPipe.attach(listener);
	functions.SSL_set_blocking_mode(listener, 0);
	functions.SSL_set_value_uint(listener, CLASS_GENERIC, VALUE_EVENT_HANDLING, EVENT_HANDLING_EXPLICIT);
	functions.SSL_set_value_uint(listener, CLASS_FEATURE_REQUEST, VALUE_IDLE_TIMEOUT, BigInt(BOUND.IDLE_TIMEOUT_MS));
	return listener;
}

/** Makes a listener listen. Returns false if it cannot. */
export function startListening(thread: QuicThread, listener: bigint): boolean {
	const { functions } = thread.library;
	const isListening = (functions.SSL_listen(listener) as number) === 1;
	functions.ERR_clear_error();
	return isListening;
}

/** Returns the listener's connection; 0 if there is none. */
export function acceptConnection(thread: QuicThread, listener: bigint): bigint {
	const { functions } = thread.library;
	const connection = functions.SSL_accept_connection(listener, ACCEPT_NO_BLOCK) as bigint;
	if (connection !== 0n) {
		functions.SSL_set_blocking_mode(connection, 0);
		functions.SSL_ctrl(connection, CTRL_MODE, PARTIAL_MOVING_WRITES, 0n);
		functions.SSL_set_default_stream_mode(connection, 0);
		functions.SSL_set_incoming_stream_policy(connection, POLICY_ACCEPT, 0n);
		functions.SSL_set_value_uint(connection, CLASS_GENERIC, VALUE_EVENT_HANDLING, EVENT_HANDLING_EXPLICIT);
	}
	functions.ERR_clear_error();
	return connection;
}

/** Closes a connection with an error code of the protocol, at once or after the data of its streams has been sent. */
export function shutDownConnection(thread: QuicThread, connection: bigint, code: number, flushes: boolean): void {
	const { library, results, resultsPointer } = thread;
	results.writeBigUInt64LE(BigInt(code), 0);
	results.writeBigUInt64LE(0n, 8);
	const flags = SHUTDOWN_RAPID | SHUTDOWN_NO_BLOCK | (flushes ? 0n : SHUTDOWN_NO_FLUSH);
	library.functions.SSL_shutdown_ex(connection, flags, resultsPointer, 16n);
	library.functions.ERR_clear_error();
}

/**
 * Asks OpenSSL how a connection was closed, and stores the answer in `QuicThread.results` for {@link storedCloseInfo}.
 * Returns false if the connection is not closed.
 */
export function askCloseInfo(thread: QuicThread, connection: bigint): boolean {
	const { library, polledStreams, resultsPointer } = thread;
	// Reading the close information of an open connection would be an error, and handling that error is slower than polling
	// first.
	if (!polledStreams.isClosing(connection)) return false;
	if (
		(library.functions.SSL_get_conn_close_info(connection, resultsPointer + RESULT_OFFSETS.close, 40n) as number) === 1
	)
		return true;
	library.functions.ERR_clear_error();
	return false;
}

/** Returns the answer that {@link askCloseInfo} has stored. */
export function storedCloseInfo({ results }: QuicThread): QuicClose {
	const flags = results.readUInt32LE(72 + 32);
	return {
		byPeer: (flags & CLOSED_LOCALLY) === 0,
		isTransportError: (flags & CLOSED_BY_TRANSPORT) !== 0,
		code: Number(results.readBigUInt64LE(72)),
	};
}

/** Returns the time of the next event of a listener or its connection, by `performance.now()`; Infinity if there is none. */
export function nextEventAt({ library, results, resultsPointer }: QuicThread, listener: bigint): number {
	library.functions.SSL_get_event_timeout(
		listener,
		resultsPointer + RESULT_OFFSETS.time,
		resultsPointer + RESULT_OFFSETS.infinite,
	);
	if (results.readInt32LE(64) !== 0) return Infinity;
	// The low 32 bits are sufficient, because no event is due later than the time limit of the handshake or the connection.
	return performance.now() + results.readUInt32LE(48) * 1000 + results.readUInt32LE(56) / 1000;
}

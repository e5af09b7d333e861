/**
 * Runs a single connection inside OpenSSL, without its listener. `SSL_handle_events` would run the listener first, which asks its
 * BIO for datagrams into 32 buffers that it never frees: 48 KB for each connection, and 4 of the 33 µs that a request takes.
 * Instead, each datagram is handed to the listener by `SSL_inject_net_dgram`, for which a single buffer is sufficient, and then
 * the connection is run.
 *
 * Connections run this way use a clock that is never set. OpenSSL would use the system's time: if that is set back, even by a
 * microsecond, OpenSSL's loss detection rejects the next packet to be sent, and the connection is closed with INTERNAL_ERROR.
 * For OpenSSL, no time passes between two calls of `updateTime`, so it is known before a run which timers expire in it. With a
 * running clock, a loss probe could become due after it was found that none was (see loss-probes.ts).
 *
 * The functions used here do not belong to OpenSSL's public interface, although Node exports them. They are used with
 * releases of OpenSSL in which they are known to have the signatures below. With all others, connections are run by
 * `SSL_handle_events`.
 */
import { performance } from 'node:perf_hooks';
import { type ForeignFunction, foreignFunctions } from '../foreign-functions.ts';
import {
	type ForeignCalls,
	type ForeignLibrary,
	findOpenssl,
	foreignSignature,
	type LibrarySimulation,
} from '../foreign-library.ts';
import { uncheckedFunctionsOf } from '../unchecked-functions.ts';

/** The releases of OpenSSL whose internal functions have the signatures that this file, loss-probes.ts and send-buffers.ts use. */
export const KNOWN_RELEASES: RegExp = /^3\.5\.\d+(?:\+|$)/;
const SIGNATURES = {
	/** Returns the `QUIC_CHANNEL` of a connection. */
	ossl_quic_conn_get_channel: foreignSignature('pointer', 'pointer'),
	/** Processes a channel's input and timers, and sends its output. Fills in a `QUIC_TICK_RESULT`. */
	ossl_quic_channel_subtick: foreignSignature('void', 'pointer', 'pointer', 'uint32'),
	/** Puts the errors that have closed a channel into OpenSSL's error queue. */
	ossl_quic_channel_restore_err_state: foreignSignature('void', 'pointer'),
	/** Replaces the clock of a listener and its connections by a function that returns nanoseconds, and its parameter. */
	ossl_quic_set_override_now_cb: foreignSignature('int32', 'pointer', 'pointer', 'pointer'),
	/** Returns the first 8 bytes of the memory at an address, which is a `uv_handle_t` for other callers. */
	uv_handle_get_data: foreignSignature('uint64', 'pointer'),
};
/**
 * Bytes of memory for a `QUIC_TICK_RESULT`, which begins with the time of the next event in nanoseconds, followed by three
 * flags.
 */
const RESULT_BYTES = 64;
const TWO_POWER_32 = 2 ** 32;
/** QUIC_REACTOR_TICK_FLAG_CHANNEL_ONLY: messages of TLS are not processed. */
const WITHOUT_TLS = 1;
/** The value of both 32-bit halves of the next event's time if there is no next event. */
const NEVER = 0xffff_ffff;
const NANOSECONDS_PER_MILLISECOND = 1e6;

/** Runs the connections of one thread. */
export class ChannelRuns {
	readonly #functions: ForeignCalls<keyof typeof SIGNATURES>;
	/** The function that runs a channel, for calls that do not call back into JavaScript. */
	readonly #uncheckedSubtick: ForeignFunction;
	readonly #resultWords: Uint32Array;
	readonly #resultPointer: bigint;
	/** The time of all connections: the lower and the upper half of a number of nanoseconds. */
	readonly #timeWords: Uint32Array;
	readonly #timePointer: bigint;
	/** A function that returns the time at {@link #timePointer}. */
	readonly #clockPointer: bigint;
	/** Milliseconds by which the clock of connections is ahead of `performance.now()`. */
	readonly #clockOffset = clockOffset();
	/** The time of all connections, in nanoseconds since the machine started. */
	time = 0;

	constructor(library: ForeignLibrary<keyof typeof SIGNATURES>) {
		this.#functions = library.functions;
		const ffi = foreignFunctions()!;
		const { ossl_quic_channel_subtick } = SIGNATURES;
		this.#uncheckedSubtick = uncheckedFunctionsOf(ffi, { ossl_quic_channel_subtick }).ossl_quic_channel_subtick;
		this.#clockPointer = ffi.dlopen(null, {}).lib.getSymbol('uv_handle_get_data');
		const time = Buffer.allocUnsafeSlow(8);
		this.#timeWords = new Uint32Array(time.buffer);
		this.#timePointer = library.addressOf(time);
		this.updateTime();
		const result = Buffer.allocUnsafeSlow(RESULT_BYTES).fill(0);
		this.#resultWords = new Uint32Array(result.buffer);
		this.#resultPointer = library.addressOf(result);
	}

	/** Must be called for each new listener: its connection will use a clock that is never set. */
	useSteadyClock(listener: bigint): void {
		this.#functions.ossl_quic_set_override_now_cb(listener, this.#clockPointer, this.#timePointer);
	}

	/** Sets the time of all connections. Must be called before each run and before a connection is closed. Returns `performance.now()`. */
	updateTime(): number {
		const now = performance.now();
		this.time = Math.floor((now + this.#clockOffset) * NANOSECONDS_PER_MILLISECOND);
		this.#timeWords[0] = this.time % TWO_POWER_32;
		this.#timeWords[1] = this.time / TWO_POWER_32;
		return now;
	}

	/** Returns the `QUIC_CHANNEL` of a connection. */
	channelOf(connection: bigint): bigint {
		return this.#functions.ossl_quic_conn_get_channel(connection) as bigint;
	}

	/** Puts the errors because of which OpenSSL has closed a connection into OpenSSL's error queue. */
	restoreErrors(channel: bigint): void {
		this.#functions.ossl_quic_channel_restore_err_state(channel);
	}

	/** Processes a connection's received datagrams and expired timers, and sends its output. */
	run(channel: bigint): void {
		this.#functions.ossl_quic_channel_subtick(channel, this.#resultPointer, 0);
	}

	/** Does the same for a connection whose handshake is complete, so that OpenSSL calls none of our callbacks. */
	runEstablished(channel: bigint): void {
		this.#uncheckedSubtick(channel, this.#resultPointer, 0);
	}

	/**
	 * Sends the output of a connection that has run just before. Its handshake must be complete, and TLS must have nothing to process
	 * or to send.
	 */
	send(channel: bigint): void {
		this.#uncheckedSubtick(channel, this.#resultPointer, WITHOUT_TLS);
	}

	/** Time at which the connection of the last run must run again, by `performance.now()`; Infinity for never. */
	get dueAt(): number {
		const words = this.#resultWords;
		const low = words[0]!;
		const high = words[1]!;
		if (high === NEVER && low === NEVER) return Infinity;
		return (high * TWO_POWER_32 + low) / NANOSECONDS_PER_MILLISECOND - this.#clockOffset;
	}
}

function clockOffset(): number {
	// If the thread is interrupted between the two readings, their difference is too small.
	let offset = -Infinity;
	for (let i = 0; i < 5; i++) {
		const time = Number(process.hrtime.bigint()) / NANOSECONDS_PER_MILLISECOND;
		offset = Math.max(offset, time - performance.now());
	}
	return offset;
}

/** Looks up the functions. Returns undefined if one is missing, or the release of OpenSSL is not known. */
export function findChannelRuns(simulated?: LibrarySimulation): ChannelRuns | undefined {
	if (!KNOWN_RELEASES.test(simulated?.openssl ?? process.versions.openssl ?? '')) return undefined;
	const { library } = findOpenssl(SIGNATURES, ['ossl_quic_channel_subtick'], simulated);
	return library && new ChannelRuns(library);
}

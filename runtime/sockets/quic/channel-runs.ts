/**
 * Runs a single connection inside OpenSSL, without its listener. `SSL_handle_events` would run the listener first, which asks its
 * BIO for datagrams into 32 buffers that it never frees: 48 KB for each connection, and 4 of the 33 µs that a request takes.
 * Instead, each datagram is handed to the listener by `SSL_inject_net_dgram`, for which a single buffer is sufficient, and then
 * the connection is run.
 *
 * The two functions used here do not belong to OpenSSL's public interface, although Node exports them. They are used with
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

/** The releases of OpenSSL whose internal functions have the signatures that this file and send-buffers.ts use. */
export const KNOWN_RELEASES: RegExp = /^3\.5\.\d+(?:\+|$)/;
const SIGNATURES = {
	/** Returns the `QUIC_CHANNEL` of a connection. */
	ossl_quic_conn_get_channel: foreignSignature('pointer', 'pointer'),
	/** Processes a channel's input and timers, and sends its output. Fills in a `QUIC_TICK_RESULT`. */
	ossl_quic_channel_subtick: foreignSignature('void', 'pointer', 'pointer', 'uint32'),
};
/**
 * Bytes of memory for a `QUIC_TICK_RESULT`, which begins with the time of the next event in nanoseconds since 1970, followed by
 * three flags.
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

	constructor(library: ForeignLibrary<keyof typeof SIGNATURES>) {
		this.#functions = library.functions;
		const { ossl_quic_channel_subtick } = SIGNATURES;
		this.#uncheckedSubtick = uncheckedFunctionsOf(foreignFunctions()!, {
			ossl_quic_channel_subtick,
		}).ossl_quic_channel_subtick;
		const result = Buffer.allocUnsafeSlow(RESULT_BYTES).fill(0);
		this.#resultWords = new Uint32Array(result.buffer);
		this.#resultPointer = library.addressOf(result);
	}

	/** Returns the `QUIC_CHANNEL` of a connection. */
	channelOf(connection: bigint): bigint {
		return this.#functions.ossl_quic_conn_get_channel(connection) as bigint;
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

	/** Time at which the connection of the last run must run again, by `Date.now()`; Infinity for never. */
	get dueDate(): number {
		const words = this.#resultWords;
		const low = words[0]!;
		const high = words[1]!;
		if (high === NEVER && low === NEVER) return Infinity;
		return (high * TWO_POWER_32 + low) / NANOSECONDS_PER_MILLISECOND;
	}
}

/** Converts a time by `Date.now()` to a time by `performance.now()`. */
export function dateToClock(date: number): number {
	// OpenSSL uses the system's time, whose milliseconds are rounded down here: the next run may be up to one millisecond late,
	// but never early.
	return date === Infinity ? Infinity : performance.now() + date - Date.now();
}

/** Looks up the functions. Returns undefined if one is missing, or the release of OpenSSL is not known. */
export function findChannelRuns(simulated?: LibrarySimulation): ChannelRuns | undefined {
	if (!KNOWN_RELEASES.test(simulated?.openssl ?? process.versions.openssl ?? '')) return undefined;
	const { library } = findOpenssl(SIGNATURES, ['ossl_quic_channel_subtick'], simulated);
	return library && new ChannelRuns(library);
}

/**
 * The datagrams that the server has sent in an unfinished QUIC handshake, kept for retransmission. OpenSSL retransmits too
 * slowly: without an acknowledgment, it only sends probes without data, and learns which packets are missing from the
 * acknowledgment of a probe. If probes are lost, too, it doubles its timeout each time, and some handshakes would never complete.
 */

import * as BOUND from './quic-limits.ts';

/** Copies of the first datagrams of one handshake. */
export class HandshakeDatagrams {
	readonly #datagrams: Uint8Array[] = [];
	/** Time at which the datagrams were last sent, by `performance.now()`. */
	#lastSentAt = 0;
	#retransmitCount = 0;
	/** True while {@link retransmitIfDue} sends datagrams, which must not be kept a second time. */
	#isRetransmitting = false;

	/** Keeps a copy of a datagram that is being sent, unless MAX_HANDSHAKE_DATAGRAMS have been kept. */
	keep(datagram: Uint8Array): void {
		if (this.#isRetransmitting || this.#datagrams.length === BOUND.MAX_HANDSHAKE_DATAGRAMS) return;
		if (this.#datagrams.length === 0) this.#lastSentAt = performance.now();
		this.#datagrams.push(new Uint8Array(datagram));
	}

	/**
	 * Retransmits the datagrams, unless they were last sent less than MIN_RETRANSMISSION_INTERVAL_MS ago, or have been retransmitted
	 * MAX_HANDSHAKE_RETRANSMISSIONS times. Must be called when a datagram of the client arrives.
	 */
	retransmitIfDue(send: (datagram: Uint8Array) => void): void {
		const now = performance.now();
		if (
			now - this.#lastSentAt < BOUND.MIN_RETRANSMISSION_INTERVAL_MS ||
			this.#retransmitCount === BOUND.MAX_HANDSHAKE_RETRANSMISSIONS
		)
			return;
		this.#lastSentAt = now;
		this.#retransmitCount++;
		this.#isRetransmitting = true;
		for (const datagram of this.#datagrams) send(datagram);
		this.#isRetransmitting = false;
	}
}

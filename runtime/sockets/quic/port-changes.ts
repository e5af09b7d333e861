/**
 * Decides to which port of its client a connection sends. A NAT forgets a client's port after about 30 s of silence, or when it is
 * restarted, and the client's next datagram then comes from another port of the same IP address (RFC 9000 §9). OpenSSL's server
 * does not support that, but need not notice: it always sees the address of the handshake.
 *
 * Only a change of the port is followed. The handshake has proven the IP address, so traffic cannot be redirected to another
 * network. A change of the IP address would need path validation, which OpenSSL's server cannot begin.
 *
 * A datagram can be sent from another port by anybody who knows its connection ID, or has copied it. Therefore:
 *
 * - The connection runs with this datagram alone. It follows only if the highest packet number received has grown, which means
 *   that the datagram contained a packet that OpenSSL could decrypt, and that was sent after all others (§9.3). Forged, repeated and
 *   late datagrams change nothing.
 * - An attacker may still copy a datagram and deliver the copy first (§9.3.3). Therefore a new port counts as proven only once the
 *   client acknowledges a packet that was sent to this port alone. To make it do so at once, a frame that needs an acknowledgment is
 *   sent. If the proof is missing after {@link BOUND.PORT_PROOF_MS}, the connection returns to the last proven port (§9.3.2). It also
 *   returns, at once, when the client sends a new packet from there.
 * - The number of such datagrams that are decrypted, and of changes, is limited for each connection.
 *
 * Congestion control and the estimate of the round-trip time continue, as §9.4 permits if only the port has changed.
 */
import type { DatagramPath } from './datagram-memory.ts';
import type { LossDetection } from './loss-probes.ts';
import type { PacketNumberReader } from './packet-numbers.ts';
import * as BOUND from './quic-limits.ts';

/** A datagram from another port that the connection is about to process. */
interface Candidate {
	readonly path: DatagramPath;
	/** The highest packet number received before the datagram. */
	readonly highestReceived: bigint;
	/** The number of the next packet to be sent. */
	readonly nextSent: bigint;
}

/** The ports of one connection's client. Exists only if a datagram has come from another port. */
export class PortChanges {
	readonly #numbers: PacketNumberReader;
	readonly #detection: LossDetection;
	/** The path that is used. */
	#path: DatagramPath;
	/** The last path on which the client is known to receive what is sent. */
	#provenPath: DatagramPath;
	/** The first packet number that was sent on the current path, if it is not proven. */
	#firstSent = 0n;
	/** Time at which the connection returns to the proven path, by `performance.now()`; Infinity if it uses that path. */
	#returnAt = Infinity;
	#candidate: Candidate | undefined = undefined;
	readonly #tries = new Allowance(BOUND.MAX_PORT_TRIES, BOUND.PORT_TRY_PERIOD_MS);
	readonly #changes = new Allowance(BOUND.MAX_PORT_CHANGES, BOUND.PORT_CHANGE_PERIOD_MS);

	constructor(numbers: PacketNumberReader, detection: LossDetection, path: DatagramPath) {
		this.#numbers = numbers;
		this.#detection = detection;
		this.#path = path;
		this.#provenPath = path;
	}

	/** Time at which {@link update} must be called at the latest, by `performance.now()`; Infinity for never. */
	get dueAt(): number {
		return this.#returnAt;
	}

	/** Reports whether a datagram from another port may be decrypted, and counts it. `now` is `performance.now()`. */
	mayTry(now: number): boolean {
		return this.#tries.take(now);
	}

	/** Called before the connection processes a datagram that has come on another path, and nothing else. */
	expect(path: DatagramPath): void {
		const isReturn = this.#provenPath.peer.equals(path.peer);
		this.#candidate = {
			path: isReturn ? this.#provenPath : path,
			highestReceived: this.#numbers.highestReceived(this.#detection),
			nextSent: this.#numbers.nextSent(this.#detection),
		};
	}

	/** Called when the connection could not process the datagram that was expected. */
	cancel(): void {
		this.#candidate = undefined;
	}

	/**
	 * Returns the path to use. Must be called after OpenSSL has processed datagrams or timers, and before the datagrams that it has
	 * sent meanwhile are passed on. `now` is `performance.now()`.
	 */
	update(now: number): DatagramPath {
		const candidate = this.#candidate;
		this.#candidate = undefined;
		if (candidate !== undefined && this.#numbers.highestReceived(this.#detection) > candidate.highestReceived)
			this.#follow(candidate, now);
		else if (this.#returnAt !== Infinity) this.#checkProof(now);
		return this.#path;
	}

	#follow(candidate: Candidate, now: number): void {
		if (candidate.path === this.#provenPath) {
			this.#useProven();
			return;
		}
		if (!this.#changes.take(now)) return;
		this.#path = candidate.path;
		this.#firstSent = candidate.nextSent;
		this.#returnAt = now + BOUND.PORT_PROOF_MS;
	}

	#checkProof(now: number): void {
		if (this.#numbers.highestAcknowledged(this.#detection) >= this.#firstSent) {
			this.#provenPath = this.#path;
			this.#returnAt = Infinity;
		} else if (now >= this.#returnAt) this.#useProven();
	}

	#useProven(): void {
		this.#path = this.#provenPath;
		this.#returnAt = Infinity;
	}
}

/** Permits a number of events in each period. */
class Allowance {
	readonly #maxCount: number;
	readonly #periodMs: number;
	#count = 0;
	#periodStart = -Infinity;

	constructor(maxCount: number, periodMs: number) {
		this.#maxCount = maxCount;
		this.#periodMs = periodMs;
	}

	/** Counts an event, and returns true, unless the number for this period has been reached. */
	take(now: number): boolean {
		if (now - this.#periodStart >= this.#periodMs) {
			this.#periodStart = now;
			this.#count = 0;
		}
		if (this.#count === this.#maxCount) return false;
		this.#count++;
		return true;
	}
}

/** The gate that a `mirror` leases: limits and counts its copies on one thread. */

declare module '../../../exchange/leases.ts' {
	interface LeaseKinds {
		mirror_gate: { settings: MirrorGateSettings; lease: MirrorGate };
	}
}

/** Identifies a gate. The gate's counts continue after a reload if these settings are unchanged. */
export interface MirrorGateSettings {
	/** Value of a label in metrics: the name of the upstream pool, or its addresses. */
	readonly upstream: string;
	/** Maximum number of copies in flight. */
	readonly maxInFlight: number;
	/** Maximum total size, in bytes, of all copied bodies in memory. */
	readonly maxBytes: number;
}

/** What happened to a copy that was sent. */
export type MirrorOutcome = 'answered' | 'failed' | 'timed_out';

/**
 * Why no copy was sent: too many are in flight; the body is too large, there is no memory for it, or it was not read to its end; no
 * upstream is available; the request asks for another protocol; the request is itself a copy.
 */
export type MirrorDrop =
	| 'too_many'
	| 'body_too_large'
	| 'out_of_memory'
	| 'body_unread'
	| 'no_upstream'
	| 'upgrade'
	| 'already_mirrored';

/** Counts sent and dropped copies, for metrics. */
export interface MirrorCounts {
	countSent(outcome: MirrorOutcome): void;
	countDropped(reason: MirrorDrop): void;
}

/** Limits the copies of one `mirror` on one thread. */
export interface MirrorGate {
	readonly counts: MirrorCounts;
	/** Admits a copy; returns false if too many are in flight. The caller calls `leave` when the copy has ended. */
	enter(): boolean;
	leave(): void;
	/**
	 * Reserves memory for a part of a body. Returns false if there is not enough; otherwise the caller must `release` the memory
	 * later.
	 */
	reserve(bytes: number): boolean;
	release(bytes: number): void;
}

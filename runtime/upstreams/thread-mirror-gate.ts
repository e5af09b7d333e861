/** Limits the copies of requests that a `mirror` makes on one thread. */
import type {
	MirrorCounts,
	MirrorGate,
	MirrorGateSettings,
} from '../../compiler/modules/directives/mirror/mirror-gate.ts';

/** Counts the copies in flight and the bytes of their bodies, and refuses more than the settings allow. */
export class ThreadMirrorGate implements MirrorGate {
	readonly counts: MirrorCounts;
	readonly #maxInFlight: number;
	readonly #maxBytes: number;
	#inFlightCount = 0;
	#reservedBytes = 0;

	constructor({ maxInFlight, maxBytes }: MirrorGateSettings, counts: MirrorCounts) {
		this.#maxInFlight = maxInFlight;
		this.#maxBytes = maxBytes;
		this.counts = counts;
	}

	enter(): boolean {
		if (this.#inFlightCount >= this.#maxInFlight) return false;
		this.#inFlightCount++;
		return true;
	}

	leave(): void {
		this.#inFlightCount--;
	}

	reserve(byteCount: number): boolean {
		if (this.#reservedBytes + byteCount > this.#maxBytes) return false;
		this.#reservedBytes += byteCount;
		return true;
	}

	release(byteCount: number): void {
		this.#reservedBytes -= byteCount;
	}
}

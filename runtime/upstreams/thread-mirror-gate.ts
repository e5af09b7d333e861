/** Bounds the copies of a `mirror` on one thread. */
import type {
	MirrorCounts,
	MirrorGate,
	MirrorGateSettings,
} from '../../compiler/modules/directives/mirror/mirror-gate.ts';

/** See {@link MirrorGate}. */
export class ThreadMirrorGate implements MirrorGate {
	readonly counts: MirrorCounts;
	readonly #maxInFlight: number;
	readonly #maxBytes: number;
	#inFlight = 0;
	#bytes = 0;

	constructor({ maxInFlight, maxBytes }: MirrorGateSettings, counts: MirrorCounts) {
		this.#maxInFlight = maxInFlight;
		this.#maxBytes = maxBytes;
		this.counts = counts;
	}

	enter(): boolean {
		if (this.#inFlight >= this.#maxInFlight) return false;
		this.#inFlight++;
		return true;
	}

	leave(): void {
		this.#inFlight--;
	}

	reserve(bytes: number): boolean {
		if (this.#bytes + bytes > this.#maxBytes) return false;
		this.#bytes += bytes;
		return true;
	}

	release(bytes: number): void {
		this.#bytes -= bytes;
	}
}

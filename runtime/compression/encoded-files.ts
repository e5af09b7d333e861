/** A cache of encoded files, so that a file is not encoded again for every client. */
import type { Coding, ServedFile } from '../../compiler/exchange/leases.ts';

/** Maximum bytes that a thread caches. */
const MAX_BYTES = 16 * 1024 * 1024;

/** Maximum size of an encoded form that is cached. Larger files are read and encoded in chunks. */
export const LARGEST_KEPT: number = 1024 * 1024;

/** An LRU cache of encoded forms. */
export class EncodedFiles {
	readonly #forms = new Map<string, Uint8Array>();
	#bytes = 0;

	get(file: ServedFile, coding: Coding): Uint8Array | undefined {
		const key = keyOf(file, coding);
		const form = this.#forms.get(key);
		if (form) {
			// Keeps the map ordered by last use.
			this.#forms.delete(key);
			this.#forms.set(key, form);
		}
		return form;
	}

	set(file: ServedFile, coding: Coding, form: Uint8Array): void {
		if (form.byteLength > LARGEST_KEPT) return;
		const key = keyOf(file, coding);
		this.#bytes += form.byteLength - (this.#forms.get(key)?.byteLength ?? 0);
		this.#forms.delete(key);
		this.#forms.set(key, form);
		for (const [oldest, { byteLength }] of this.#forms) {
			if (this.#bytes <= MAX_BYTES) break;
			this.#forms.delete(oldest);
			this.#bytes -= byteLength;
		}
	}
}

function keyOf({ path, size, changed }: ServedFile, { name, level, checksum }: Coding): string {
	return `${name} ${level ?? ''} ${checksum ?? ''} ${size} ${changed.seconds}.${changed.nanoseconds} ${path}`;
}

/** Encoded forms of files, so that a file is encoded once and not for every client. */
import type { Coding, ServedFile } from '../../compiler/exchange/leases.ts';

/** Bytes kept by one thread. */
const CEILING = 16 * 1024 * 1024;

/** Largest encoded form that is kept: a file of more is read and encoded piece by piece. */
export const LARGEST_KEPT: number = 1024 * 1024;

/** The forms that were used last. */
export class EncodedFiles {
	readonly #forms = new Map<string, Uint8Array>();
	#bytes = 0;

	get(file: ServedFile, coding: Coding): Uint8Array | undefined {
		const key = keyOf(file, coding);
		const form = this.#forms.get(key);
		if (form) {
			// The one used longest ago stands first.
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
			if (this.#bytes <= CEILING) break;
			this.#forms.delete(oldest);
			this.#bytes -= byteLength;
		}
	}
}

function keyOf({ path, size, changed }: ServedFile, { name, level, checksum }: Coding): string {
	return `${name} ${level ?? ''} ${checksum ?? ''} ${size} ${changed.seconds}.${changed.nanoseconds} ${path}`;
}

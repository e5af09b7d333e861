/** Caches the host of a connection's requests, which rarely changes. */
import { Buffer } from 'node:buffer';
import { parseAuthority } from '../../../compiler/exchange/authority.ts';
import { equalStrings } from '../../../compiler/exchange/equal-strings.ts';

/**
 * If a read is longer than this many bytes, its substrings are copied before they are cached, because a substring keeps the whole
 * string alive.
 */
const LONG_READ_BYTES = 1024;

/** The last authority that a connection's requests had, and the host in it. */
export class KnownHost {
	#authority = '';
	#host = '';

	/**
	 * Returns the host of an authority: '' for an empty authority, undefined if malformed. `readLength` is the number
	 * of bytes in the read that contained `authority`.
	 */
	hostOf(authority: string, readLength: number): string | undefined {
		if (equalStrings(authority, this.#authority)) return this.#host;
		const host = authority === '' ? '' : parseAuthority(authority)?.host;
		if (host === undefined) return undefined;
		const isLongRead = readLength > LONG_READ_BYTES;
		this.#authority = isLongRead ? copyString(authority) : authority;
		this.#host = isLongRead ? copyString(host) : host;
		return this.#host;
	}
}

/** Returns a copy of a string that is not a slice of a longer string. Each character must be one byte. */
function copyString(text: string): string {
	return Buffer.from(text, 'latin1').toString('latin1');
}

/** Caches the host of a connection's requests, which rarely changes. */
import { parseAuthority } from '../../../compiler/exchange/authority.ts';
import { ownText, sameText } from '../../../compiler/exchange/same-text.ts';

/** Above this many bytes, the text of a read must not be retained because of a few characters: substrings keep the whole alive. */
const LONG_READ = 1024;

/** The last authority of a connection, and its host. */
export class KnownHost {
	#authority = '';
	#host = '';

	/** Returns the host of an authority from a read of `length` bytes, '' for none; undefined if malformed. */
	of(authority: string, length: number): string | undefined {
		if (sameText(authority, this.#authority)) return this.#host;
		const host = authority === '' ? '' : parseAuthority(authority)?.host;
		if (host === undefined) return undefined;
		const long = length > LONG_READ;
		this.#authority = long ? ownText(authority) : authority;
		this.#host = long ? ownText(host) : host;
		return this.#host;
	}
}

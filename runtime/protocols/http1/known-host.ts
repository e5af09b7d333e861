/** The host of a connection's requests, which mostly name the same one. */
import { parseAuthority } from '../../../compiler/exchange/authority.ts';
import { ownText, sameText } from '../../../compiler/exchange/same-text.ts';

/** Bytes of a read whose text must not stay for the sake of a few characters: a part of a text keeps the whole in memory. */
const LONG_READ = 1024;

/** The last authority of a connection and its host. */
export class KnownHost {
	#authority = '';
	#host = '';

	/** The host of an authority that was cut from a read of so many bytes, '' for none; undefined for one that is malformed. */
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

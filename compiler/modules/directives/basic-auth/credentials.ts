/** Parses the credentials of the `Basic` scheme (RFC 7617) in the `Authorization` field. */
import type { HeaderList } from '../../../exchange/header-list.ts';

/** A name and password as sent. */
export interface Credentials {
	readonly user: string;
	readonly password: string;
}

/** Maximum characters of base64 to decode. No real password is longer, but hashing would accept any length. */
const MAX = 8192;
const BASIC = /^basic +([A-Za-z0-9+/]+={0,2}) *$/i;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/**
 * Returns the credentials of a request; undefined if there are none that could be valid. Two `Authorization` fields count as
 * none, because a server behind this one might use the other field.
 */
export function readCredentials(headers: HeaderList): Credentials | undefined {
	const fields = headers.getAll('authorization');
	if (fields.length !== 1 || fields[0]!.length > MAX) return undefined;
	const token = BASIC.exec(fields[0]!)?.[1];
	if (token === undefined || token.length % 4 !== 0) return undefined;
	let text: string;
	try {
		text = utf8.decode(Buffer.from(token, 'base64'));
	} catch {
		return undefined;
	}
	const colon = text.indexOf(':');
	return colon === -1 ? undefined : { user: text.slice(0, colon), password: text.slice(colon + 1) };
}

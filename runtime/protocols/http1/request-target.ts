/** Parses request targets other than a plain path: absolute, authority and asterisk form (RFC 9112 §3.2). */
import { parseAuthority } from '../../../compiler/exchange/authority.ts';

export interface RequestTarget {
	/** The path, which starts with `/`; or `*` for the asterisk form. */
	path: string;
	query: string | undefined;
	/** The authority as sent; undefined if the target has none. */
	authority: string | undefined;
}

/**
 * Parses a target into `result`. Returns false if it is malformed or its form is not allowed for the method. For CONNECT, the
 * path is set to `/`. The scheme of an absolute form is ignored, because the connection determines the scheme.
 */
export function parseTarget(method: string, target: string, result: RequestTarget): boolean {
	result.query = undefined;
	result.authority = undefined;
	if (method === 'CONNECT') {
		const authority = parseAuthority(target);
		if (authority?.port === undefined) return false;
		result.path = '/';
		result.authority = target;
		return true;
	}
	if (target === '*') {
		result.path = '*';
		return method === 'OPTIONS';
	}
	const schemePrefix = /^https?:\/\//i.exec(target)?.[0];
	if (schemePrefix === undefined) return false;
	const authorityStart = schemePrefix.length;
	const authorityLength = target.slice(authorityStart).search(/[/?]/);
	const authorityEnd = authorityLength < 0 ? target.length : authorityStart + authorityLength;
	const authority = target.slice(authorityStart, authorityEnd);
	if (parseAuthority(authority) === undefined) return false;
	result.authority = authority;
	const questionMarkIndex = target.indexOf('?', authorityEnd);
	const path = questionMarkIndex < 0 ? target.slice(authorityEnd) : target.slice(authorityEnd, questionMarkIndex);
	result.query = questionMarkIndex < 0 ? undefined : target.slice(questionMarkIndex + 1);
	// A proxy forwards `OPTIONS *` as `OPTIONS http://host` (RFC 9112 §3.2.4).
	result.path = path === '' ? (method === 'OPTIONS' && questionMarkIndex < 0 ? '*' : '/') : path;
	return true;
}

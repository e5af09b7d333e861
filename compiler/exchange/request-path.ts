/** The two forms in which the path of a request is compared: decoded and cleaned, or cleaned but still escaped. */
import type { Request } from './exchange.ts';
import { HttpError } from './http-error.ts';

/**
 * Returns the path decoded once, with `.` and `..` resolved (RFC 3986 §5.2.4, so `/a/.` becomes `/a/`) and repeated slashes merged.
 * A slash at the end is kept. Path matchers compare this form, except for patterns with `%` or `//`. `%2F` becomes a slash before
 * dots are resolved. Bytes that are not UTF-8 become U+FFFD. The result is cached on the request until its path changes. Throws
 * HttpError 400 for an incomplete `%XX` and for NUL.
 */
export function normalizedPath(request: Request): string {
	const path = request.path;
	if (request.normalizedPathSource === path) return request.normalizedPath;
	const normalized = isPlainPath(path) ? path : cleanDecodedPath(decodeOrThrow(path), true);
	request.normalizedPath = normalized;
	request.normalizedPathSource = path;
	return normalized;
}

/** Returns `normalizedPath` in lower case, for matchers. The result is cached. Throws the same errors as `normalizedPath`. */
export function loweredPath(request: Request): string {
	const path = request.path;
	if (request.loweredPathSource === path) return request.loweredPath;
	const lowered = normalizedPath(request).toLowerCase();
	request.loweredPath = lowered;
	request.loweredPathSource = path;
	return lowered;
}

/**
 * Returns the same as `normalizedPath`, but with repeated slashes kept. The result is not cached, because only patterns with `//`
 * need it.
 */
export function normalizedPathWithSlashes(request: Request): string {
	const path = request.path;
	return isPlainPath(path) ? path : cleanDecodedPath(decodeOrThrow(path), false);
}

/**
 * Returns the path, still percent-encoded, with dot segments (including `%2e`) resolved and, by default, repeated slashes merged.
 */
export function escapedCleanPath(path: string, mergeSlashes = true): string {
	return needsCleaning(path) ? cleanPath(path, mergeSlashes, ESCAPED_DOT, ESCAPED_TWO_DOTS) : path;
}

function decodeOrThrow(path: string): string {
	const decoded = decodePercent(path);
	if (decoded === undefined) throw new HttpError(400, 'The path contains an incomplete percent-encoding.');
	if (decoded.includes('\0')) throw new HttpError(400, 'The path contains a NUL character.');
	return decoded;
}

/** Reports whether decoding and cleaning would change nothing, which is the usual case. */
function isPlainPath(path: string): boolean {
	let afterSlash = false;
	for (let i = 0; i < path.length; i++) {
		const c = path.charCodeAt(i);
		if (c === 47) {
			if (afterSlash) return false;
			afterSlash = true;
		} else {
			if (c === 37 || c === 0 || (afterSlash && c === 46)) return false;
			afterSlash = false;
		}
	}
	return path.charCodeAt(0) === 47 || path === '*';
}

function needsCleaning(path: string): boolean {
	return path.charCodeAt(0) !== 47 || path.includes('//') || path.includes('/.') || /\/%2e/i.test(path);
}

const DOT = /^\.$/;
const TWO_DOTS = /^\.\.$/;
const ESCAPED_DOT = /^(?:\.|%2e)$/i;
const ESCAPED_TWO_DOTS = /^(?:\.|%2e){2}$/i;

/** Resolves the dot segments of a decoded path and merges its slashes. The result starts with a slash, except for `*`. */
export function cleanDecodedPath(path: string, mergeSlashes: boolean): string {
	return cleanPath(path, mergeSlashes, DOT, TWO_DOTS);
}

function cleanPath(path: string, mergeSlashes: boolean, dotPattern: RegExp, twoDotsPattern: RegExp): string {
	if (path === '*') return path;
	const segments = path.split('/');
	const cleanSegments: string[] = [];
	const firstIndex = path.charCodeAt(0) === 47 ? 1 : 0;
	for (let i = firstIndex; i < segments.length; i++) {
		const segment = segments[i]!;
		const isLast = i === segments.length - 1;
		if (twoDotsPattern.test(segment)) {
			cleanSegments.pop();
			if (isLast) cleanSegments.push('');
		} else if (dotPattern.test(segment)) {
			if (isLast) cleanSegments.push('');
		} else if (segment === '' && mergeSlashes) {
			if (isLast) cleanSegments.push('');
		} else cleanSegments.push(segment);
	}
	return `/${cleanSegments.join('/')}`;
}

/**
 * Decodes `%XX` as UTF-8. Bytes that are not UTF-8 become U+FFFD. Returns undefined if a `%` is not followed by two hexadecimal
 * digits.
 */
export function decodePercent(text: string): string | undefined {
	if (!text.includes('%')) return text;
	try {
		return decodeURIComponent(text);
	} catch {
		if (/%(?![0-9a-fA-F]{2})/.test(text)) return undefined;
		const binaryText = text.replace(/%([0-9a-fA-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
		return Buffer.from(binaryText, 'latin1').toString('utf8');
	}
}

/** Converts the path of a request to that of a file; decoding never turns a byte into a separator. */
import { isUtf8 } from 'node:buffer';

/** A request path as a file server interprets it. */
export interface FilePath {
	/** `''` for the root itself, otherwise `/a/b`: decoded, dot segments resolved, slashes merged, without a trailing slash. */
	readonly path: string;
	/** True if the request path ended with a slash, or equivalently with a dot segment (RFC 3986 §5.2.4). */
	readonly endsWithSlash: boolean;
}

/** Matches paths that need decoding or cleaning: an escape, an empty or dotted segment, or a NUL. */
const UNUSUAL = /%|\/\/|\/\.|\0/;

/**
 * Converts a percent-encoded path. Each segment is decoded separately: `..` is resolved after decoding and stops at the root,
 * and a segment with an encoded slash or NUL names no file.
 * `malformed`: an invalid escape, or a NUL (400). `encoded-slash`: no file can have that name (404); matchers treat `%2F` as a
 * slash, so serving `/a%2Fb` as `/a/b` or as one name would let a request slip past them.
 */
export function filePath(encoded: string): FilePath | 'malformed' | 'encoded-slash' {
	if (!UNUSUAL.test(encoded)) {
		const endsWithSlash = encoded.endsWith('/');
		const path = endsWithSlash ? encoded.slice(0, -1) : encoded;
		return { path: path === '' || path.startsWith('/') ? path : `/${path}`, endsWithSlash };
	}
	const kept: string[] = [];
	let endsWithSlash = false;
	for (const segment of encoded.split('/')) {
		const name = segment.includes('%') ? decodeSegment(segment) : segment;
		if (name === undefined || name.includes('\0')) return 'malformed';
		if (name.includes('/')) return 'encoded-slash';
		endsWithSlash = name === '' || name === '.' || name === '..';
		if (name === '..') kept.pop();
		else if (!endsWithSlash) kept.push(name);
	}
	return { path: kept.length === 0 ? '' : `/${kept.join('/')}`, endsWithSlash };
}

/** Decodes escapes; bytes that are not UTF-8 become lone surrogates (U+DC00 plus the byte), as FileReader expects. */
function decodeSegment(segment: string): string | undefined {
	try {
		return decodeURIComponent(segment);
	} catch {
		if (/%(?![0-9a-f]{2})/i.test(segment)) return undefined;
		return segment.replace(/(?:%[0-9a-f]{2})+/gi, escapes =>
			decodeBytes(Buffer.from(escapes.replaceAll('%', ''), 'hex')),
		);
	}
}

function decodeBytes(bytes: Buffer): string {
	let text = '';
	let at = 0;
	while (at < bytes.length) {
		const length = sequenceLength(bytes, at);
		if (length === 0) {
			text += String.fromCharCode(0xdc00 + bytes[at]!);
			at += 1;
		} else {
			text += bytes.toString('utf8', at, at + length);
			at += length;
		}
	}
	return text;
}

/** Returns the length of the well-formed UTF-8 sequence at an offset, or 0 (RFC 3629 §4). */
function sequenceLength(bytes: Buffer, at: number): number {
	const first = bytes[at]!;
	const length = first < 0x80 ? 1 : first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;
	return length > 0 && at + length <= bytes.length && isUtf8(bytes.subarray(at, at + length)) ? length : 0;
}

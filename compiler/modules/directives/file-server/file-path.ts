/** Converts the path of a request to the path of a file. Decoding never produces a separator: an encoded slash is refused. */
import { isUtf8 } from 'node:buffer';

/** A request path as a file server interprets it. */
export interface FilePath {
	/** `''` for the root itself, otherwise `/a/b`: decoded, dot segments resolved, slashes merged, without a trailing slash. */
	readonly path: string;
	/** True if the request path ended with a slash, or equivalently with a dot segment (RFC 3986 §5.2.4). */
	readonly endsWithSlash: boolean;
}

/**
 * Matches paths that need decoding or cleaning: those with an escape, an empty segment, a segment that begins with a dot, or a NUL.
 */
const NEEDS_CLEANING = /%|\/\/|\/\.|\0/;

/**
 * Converts a percent-encoded path. Each segment is decoded separately: `..` is resolved after decoding and stops at the root, and a
 * segment with an encoded slash or NUL names no file. Returns `malformed` (answered with 400) for an invalid escape or a NUL, and
 * `encoded-slash` (answered with 404) for a segment that contains an encoded slash. Serving `/a%2Fb` as `/a/b` would let a request
 * evade matchers of paths.
 */
export function parseFilePath(encodedPath: string): FilePath | 'malformed' | 'encoded-slash' {
	if (!NEEDS_CLEANING.test(encodedPath)) {
		const endsWithSlash = encodedPath.endsWith('/');
		const path = endsWithSlash ? encodedPath.slice(0, -1) : encodedPath;
		return { path: path === '' || path.startsWith('/') ? path : `/${path}`, endsWithSlash };
	}
	const names: string[] = [];
	let endsWithSlash = false;
	for (const segment of encodedPath.split('/')) {
		const name = segment.includes('%') ? decodeSegment(segment) : segment;
		if (name === undefined || name.includes('\0')) return 'malformed';
		if (name.includes('/')) return 'encoded-slash';
		endsWithSlash = name === '' || name === '.' || name === '..';
		if (name === '..') names.pop();
		else if (!endsWithSlash) names.push(name);
	}
	return { path: names.length === 0 ? '' : `/${names.join('/')}`, endsWithSlash };
}

/**
 * Decodes the escapes in a segment; returns undefined if one is invalid. Bytes that are not UTF-8 become lone surrogates (U+DC00
 * plus the byte), as FileReader expects.
 */
function decodeSegment(segment: string): string | undefined {
	try {
		return decodeURIComponent(segment);
	} catch {
		if (/%(?![0-9a-f]{2})/i.test(segment)) return undefined;
		return segment.replace(/(?:%[0-9a-f]{2})+/gi, escapes =>
			decodeLossless(Buffer.from(escapes.replaceAll('%', ''), 'hex')),
		);
	}
}

function decodeLossless(bytes: Buffer): string {
	let text = '';
	let offset = 0;
	while (offset < bytes.length) {
		const length = utf8SequenceLength(bytes, offset);
		if (length === 0) {
			text += String.fromCharCode(0xdc00 + bytes[offset]!);
			offset += 1;
		} else {
			text += bytes.toString('utf8', offset, offset + length);
			offset += length;
		}
	}
	return text;
}

/** Returns the length in bytes of the well-formed UTF-8 sequence at an offset; 0 if there is none (RFC 3629 §4). */
function utf8SequenceLength(bytes: Buffer, offset: number): number {
	const firstByte = bytes[offset]!;
	const length =
		firstByte < 0x80
			? 1
			: firstByte < 0xc2
				? 0
				: firstByte < 0xe0
					? 2
					: firstByte < 0xf0
						? 3
						: firstByte < 0xf5
							? 4
							: 0;
	return length > 0 && offset + length <= bytes.length && isUtf8(bytes.subarray(offset, offset + length)) ? length : 0;
}

/** A strict decoder of chunked transfer coding (RFC 9112 §7.1). */

import { FIELD_VALUE_CLASSES, TOKEN_CLASSES } from '../../../compiler/exchange/field-syntax.ts';
import { HeaderList } from '../../../compiler/exchange/header-list.ts';
import { endToEndTrailers } from '../../../compiler/exchange/trailer-fields.ts';
import { FieldParser, type FieldRole, PARSE_INCOMPLETE, PARSE_OK } from './field-parser.ts';
import { DEFAULT_LIMITS } from './limits.ts';
import { PendingBytes } from './pending-bytes.ts';

/** Receives decoded content as views of the received bytes. */
export interface ChunkSink {
	push(piece: Buffer): void;
}

/** States of the decoder: the part of the coding to which the next byte belongs. */
const FIRST_SIZE_DIGIT = 0;
const SIZE_DIGIT = 1;
const EXTENSION_NAME_START = 2;
const EXTENSION_NAME = 3;
const EXTENSION_VALUE_START = 4;
const EXTENSION_VALUE = 5;
const QUOTED_VALUE = 6;
const QUOTED_PAIR = 7;
const AFTER_QUOTED_VALUE = 8;
const LF_AFTER_SIZE = 9;
const CHUNK_DATA = 10;
const CR_AFTER_DATA = 11;
const LF_AFTER_DATA = 12;
const TRAILER = 13;
const ENDED = 14;
const FAILED = 15;

const CR = 13;
const LF = 10;
const SEMICOLON = 59;
const EQUALS = 61;
const QUOTE = 34;
const BACKSLASH = 92;

/** The decoder of one body. */
export class ChunkedDecoder {
	/**
	 * Trailer fields, set at the end; undefined if the message has no trailer. Fields that are not allowed in trailers are dropped.
	 */
	trailers: HeaderList | undefined = undefined;
	#state = FIRST_SIZE_DIGIT;
	#remainingChunkBytes = 0;
	#sizeDigitCount = 0;
	#extensionBytes = 0;
	#pendingTrailers: PendingBytes | undefined = undefined;
	readonly #role: FieldRole;
	readonly #maxTrailerBytes: number;
	readonly #maxTrailerCount: number;
	readonly #maxExtensionBytes: number;
	readonly #connectionField: string | undefined;

	/**
	 * The limits are, in this order: the bytes of the trailer section, the number of its fields, and the total bytes of chunk
	 * extensions. `connectionField` is the message's `Connection` field, if the trailer fields that it names should be removed.
	 */
	constructor(
		messageKind: 'request' | 'response',
		maxTrailerBytes: number,
		maxTrailerCount: number,
		maxExtensionBytes: number = DEFAULT_LIMITS.maxChunkExtensions,
		connectionField?: string,
	) {
		this.#maxExtensionBytes = maxExtensionBytes;
		this.#connectionField = connectionField;
		this.#role = messageKind === 'request' ? 'request_trailer' : 'response_trailer';
		this.#maxTrailerBytes = maxTrailerBytes;
		this.#maxTrailerCount = maxTrailerCount;
	}

	/** True once the last chunk and its trailers have been received. */
	get ended(): boolean {
		return this.#state === ENDED;
	}

	/**
	 * Decodes bytes from `start` on. Returns the index after the last byte of the body, which is the buffer's length if the body
	 * continues. Returns −1 if the coding is malformed; the decoder cannot be used after that.
	 */
	write(bytes: Buffer, start: number, sink: ChunkSink): number {
		let i = start;
		const length = bytes.length;
		while (i < length) {
			if (this.#state === CHUNK_DATA) {
				const end = Math.min(length, i + this.#remainingChunkBytes);
				sink.push(i === 0 && end === length ? bytes : bytes.subarray(i, end));
				this.#remainingChunkBytes -= end - i;
				i = end;
				if (this.#remainingChunkBytes === 0) this.#state = CR_AFTER_DATA;
				continue;
			}
			if (this.#state === TRAILER) return this.#readTrailers(bytes, i);
			if (this.#state >= ENDED) break;
			if (!this.#acceptByte(bytes[i]!)) {
				this.#state = FAILED;
				return -1;
			}
			i++;
		}
		return this.#state === FAILED ? -1 : i;
	}

	/** Processes a byte outside of chunk data and trailers. Returns false if it is malformed. */
	#acceptByte(code: number): boolean {
		switch (this.#state) {
			case FIRST_SIZE_DIGIT:
			case SIZE_DIGIT: {
				const digit = hexDigit(code);
				if (digit >= 0) {
					// A size of twelve hexadecimal digits is less than 2^48, which a number represents exactly.
					if (++this.#sizeDigitCount > 12) return false;
					this.#remainingChunkBytes = this.#remainingChunkBytes * 16 + digit;
					this.#state = SIZE_DIGIT;
					return true;
				}
				return this.#state === SIZE_DIGIT && this.#endExtension(code);
			}
			case EXTENSION_NAME_START:
				this.#state = EXTENSION_NAME;
				return this.#countExtensionByte() && TOKEN_CLASSES[code] !== 0;
			case EXTENSION_NAME:
				if (code === EQUALS) {
					this.#state = EXTENSION_VALUE_START;
					return this.#countExtensionByte();
				}
				return TOKEN_CLASSES[code] !== 0 ? this.#countExtensionByte() : this.#endExtension(code);
			case EXTENSION_VALUE_START:
				this.#state = code === QUOTE ? QUOTED_VALUE : EXTENSION_VALUE;
				return this.#countExtensionByte() && (code === QUOTE || TOKEN_CLASSES[code] !== 0);
			case EXTENSION_VALUE:
				return TOKEN_CLASSES[code] !== 0 ? this.#countExtensionByte() : this.#endExtension(code);
			case QUOTED_VALUE:
				if (code === QUOTE) this.#state = AFTER_QUOTED_VALUE;
				else if (code === BACKSLASH) this.#state = QUOTED_PAIR;
				else if (FIELD_VALUE_CLASSES[code] === 0) return false;
				return this.#countExtensionByte();
			case QUOTED_PAIR:
				this.#state = QUOTED_VALUE;
				return FIELD_VALUE_CLASSES[code] !== 0 && this.#countExtensionByte();
			case AFTER_QUOTED_VALUE:
				return this.#endExtension(code);
			case LF_AFTER_SIZE:
				this.#state = this.#remainingChunkBytes === 0 ? TRAILER : CHUNK_DATA;
				this.#sizeDigitCount = 0;
				return code === LF;
			case CR_AFTER_DATA:
				this.#state = LF_AFTER_DATA;
				return code === CR;
			case LF_AFTER_DATA:
				this.#state = FIRST_SIZE_DIGIT;
				return code === LF;
			default:
				return false;
		}
	}

	/** Processes the byte after a chunk size or after an extension. */
	#endExtension(code: number): boolean {
		if (code === SEMICOLON) this.#state = EXTENSION_NAME_START;
		else if (code === CR) this.#state = LF_AFTER_SIZE;
		else return false;
		return true;
	}

	/** Counts one byte of a chunk extension. Returns false if the extensions of this body have become too long. */
	#countExtensionByte(): boolean {
		// Extensions are ignored. Without a limit, a client could send any amount of them.
		return ++this.#extensionBytes <= this.#maxExtensionBytes;
	}

	#readTrailers(bytes: Buffer, start: number): number {
		const lengthBefore = this.#pendingTrailers?.length ?? 0;
		const end = Math.min(bytes.length, start + this.#maxTrailerBytes - lengthBefore);
		let mustParse = true;
		if (this.#pendingTrailers) mustParse = this.#pendingTrailers.add(bytes.subarray(start, end));
		else this.#pendingTrailers = new PendingBytes(bytes, start, end);
		const isFull = this.#pendingTrailers.length >= this.#maxTrailerBytes;
		if (!mustParse && !isFull) return bytes.length;
		const text = this.#pendingTrailers.bytes.toString('latin1');
		const parser = new FieldParser(this.#role, this.#maxTrailerCount);
		const result = parser.parse(text, 0, text.length);
		if (result === PARSE_OK) {
			this.#state = ENDED;
			if (parser.items.length > 0)
				this.trailers = endToEndTrailers(new HeaderList(parser.items), this.#connectionField);
			return start + parser.end - lengthBefore;
		}
		if (result !== PARSE_INCOMPLETE || isFull) {
			this.#state = FAILED;
			return -1;
		}
		return bytes.length;
	}
}

function hexDigit(code: number): number {
	if (code >= 48 && code <= 57) return code - 48;
	const lowerCode = code | 32;
	return lowerCode >= 97 && lowerCode <= 102 ? lowerCode - 87 : -1;
}

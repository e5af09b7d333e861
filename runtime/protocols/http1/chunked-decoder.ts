/** A strict decoder of chunked transfer coding (RFC 9112 §7.1). */

import { FIELD_VALUE_CLASS, TOKEN_CLASS } from '../../../compiler/exchange/field-syntax.ts';
import { HeaderList } from '../../../compiler/exchange/header-list.ts';
import { endToEndTrailers } from '../../../compiler/exchange/trailer-fields.ts';
import { FieldParser, type FieldRole, PARSE_INCOMPLETE, PARSE_OK } from './field-parser.ts';
import { DEFAULT_LIMITS } from './limits.ts';
import { PendingBytes } from './pending-bytes.ts';

/** Receives decoded content as views of the received bytes. */
export interface ChunkSink {
	push(piece: Buffer): void;
}

const SIZE_FIRST = 0;
const SIZE = 1;
const EXTENSION_NAME_FIRST = 2;
const EXTENSION_NAME = 3;
const EXTENSION_VALUE_FIRST = 4;
const EXTENSION_VALUE = 5;
const QUOTED = 6;
const QUOTED_PAIR = 7;
const QUOTED_END = 8;
const SIZE_LF = 9;
const DATA = 10;
const DATA_CR = 11;
const DATA_LF = 12;
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
	/** Trailer fields, set at the end; undefined if the message has no trailer. Fields that are not allowed in trailers are dropped. */
	trailers: HeaderList | undefined = undefined;
	#state = SIZE_FIRST;
	#size = 0;
	#digits = 0;
	#extensions = 0;
	#trailer: PendingBytes | undefined = undefined;
	readonly #role: FieldRole;
	readonly #maxTrailerSize: number;
	readonly #maxTrailerCount: number;
	readonly #maxExtensions: number;
	readonly #connection: string | undefined;

	/**
	 * The limits are the bytes of the trailer section, the number of its fields, and the total bytes of chunk extensions.
	 * `connection` is the message's `Connection` field, if the trailer fields that it names should be removed.
	 */
	constructor(
		of: 'request' | 'response',
		maxTrailerSize: number,
		maxTrailerCount: number,
		maxExtensions: number = DEFAULT_LIMITS.maxChunkExtensions,
		connection?: string,
	) {
		this.#maxExtensions = maxExtensions;
		this.#connection = connection;
		this.#role = of === 'request' ? 'request_trailer' : 'response_trailer';
		this.#maxTrailerSize = maxTrailerSize;
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
			if (this.#state === DATA) {
				const end = Math.min(length, i + this.#size);
				sink.push(i === 0 && end === length ? bytes : bytes.subarray(i, end));
				this.#size -= end - i;
				i = end;
				if (this.#size === 0) this.#state = DATA_CR;
				continue;
			}
			if (this.#state === TRAILER) return this.#readTrailers(bytes, i);
			if (this.#state >= ENDED) break;
			if (!this.#step(bytes[i]!)) {
				this.#state = FAILED;
				return -1;
			}
			i++;
		}
		return this.#state === FAILED ? -1 : i;
	}

	#step(code: number): boolean {
		switch (this.#state) {
			case SIZE_FIRST:
			case SIZE: {
				const digit = hexDigit(code);
				if (digit >= 0) {
					// Twelve hexadecimal digits stay below 256 TiB, which a number represents exactly.
					if (++this.#digits > 12) return false;
					this.#size = this.#size * 16 + digit;
					this.#state = SIZE;
					return true;
				}
				return this.#state === SIZE && this.#afterExtension(code);
			}
			case EXTENSION_NAME_FIRST:
				this.#state = EXTENSION_NAME;
				return this.#extension() && TOKEN_CLASS[code] !== 0;
			case EXTENSION_NAME:
				if (code === EQUALS) {
					this.#state = EXTENSION_VALUE_FIRST;
					return this.#extension();
				}
				return TOKEN_CLASS[code] !== 0 ? this.#extension() : this.#afterExtension(code);
			case EXTENSION_VALUE_FIRST:
				this.#state = code === QUOTE ? QUOTED : EXTENSION_VALUE;
				return this.#extension() && (code === QUOTE || TOKEN_CLASS[code] !== 0);
			case EXTENSION_VALUE:
				return TOKEN_CLASS[code] !== 0 ? this.#extension() : this.#afterExtension(code);
			case QUOTED:
				if (code === QUOTE) this.#state = QUOTED_END;
				else if (code === BACKSLASH) this.#state = QUOTED_PAIR;
				else if (FIELD_VALUE_CLASS[code] === 0) return false;
				return this.#extension();
			case QUOTED_PAIR:
				this.#state = QUOTED;
				return FIELD_VALUE_CLASS[code] !== 0 && this.#extension();
			case QUOTED_END:
				return this.#afterExtension(code);
			case SIZE_LF:
				this.#state = this.#size === 0 ? TRAILER : DATA;
				this.#digits = 0;
				return code === LF;
			case DATA_CR:
				this.#state = DATA_LF;
				return code === CR;
			case DATA_LF:
				this.#state = SIZE_FIRST;
				return code === LF;
			default:
				return false;
		}
	}

	#afterExtension(code: number): boolean {
		if (code === SEMICOLON) this.#state = EXTENSION_NAME_FIRST;
		else if (code === CR) this.#state = SIZE_LF;
		else return false;
		return true;
	}

	#extension(): boolean {
		// Extensions are ignored. Without a limit, a client could send any amount of them.
		return ++this.#extensions <= this.#maxExtensions;
	}

	#readTrailers(bytes: Buffer, start: number): number {
		const before = this.#trailer?.length ?? 0;
		const end = Math.min(bytes.length, start + this.#maxTrailerSize - before);
		let look = true;
		if (this.#trailer) look = this.#trailer.add(bytes.subarray(start, end));
		else this.#trailer = new PendingBytes(bytes, start, end);
		const full = this.#trailer.length >= this.#maxTrailerSize;
		if (!look && !full) return bytes.length;
		const text = this.#trailer.bytes.toString('latin1');
		const parser = new FieldParser(this.#role, this.#maxTrailerCount);
		const result = parser.parse(text, 0, text.length);
		if (result === PARSE_OK) {
			this.#state = ENDED;
			if (parser.items.length > 0) this.trailers = endToEndTrailers(new HeaderList(parser.items), this.#connection);
			return start + parser.end - before;
		}
		if (result !== PARSE_INCOMPLETE || full) {
			this.#state = FAILED;
			return -1;
		}
		return bytes.length;
	}
}

function hexDigit(code: number): number {
	if (code >= 48 && code <= 57) return code - 48;
	const lower = code | 32;
	return lower >= 97 && lower <= 102 ? lower - 87 : -1;
}

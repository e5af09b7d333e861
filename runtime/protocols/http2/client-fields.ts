/** Encodes the header fields of requests to upstreams, and decodes the fields of their responses (RFC 9113 §8.3). */
import { trimBlanks } from '../../../compiler/exchange/field-syntax.ts';
import { HeaderList } from '../../../compiler/exchange/header-list.ts';
import type { UpstreamRequest } from '../../../compiler/exchange/leases.ts';
import { isAllowedInTrailers } from '../../../compiler/exchange/trailer-fields.ts';
import { type DecodedField, FIELD_KIND } from './field.ts';
import type { FieldSink } from './hpack-decoder.ts';
import { writeInteger, writeString } from './response-fields.ts';
import { STATIC_FIELDS } from './static-table.ts';

const STATIC_INDEX_BY_NAME: ReadonlyMap<string, number> = new Map(
	Array.from({ length: STATIC_FIELDS.length / 2 }, (_, i) => [STATIC_FIELDS[i * 2]!, i + 1] as const).reverse(),
);
/** Indexes in the static table (RFC 7541 Appendix A). */
const AUTHORITY_INDEX = 1;
const METHOD_GET_INDEX = 2;
const METHOD_POST_INDEX = 3;
const PATH_INDEX = 4;
const SCHEME_HTTP_INDEX = 6;
const SCHEME_HTTPS_INDEX = 7;
const CONTENT_LENGTH_INDEX = 28;

/**
 * Literal fields are not added to any table. With NEVER_INDEXED, intermediaries must not add them either (RFC 7541 §6.2.2,
 * §6.2.3).
 */
const LITERAL_PREFIX = 0x00;
const NEVER_INDEXED_PREFIX = 0x10;
/**
 * A dynamic table size update to zero. Sent in the first block of a connection, because we do not use the upstream's dynamic
 * table.
 */
const CLEAR_TABLE_UPDATE = 0x20;

const SENSITIVE_NAMES: ReadonlySet<string> = new Set(['authorization', 'proxy-authorization', 'cookie']);

/** Encodes requests without using the upstream's dynamic table, so that one encoder serves all connections of a pool. */
export class RequestEncoder {
	#memory: Buffer = Buffer.allocUnsafeSlow(4096);
	#writeIndex = 0;

	/**
	 * Encodes a request head. The bytes are valid until the next call.
	 * @param isFirstBlock True for the first block of a connection.
	 * @param length Length of the body, if there is a body and its length is known.
	 */
	encodeHead(
		request: UpstreamRequest,
		scheme: 'http' | 'https',
		isFirstBlock: boolean,
		length: number | undefined,
	): Uint8Array {
		this.#writeIndex = 0;
		this.#reserve(64);
		const { headers, method, upgrade } = request;
		if (isFirstBlock) this.#memory[this.#writeIndex++] = CLEAR_TABLE_UPDATE;
		if (upgrade !== undefined) {
			this.#writeField(':method', METHOD_GET_INDEX, 'CONNECT');
			this.#writeField(':protocol', 0, upgrade.toLowerCase());
		} else if (method === 'GET' || method === 'POST') {
			this.#memory[this.#writeIndex++] = 0x80 | (method === 'GET' ? METHOD_GET_INDEX : METHOD_POST_INDEX);
		} else this.#writeField(':method', METHOD_GET_INDEX, method);
		this.#memory[this.#writeIndex++] = 0x80 | (scheme === 'https' ? SCHEME_HTTPS_INDEX : SCHEME_HTTP_INDEX);
		const host = headers.get('host');
		if (host !== undefined && host !== '') this.#writeField(':authority', AUTHORITY_INDEX, host);
		if (request.target === '/') this.#memory[this.#writeIndex++] = 0x80 | PATH_INDEX;
		else this.#writeField(':path', PATH_INDEX, request.target);
		for (let i = 0, size = headers.size; i < size; i++) {
			const name = headers.nameAt(i).toLowerCase();
			// `Sec-WebSocket-Key` belongs to the handshake of HTTP/1.1 (RFC 8441 §5).
			if (name === 'host' || (upgrade !== undefined && name === 'sec-websocket-key')) continue;
			this.#writeField(name, STATIC_INDEX_BY_NAME.get(name) ?? 0, headers.valueAt(i));
		}
		if (length !== undefined) this.#writeField('content-length', CONTENT_LENGTH_INDEX, String(length));
		return this.#memory.subarray(0, this.#writeIndex);
	}

	encodeTrailers(headers: HeaderList): Uint8Array {
		this.#writeIndex = 0;
		for (const [name, value] of headers) this.#writeField(name.toLowerCase(), 0, value);
		return this.#memory.subarray(0, this.#writeIndex);
	}

	#writeField(name: string, staticIndex: number, rawValue: string): void {
		const value = trimBlanks(rawValue);
		this.#reserve(name.length + value.length + 32);
		const memory = this.#memory;
		let at = writeInteger(
			memory,
			this.#writeIndex,
			SENSITIVE_NAMES.has(name) ? NEVER_INDEXED_PREFIX : LITERAL_PREFIX,
			4,
			staticIndex,
		);
		if (staticIndex === 0) at = writeString(memory, at, name);
		this.#writeIndex = writeString(memory, at, value);
	}

	#reserve(byteCount: number): void {
		if (this.#writeIndex + byteCount <= this.#memory.length) return;
		const largerBuffer = Buffer.allocUnsafeSlow((this.#writeIndex + byteCount) * 2);
		this.#memory.copy(largerBuffer, 0, 0, this.#writeIndex);
		this.#memory = largerBuffer;
	}
}

const MAX_BLOCK_FIELDS = 1000;

/** Receives the fields of response heads and trailers. One per connection. */
export class ResponseReader implements FieldSink {
	/** Alternating names and values, as in HeaderList. A new array for each block. */
	items: string[] = [];
	/** The status; 0 if there is none, as in trailers. */
	status = 0;
	contentLength: number | undefined = undefined;
	/** Describes what is wrong with the block; undefined if it is valid. */
	mistake: string | undefined = undefined;
	readonly #maxBytes: number;
	#decodedBytes = 0;

	/** @param maxBytes Maximum decoded bytes of a block. */
	constructor(maxBytes: number) {
		this.#maxBytes = maxBytes;
	}

	begin(): void {
		this.items = [];
		this.status = 0;
		this.contentLength = undefined;
		this.mistake = undefined;
		this.#decodedBytes = 0;
	}

	/** Returns the block as trailers, without fields that are not allowed in trailers. */
	trailers(): HeaderList {
		const trailers = new HeaderList(this.items);
		trailers.filter(name => isAllowedInTrailers(name, 'response'));
		return trailers;
	}

	onField(field: DecodedField): void {
		this.#decodedBytes += field.countedBytes;
		if (this.#decodedBytes > this.#maxBytes || this.items.length >= MAX_BLOCK_FIELDS * 2) {
			this.mistake = 'the response head is too large';
			return;
		}
		const { kind, name, value } = field;
		if (!field.isValueValid || kind === FIELD_KIND.invalid || kind === FIELD_KIND.connection) {
			this.mistake = 'the response has a field that is not valid';
			return;
		}
		if (kind <= FIELD_KIND.unknownPseudo && kind !== FIELD_KIND.regular) {
			if (name !== ':status' || this.status !== 0 || this.items.length > 0 || !/^[1-5]\d\d$/.test(value)) {
				this.mistake = 'the response has a pseudo-field that is not valid';
			} else this.status = Number(value);
			return;
		}
		if (kind === FIELD_KIND.contentLength) {
			if (!/^\d{1,15}$/.test(value) || (this.contentLength !== undefined && this.contentLength !== Number(value))) {
				this.mistake = 'Content-Length is not a number';
			} else this.contentLength = Number(value);
			return;
		}
		if (name !== 'proxy-authenticate') this.items.push(name, value);
	}
}

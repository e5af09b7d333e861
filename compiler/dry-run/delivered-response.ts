/** The response as a client receives it: the handlers' response with the changes that the protocol makes (RFC 9112 §6). */
import { type Body, bodyLength, isStream } from '../exchange/body.ts';
import { encodeFieldText, fieldValueKind, isToken, trimBlanks } from '../exchange/field-syntax.ts';
import { HeaderList } from '../exchange/header-list.ts';
import type { FakeExchange } from './fake-exchange.ts';

/** A response that has left the handler graph. */
export class DeliveredResponse {
	readonly status: number;
	/** The response fields in order, including `Date` and `Content-Length`. */
	readonly headers: HeaderList;
	#unreadBody: Body;
	#bodyBytes: Uint8Array | undefined;

	constructor(x: FakeExchange) {
		const { response, received } = x;
		const isValidStatus = response.status === 0 || (response.status >= 200 && response.status <= 999);
		this.status = response.status === 0 ? 200 : isValidStatus ? response.status : 500;
		this.headers = deliverableFields(response.headers);
		if (!this.headers.has('date')) this.headers.add('Date', new Date(x.now()).toUTCString());
		const body = isValidStatus && this.status !== 205 ? response.body : null;
		const hasNoBody = this.status === 204 || this.status === 304;
		const isHead = received.method === 'HEAD';
		const declaredLength = parseDeclaredLength(response.headers);
		const actualLength = bodyLength(body);
		if (isHead && !hasNoBody) this.#addContentLength(body === null ? declaredLength : (actualLength ?? declaredLength));
		else if (!hasNoBody && actualLength === undefined) this.headers.add('Transfer-Encoding', 'chunked');
		else this.#addContentLength(this.status === 304 ? declaredLength : hasNoBody ? undefined : actualLength);
		this.#unreadBody = hasNoBody || isHead ? null : body;
		if (this.#unreadBody !== response.body && isStream(response.body)) response.body.cancel();
	}

	#addContentLength(length: number | undefined): void {
		if (length !== undefined) this.headers.add('Content-Length', String(length));
	}

	/** Returns the complete body. If a stream fails, returns the bytes received before the failure. */
	async bytes(): Promise<Uint8Array> {
		if (this.#bodyBytes) return this.#bodyBytes;
		const body = this.#unreadBody;
		this.#unreadBody = null;
		if (body === null) this.#bodyBytes = new Uint8Array(0);
		else if (typeof body === 'string') this.#bodyBytes = Buffer.from(body, 'utf8');
		else if (!isStream(body)) this.#bodyBytes = body;
		else {
			const pieces: Uint8Array[] = [];
			try {
				// The bytes are copied, because they are valid only until the next pull.
				for (let piece = await body.pull(); piece !== null; piece = await body.pull())
					pieces.push(Uint8Array.from(piece));
			} catch {
				// The body failed, but a client would keep the bytes that it has received.
			}
			this.#bodyBytes = Buffer.concat(pieces);
		}
		return this.#bodyBytes;
	}

	/** Returns the complete body, decoded from UTF-8. */
	async text(): Promise<string> {
		const bytes = await this.bytes();
		return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8');
	}

	/** Cancels a body that has not been read. */
	close(): void {
		if (isStream(this.#unreadBody)) this.#unreadBody.cancel();
		this.#unreadBody = null;
	}
}

/** Returns the value of `Content-Length` that handlers set; undefined if it is missing or invalid. */
function parseDeclaredLength(headers: HeaderList): number | undefined {
	const text = headers.get('content-length');
	return text !== undefined && /^[0-9]{1,15}$/.test(text) ? Number(text) : undefined;
}

/**
 * Returns the fields to send. Drops fields that describe the connection, which the protocol sets itself, and fields with invalid
 * values.
 */
function deliverableFields(headers: HeaderList): HeaderList {
	const fields = new HeaderList();
	for (const [name, value] of headers) {
		switch (name.toLowerCase()) {
			case 'connection':
			case 'keep-alive':
			case 'proxy-connection':
			case 'content-length':
			case 'transfer-encoding':
				continue;
		}
		const valueKind = isToken(name) ? fieldValueKind(value) : 'invalid';
		// A recipient strips white space around a value, so a client never sees it.
		if (valueKind !== 'invalid') fields.add(name, trimBlanks(valueKind === 'text' ? encodeFieldText(value) : value));
	}
	return fields;
}

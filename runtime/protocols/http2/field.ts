/**
 * An HPACK field with properties that the server needs. These properties are determined only once for each table entry, however
 * often the entry is used.
 */
import {
	DOT_CLASS,
	FIELD_VALUE_CLASSES,
	TOKEN_CLASSES,
	UNDERSCORE_CLASS,
} from '../../../compiler/exchange/field-syntax.ts';

/** What a field's name means to the protocol. */
export const FIELD_KIND = {
	regular: 0,
	authority: 1,
	method: 2,
	path: 3,
	scheme: 4,
	/** `:protocol`, for extended CONNECT (RFC 8441 §4). */
	protocol: 5,
	/** `:status`, which requests do not have, and undefined pseudo-headers. */
	unknownPseudo: 6,
	/** Connection-specific fields of HTTP/1.1, which are not allowed in HTTP/2 (RFC 9113 §8.2.2). */
	connection: 7,
	te: 8,
	host: 9,
	cookie: 10,
	contentLength: 11,
	expect: 12,
	trailer: 13,
	/** The name contains `_` or `.`. A backend may confuse it with the name that has `-` instead, for which there may be a rule. */
	confusable: 14,
	/** The name is not a lowercase token (RFC 9113 §8.2.1). */
	invalid: 15,
} as const;

const KIND_BY_NAME: ReadonlyMap<string, number> = new Map([
	[':authority', FIELD_KIND.authority],
	[':method', FIELD_KIND.method],
	[':path', FIELD_KIND.path],
	[':scheme', FIELD_KIND.scheme],
	[':protocol', FIELD_KIND.protocol],
	['connection', FIELD_KIND.connection],
	['keep-alive', FIELD_KIND.connection],
	['proxy-connection', FIELD_KIND.connection],
	['transfer-encoding', FIELD_KIND.connection],
	['upgrade', FIELD_KIND.connection],
	['te', FIELD_KIND.te],
	['host', FIELD_KIND.host],
	['cookie', FIELD_KIND.cookie],
	['content-length', FIELD_KIND.contentLength],
	['expect', FIELD_KIND.expect],
	['trailer', FIELD_KIND.trailer],
]);

/** Number of bytes that HPACK adds to the length of a field's name and value (RFC 7541 §4.1, RFC 9113 §6.5.2). */
const FIELD_OVERHEAD_BYTES = 32;

/** A field, as stored in a table. */
export class DecodedField {
	readonly name: string;
	readonly value: string;
	/** The kind of the field: one of {@link FIELD_KIND}. */
	readonly kind: number;
	/** Size of the field, in bytes, as tables and limits count it: name, value and {@link FIELD_OVERHEAD_BYTES}. */
	readonly countedBytes: number;
	/** False if the value contains a control character, or starts or ends with whitespace (RFC 9113 §8.2.1). */
	readonly isValueValid: boolean;

	/** Name and value represent bytes as Latin-1. `kind` may be passed if the name's kind is already known. */
	constructor(name: string, value: string, kind: number = nameKind(name)) {
		this.name = name;
		this.value = value;
		this.kind = kind;
		this.countedBytes = name.length + value.length + FIELD_OVERHEAD_BYTES;
		this.isValueValid = isValidValue(value);
	}
}

/** Returns the kind of a field name: one of {@link FIELD_KIND}. */
export function nameKind(name: string): number {
	const knownKind = KIND_BY_NAME.get(name);
	if (knownKind !== undefined) return knownKind;
	const length = name.length;
	if (name.charCodeAt(0) === 58) return FIELD_KIND.unknownPseudo;
	if (length === 0) return FIELD_KIND.invalid;
	let classes = 0;
	for (let i = 0; i < length; i++) {
		const code = name.charCodeAt(i);
		const tokenClass = TOKEN_CLASSES[code]!;
		if (tokenClass === 0 || (code >= 65 && code <= 90)) return FIELD_KIND.invalid;
		classes |= tokenClass;
	}
	return (classes & (UNDERSCORE_CLASS | DOT_CLASS)) === 0 ? FIELD_KIND.regular : FIELD_KIND.confusable;
}

function isValidValue(value: string): boolean {
	const length = value.length;
	if (length === 0) return true;
	for (let i = 0; i < length; i++) if (FIELD_VALUE_CLASSES[value.charCodeAt(i)] === 0) return false;
	return !isBlank(value.charCodeAt(0)) && !isBlank(value.charCodeAt(length - 1));
}

function isBlank(code: number): boolean {
	return code === 32 || code === 9;
}

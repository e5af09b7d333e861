/** The form of a response in Redis: its head and body, compressed if that is worthwhile, and encrypted. */
import { constants, zstdCompress, zstdDecompress } from 'node:zlib';
import type { CachedHead } from '../../compiler/exchange/response-cache.ts';
import type { SealedValues } from './sealed-values.ts';

/** A response in Redis. */
export interface SharedRecord {
	/** The head of the response, in which `storedAt` is a time by the clock of Redis. */
	readonly head: CachedHead;
	/** ID of the last purge before the response was requested. */
	readonly position: string;
	readonly body: Buffer;
}

/** Incremented with every change of the format; records of other versions are ignored. */
const FORMAT_VERSION = 1;
const FLAG_COMPRESSED = 1;
/** Bytes of a record's header: version, flags, and length of the metadata. */
const HEADER_BYTES = 6;
/** Bodies with fewer bytes are not compressed. */
const MIN_COMPRESSED_BYTES = 1024;
/** A compressed body is used if its size is at most this fraction of the uncompressed size. */
const MAX_COMPRESSED_SHARE = 0.9;
const COMPRESSION_LEVEL = 1;

/** Encodes a response. `name` is the name under which it is stored: the response is readable only under the same name. */
export async function encodeRecord(
	{ head, position, body }: SharedRecord,
	name: string,
	sealedValues: SealedValues,
): Promise<Buffer> {
	const compressedBody = isWorthCompressing(head, body) ? await compress(body) : body;
	const isCompressed = compressedBody.byteLength <= body.byteLength * MAX_COMPRESSED_SHARE;
	const metadata = Buffer.from(JSON.stringify({ head, position, length: body.byteLength }), 'utf8');
	const header = Buffer.alloc(HEADER_BYTES);
	header.writeUInt8(FORMAT_VERSION, 0);
	header.writeUInt8(isCompressed ? FLAG_COMPRESSED : 0, 1);
	header.writeUInt32LE(metadata.byteLength, 2);
	return sealedValues.seal(name, Buffer.concat([header, metadata, isCompressed ? compressedBody : body]));
}

/** Decodes a response. Returns undefined if it cannot be decrypted with the keys of this machine, or has another form. */
export async function decodeRecord(
	sealed: Buffer,
	name: string,
	sealedValues: SealedValues,
): Promise<SharedRecord | undefined> {
	const bytes = sealedValues.open(name, sealed);
	if (bytes === undefined || bytes.byteLength < HEADER_BYTES || bytes.readUInt8(0) !== FORMAT_VERSION) return undefined;
	const bodyOffset = HEADER_BYTES + bytes.readUInt32LE(2);
	const metadata = parseMetadata(bytes.toString('utf8', HEADER_BYTES, bodyOffset));
	if (metadata === undefined) return undefined;
	const { head, position, length } = metadata;
	const storedBody = bytes.subarray(bodyOffset);
	const isCompressed = (bytes.readUInt8(1) & FLAG_COMPRESSED) !== 0;
	const body = isCompressed ? await decompress(storedBody, length) : storedBody;
	return body?.byteLength === length ? { head, position, body } : undefined;
}

interface RecordMetadata {
	readonly head: CachedHead;
	readonly position: string;
	readonly length: number;
}

/**
 * Parses the metadata of a record. Returns undefined if it has another form. Errors of `JSON.parse` must not leave this function:
 * they quote the text, which can contain fields of private responses, and would be logged.
 */
function parseMetadata(text: string): RecordMetadata | undefined {
	try {
		const metadata = JSON.parse(text) as RecordMetadata;
		const { head, position, length } = metadata;
		const hasLists = [head.fields, head.selecting, head.tags].every(list => Array.isArray(list));
		const isValid = hasLists && typeof head.storedAt === 'number' && typeof position === 'string';
		return isValid && Number.isInteger(length) ? metadata : undefined;
	} catch {
		return undefined;
	}
}

/** Reports whether compressing a body could be worthwhile. Bodies with a content coding are already compressed. */
function isWorthCompressing({ fields }: CachedHead, body: Buffer): boolean {
	if (body.byteLength < MIN_COMPRESSED_BYTES) return false;
	for (let i = 0; i < fields.length; i += 2) {
		if (fields[i]!.toLowerCase() === 'content-encoding') return false;
		if (fields[i]!.toLowerCase() === 'content-type' && /^(?:image\/(?!svg)|video\/|audio\/)/i.test(fields[i + 1]!))
			return false;
	}
	return true;
}

function compress(body: Buffer): Promise<Buffer> {
	return new Promise(resolve => {
		const params = { [constants.ZSTD_c_compressionLevel]: COMPRESSION_LEVEL };
		zstdCompress(body, { params }, (error, compressed) => resolve(error ? body : compressed));
	});
}

function decompress(body: Buffer, length: number): Promise<Buffer | undefined> {
	return new Promise(resolve => {
		zstdDecompress(body, { maxOutputLength: Math.max(1, length) }, (error, bytes) =>
			resolve(error ? undefined : bytes),
		);
	});
}

/** Byte ranges of a representation (RFC 9110 §14): parsing a Range field, and sending several ranges in one body. */
import { type Body, type BodySource, isStream } from '../../exchange/body.ts';

/** Bytes from `start` up to but not including `end`; never empty. */
export interface ByteRange {
	readonly start: number;
	readonly end: number;
}

/**
 * Maximum number of ranges in a request. A request with more ranges is answered in full, because each range costs a read, and
 * clients do not need more.
 */
const MAX_RANGES = 32;
/**
 * Minimum number of bytes between two ranges: closer ranges are merged, because the fields of another part would be longer than the
 * gap (RFC 9110 §15.3.7.2).
 */
const MIN_GAP_BYTES = 80;
const RANGE_SPEC = /^(?:(\d+)-(\d*)|-(\d+))$/;

/**
 * Parses a Range field for a representation of `size` bytes. Returns the ranges in the order requested, with adjacent and
 * nearly adjacent ones merged, or one of:
 * - `ignore`: answer in full. The unit is unknown, the field is malformed, the representation is empty, or the request is
 *   abusive (more than 32 ranges, more than two that overlap, or more bytes than the representation has).
 * - `unsatisfiable`: answer 416.
 */
export function parseRange(field: string, size: number): readonly ByteRange[] | 'ignore' | 'unsatisfiable' {
	const equalsIndex = field.indexOf('=');
	if (equalsIndex === -1 || field.slice(0, equalsIndex).trim().toLowerCase() !== 'bytes' || size === 0) return 'ignore';
	const requestedRanges: ByteRange[] = [];
	let specCount = 0;
	for (const part of field.slice(equalsIndex + 1).split(',', MAX_RANGES * 2 + 1)) {
		const specText = part.trim();
		if (specText === '') continue;
		specCount += 1;
		if (specCount > MAX_RANGES) return 'ignore';
		const match = RANGE_SPEC.exec(specText);
		if (!match) return 'ignore';
		let start: number;
		let end: number;
		if (match[3] !== undefined) {
			start = Math.max(0, size - Number(match[3]));
			end = size;
		} else {
			start = Number(match[1]);
			const lastByte = match[2] === '' ? Number.POSITIVE_INFINITY : Number(match[2]);
			if (lastByte < start) return 'ignore';
			end = Math.min(lastByte + 1, size);
		}
		if (start < end) requestedRanges.push({ start, end });
	}
	if (specCount === 0) return 'ignore';
	if (requestedRanges.length === 0) return 'unsatisfiable';
	if (requestedRanges.length === 1) return requestedRanges;
	if (isAbusiveRequest(requestedRanges, size)) return 'ignore';
	return mergeCloseRanges(requestedRanges);
}

function isAbusiveRequest(ranges: readonly ByteRange[], size: number): boolean {
	let requestedBytes = 0;
	let overlapCount = 0;
	for (const [i, range] of ranges.entries()) {
		requestedBytes += range.end - range.start;
		if (ranges.some((other, j) => j < i && other.start < range.end && range.start < other.end)) overlapCount += 1;
	}
	return requestedBytes > size || overlapCount > 2;
}

function mergeCloseRanges(ranges: readonly ByteRange[]): readonly ByteRange[] {
	const mergedRanges: ByteRange[] = [];
	for (const range of ranges) {
		let mergedRange = range;
		let insertIndex = mergedRanges.length;
		for (let i = mergedRanges.length - 1; i >= 0; i--) {
			const earlierRange = mergedRanges[i]!;
			if (earlierRange.start > mergedRange.end + MIN_GAP_BYTES || mergedRange.start > earlierRange.end + MIN_GAP_BYTES)
				continue;
			mergedRange = {
				start: Math.min(earlierRange.start, mergedRange.start),
				end: Math.max(earlierRange.end, mergedRange.end),
			};
			mergedRanges.splice(i, 1);
			insertIndex = i;
			// The merged range may also be close to ranges that have already been compared.
			i = mergedRanges.length;
		}
		mergedRanges.splice(insertIndex, 0, mergedRange);
	}
	return mergedRanges;
}

export function formatContentRange(range: ByteRange, size: number): string {
	return `bytes ${range.start}-${range.end - 1}/${size}`;
}

/** Returns a body with the bytes of one range. The file stays open when the body ends. */
export type RangeBody = (range: ByteRange) => Body;

/**
 * Returns a `multipart/byteranges` body (RFC 9110 §14.6) of known length. Calls `openRange` for each range in turn, and `closeFile`
 * exactly once: at the end of the body or when it is canceled.
 */
export function createMultipartBody(
	ranges: readonly ByteRange[],
	size: number,
	contentType: string | undefined,
	boundary: string,
	openRange: RangeBody,
	closeFile: () => void,
): BodySource {
	const partHeads = ranges.map((range, i) =>
		Buffer.from(
			`${i === 0 ? '' : '\r\n'}--${boundary}\r\n${contentType === undefined ? '' : `Content-Type: ${contentType}\r\n`}Content-Range: ${formatContentRange(range, size)}\r\n\r\n`,
			'latin1',
		),
	);
	const closingBoundary = Buffer.from(`\r\n--${boundary}--\r\n`, 'latin1');
	let totalLength = closingBoundary.length;
	for (const [i, range] of ranges.entries()) totalLength += partHeads[i]!.length + range.end - range.start;
	return new MultipartSource(totalLength, ranges, partHeads, closingBoundary, openRange, closeFile);
}

class MultipartSource implements BodySource {
	readonly length: number;
	readonly #ranges: readonly ByteRange[];
	readonly #partHeads: readonly Uint8Array[];
	readonly #closingBoundary: Uint8Array;
	readonly #openRange: RangeBody;
	readonly #closeFile: () => void;
	#partBody: BodySource | undefined = undefined;
	#nextIndex = 0;
	#state: 'head' | 'body' | 'tail' | 'done' = 'head';

	constructor(
		length: number,
		ranges: readonly ByteRange[],
		partHeads: readonly Uint8Array[],
		closingBoundary: Uint8Array,
		openRange: RangeBody,
		closeFile: () => void,
	) {
		this.length = length;
		this.#ranges = ranges;
		this.#partHeads = partHeads;
		this.#closingBoundary = closingBoundary;
		this.#openRange = openRange;
		this.#closeFile = closeFile;
	}

	onIdle(): void {
		this.#partBody?.onIdle?.();
	}

	pull(maxBytes?: number): Uint8Array | null | Promise<Uint8Array | null> {
		switch (this.#state) {
			case 'head':
				this.#state = 'body';
				return this.#partHeads[this.#nextIndex]!;
			case 'body':
				return this.#pullPart(maxBytes);
			case 'tail':
				this.#finish();
				return this.#closingBoundary;
			case 'done':
				return null;
		}
	}

	#pullPart(maxBytes: number | undefined): Uint8Array | null | Promise<Uint8Array | null> {
		if (this.#partBody === undefined) {
			const body = this.#openRange(this.#ranges[this.#nextIndex]!);
			if (!isStream(body)) {
				this.#advance();
				return typeof body === 'string' ? Buffer.from(body) : body === null ? this.pull() : body;
			}
			this.#partBody = body;
		}
		const bytes = this.#partBody.pull(maxBytes);
		if (bytes instanceof Promise) return bytes.then(nextBytes => nextBytes ?? this.#endPart());
		return bytes ?? this.#endPart();
	}

	#endPart(): Uint8Array | null | Promise<Uint8Array | null> {
		if (this.#state === 'done') return null;
		this.#partBody = undefined;
		this.#advance();
		return this.pull();
	}

	#advance(): void {
		this.#nextIndex += 1;
		this.#state = this.#nextIndex < this.#ranges.length ? 'head' : 'tail';
	}

	#finish(): void {
		if (this.#state === 'done') return;
		this.#state = 'done';
		this.#partBody = undefined;
		this.#closeFile();
	}

	cancel(reason?: unknown): void {
		this.#partBody?.cancel(reason);
		this.#finish();
	}
}

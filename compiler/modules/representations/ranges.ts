/** Byte ranges of a representation (RFC 9110 §14): parsing a Range field, and sending several ranges in one body. */
import { type Body, type BodySource, isStream } from '../../exchange/body.ts';

/** Bytes from `start` up to but not including `end`; never empty. */
export interface ByteRange {
	readonly start: number;
	readonly end: number;
}

/** Maximum ranges of a request: one with more is answered in full. Clients do not need more, and each costs a read and a part. */
const MAX_RANGES = 32;
/**
 * Minimum bytes between two ranges: closer ones are merged, because the fields of another part would be longer than the gap (RFC
 * 9110 §15.3.7.2).
 */
const SMALLEST_GAP = 80;
const SPEC = /^(?:(\d+)-(\d*)|-(\d+))$/;

/**
 * Parses a Range field for a representation of `size` bytes. Returns the ranges in the order requested, with adjacent and
 * nearly adjacent ones merged, or one of:
 * - `ignore`: answer in full. The unit is unknown, the field is malformed, the representation is empty, or the request is
 *   abusive (more than 32 ranges, more than two that overlap, or more bytes than the representation has).
 * - `unsatisfiable`: answer 416.
 */
export function parseRange(field: string, size: number): readonly ByteRange[] | 'ignore' | 'unsatisfiable' {
	const equals = field.indexOf('=');
	if (equals === -1 || field.slice(0, equals).trim().toLowerCase() !== 'bytes' || size === 0) return 'ignore';
	const asked: ByteRange[] = [];
	let specs = 0;
	for (const part of field.slice(equals + 1).split(',', MAX_RANGES * 2 + 1)) {
		const text = part.trim();
		if (text === '') continue;
		specs += 1;
		if (specs > MAX_RANGES) return 'ignore';
		const match = SPEC.exec(text);
		if (!match) return 'ignore';
		let start: number;
		let end: number;
		if (match[3] !== undefined) {
			start = Math.max(0, size - Number(match[3]));
			end = size;
		} else {
			start = Number(match[1]);
			const last = match[2] === '' ? Number.POSITIVE_INFINITY : Number(match[2]);
			if (last < start) return 'ignore';
			end = Math.min(last + 1, size);
		}
		if (start < end) asked.push({ start, end });
	}
	if (specs === 0) return 'ignore';
	if (asked.length === 0) return 'unsatisfiable';
	if (asked.length === 1) return asked;
	if (isAbusive(asked, size)) return 'ignore';
	return coalesce(asked);
}

function isAbusive(ranges: readonly ByteRange[], size: number): boolean {
	let bytes = 0;
	let overlapping = 0;
	for (const [i, range] of ranges.entries()) {
		bytes += range.end - range.start;
		if (ranges.some((other, j) => j < i && other.start < range.end && range.start < other.end)) overlapping += 1;
	}
	return bytes > size || overlapping > 2;
}

function coalesce(ranges: readonly ByteRange[]): readonly ByteRange[] {
	const result: ByteRange[] = [];
	for (const range of ranges) {
		let merged = range;
		let place = result.length;
		for (let i = result.length - 1; i >= 0; i--) {
			const other = result[i]!;
			if (other.start > merged.end + SMALLEST_GAP || merged.start > other.end + SMALLEST_GAP) continue;
			merged = { start: Math.min(other.start, merged.start), end: Math.max(other.end, merged.end) };
			result.splice(i, 1);
			place = i;
			// After the merge, the range may also be close to earlier ones.
			i = result.length;
		}
		result.splice(place, 0, merged);
	}
	return result;
}

/** Returns the value of `Content-Range` for one range. */
export function contentRange(range: ByteRange, size: number): string {
	return `bytes ${range.start}-${range.end - 1}/${size}`;
}

/** Returns the bytes of one range; the file stays open. */
export type RangeBody = (range: ByteRange) => Body;

/**
 * A `multipart/byteranges` body (RFC 9110 §14.6) of known length. `open` is called for each part in turn; `close` exactly once,
 * at the end or on cancellation.
 */
export function multipartRanges(
	ranges: readonly ByteRange[],
	size: number,
	type: string | undefined,
	boundary: string,
	open: RangeBody,
	close: () => void,
): BodySource {
	const heads = ranges.map((range, i) =>
		Buffer.from(
			`${i === 0 ? '' : '\r\n'}--${boundary}\r\n${type === undefined ? '' : `Content-Type: ${type}\r\n`}Content-Range: ${contentRange(range, size)}\r\n\r\n`,
			'latin1',
		),
	);
	const tail = Buffer.from(`\r\n--${boundary}--\r\n`, 'latin1');
	let length = tail.length;
	for (const [i, range] of ranges.entries()) length += heads[i]!.length + range.end - range.start;
	return new MultipartSource(length, ranges, heads, tail, open, close);
}

class MultipartSource implements BodySource {
	readonly length: number;
	readonly #ranges: readonly ByteRange[];
	readonly #heads: readonly Uint8Array[];
	readonly #tail: Uint8Array;
	readonly #open: RangeBody;
	readonly #close: () => void;
	#part: BodySource | undefined = undefined;
	#next = 0;
	#state: 'head' | 'body' | 'tail' | 'done' = 'head';

	constructor(
		length: number,
		ranges: readonly ByteRange[],
		heads: readonly Uint8Array[],
		tail: Uint8Array,
		open: RangeBody,
		close: () => void,
	) {
		this.length = length;
		this.#ranges = ranges;
		this.#heads = heads;
		this.#tail = tail;
		this.#open = open;
		this.#close = close;
	}

	onIdle(): void {
		this.#part?.onIdle?.();
	}

	pull(most?: number): Uint8Array | null | Promise<Uint8Array | null> {
		switch (this.#state) {
			case 'head':
				this.#state = 'body';
				return this.#heads[this.#next]!;
			case 'body':
				return this.#pullPart(most);
			case 'tail':
				this.#finish();
				return this.#tail;
			case 'done':
				return null;
		}
	}

	#pullPart(most: number | undefined): Uint8Array | null | Promise<Uint8Array | null> {
		if (this.#part === undefined) {
			const body = this.#open(this.#ranges[this.#next]!);
			if (!isStream(body)) {
				this.#advance();
				return typeof body === 'string' ? Buffer.from(body) : body === null ? this.pull() : body;
			}
			this.#part = body;
		}
		const bytes = this.#part.pull(most);
		if (bytes instanceof Promise) return bytes.then(some => some ?? this.#partEnded());
		return bytes ?? this.#partEnded();
	}

	#partEnded(): Uint8Array | null | Promise<Uint8Array | null> {
		if (this.#state === 'done') return null;
		this.#part = undefined;
		this.#advance();
		return this.pull();
	}

	#advance(): void {
		this.#next += 1;
		this.#state = this.#next < this.#ranges.length ? 'head' : 'tail';
	}

	#finish(): void {
		if (this.#state === 'done') return;
		this.#state = 'done';
		this.#part = undefined;
		this.#close();
	}

	cancel(reason?: unknown): void {
		this.#part?.cancel(reason);
		this.#finish();
	}
}

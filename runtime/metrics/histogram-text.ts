/**
 * The lines of one histogram as bytes, kept between scrapes: what changes is digits, and they are written over those that
 * stand there. Making thousands of lines anew would take most of a scrape's time.
 */

const POWERS: readonly number[] = Array.from({ length: 17 }, (_, digits) => 10 ** digits);
const ZERO = 48;

/** Text of one histogram: its buckets, the sum, the count. */
export class HistogramText {
	/** Text before each number: one for each bucket, for the sum, and for the count. */
	readonly #heads: readonly string[];
	/** What the text says. */
	readonly #values: Float64Array;
	/** Where each number ends in the text, and how many digits it has; 0 for one that is not made of digits alone. */
	readonly #ends: Uint32Array;
	readonly #widths: Uint8Array;
	#bytes: Buffer | undefined;

	/** `labels` without braces, '' for none; `bounds` as `le="1"`, `+Inf` included. */
	constructor(name: string, labels: string, bounds: readonly string[]) {
		const before = labels === '' ? `${name}_bucket{` : `${name}_bucket{${labels},`;
		const braces = labels === '' ? '' : `{${labels}}`;
		this.#heads = [...bounds.map(bound => `${before}${bound}} `), `${name}_sum${braces} `, `${name}_count${braces} `];
		this.#values = new Float64Array(this.#heads.length);
		this.#ends = new Uint32Array(this.#heads.length);
		this.#widths = new Uint8Array(this.#heads.length);
	}

	/** The lines for counts of buckets, each without those before it, followed by the sum of values. Valid until the next call. */
	lines(counts: ArrayLike<number>): Buffer {
		const buckets = this.#heads.length - 2;
		let fits = this.#bytes !== undefined;
		let count = 0;
		for (let i = 0; i < buckets; i++) {
			count += counts[i]!;
			fits = this.#put(i, count) && fits;
		}
		fits = this.#put(buckets, counts[buckets]!) && fits;
		fits = this.#put(buckets + 1, count) && fits;
		if (!fits) this.#bytes = this.#made();
		return this.#bytes!;
	}

	/** Writes a number over the one that stands there; false when it needs another room. */
	#put(at: number, value: number): boolean {
		if (this.#values[at] === value) return true;
		this.#values[at] = value;
		const bytes = this.#bytes;
		const width = this.#widths[at]!;
		if (bytes === undefined || width === 0 || !Number.isInteger(value)) return false;
		if (value >= POWERS[width]! || (width > 1 && value < POWERS[width - 1]!) || value < 0) return false;
		let rest = value;
		for (let place = this.#ends[at]! - 1; place >= this.#ends[at]! - width; place--) {
			const tenth = Math.floor(rest / 10);
			bytes[place] = ZERO + (rest - tenth * 10);
			rest = tenth;
		}
		return true;
	}

	#made(): Buffer {
		let text = '';
		let end = 0;
		for (const [at, head] of this.#heads.entries()) {
			const value = this.#values[at]!;
			const number = numberText(value);
			text += head + number;
			end += Buffer.byteLength(head) + number.length;
			this.#ends[at] = end++;
			this.#widths[at] = /^\d{1,16}$/.test(number) ? number.length : 0;
			text += '\n';
		}
		return Buffer.from(text);
	}
}

/** A value as both formats write it. */
export function numberText(value: number): string {
	if (Number.isFinite(value)) return String(value);
	return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
}

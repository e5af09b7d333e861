/**
 * The exposition lines of a histogram, as bytes that are kept between scrapes. Only digits change, and they are overwritten in
 * place. Formatting thousands of lines anew would dominate the time of a scrape.
 */

const POWERS: readonly number[] = Array.from({ length: 17 }, (_, digits) => 10 ** digits);
const ZERO = 48;
/** Number of decimals of a fraction (nanoseconds). It is fixed, so that decimals can be overwritten in place. */
const DECIMALS = 9;

/** The text of one histogram: its buckets, sum and count. */
export class HistogramText {
	/** The text before each number. The numbers are those of the buckets, the sum and the count. */
	readonly #heads: readonly string[];
	/** The numbers that the text currently shows. */
	readonly #values: Float64Array;
	/** For each number: the offset in the text at which its integer digits end. */
	readonly #ends: Uint32Array;
	/** For each number, how many integer digits it has; 0 for a number without digits. */
	readonly #widths: Uint8Array;
	/** The number of decimals of each number. */
	readonly #decimals: Uint8Array;
	#bytes: Buffer | undefined;

	/** `labels` is the text between the braces, '' for none. Each of `bounds` is the text of a label, such as `le="1"`, `+Inf` included. */
	constructor(name: string, labels: string, bounds: readonly string[]) {
		const before = labels === '' ? `${name}_bucket{` : `${name}_bucket{${labels},`;
		const braces = labels === '' ? '' : `{${labels}}`;
		this.#heads = [...bounds.map(bound => `${before}${bound}} `), `${name}_sum${braces} `, `${name}_count${braces} `];
		this.#values = new Float64Array(this.#heads.length);
		this.#ends = new Uint32Array(this.#heads.length);
		this.#widths = new Uint8Array(this.#heads.length);
		this.#decimals = new Uint8Array(this.#heads.length);
	}

	/** Returns the lines for these bucket counts (not cumulative) followed by the sum of the values. Valid until the next call. */
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

	/** Overwrites a number in place. Returns false if its number of digits differs. */
	#put(at: number, value: number): boolean {
		if (this.#values[at] === value) return true;
		this.#values[at] = value;
		const bytes = this.#bytes;
		const width = this.#widths[at]!;
		if (bytes === undefined || width === 0) return false;
		let whole = value;
		if (Number.isInteger(value) === (this.#decimals[at] === 1)) return false;
		if (this.#decimals[at] === 1) {
			const [before, after] = parted(value);
			whole = before;
			putDigits(bytes, after, this.#ends[at]! + 1 + DECIMALS, DECIMALS);
		}
		if (!(whole >= 0 && whole < POWERS[width]! && (width === 1 || whole >= POWERS[width - 1]!))) return false;
		putDigits(bytes, whole, this.#ends[at]!, width);
		return true;
	}

	#made(): Buffer {
		let text = '';
		let end = 0;
		for (const [at, head] of this.#heads.entries()) {
			const value = this.#values[at]!;
			const number = fixedText(value);
			text += `${head}${number}\n`;
			const [, whole = '', decimals] = DIGITS.exec(number) ?? [];
			const width = whole.length;
			end += Buffer.byteLength(head);
			this.#ends[at] = end + width;
			this.#widths[at] = width;
			this.#decimals[at] = decimals === undefined ? 0 : 1;
			end += number.length + 1;
		}
		return Buffer.from(text);
	}
}

const DIGITS = /^(\d{1,16})(\.\d{9})?$/;

/** Formats a value. A fraction gets a fixed number of decimals. */
function fixedText(value: number): string {
	if (Number.isInteger(value) || !(value > 0 && value < 1e9)) return formatMetricValue(value);
	const [whole, decimals] = parted(value);
	return `${whole}.${String(decimals).padStart(DECIMALS, '0')}`;
}

/** Splits a value into its integer part and its decimals, which are returned as an integer. */
function parted(value: number): [whole: number, decimals: number] {
	const whole = Math.floor(value);
	const decimals = Math.round((value - whole) * 1e9);
	return decimals === 1e9 ? [whole + 1, 0] : [whole, decimals];
}

/** Writes an integer with exactly this many digits, ending before the offset `end`. */
function putDigits(bytes: Buffer, value: number, end: number, digits: number): void {
	let rest = value;
	for (let place = end - 1; place >= end - digits; place--) {
		const tenth = Math.floor(rest / 10);
		bytes[place] = ZERO + (rest - tenth * 10);
		rest = tenth;
	}
}

/** Formats a value; the text is valid in both exposition formats. */
export function formatMetricValue(value: number): string {
	if (Number.isFinite(value)) return String(value);
	return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
}

/**
 * The exposition lines of a histogram, as bytes that are kept between scrapes. Only digits change, and they are overwritten in
 * place. Formatting thousands of lines anew would dominate the time of a scrape.
 */

const POWERS_OF_TEN: readonly number[] = Array.from({ length: 17 }, (_, digits) => 10 ** digits);
const DIGIT_ZERO = 48;
/** Number of decimals of a fraction (nanoseconds). It is fixed, so that decimals can be overwritten in place. */
const DECIMALS = 9;

/** The text of one histogram: its buckets, sum and count. */
export class HistogramText {
	/** The text before each number. The numbers are those of the buckets, the sum and the count. */
	readonly #prefixes: readonly string[];
	/** The numbers that the text currently shows. */
	readonly #values: Float64Array;
	/** For each number, the offset in the text at which its integer digits end. */
	readonly #integerEnds: Uint32Array;
	/** For each number, how many integer digits it has; 0 for a number without digits. */
	readonly #widths: Uint8Array;
	/** The number of decimals that each number has. */
	readonly #decimals: Uint8Array;
	#bytes: Buffer | undefined;

	/**
	 * @param labels The text between the braces, or '' if there are no labels.
	 * @param bounds The labels of the buckets, such as `le="1"`. The last one is that of `+Inf`.
	 */
	constructor(name: string, labels: string, bounds: readonly string[]) {
		const bucketPrefix = labels === '' ? `${name}_bucket{` : `${name}_bucket{${labels},`;
		const braces = labels === '' ? '' : `{${labels}}`;
		this.#prefixes = [
			...bounds.map(bound => `${bucketPrefix}${bound}} `),
			`${name}_sum${braces} `,
			`${name}_count${braces} `,
		];
		this.#values = new Float64Array(this.#prefixes.length);
		this.#integerEnds = new Uint32Array(this.#prefixes.length);
		this.#widths = new Uint8Array(this.#prefixes.length);
		this.#decimals = new Uint8Array(this.#prefixes.length);
	}

	/** Returns the lines for these bucket counts (not cumulative) followed by the sum of the values. Valid until the next call. */
	lines(counts: ArrayLike<number>): Buffer {
		const buckets = this.#prefixes.length - 2;
		let isCurrent = this.#bytes !== undefined;
		let count = 0;
		for (let i = 0; i < buckets; i++) {
			count += counts[i]!;
			isCurrent = this.#overwrite(i, count) && isCurrent;
		}
		isCurrent = this.#overwrite(buckets, counts[buckets]!) && isCurrent;
		isCurrent = this.#overwrite(buckets + 1, count) && isCurrent;
		if (!isCurrent) this.#bytes = this.#format();
		return this.#bytes!;
	}

	/** Overwrites a number in place. Returns false if its number of digits differs. */
	#overwrite(index: number, value: number): boolean {
		if (this.#values[index] === value) return true;
		this.#values[index] = value;
		const bytes = this.#bytes;
		const width = this.#widths[index]!;
		if (bytes === undefined || width === 0) return false;
		let integer = value;
		if (Number.isInteger(value) === (this.#decimals[index] === 1)) return false;
		if (this.#decimals[index] === 1) {
			const [integerPart, decimalPart] = splitValue(value);
			integer = integerPart;
			putDigits(bytes, decimalPart, this.#integerEnds[index]! + 1 + DECIMALS, DECIMALS);
		}
		if (!(integer >= 0 && integer < POWERS_OF_TEN[width]! && (width === 1 || integer >= POWERS_OF_TEN[width - 1]!)))
			return false;
		putDigits(bytes, integer, this.#integerEnds[index]!, width);
		return true;
	}

	#format(): Buffer {
		let text = '';
		let offset = 0;
		for (const [index, prefix] of this.#prefixes.entries()) {
			const value = this.#values[index]!;
			const number = fixedText(value);
			text += `${prefix}${number}\n`;
			const [, integer = '', decimals] = DIGITS.exec(number) ?? [];
			const width = integer.length;
			offset += Buffer.byteLength(prefix);
			this.#integerEnds[index] = offset + width;
			this.#widths[index] = width;
			this.#decimals[index] = decimals === undefined ? 0 : 1;
			offset += number.length + 1;
		}
		return Buffer.from(text);
	}
}

const DIGITS = /^(\d{1,16})(\.\d{9})?$/;

/** Formats a value. A fraction gets a fixed number of decimals. */
function fixedText(value: number): string {
	if (Number.isInteger(value) || !(value > 0 && value < 1e9)) return formatMetricValue(value);
	const [integer, decimals] = splitValue(value);
	return `${integer}.${String(decimals).padStart(DECIMALS, '0')}`;
}

/** Splits a value into its integer part and its decimals, which are returned as an integer. */
function splitValue(value: number): [whole: number, decimals: number] {
	const integer = Math.floor(value);
	const decimals = Math.round((value - integer) * 1e9);
	return decimals === 1e9 ? [integer + 1, 0] : [integer, decimals];
}

/** Writes an integer with exactly this many digits, ending before the offset `end`. */
function putDigits(bytes: Buffer, value: number, end: number, digits: number): void {
	let remaining = value;
	for (let offset = end - 1; offset >= end - digits; offset--) {
		const tenth = Math.floor(remaining / 10);
		bytes[offset] = DIGIT_ZERO + (remaining - tenth * 10);
		remaining = tenth;
	}
}

/** Formats a value; the text is valid in both exposition formats. */
export function formatMetricValue(value: number): string {
	if (Number.isFinite(value)) return String(value);
	return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
}

/**
 * The exposition lines of a histogram, as bytes that are kept between scrapes. Only digits change, and they are overwritten in
 * place. Formatting thousands of lines anew would dominate the time of a scrape.
 */

const POWERS_OF_TEN: readonly number[] = Array.from({ length: 17 }, (_, digits) => 10 ** digits);
const DIGIT_ZERO = 48;
/** Number of decimals of a fraction (nanoseconds). It is fixed, so that decimals can be overwritten in place. */
const DECIMAL_COUNT = 9;

/** The text of one histogram: its buckets, sum and count. */
export class HistogramText {
	/** The text before each number. The numbers are those of the buckets, the sum and the count. */
	readonly #prefixes: readonly string[];
	/** The numbers that the text currently shows. */
	readonly #shownValues: Float64Array;
	/** For each number, the offset in the text at which its integer digits end. */
	readonly #integerEnds: Uint32Array;
	/** For each number, how many integer digits it has; 0 if its text is not plain decimal, such as `NaN`. */
	readonly #integerDigitCounts: Uint8Array;
	/** For each number, 1 if it has decimals, otherwise 0. */
	readonly #hasDecimals: Uint8Array;
	#textBytes: Buffer | undefined;

	/**
	 * @param labels The text between the braces, or '' if there are no labels.
	 * @param bounds The labels of the buckets, such as `le="1"`, with that of the `+Inf` bucket last.
	 */
	constructor(name: string, labels: string, bounds: readonly string[]) {
		const bucketPrefix = labels === '' ? `${name}_bucket{` : `${name}_bucket{${labels},`;
		const braces = labels === '' ? '' : `{${labels}}`;
		this.#prefixes = [
			...bounds.map(bound => `${bucketPrefix}${bound}} `),
			`${name}_sum${braces} `,
			`${name}_count${braces} `,
		];
		this.#shownValues = new Float64Array(this.#prefixes.length);
		this.#integerEnds = new Uint32Array(this.#prefixes.length);
		this.#integerDigitCounts = new Uint8Array(this.#prefixes.length);
		this.#hasDecimals = new Uint8Array(this.#prefixes.length);
	}

	/** Returns the lines for these bucket counts (not cumulative) followed by the sum of the values. Valid until the next call. */
	renderLines(counts: ArrayLike<number>): Buffer {
		const bucketCount = this.#prefixes.length - 2;
		let isCurrent = this.#textBytes !== undefined;
		let totalCount = 0;
		for (let i = 0; i < bucketCount; i++) {
			totalCount += counts[i]!;
			isCurrent = this.#overwriteNumber(i, totalCount) && isCurrent;
		}
		isCurrent = this.#overwriteNumber(bucketCount, counts[bucketCount]!) && isCurrent;
		isCurrent = this.#overwriteNumber(bucketCount + 1, totalCount) && isCurrent;
		if (!isCurrent) this.#textBytes = this.#formatText();
		return this.#textBytes!;
	}

	/** Overwrites a number in place. Returns false if its number of digits differs. */
	#overwriteNumber(index: number, value: number): boolean {
		if (this.#shownValues[index] === value) return true;
		this.#shownValues[index] = value;
		const bytes = this.#textBytes;
		const digitCount = this.#integerDigitCounts[index]!;
		if (bytes === undefined || digitCount === 0) return false;
		let integer = value;
		if (Number.isInteger(value) === (this.#hasDecimals[index] === 1)) return false;
		if (this.#hasDecimals[index] === 1) {
			const [integerPart, decimalPart] = splitValue(value);
			integer = integerPart;
			putDigits(bytes, decimalPart, this.#integerEnds[index]! + 1 + DECIMAL_COUNT, DECIMAL_COUNT);
		}
		if (
			!(
				integer >= 0 &&
				integer < POWERS_OF_TEN[digitCount]! &&
				(digitCount === 1 || integer >= POWERS_OF_TEN[digitCount - 1]!)
			)
		)
			return false;
		putDigits(bytes, integer, this.#integerEnds[index]!, digitCount);
		return true;
	}

	#formatText(): Buffer {
		let linesText = '';
		let offset = 0;
		for (const [index, prefix] of this.#prefixes.entries()) {
			const value = this.#shownValues[index]!;
			const numberText = formatFixed(value);
			linesText += `${prefix}${numberText}\n`;
			const [, integer = '', decimals] = FIXED_NUMBER_PATTERN.exec(numberText) ?? [];
			const digitCount = integer.length;
			offset += Buffer.byteLength(prefix);
			this.#integerEnds[index] = offset + digitCount;
			this.#integerDigitCounts[index] = digitCount;
			this.#hasDecimals[index] = decimals === undefined ? 0 : 1;
			offset += numberText.length + 1;
		}
		return Buffer.from(linesText);
	}
}

const FIXED_NUMBER_PATTERN = /^(\d{1,16})(\.\d{9})?$/;

/** Formats a value. A fraction gets a fixed number of decimals. */
function formatFixed(value: number): string {
	if (Number.isInteger(value) || !(value > 0 && value < 1e9)) return formatMetricValue(value);
	const [integer, decimals] = splitValue(value);
	return `${integer}.${String(decimals).padStart(DECIMAL_COUNT, '0')}`;
}

/** Splits a value into its integer part and its decimals, which are returned as an integer. */
function splitValue(value: number): [whole: number, decimals: number] {
	const integer = Math.floor(value);
	const decimals = Math.round((value - integer) * 1e9);
	return decimals === 1e9 ? [integer + 1, 0] : [integer, decimals];
}

/** Writes an integer with exactly this many digits, ending before the offset `end`. */
function putDigits(bytes: Buffer, value: number, end: number, digitCount: number): void {
	let remainingValue = value;
	for (let offset = end - 1; offset >= end - digitCount; offset--) {
		const tenth = Math.floor(remainingValue / 10);
		bytes[offset] = DIGIT_ZERO + (remainingValue - tenth * 10);
		remainingValue = tenth;
	}
}

/** Formats a value; the text is valid in both exposition formats. */
export function formatMetricValue(value: number): string {
	if (Number.isFinite(value)) return String(value);
	return Number.isNaN(value) ? 'NaN' : value > 0 ? '+Inf' : '-Inf';
}

/** Formats the modification time of a file as an HTTP-date, and together with its size as an entity tag. */

const DIGIT_BASE = 36;
/**
 * Number of values that six base-36 digits can have. A time in nanoseconds is too large for a JavaScript number, so its six
 * lowest digits and the digits above them are computed separately.
 */
const LOWER_VALUE_COUNT = DIGIT_BASE ** 6;
/** All pairs of base-36 digits, by value. */
const DIGIT_PAIRS: readonly string[] = Array.from({ length: DIGIT_BASE ** 2 }, (_, index) =>
	index.toString(DIGIT_BASE).padStart(2, '0'),
);
/**
 * Maximum number of cached seconds; a power of 2. There is one entry for each second in which files were modified, and the files of
 * a folder are usually written within a few seconds.
 */
const MAX_CACHED_SECONDS = 256;

/** A second and its formatted parts. */
interface FormattedSecond {
	/** Seconds since 1970. */
	readonly seconds: number;
	/** The time as an HTTP-date (RFC 9110 §5.6.7). */
	readonly date: string;
	/**
	 * The start of the second, in nanoseconds since 1970, is split into its six lower base-36 digits (`lower`) and the digits above
	 * them (`upper`). `upperText` is `upper` in base 36 after a quotation mark.
	 */
	readonly upper: number;
	readonly upperText: string;
	readonly lower: number;
}

/** Formats the `Last-Modified` and `ETag` of one file server's files. Caches the text of recent seconds and of the last size. */
export class FileTimes {
	readonly #formattedSeconds: (FormattedSecond | undefined)[] = new Array(MAX_CACHED_SECONDS).fill(undefined);
	#lastSize = -1;
	#lastSizeText = '';

	/** Returns the HTTP-date of whole seconds since 1970. */
	date(seconds: number): string {
		return this.#formatSecond(seconds).date;
	}

	/**
	 * Returns the entity tag, with its quotes: the modification time in nanoseconds since 1970 and the size in bytes, both in base
	 * 36.
	 */
	entityTag(seconds: number, nanoseconds: number, size: number): string {
		if (size !== this.#lastSize) {
			this.#lastSize = size;
			this.#lastSizeText = `-${size.toString(DIGIT_BASE)}"`;
		}
		const formattedSecond = this.#formatSecond(seconds);
		const lowerPart = formattedSecond.lower + nanoseconds;
		// Times before 1970 and in the first two seconds of 1970 have no upper digits, so they are formatted as one number.
		if (formattedSecond.upper <= 0)
			return `"${toNanoseconds(seconds, nanoseconds).toString(DIGIT_BASE)}${this.#lastSizeText}`;
		if (lowerPart >= LOWER_VALUE_COUNT)
			return `"${(formattedSecond.upper + 1).toString(DIGIT_BASE)}${formatLowerDigits(lowerPart - LOWER_VALUE_COUNT)}${this.#lastSizeText}`;
		return formattedSecond.upperText + formatLowerDigits(lowerPart) + this.#lastSizeText;
	}

	#formatSecond(seconds: number): FormattedSecond {
		const slotIndex = seconds & (MAX_CACHED_SECONDS - 1);
		const cachedSecond = this.#formattedSeconds[slotIndex];
		if (cachedSecond !== undefined && cachedSecond.seconds === seconds) return cachedSecond;
		const nanoseconds = toNanoseconds(seconds, 0);
		const upperPart = Number(nanoseconds / BigInt(LOWER_VALUE_COUNT));
		const formatted: FormattedSecond = {
			seconds,
			date: new Date(seconds * 1000).toUTCString(),
			upper: upperPart,
			upperText: `"${upperPart.toString(DIGIT_BASE)}`,
			lower: Number(nanoseconds % BigInt(LOWER_VALUE_COUNT)),
		};
		this.#formattedSeconds[slotIndex] = formatted;
		return formatted;
	}
}

function toNanoseconds(seconds: number, nanoseconds: number): bigint {
	return BigInt(seconds) * 1_000_000_000n + BigInt(nanoseconds);
}

function formatLowerDigits(lowerPart: number): string {
	const firstPair = Math.floor(lowerPart / DIGIT_BASE ** 4);
	const remainder = lowerPart - firstPair * DIGIT_BASE ** 4;
	const secondPair = Math.floor(remainder / DIGIT_BASE ** 2);
	return DIGIT_PAIRS[firstPair]! + DIGIT_PAIRS[secondPair]! + DIGIT_PAIRS[remainder - secondPair * DIGIT_BASE ** 2]!;
}

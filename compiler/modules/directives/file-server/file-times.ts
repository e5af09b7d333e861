/** Formats the modification time of a file as an HTTP-date, and together with its size as an entity tag. */

const BASE = 36;
/**
 * Number of values of the six lower digits of a time in nanoseconds. A time is formatted in two parts, because it is too large for
 * a single JavaScript number.
 */
const LOWER_RANGE = BASE ** 6;
/** All pairs of base-36 digits, by value. */
const DIGIT_PAIRS: readonly string[] = Array.from({ length: BASE ** 2 }, (_, index) =>
	index.toString(BASE).padStart(2, '0'),
);
/**
 * Maximum number of cached seconds; a power of 2. There is one entry for each second in which files were modified, and the files of
 * a folder are usually written within a few seconds.
 */
const CACHE_SIZE = 256;

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

/** Formats modification times for one file server. Caches the text for recent seconds and for the last size. */
export class FileTimes {
	readonly #formattedSeconds: (FormattedSecond | undefined)[] = new Array(CACHE_SIZE).fill(undefined);
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
			this.#lastSizeText = `-${size.toString(BASE)}"`;
		}
		const formattedSecond = this.#formatSecond(seconds);
		const lowerPart = formattedSecond.lower + nanoseconds;
		// Times before 1970 and in the first two seconds of 1970 have no upper digits, so they are formatted as one number.
		if (formattedSecond.upper <= 0)
			return `"${toNanoseconds(seconds, nanoseconds).toString(BASE)}${this.#lastSizeText}`;
		if (lowerPart >= LOWER_RANGE)
			return `"${(formattedSecond.upper + 1).toString(BASE)}${formatLowerDigits(lowerPart - LOWER_RANGE)}${this.#lastSizeText}`;
		return formattedSecond.upperText + formatLowerDigits(lowerPart) + this.#lastSizeText;
	}

	#formatSecond(seconds: number): FormattedSecond {
		const slotIndex = seconds & (CACHE_SIZE - 1);
		const cached = this.#formattedSeconds[slotIndex];
		if (cached !== undefined && cached.seconds === seconds) return cached;
		const nanoseconds = toNanoseconds(seconds, 0);
		const upperPart = Number(nanoseconds / BigInt(LOWER_RANGE));
		const formatted: FormattedSecond = {
			seconds,
			date: new Date(seconds * 1000).toUTCString(),
			upper: upperPart,
			upperText: `"${upperPart.toString(BASE)}`,
			lower: Number(nanoseconds % BigInt(LOWER_RANGE)),
		};
		this.#formattedSeconds[slotIndex] = formatted;
		return formatted;
	}
}

function toNanoseconds(seconds: number, nanoseconds: number): bigint {
	return BigInt(seconds) * 1_000_000_000n + BigInt(nanoseconds);
}

function formatLowerDigits(lowerPart: number): string {
	const firstPair = Math.floor(lowerPart / BASE ** 4);
	const remainder = lowerPart - firstPair * BASE ** 4;
	const secondPair = Math.floor(remainder / BASE ** 2);
	return DIGIT_PAIRS[firstPair]! + DIGIT_PAIRS[secondPair]! + DIGIT_PAIRS[remainder - secondPair * BASE ** 2]!;
}

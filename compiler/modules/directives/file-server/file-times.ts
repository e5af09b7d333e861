/** Formats a file's modification time: as an HTTP-date, and as an entity tag of time and size. */

const BASE = 36;
/** A tag's time is formatted in two parts, because in nanoseconds it exceeds the precision of a number. */
const LOWER = BASE ** 6;
/** All pairs of base-36 digits. */
const PAIRS: readonly string[] = Array.from({ length: BASE ** 2 }, (_, n) => n.toString(BASE).padStart(2, '0'));
/**
 * Maximum number of cached entries. There is one per second of modification, and the files of a folder are usually written within a
 * few seconds.
 */
const REMEMBERED = 256;

/** A formatted second. */
interface Second {
	/** Seconds since 1970. */
	readonly seconds: number;
	/** The time as an HTTP-date (RFC 9110 §5.6.7). */
	readonly date: string;
	/**
	 * The second in nanoseconds, in base 36: the upper digits, as a number and as text after a quote, and the six lower digits as a
	 * number.
	 */
	readonly upper: number;
	readonly text: string;
	readonly lower: number;
}

/** Formats times for one file server, and caches what files of the same second or size have in common. */
export class FileTimes {
	readonly #known: (Second | undefined)[] = new Array(REMEMBERED).fill(undefined);
	#size = -1;
	#sizeText = '';

	/** Returns the HTTP-date of whole seconds since 1970. */
	date(seconds: number): string {
		return this.#second(seconds).date;
	}

	/**
	 * Returns the entity tag, with its quotes: the modification time in nanoseconds since 1970 and the size in bytes, both in base
	 * 36.
	 */
	tag(seconds: number, nanoseconds: number, size: number): string {
		if (size !== this.#size) {
			this.#size = size;
			this.#sizeText = `-${size.toString(BASE)}"`;
		}
		const second = this.#second(seconds);
		const lower = second.lower + nanoseconds;
		// Tags of times before 1970, and in its first two seconds, are computed in full.
		if (second.upper <= 0) return `"${wholeTime(seconds, nanoseconds).toString(BASE)}${this.#sizeText}`;
		if (lower >= LOWER) return `"${(second.upper + 1).toString(BASE)}${lowerDigits(lower - LOWER)}${this.#sizeText}`;
		return second.text + lowerDigits(lower) + this.#sizeText;
	}

	#second(seconds: number): Second {
		const slot = seconds & (REMEMBERED - 1);
		const known = this.#known[slot];
		if (known !== undefined && known.seconds === seconds) return known;
		const whole = wholeTime(seconds, 0);
		const upper = Number(whole / BigInt(LOWER));
		const made: Second = {
			seconds,
			date: new Date(seconds * 1000).toUTCString(),
			upper,
			text: `"${upper.toString(BASE)}`,
			lower: Number(whole % BigInt(LOWER)),
		};
		this.#known[slot] = made;
		return made;
	}
}

function wholeTime(seconds: number, nanoseconds: number): bigint {
	return BigInt(seconds) * 1_000_000_000n + BigInt(nanoseconds);
}

function lowerDigits(lower: number): string {
	const first = Math.floor(lower / BASE ** 4);
	const rest = lower - first * BASE ** 4;
	const second = Math.floor(rest / BASE ** 2);
	return PAIRS[first]! + PAIRS[second]! + PAIRS[rest - second * BASE ** 2]!;
}

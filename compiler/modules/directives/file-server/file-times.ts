/** What is said of the time of a file's last change: its date, and an entity tag of the time and the file's size. */

const BASE = 36;
/** The six lower digits of a tag's time stand apart: with the others it is more than a number holds exactly. */
const LOWER = BASE ** 6;
/** Every two digits. */
const PAIRS: readonly string[] = Array.from({ length: BASE ** 2 }, (_, n) => n.toString(BASE).padStart(2, '0'));
/** Seconds that are remembered: a folder of files was mostly written within a few of them. */
const REMEMBERED = 256;

/** One second. */
interface Second {
	/** Since 1970. */
	readonly seconds: number;
	/** As an HTTP-date (RFC 9110 §5.6.7). */
	readonly date: string;
	/** In nanoseconds: the upper digits, as a number and as text behind a quote, and the lower six. */
	readonly upper: number;
	readonly text: string;
	readonly lower: number;
}

/** Makes the texts; one for a server of files. What files have in common is made once. */
export class FileTimes {
	readonly #known: (Second | undefined)[] = new Array(REMEMBERED).fill(undefined);
	#size = -1;
	#sizeText = '';

	/** The HTTP-date of a time in whole seconds since 1970. */
	date(seconds: number): string {
		return this.#second(seconds).date;
	}

	/** The tag, with its quotes: nanoseconds since 1970 and bytes, both in base 36. */
	tag(seconds: number, nanoseconds: number, size: number): string {
		if (size !== this.#size) {
			this.#size = size;
			this.#sizeText = `-${size.toString(BASE)}"`;
		}
		const second = this.#second(seconds);
		const lower = second.lower + nanoseconds;
		// Before 1970, and within its first two seconds.
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

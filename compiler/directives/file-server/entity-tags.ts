/** Entity tags of files: the time of their last change in nanoseconds and their size, both in base 36. */

const BASE = 36;
/** The six lower digits of a time stand apart: with the others it is more than a number holds exactly. */
const LOWER = BASE ** 6;
/** Every two digits. */
const PAIRS: readonly string[] = Array.from({ length: BASE ** 2 }, (_, n) => n.toString(BASE).padStart(2, '0'));

/** Makes tags; one for a server of files. Files that came together differ in little, and what they share is made once. */
export class EntityTags {
	/** The seconds of the last tag, and of these in nanoseconds the upper digits, as a number, and the lower six. */
	#seconds = -1;
	#upper = 0;
	#lower = 0;
	/** Upper digits made last, and their text. */
	#number = -1;
	#text = '';
	#size = -1;
	#sizeText = '';

	/** The tag, with its quotes. Seconds since 1970 and the nanoseconds behind them; a size in bytes. */
	of(seconds: number, nanoseconds: number, size: number): string {
		if (size !== this.#size) {
			this.#size = size;
			this.#sizeText = `-${size.toString(BASE)}"`;
		}
		if (seconds < 0)
			return `"${(BigInt(seconds) * 1_000_000_000n + BigInt(nanoseconds)).toString(BASE)}${this.#sizeText}`;
		if (seconds !== this.#seconds) {
			const whole = BigInt(seconds) * 1_000_000_000n;
			this.#seconds = seconds;
			this.#upper = Number(whole / BigInt(LOWER));
			this.#lower = Number(whole % BigInt(LOWER));
		}
		let upper = this.#upper;
		let lower = this.#lower + nanoseconds;
		if (lower >= LOWER) {
			upper++;
			lower -= LOWER;
		}
		if (upper === 0) return `"${lower.toString(BASE)}${this.#sizeText}`;
		if (upper !== this.#number) {
			this.#number = upper;
			this.#text = `"${upper.toString(BASE)}`;
		}
		const first = Math.floor(lower / BASE ** 4);
		const rest = lower - first * BASE ** 4;
		const second = Math.floor(rest / BASE ** 2);
		return this.#text + PAIRS[first]! + PAIRS[second]! + PAIRS[rest - second * BASE ** 2]! + this.#sizeText;
	}
}

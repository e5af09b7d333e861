/**
 * The previous line as bytes. If the next entry differs only in its time, its duration and the client's port, their digits are
 * overwritten in place, and nothing else is formatted again.
 */
import type { LogLevel } from './log-entry.ts';

const ZERO = 48;
/** Number of digits of a duration after `0.`. They express nanoseconds, for durations below a second. */
const DURATION_DIGITS = 9;
const USUAL_DURATION = /^0\.\d{9}$/;
/** Length of a time in seconds with milliseconds. */
const TIME_LENGTH = 14;

/** The parts of a line besides its time, port and duration. Comparing identical strings costs nothing. */
export interface LineParts {
	readonly level: LogLevel;
	readonly message: string;
	readonly peer: string;
	readonly asked: string;
	readonly bytesRead: number;
	readonly user: string;
	readonly answered: string;
}

/** The previous line. */
export class LineTemplate {
	/** The line with its newline. */
	bytes: Buffer = Buffer.alloc(0);
	#parts: LineParts | undefined;
	#at = 0;
	#timeAt = 0;
	#portAt = 0;
	#portDigits = 0;
	#durationAt = 0;

	/** Turns the line into that of another entry if only digits differ. `at` is in milliseconds, `duration` in nanoseconds. */
	becomes(
		level: LogLevel,
		message: string,
		peer: string,
		asked: string,
		bytesRead: number,
		user: string,
		answered: string,
		port: number,
		at: number,
		duration: number,
	): boolean {
		const parts = this.#parts;
		if (
			parts === undefined ||
			asked !== parts.asked ||
			answered !== parts.answered ||
			peer !== parts.peer ||
			bytesRead !== parts.bytesRead ||
			user !== parts.user ||
			level !== parts.level ||
			message !== parts.message ||
			digitsOf(port) !== this.#portDigits ||
			!(duration >= 0 && duration < 1e9)
		) {
			return false;
		}
		if (at !== this.#at) {
			this.#at = at;
			const seconds = Math.floor(at / 1000);
			this.#put(seconds, this.#timeAt, TIME_LENGTH - 4);
			this.#put(at - seconds * 1000, this.#timeAt + TIME_LENGTH - 3, 3);
		}
		this.#put(port, this.#portAt, this.#portDigits);
		this.#put(duration, this.#durationAt, DURATION_DIGITS);
		return true;
	}

	/** Stores a formatted line as the template if its form allows changing only digits. */
	learn(line: string, parts: LineParts, port: number, at: number, duration: string): void {
		const bytes = Buffer.from(line);
		const timeAt = line.indexOf('"ts":') + 5;
		const portAt = line.indexOf('"remote_port":"') + 15;
		const durationAt = bytes.length - `,"size":${parts.answered}}\n`.length - DURATION_DIGITS;
		// Character offsets equal byte offsets only in ASCII, and a round time has fewer decimals.
		if (bytes.length !== line.length || line[timeAt + TIME_LENGTH] !== ',' || !USUAL_DURATION.test(duration)) return;
		this.bytes = bytes;
		this.#parts = parts;
		this.#at = at;
		this.#timeAt = timeAt;
		this.#portAt = portAt;
		this.#portDigits = digitsOf(port);
		this.#durationAt = durationAt;
	}

	#put(value: number, from: number, digits: number): void {
		const { bytes } = this;
		let rest = value;
		for (let at = from + digits - 1; at >= from; at--) {
			const tenth = Math.floor(rest / 10);
			bytes[at] = ZERO + rest - tenth * 10;
			rest = tenth;
		}
	}
}

function digitsOf(port: number): number {
	return port >= 10_000 ? 5 : port >= 1000 ? 4 : String(port).length;
}

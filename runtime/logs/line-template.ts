/**
 * The previous line as bytes. If the next entry differs only in its time, its duration and the client's port, their digits are
 * overwritten in place, and nothing else is formatted again.
 */
import type { LogLevel } from './log-entry.ts';

const DIGIT_ZERO = 48;
/** Number of digits of a duration after `0.`. They express nanoseconds, for durations below a second. */
const DURATION_DIGITS = 9;
const DURATION_PATTERN = /^0\.\d{9}$/;
/** Length of a time in seconds with milliseconds, such as `1700000000.123`. */
const TIME_LENGTH = 14;

/**
 * The parts of a line other than its time, port and duration. They are usually the same string objects as before, which are equal
 * without comparing characters.
 */
export interface LineParts {
	readonly level: LogLevel;
	readonly message: string;
	readonly peer: string;
	readonly requestPart: string;
	readonly bytesRead: number;
	readonly user: string;
	readonly responsePart: string;
}

/** The previous line of a log, from which the next one is made if only digits differ. */
export class LineTemplate {
	/** The line with its newline. */
	bytes: Buffer = Buffer.alloc(0);
	#lineParts: LineParts | undefined;
	#timeMs = 0;
	#timeOffset = 0;
	#portOffset = 0;
	#portDigitCount = 0;
	#durationOffset = 0;

	/** Overwrites the digits of the line with those of another entry. Returns false if the entry also differs in other parts. */
	tryUpdate(
		level: LogLevel,
		message: string,
		peer: string,
		requestPart: string,
		bytesRead: number,
		user: string,
		responsePart: string,
		port: number,
		timeMs: number,
		durationNs: number,
	): boolean {
		const parts = this.#lineParts;
		if (
			parts === undefined ||
			requestPart !== parts.requestPart ||
			responsePart !== parts.responsePart ||
			peer !== parts.peer ||
			bytesRead !== parts.bytesRead ||
			user !== parts.user ||
			level !== parts.level ||
			message !== parts.message ||
			digitCount(port) !== this.#portDigitCount ||
			!(durationNs >= 0 && durationNs < 1e9)
		) {
			return false;
		}
		if (timeMs !== this.#timeMs) {
			this.#timeMs = timeMs;
			const seconds = Math.floor(timeMs / 1000);
			this.#writeDigits(seconds, this.#timeOffset, TIME_LENGTH - 4);
			this.#writeDigits(timeMs - seconds * 1000, this.#timeOffset + TIME_LENGTH - 3, 3);
		}
		this.#writeDigits(port, this.#portOffset, this.#portDigitCount);
		this.#writeDigits(durationNs, this.#durationOffset, DURATION_DIGITS);
		return true;
	}

	/** Stores a formatted line as the template, if its form allows changing only digits. */
	storeLine(line: string, parts: LineParts, port: number, timeMs: number, duration: string): void {
		const bytes = Buffer.from(line);
		const timeOffset = line.indexOf('"ts":') + 5;
		const portOffset = line.indexOf('"remote_port":"') + 15;
		const durationOffset = bytes.length - `,"size":${parts.responsePart}}\n`.length - DURATION_DIGITS;
		// Character offsets are byte offsets only if the line is ASCII, and a time may have fewer decimals.
		if (bytes.length !== line.length || line[timeOffset + TIME_LENGTH] !== ',' || !DURATION_PATTERN.test(duration))
			return;
		this.bytes = bytes;
		this.#lineParts = parts;
		this.#timeMs = timeMs;
		this.#timeOffset = timeOffset;
		this.#portOffset = portOffset;
		this.#portDigitCount = digitCount(port);
		this.#durationOffset = durationOffset;
	}

	#writeDigits(value: number, start: number, digits: number): void {
		const { bytes } = this;
		let remainingValue = value;
		for (let digitIndex = start + digits - 1; digitIndex >= start; digitIndex--) {
			const tenth = Math.floor(remainingValue / 10);
			bytes[digitIndex] = DIGIT_ZERO + remainingValue - tenth * 10;
			remainingValue = tenth;
		}
	}
}

function digitCount(port: number): number {
	return port >= 10_000 ? 5 : port >= 1000 ? 4 : String(port).length;
}

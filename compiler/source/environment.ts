/** Substitutes `{$NAME}` and `{$NAME:default}` before lexing, and maps offsets back to the original text. */

/** Text ready for the lexer, with a mapping of its offsets to the original text. */
export interface SubstitutedText {
	readonly text: string;
	/**
	 * Converts a start offset to an offset in the original text. Inside an inserted value, the result is the offset of the `{` of
	 * its `{$NAME}`.
	 */
	start(offset: number): number;
	/**
	 * Converts an end offset to an offset in the original text. Inside an inserted value, the result is the offset after the `}` of
	 * its `{$NAME}`.
	 */
	end(offset: number): number;
}

/** A text in which nothing was replaced. */
class UnchangedText implements SubstitutedText {
	readonly text: string;

	constructor(text: string) {
		this.text = text;
	}

	start(offset: number): number {
		return offset;
	}

	end(offset: number): number {
		return offset;
	}
}

/** Text with replaced ranges, in order. The four arrays run in parallel, one element per range. */
class ReplacedText implements SubstitutedText {
	readonly text: string;
	readonly #starts: readonly number[];
	readonly #ends: readonly number[];
	readonly #originalStarts: readonly number[];
	readonly #originalEnds: readonly number[];

	constructor(
		text: string,
		ranges: { starts: number[]; ends: number[]; originalStarts: number[]; originalEnds: number[] },
	) {
		this.text = text;
		this.#starts = ranges.starts;
		this.#ends = ranges.ends;
		this.#originalStarts = ranges.originalStarts;
		this.#originalEnds = ranges.originalEnds;
	}

	start(offset: number): number {
		const range = this.#lastRangeAt(offset);
		if (range < 0) return offset;
		if (offset < this.#ends[range]!) return this.#originalStarts[range]!;
		return this.#originalEnds[range]! + offset - this.#ends[range]!;
	}

	end(offset: number): number {
		const range = this.#lastRangeAt(offset);
		if (range < 0) return offset;
		if (offset > this.#starts[range]! && offset < this.#ends[range]!) return this.#originalEnds[range]!;
		if (offset === this.#starts[range]! && this.#ends[range]! > offset) return this.#originalStarts[range]!;
		return this.#originalEnds[range]! + offset - this.#ends[range]!;
	}

	/** Returns the index of the last range that begins at or before an offset, or -1. */
	#lastRangeAt(offset: number): number {
		let low = 0;
		let high = this.#starts.length;
		while (low < high) {
			const middle = (low + high) >> 1;
			if (this.#starts[middle]! <= offset) low = middle + 1;
			else high = middle;
		}
		return low - 1;
	}
}

/**
 * Replaces every `{$NAME}` by the value of the variable, or by nothing if it is not set. Replaces every `{$NAME:default}` by the
 * value or, if the variable is not set, by the default. The first `:` ends the name; the first `}` ends the placeholder. `{$}`
 * and an unclosed `{$` stay. Inserted values are not scanned again. Text without `{$` is returned without any work.
 */
export function substituteEnvironment(text: string, env: (name: string) => string | undefined): SubstitutedText {
	let open = text.indexOf('{$');
	if (open === -1) return new UnchangedText(text);
	const ranges = {
		starts: [] as number[],
		ends: [] as number[],
		originalStarts: [] as number[],
		originalEnds: [] as number[],
	};
	let output = '';
	let copiedEnd = 0;
	while (open !== -1) {
		const close = text.indexOf('}', open + 2);
		if (close === -1) break;
		if (close > open + 2) {
			const inside = text.slice(open + 2, close);
			const colon = inside.indexOf(':');
			const name = colon === -1 ? inside : inside.slice(0, colon);
			const value = (name === '' ? undefined : env(name)) ?? (colon === -1 ? '' : inside.slice(colon + 1));
			output += text.slice(copiedEnd, open);
			ranges.starts.push(output.length);
			output += value;
			ranges.ends.push(output.length);
			ranges.originalStarts.push(open);
			ranges.originalEnds.push(close + 1);
			copiedEnd = close + 1;
		}
		open = text.indexOf('{$', close + 1);
	}
	if (copiedEnd === 0) return new UnchangedText(text);
	return new ReplacedText(output + text.slice(copiedEnd), ranges);
}

/** Substitutes `{$NAME}` and `{$NAME:default}` before lexing, and maps offsets back to the original text. */

/** Text ready for the lexer, with a mapping of its offsets to the original text. */
export interface SubstitutedText {
	readonly text: string;
	/**
	 * Converts the offset of something's beginning to an offset in the original text. Inside an inserted value, that is the `{` of
	 * its `{$NAME}`.
	 */
	start(offset: number): number;
	/**
	 * Converts the offset of something's end to an offset in the original text. Inside an inserted value, that is the offset after
	 * the `}` of its `{$NAME}`.
	 */
	end(offset: number): number;
}

/** Text without replacements. */
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
	readonly #from: readonly number[];
	readonly #to: readonly number[];
	readonly #originalFrom: readonly number[];
	readonly #originalTo: readonly number[];

	constructor(text: string, ranges: { from: number[]; to: number[]; originalFrom: number[]; originalTo: number[] }) {
		this.text = text;
		this.#from = ranges.from;
		this.#to = ranges.to;
		this.#originalFrom = ranges.originalFrom;
		this.#originalTo = ranges.originalTo;
	}

	start(offset: number): number {
		const range = this.#lastFrom(offset);
		if (range < 0) return offset;
		if (offset < this.#to[range]!) return this.#originalFrom[range]!;
		return this.#originalTo[range]! + offset - this.#to[range]!;
	}

	end(offset: number): number {
		const range = this.#lastFrom(offset);
		if (range < 0) return offset;
		if (offset > this.#from[range]! && offset < this.#to[range]!) return this.#originalTo[range]!;
		if (offset === this.#from[range]! && this.#to[range]! > offset) return this.#originalFrom[range]!;
		return this.#originalTo[range]! + offset - this.#to[range]!;
	}

	/** Returns the index of the last range that begins at or before an offset, or -1. */
	#lastFrom(offset: number): number {
		let low = 0;
		let high = this.#from.length;
		while (low < high) {
			const middle = (low + high) >> 1;
			if (this.#from[middle]! <= offset) low = middle + 1;
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
		from: [] as number[],
		to: [] as number[],
		originalFrom: [] as number[],
		originalTo: [] as number[],
	};
	let written = '';
	let copied = 0;
	while (open !== -1) {
		const close = text.indexOf('}', open + 2);
		if (close === -1) break;
		if (close > open + 2) {
			const inside = text.slice(open + 2, close);
			const colon = inside.indexOf(':');
			const name = colon === -1 ? inside : inside.slice(0, colon);
			const value = (name === '' ? undefined : env(name)) ?? (colon === -1 ? '' : inside.slice(colon + 1));
			written += text.slice(copied, open);
			ranges.from.push(written.length);
			written += value;
			ranges.to.push(written.length);
			ranges.originalFrom.push(open);
			ranges.originalTo.push(close + 1);
			copied = close + 1;
		}
		open = text.indexOf('{$', close + 1);
	}
	if (copied === 0) return new UnchangedText(text);
	return new ReplacedText(written + text.slice(copied), ranges);
}

/** Substitutes `{$NAME}` and `{$NAME:default}` before lexing, and maps offsets back to the original text. */

/** Text ready for the lexer, with a mapping of its offsets to the original text. */
export interface SubstitutedText {
	readonly text: string;
	/**
	 * Converts a start offset to an offset in the original text. Inside an inserted value, the result is the offset of the `{` of
	 * its `{$NAME}`.
	 */
	originalStart(offset: number): number;
	/**
	 * Converts an end offset to an offset in the original text. Inside an inserted value, the result is the offset after the `}` of
	 * its `{$NAME}`.
	 */
	originalEnd(offset: number): number;
}

/** A text in which nothing was replaced. */
class UnchangedText implements SubstitutedText {
	readonly text: string;

	constructor(text: string) {
		this.text = text;
	}

	originalStart(offset: number): number {
		return offset;
	}

	originalEnd(offset: number): number {
		return offset;
	}
}

/** Text with replaced ranges, in order. The four arrays run in parallel, one element per range. */
class ReplacedText implements SubstitutedText {
	readonly text: string;
	readonly #valueStarts: readonly number[];
	readonly #valueEnds: readonly number[];
	readonly #originalStarts: readonly number[];
	readonly #originalEnds: readonly number[];

	constructor(
		text: string,
		ranges: { starts: number[]; ends: number[]; originalStarts: number[]; originalEnds: number[] },
	) {
		this.text = text;
		this.#valueStarts = ranges.starts;
		this.#valueEnds = ranges.ends;
		this.#originalStarts = ranges.originalStarts;
		this.#originalEnds = ranges.originalEnds;
	}

	originalStart(offset: number): number {
		const rangeIndex = this.#lastRangeAt(offset);
		if (rangeIndex < 0) return offset;
		if (offset < this.#valueEnds[rangeIndex]!) return this.#originalStarts[rangeIndex]!;
		return this.#originalEnds[rangeIndex]! + offset - this.#valueEnds[rangeIndex]!;
	}

	originalEnd(offset: number): number {
		const rangeIndex = this.#lastRangeAt(offset);
		if (rangeIndex < 0) return offset;
		if (offset > this.#valueStarts[rangeIndex]! && offset < this.#valueEnds[rangeIndex]!)
			return this.#originalEnds[rangeIndex]!;
		if (offset === this.#valueStarts[rangeIndex]! && this.#valueEnds[rangeIndex]! > offset)
			return this.#originalStarts[rangeIndex]!;
		return this.#originalEnds[rangeIndex]! + offset - this.#valueEnds[rangeIndex]!;
	}

	/** Returns the index of the last range that begins at or before an offset, or -1. */
	#lastRangeAt(offset: number): number {
		let low = 0;
		let high = this.#valueStarts.length;
		while (low < high) {
			const middle = (low + high) >> 1;
			if (this.#valueStarts[middle]! <= offset) low = middle + 1;
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
	let openIndex = text.indexOf('{$');
	if (openIndex === -1) return new UnchangedText(text);
	const ranges = {
		starts: [] as number[],
		ends: [] as number[],
		originalStarts: [] as number[],
		originalEnds: [] as number[],
	};
	let output = '';
	let copiedEnd = 0;
	while (openIndex !== -1) {
		const closeIndex = text.indexOf('}', openIndex + 2);
		if (closeIndex === -1) break;
		if (closeIndex > openIndex + 2) {
			const innerText = text.slice(openIndex + 2, closeIndex);
			const colonIndex = innerText.indexOf(':');
			const name = colonIndex === -1 ? innerText : innerText.slice(0, colonIndex);
			const value = (name === '' ? undefined : env(name)) ?? (colonIndex === -1 ? '' : innerText.slice(colonIndex + 1));
			output += text.slice(copiedEnd, openIndex);
			ranges.starts.push(output.length);
			output += value;
			ranges.ends.push(output.length);
			ranges.originalStarts.push(openIndex);
			ranges.originalEnds.push(closeIndex + 1);
			copiedEnd = closeIndex + 1;
		}
		openIndex = text.indexOf('{$', closeIndex + 1);
	}
	if (copiedEnd === 0) return new UnchangedText(text);
	return new ReplacedText(output + text.slice(copiedEnd), ranges);
}

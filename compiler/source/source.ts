/** Configuration texts and where they were imported. Every span in a diagnostic refers to one of these texts. */

/**
 * The position of a piece (see text-piece.ts) in the whole text. When the text around the piece changes, only this position is
 * updated. Offsets in the piece remain valid, so that results computed from the piece can be reused.
 */
export interface CutPlace {
	/** The whole text in its current state. */
	wholeText: Source;
	/** Offset in the whole text at which the piece begins; always the beginning of a line. */
	offset: number;
}

/**
 * A configuration text, as included by one import. A file imported twice, or a snippet used twice, is two Sources. Each one knows
 * where it was imported, so that a diagnostic can print the whole chain.
 */
export class Source {
	/** The text as in the file, before `{$NAME}` substitution, so that no secret reaches a code frame. */
	readonly text: string;
	/** The position in the whole text if this text is a piece of it; undefined if this is a whole text. */
	readonly cutPlace: CutPlace | undefined;
	readonly #name: string;
	readonly #path: string | undefined;
	readonly #importedAt: SourceSpan | undefined;
	readonly #importedAs: string | undefined;
	#lineStarts: readonly number[] | undefined;
	readonly #originalSource: Source | undefined;

	constructor(fields: {
		name: string;
		text: string;
		path?: string | undefined;
		importedAt?: SourceSpan | undefined;
		importedAs?: string | undefined;
		original?: Source | undefined;
		cutPlace?: CutPlace | undefined;
	}) {
		this.#name = fields.name;
		this.#path = fields.path;
		this.text = fields.text;
		this.#importedAt = fields.importedAt;
		this.#importedAs = fields.importedAs;
		this.cutPlace = fields.cutPlace;
		this.#originalSource = fields.original;
	}

	/** The name printed in diagnostics, as the user gave it: `Configfile`, `snippets/legacy`, `<stdin>`. */
	get name(): string {
		return this.cutPlace ? this.cutPlace.wholeText.name : this.#name;
	}

	/** Absolute path of the text's file, if any; relative imports and `root`s are resolved against its folder. */
	get path(): string | undefined {
		return this.cutPlace ? this.cutPlace.wholeText.path : this.#path;
	}

	/** The span of the `import` or `use` that included this text. */
	get importedAt(): SourceSpan | undefined {
		return this.#importedAt ?? this.cutPlace?.wholeText.importedAt;
	}

	/** The argument of the import: a file, or the name of a snippet. */
	get importedAs(): string | undefined {
		return this.#importedAt ? this.#importedAs : (this.cutPlace?.wholeText.importedAs ?? this.#importedAs);
	}

	/** Returns the same text for another import. This costs one object: the text and its line index are shared. */
	importedFrom(importedAt: SourceSpan, importedAs: string): Source {
		const { text, cutPlace } = this;
		return new Source({ name: this.#name, text, path: this.#path, importedAt, importedAs, original: this, cutPlace });
	}

	/** True if the text belongs to a piece, whose offset in the whole text may change. Spans in the piece remain valid. */
	get canMove(): boolean {
		return this.#importedAt ? this.#importedAt.source.canMove : this.cutPlace !== undefined;
	}

	/** Offsets at which lines begin; the first is 0. A line ends at `\n`. */
	get lineStarts(): readonly number[] {
		if (this.#originalSource) return this.#originalSource.lineStarts;
		if (!this.#lineStarts) {
			const starts = [0];
			for (let at = this.text.indexOf('\n'); at !== -1; at = this.text.indexOf('\n', at + 1)) starts.push(at + 1);
			this.#lineStarts = starts;
		}
		return this.#lineStarts;
	}

	/** Returns the line and column, in the whole text, of an offset. Both start at 1; columns count UTF-16 units. */
	position(offset: number): { line: number; column: number } {
		if (this.cutPlace) return this.cutPlace.wholeText.position(this.cutPlace.offset + offset);
		const starts = this.lineStarts;
		let low = 0;
		let high = starts.length - 1;
		while (low < high) {
			const middle = (low + high + 1) >> 1;
			if (starts[middle]! <= offset) low = middle;
			else high = middle - 1;
		}
		return { line: low + 1, column: offset - starts[low]! + 1 };
	}
}

/** A half-open range of UTF-16 offsets into {@link Source.text}. */
export interface SourceSpan {
	readonly source: Source;
	readonly start: number;
	readonly end: number;
}

/** Returns the offset in the whole text at which a span begins. */
export function wholeStart({ source, start }: SourceSpan): number {
	return source.cutPlace ? source.cutPlace.offset + start : start;
}

/**
 * Returns the corresponding span in the whole text, with its imports converted in the same way. The compiler returns only such
 * spans, because pieces may move later.
 */
export function wholeSpan(span: SourceSpan): SourceSpan {
	const { source } = span;
	const wholeText = source.cutPlace ? source.cutPlace.wholeText : source;
	const pieceOffset = source.cutPlace ? source.cutPlace.offset : 0;
	const { importedAt } = source;
	const wholeImport = importedAt && wholeSpan(importedAt);
	const wholeSource =
		wholeImport === wholeText.importedAt ? wholeText : wholeText.importedFrom(wholeImport!, source.importedAs ?? '');
	return wholeSource === source
		? span
		: { source: wholeSource, start: span.start + pieceOffset, end: span.end + pieceOffset };
}

/**
 * Returns the span to delete in order to remove the lines of a span: the lines with their indentation and newline and, if there are
 * empty lines both before and after them, one of these empty lines.
 */
export function wholeLinesSpan({ source, start, end }: SourceSpan): SourceSpan {
	const lineStart = source.text.lastIndexOf('\n', start - 1) + 1;
	const isAtLineStart = source.text.slice(lineStart, start).trim() === '';
	if (!isAtLineStart) return { source, start, end };
	const followsBlankLine = /(?:^|\{[ \t\r]*\n|\n[ \t\r]*\n)$/.test(source.text.slice(0, lineStart));
	const lineRestMatch = (followsBlankLine ? /^[ \t\r]*\n?(?:[ \t\r]*\n)?/ : /^[ \t\r]*\n?/).exec(
		source.text.slice(end),
	)!;
	return { source, start: lineStart, end: end + lineRestMatch[0].length };
}

/** A piece of configuration text and its origin, to which every span, caret and import chain refers. */

/**
 * The place of a text in the longer text that it was cut from. When the text around it changes, only this is updated: offsets
 * in the piece stay valid, so results computed from it can be reused.
 */
export interface Cut {
	/** The current whole text. */
	whole: Source;
	/** Offset in it at which the piece begins, always the beginning of a line. */
	offset: number;
}

/**
 * One text as brought in by one import. A file imported twice, or a snippet used twice, is two Sources that share their text.
 * Each knows its import, so a diagnostic can print the whole chain.
 */
export class Source {
	/** The text as in the file, before `{$NAME}` substitution, so that no secret reaches a code frame. */
	readonly text: string;
	/** The place of this text in a whole one; undefined if it is whole. */
	readonly cut: Cut | undefined;
	readonly #name: string;
	readonly #path: string | undefined;
	readonly #importedAt: SourceSpan | undefined;
	readonly #importedAs: string | undefined;
	#lineStarts: readonly number[] | undefined;
	readonly #shared: Source | undefined;

	constructor(fields: {
		name: string;
		text: string;
		path?: string | undefined;
		importedAt?: SourceSpan | undefined;
		importedAs?: string | undefined;
		shared?: Source | undefined;
		cut?: Cut | undefined;
	}) {
		this.#name = fields.name;
		this.#path = fields.path;
		this.text = fields.text;
		this.#importedAt = fields.importedAt;
		this.#importedAs = fields.importedAs;
		this.cut = fields.cut;
		this.#shared = fields.shared;
	}

	/** The name printed in diagnostics, as the user gave it: `Configfile`, `snippets/legacy`, `<stdin>`. */
	get name(): string {
		return this.cut ? this.cut.whole.name : this.#name;
	}

	/** Absolute path of the file, if the text has one; relative imports and `root`s resolve against its folder. */
	get path(): string | undefined {
		return this.cut ? this.cut.whole.path : this.#path;
	}

	/** The `import` or `use` that brought this text in. */
	get importedAt(): SourceSpan | undefined {
		return this.#importedAt ?? this.cut?.whole.importedAt;
	}

	/** What was imported: a file or the name of a snippet. */
	get importedAs(): string | undefined {
		return this.#importedAt ? this.#importedAs : (this.cut?.whole.importedAs ?? this.#importedAs);
	}

	/** Returns the same text as seen by another import. Costs one object: text and line index are shared. */
	importedFrom(importedAt: SourceSpan, importedAs: string): Source {
		const { text, cut } = this;
		return new Source({ name: this.#name, text, path: this.#path, importedAt, importedAs, shared: this, cut });
	}

	/** True if spans in this text stay correct after the text around the piece has changed. */
	get moves(): boolean {
		return this.#importedAt ? this.#importedAt.source.moves : this.cut !== undefined;
	}

	/** Offsets at which lines begin; the first is 0. A line ends at `\n`. */
	get lineStarts(): readonly number[] {
		if (this.#shared) return this.#shared.lineStarts;
		if (!this.#lineStarts) {
			const starts = [0];
			for (let at = this.text.indexOf('\n'); at !== -1; at = this.text.indexOf('\n', at + 1)) starts.push(at + 1);
			this.#lineStarts = starts;
		}
		return this.#lineStarts;
	}

	/** Returns the line and column of an offset in the whole text. Both start at 1; columns count UTF-16 units. */
	position(offset: number): { line: number; column: number } {
		if (this.cut) return this.cut.whole.position(this.cut.offset + offset);
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
	return source.cut ? source.cut.offset + start : start;
}

/**
 * Returns the span in terms of whole texts, imports included. Spans that leave the compiler take this form, because a piece may
 * move later.
 */
export function wholeSpan(span: SourceSpan): SourceSpan {
	const { source } = span;
	const whole = source.cut ? source.cut.whole : source;
	const offset = source.cut ? source.cut.offset : 0;
	const { importedAt } = source;
	const settled = importedAt && wholeSpan(importedAt);
	const seen = settled === whole.importedAt ? whole : whole.importedFrom(settled!, source.importedAs ?? '');
	return seen === source ? span : { source: seen, start: span.start + offset, end: span.end + offset };
}

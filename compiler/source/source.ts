/** A piece of configuration text and where it came from; the ground every span, caret and import chain stands on. */

/**
 * One text as one import brought it in. A file imported twice, or a snippet used twice, is two Sources that share
 * their text: each knows where it was imported, so a diagnostic can print the whole chain.
 */
export class Source {
	/** The name that diagnostics print, as the user gave it: `Configfile`, `snippets/legacy`, `<stdin>`. */
	readonly name: string;
	/** Absolute path of the file, if the text has one: relative imports and `root`s resolve against its folder. */
	readonly path: string | undefined;
	/** The text as it stands in the file, before `{$NAME}` substitution, so that no secret reaches a code frame. */
	readonly text: string;
	/** The `import` or `use` that brought this text in. */
	readonly importedAt: SourceSpan | undefined;
	/** What was imported: a file or a snippet name. */
	readonly importedAs: string | undefined;
	#lineStarts: readonly number[] | undefined;
	readonly #shared: Source | undefined;

	constructor(fields: {
		name: string;
		text: string;
		path?: string | undefined;
		importedAt?: SourceSpan | undefined;
		importedAs?: string | undefined;
		shared?: Source | undefined;
	}) {
		this.name = fields.name;
		this.path = fields.path;
		this.text = fields.text;
		this.importedAt = fields.importedAt;
		this.importedAs = fields.importedAs;
		this.#shared = fields.shared;
	}

	/** The same text, as another import sees it. Costs one object: text and line index are shared. */
	importedFrom(importedAt: SourceSpan, importedAs: string): Source {
		return new Source({ name: this.name, text: this.text, path: this.path, importedAt, importedAs, shared: this });
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

	/** Line and column of an offset, both starting at 1; the column counts UTF-16 units. */
	position(offset: number): { line: number; column: number } {
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

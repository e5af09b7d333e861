/** The type of a compiler diagnostic, from which text, JSON, terminal, Admin API and editor output are made. */
import type { SourceSpan } from '../source/source.ts';

/** An `error` rejects the configuration; a `warning` or `note` does not. */
export type Severity = 'error' | 'warning' | 'note';

/** The replacement of a range of a text by another text. */
export interface TextEdit {
	readonly span: SourceSpan;
	readonly text: string;
}

/** Edits that fix a problem, all of which are applied together. */
export interface Fix {
	readonly edits: readonly TextEdit[];
	/**
	 * `safe`: the fix keeps the meaning, or corrects rejected text that has only one possible meaning. `unsafe`: the fix is based on
	 * a guess, such as the nearest known name, or changes the responses to requests, so a person must confirm it.
	 */
	readonly safety: FixSafety;
}

export type FixSafety = 'safe' | 'unsafe';

/** A second place in the text that helps to explain a diagnostic, with a message such as "first defined here". */
export interface RelatedPlace {
	readonly span: SourceSpan;
	readonly message: string;
}

/** A {@link RelatedPlace} that is given as a JSON pointer into the document (RFC 6901) instead of a place in the text. */
export interface RelatedPointer {
	readonly pointer: string;
	readonly message: string;
}

/**
 * A problem that the compiler found. `code` has the form `area/what` and never changes, so that tools can rely on it; `message` is
 * one sentence that says what is wrong.
 */
export interface Diagnostic {
	readonly code: string;
	readonly severity: Severity;
	readonly message: string;
	/** The place in the text; absent when the configuration was given as JSON. */
	readonly span?: SourceSpan | undefined;
	/** For findings about the document: the JSON pointer of the value (RFC 6901). */
	readonly pointer?: string | undefined;
	/** The text next to the caret in the code frame. */
	readonly label?: string | undefined;
	/** What to do about the problem, in one sentence. */
	readonly hint?: string | undefined;
	readonly related?: readonly RelatedPlace[] | undefined;
	/**
	 * Given by phases that know the document but not its text. When the diagnostic is collected, it is replaced by an element of
	 * `related`, or added to the hint if the document was given as JSON.
	 */
	readonly relatedPointer?: RelatedPointer | undefined;
	/**
	 * For messages in the wording of Caddy, the side of the message on which `FILE:LINE` is inserted when the
	 * diagnostic is collected.
	 */
	readonly place?: 'before' | 'behind' | undefined;
	readonly fix?: Fix | undefined;
}

/** Receives each diagnostic as it is found. Phases never throw for a mistake in the input: they report it and continue. */
export type Report = (diagnostic: Diagnostic) => void;

/**
 * A diagnostic as plain data, for passing between threads, Admin API errors and `--format json`. Lines and columns start at 1.
 * `text` is the full rendering with its code frame, without color.
 */
export interface DiagnosticReport {
	readonly code: string;
	readonly severity: Severity;
	readonly message: string;
	readonly file?: string;
	readonly line?: number;
	readonly column?: number;
	readonly end_line?: number;
	readonly end_column?: number;
	readonly pointer?: string;
	readonly hint?: string;
	/** Ways to fix the problem. Any one of them suffices. */
	readonly fixes?: readonly ReportedFix[];
	readonly text: string;
}

/** A {@link Fix} as plain data. */
export interface ReportedFix {
	readonly safety: FixSafety;
	readonly edits: readonly ReportedEdit[];
}

/** The replacement of the text between a start and an exclusive end, given as lines and columns. */
export interface ReportedEdit {
	readonly file: string;
	readonly line: number;
	readonly column: number;
	readonly end_line: number;
	readonly end_column: number;
	readonly text: string;
}

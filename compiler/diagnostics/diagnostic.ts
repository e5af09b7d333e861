/** What the compiler says about a configuration: one shape for text, JSON, the terminal, the Admin API and an editor. */
import type { SourceSpan } from '../source/source.ts';

/** `error` refuses the configuration, `warning` does not, `note` only informs. */
export type Severity = 'error' | 'warning' | 'note';

/** A replacement of a range of text; an edit set is applied as a whole. */
export interface TextEdit {
	readonly span: SourceSpan;
	readonly text: string;
}

/** A second place that explains the first: "first defined here". */
export interface RelatedPlace {
	readonly span: SourceSpan;
	readonly message: string;
}

/** One finding. `code` is `area/what`, stable, for tools; `message` is one sentence that says what is wrong. */
export interface Diagnostic {
	readonly code: string;
	readonly severity: Severity;
	readonly message: string;
	/** Where in the text; absent when the configuration came as JSON. */
	readonly span?: SourceSpan | undefined;
	/** Where in the document (RFC 6901), when the finding is about the document. */
	readonly pointer?: string | undefined;
	/** Words under the caret. */
	readonly label?: string | undefined;
	/** What to do about it, one sentence. */
	readonly hint?: string | undefined;
	readonly related?: readonly RelatedPlace[] | undefined;
	/** Where `FILE:LINE` goes in the message, for texts of the compatible server; put in when the diagnostic is collected. */
	readonly place?: 'before' | 'behind' | undefined;
	/** Edits that mend it. */
	readonly fix?: readonly TextEdit[] | undefined;
}

/** Takes each diagnostic as it is found. Phases never throw for a mistake in the input: they report and go on. */
export type Report = (diagnostic: Diagnostic) => void;

/**
 * A diagnostic without live objects: crosses threads, stands in Admin API errors and in `--format json`.
 * Lines and columns start at 1. `text` is the whole rendering with its code frame, without colour.
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
	/** Edits that mend it, to be made together; ends are exclusive. */
	readonly fix?: readonly ReportedEdit[];
	readonly text: string;
}

/** An edit of {@link DiagnosticReport.fix}: what stands between two places is replaced. */
export interface ReportedEdit {
	readonly file: string;
	readonly line: number;
	readonly column: number;
	readonly end_line: number;
	readonly end_column: number;
	readonly text: string;
}

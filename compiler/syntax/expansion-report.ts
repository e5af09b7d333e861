/**
 * State of an expansion: its diagnostics, without repeats, and the limits on its output, which end circular and exponential
 * imports.
 */
import type { Diagnostic, Report } from '../diagnostics/diagnostic.ts';
import type { Dialect } from '../dialects/dialect.ts';
import { type SourceSpan, wholeStart } from '../source/source.ts';

/** Maximum number of lines, words and characters that imports, arguments and constants may produce. */
const outputLimits = { lines: 500_000, words: 2_000_000, characters: 64 * 1024 * 1024 };

/** Maximum number of diagnostics from the syntax phases. A text with more mistakes is probably not a configuration at all. */
const maxDiagnostics = 1000;

/** A snippet or a constant that is reported if it is never used. */
export interface UnusedCandidate {
	isUsed: boolean;
}

/** The effects of expanding a part of a text, recorded so that the result can be used again. */
export class ExpansionRecord {
	/** True if a diagnostic was reported, or if the record must not be used again for another reason. */
	hasDiagnostics = false;
	readonly usedDefinitions = new Set<UnusedCandidate>();
	/** The definitions in the texts that were read: `(name)` for each snippet and `let name` for each constant. */
	readonly definedNames = new Set<string>();
	lineCount = 0;
	wordCount = 0;
	characterCount = 0;
}

/**
 * Collects the diagnostics of an expansion. By default, a mistake in a text is reported once, however often the text is imported.
 */
export class ExpansionReport {
	readonly dialect: Dialect;
	/**
	 * The definitions in the files that were read: `(name)` for each snippet and `let name` for each constant. Used to tell an
	 * unknown name from one that is used before its definition.
	 */
	get allDefinitions(): ReadonlySet<string> {
		return this.#allDefinitions;
	}

	/** True if parsing or expansion has reported an error. */
	hasErrors = false;
	/** True if a limit has been exceeded, so that expansion stops. */
	isExhausted = false;
	readonly #report: Report;
	readonly #reportedKeys = new Set<string>();
	readonly #allDefinitions = new Set<string>();
	#reportCount = 0;
	#lineCount = 0;
	#wordCount = 0;
	#characterCount = 0;
	#currentRecord: ExpansionRecord | undefined;
	/** The span of the import that is being processed. */
	#importSpan: SourceSpan | undefined;

	constructor(dialect: Dialect, report: Report) {
		this.dialect = dialect;
		this.#report = report;
	}

	/** Reports a diagnostic once for each code and position in a text; with `perImport`, once more for each import of the text. */
	report(diagnostic: Diagnostic, perImport = false): void {
		if (this.#currentRecord) this.#currentRecord.hasDiagnostics = true;
		if (diagnostic.severity === 'error') this.hasErrors = true;
		const { span } = diagnostic;
		if (span) {
			let key = `${diagnostic.code} ${span.source.path ?? span.source.name} ${wholeStart(span)}`;
			const importSpan = span.source.importedAt;
			if (perImport && importSpan)
				key += ` ${importSpan.source.path ?? importSpan.source.name} ${wholeStart(importSpan)}`;
			if (this.#reportedKeys.has(key)) return;
			this.#reportedKeys.add(key);
		}
		this.#reportCount++;
		if (this.#reportCount < maxDiagnostics) this.#report(diagnostic);
		else if (this.#reportCount === maxDiagnostics) {
			const message = `There are more than ${maxDiagnostics} mistakes; the rest are not shown.`;
			this.#report({ code: 'syntax/too-many-mistakes', severity: 'error', message, span });
		}
	}

	/** Sets the record that receives the effects of the expansion from now on; undefined stops recording. */
	setRecord(record: ExpansionRecord | undefined): void {
		this.#currentRecord = record;
	}

	/** True if effects are being recorded. */
	get isRecording(): boolean {
		return this.#currentRecord !== undefined;
	}

	/** Marks the current record as unusable, so that the result of the recorded expansion is not reused. */
	invalidateRecord(): void {
		if (this.#currentRecord) this.#currentRecord.hasDiagnostics = true;
	}

	/** Marks a snippet or constant as used. */
	markUsed(definition: UnusedCandidate): void {
		definition.isUsed = true;
		this.#currentRecord?.usedDefinitions.add(definition);
	}

	/** Records a definition, `(name)` or `let name`, in a text that was read. */
	recordDefinition(name: string): void {
		this.#allDefinitions.add(name);
		this.#currentRecord?.definedNames.add(name);
	}

	/** Sets the span of the import that is being processed. If a limit is exceeded, it is reported there. */
	setCurrentImport(span: SourceSpan): void {
		this.#importSpan = span;
	}

	/** Counts the lines, words and characters that an expansion produced. */
	countOutput(lineCount: number, words: number, characters: number): void {
		this.#lineCount += lineCount;
		this.#wordCount += words;
		this.#characterCount += characters;
		if (this.#currentRecord) {
			this.#currentRecord.lineCount += lineCount;
			this.#currentRecord.wordCount += words;
			this.#currentRecord.characterCount += characters;
		}
		if (
			this.#lineCount <= outputLimits.lines &&
			this.#wordCount <= outputLimits.words &&
			this.#characterCount <= outputLimits.characters
		)
			return;
		this.stopExpansion();
	}

	/** Stops the expansion, and reports that imports produce too much output. */
	stopExpansion(): void {
		if (this.isExhausted) return;
		this.isExhausted = true;
		this.report({
			code: 'import/too-much',
			severity: 'error',
			message: `Imports produce more than ${outputLimits.lines.toLocaleString('en')} lines, or too many words; expansion stopped.`,
			span: this.#importSpan,
			label: 'exceeded the limit here',
			hint: 'Look for snippets that import each other many times.',
		});
	}
}

/** State shared by the whole expansion: diagnostics without repeats, and the limit that stops import bombs. */
import type { Diagnostic, Report } from '../diagnostics/diagnostic.ts';
import type { Dialect } from '../dialects/dialect.ts';
import { type SourceSpan, wholeStart } from '../source/source.ts';

/** Maximum lines, words and characters produced by imports, arguments and constants. */
const outputLimits = { lines: 500_000, words: 2_000_000, characters: 64 * 1024 * 1024 };

/** Maximum number of diagnostics of the syntax phases. A text with more of them is not a configuration. */
const maxDiagnostics = 1000;

/** A snippet or a constant, and whether it has been used. */
export interface UnusedCandidate {
	used: boolean;
}

/** Collects the effects of an expansion while the record is open. */
export class ExpansionRecord {
	/** True if any diagnostic was reported. */
	reported = false;
	readonly usedDefinitions = new Set<UnusedCandidate>();
	/** `(name)` and `let name` of the definitions in the source texts that were read. */
	readonly definedNames = new Set<string>();
	lineCount = 0;
	wordCount = 0;
	characterCount = 0;
}

/** Collects the diagnostics of expansion. Each mistake in a source text is reported once, however often the text is imported. */
export class ExpansionReport {
	readonly dialect: Dialect;
	/**
	 * `(name)` and `let name` of every definition in the files read. Distinguishes an unknown name from one that is used before its
	 * definition.
	 */
	get allDefinitions(): ReadonlySet<string> {
		return this.#allDefinitions;
	}

	/** True once parsing or expansion has reported an error. */
	failed = false;
	/** True once a limit is exceeded; expansion stops. */
	exhausted = false;
	readonly #report: Report;
	readonly #reportedKeys = new Set<string>();
	readonly #allDefinitions = new Set<string>();
	#reportCount = 0;
	#lineCount = 0;
	#wordCount = 0;
	#characterCount = 0;
	#record: ExpansionRecord | undefined;
	/** The place of the import that is being processed. */
	#importSpan: SourceSpan | undefined;

	constructor(dialect: Dialect, report: Report) {
		this.dialect = dialect;
		this.#report = report;
	}

	/** Reports a diagnostic once per place and code, or with `perImport` once for each import of the source text. */
	report(diagnostic: Diagnostic, perImport = false): void {
		if (this.#record) this.#record.reported = true;
		if (diagnostic.severity === 'error') this.failed = true;
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

	/** Replaces the current record; undefined stops recording. */
	setRecord(record: ExpansionRecord | undefined): void {
		this.#record = record;
	}

	/** True while recording. */
	get recording(): boolean {
		return this.#record !== undefined;
	}

	/** Marks the record as invalid for reuse, because a diagnostic that was reported before would be different now. */
	taint(): void {
		if (this.#record) this.#record.reported = true;
	}

	/** Marks a snippet or constant as used. */
	markUsed(definition: UnusedCandidate): void {
		definition.used = true;
		this.#record?.usedDefinitions.add(definition);
	}

	/** Records a definition, `(name)` or `let name`, of a source text that was read. */
	define(name: string): void {
		this.#allDefinitions.add(name);
		this.#record?.definedNames.add(name);
	}

	/** Records the current import. The diagnostic names this import if the expansion exceeds the limit. */
	setCurrentImport(span: SourceSpan): void {
		this.#importSpan = span;
	}

	/** Counts the lines, words and characters that an expansion produced. */
	countOutput(lines: number, words: number, characters: number): void {
		this.#lineCount += lines;
		this.#wordCount += words;
		this.#characterCount += characters;
		if (this.#record) {
			this.#record.lineCount += lines;
			this.#record.wordCount += words;
			this.#record.characterCount += characters;
		}
		if (
			this.#lineCount <= outputLimits.lines &&
			this.#wordCount <= outputLimits.words &&
			this.#characterCount <= outputLimits.characters
		)
			return;
		this.exhaust();
	}

	/** Stops expansion because an import produced too much. */
	exhaust(): void {
		if (this.exhausted) return;
		this.exhausted = true;
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

/** State shared by the whole expansion: diagnostics without repeats, and the limit that stops import bombs. */
import type { Diagnostic, Report } from '../diagnostics/diagnostic.ts';
import type { Dialect } from '../dialects/dialect.ts';
import { type SourceSpan, wholeStart } from '../source/source.ts';

/** Maximum lines, words and characters produced by imports, arguments and constants. */
const limits = { lines: 500_000, words: 2_000_000, characters: 64 * 1024 * 1024 };

/** Maximum number of diagnostics of the syntax phases. A text with more of them is not a configuration. */
const maxDiagnostics = 1000;

/** A definition that may be unused: a snippet or a constant. */
export interface UnusedCandidate {
	used: boolean;
}

/** Collects what happens in the expansion while the record is open. */
export class ExpansionRecord {
	/** True if anything was reported. */
	reported = false;
	readonly used = new Set<UnusedCandidate>();
	/** Definitions in the source texts that were read. */
	readonly defined = new Set<string>();
	lines = 0;
	words = 0;
	characters = 0;
}

/** Collects the diagnostics of expansion. Each mistake in a source text is reported once, however often the text is imported. */
export class ExpansionReport {
	readonly dialect: Dialect;
	/** `(name)` and `let name` for every definition anywhere in the files read. Tells names that are unknown from names used too early. */
	get definedLater(): ReadonlySet<string> {
		return this.#definedLater;
	}

	/** True once parsing or expansion has reported an error. */
	failed = false;
	/** True once a limit is exceeded; expansion stops. */
	exhausted = false;
	readonly #report: Report;
	readonly #seen = new Set<string>();
	readonly #definedLater = new Set<string>();
	#reported = 0;
	#lines = 0;
	#words = 0;
	#characters = 0;
	#record: ExpansionRecord | undefined;
	/** Place of the import being processed. */
	#at: SourceSpan | undefined;

	constructor(dialect: Dialect, report: Report) {
		this.dialect = dialect;
		this.#report = report;
	}

	/** Reports a diagnostic once per place and code, or with `eachUse` once for each import of the source text. */
	report(diagnostic: Diagnostic, eachUse = false): void {
		if (this.#record) this.#record.reported = true;
		if (diagnostic.severity === 'error') this.failed = true;
		const { span } = diagnostic;
		if (span) {
			let key = `${diagnostic.code} ${span.source.path ?? span.source.name} ${wholeStart(span)}`;
			const use = span.source.importedAt;
			if (eachUse && use) key += ` ${use.source.path ?? use.source.name} ${wholeStart(use)}`;
			if (this.#seen.has(key)) return;
			this.#seen.add(key);
		}
		this.#reported++;
		if (this.#reported < maxDiagnostics) this.#report(diagnostic);
		else if (this.#reported === maxDiagnostics) {
			const message = `There are more than ${maxDiagnostics} mistakes; the rest are not shown.`;
			this.#report({ code: 'syntax/too-many-mistakes', severity: 'error', message, span });
		}
	}

	/** Starts a record, which replaces the current one; undefined stops recording. */
	record(record: ExpansionRecord | undefined): void {
		this.#record = record;
	}

	/** True while recording. */
	get recording(): boolean {
		return this.#record !== undefined;
	}

	/** Marks the record as invalid for reuse, because something that was reported earlier would be reported differently now. */
	taint(): void {
		if (this.#record) this.#record.reported = true;
	}

	/** Marks a snippet or constant as used. */
	use(thing: UnusedCandidate): void {
		thing.used = true;
		this.#record?.used.add(thing);
	}

	/** Records a definition, `(name)` or `let name`, of a source text that was read. */
	define(name: string): void {
		this.#definedLater.add(name);
		this.#record?.defined.add(name);
	}

	/** Records the current import, which the diagnostic names if the import exceeds the limit. */
	importing(at: SourceSpan): void {
		this.#at = at;
	}

	/** Counts the lines, words and characters that an expansion produced. */
	spend(lines: number, words: number, characters: number): void {
		this.#lines += lines;
		this.#words += words;
		this.#characters += characters;
		if (this.#record) {
			this.#record.lines += lines;
			this.#record.words += words;
			this.#record.characters += characters;
		}
		if (this.#lines <= limits.lines && this.#words <= limits.words && this.#characters <= limits.characters) return;
		this.exhaust();
	}

	/** Stops expansion because an import produced too much. */
	exhaust(): void {
		if (this.exhausted) return;
		this.exhausted = true;
		this.report({
			code: 'import/too-much',
			severity: 'error',
			message: `Imports produce more than ${limits.lines.toLocaleString('en')} lines, or too many words; expansion stopped.`,
			span: this.#at,
			label: 'exceeded the limit here',
			hint: 'Look for snippets that import each other many times.',
		});
	}
}

/** What the whole expansion shares: the report without repeats, and the limit that stops import bombs. */
import type { Diagnostic, Report } from '../diagnostics/diagnostic.ts';
import type { Dialect } from '../dialects/dialect.ts';
import { type SourceSpan, wholeStart } from '../source/source.ts';

/** Most lines, words and characters that imports, arguments and constants may make. */
const limits = { lines: 500_000, words: 2_000_000, characters: 64 * 1024 * 1024 };

/** Most diagnostics of the syntax phases: past it a text is not a configuration, and nobody reads on. */
const mostDiagnostics = 1000;

/** What can be used or not: a snippet, a constant. */
export interface Usable {
	used: boolean;
}

/** What was done while a record was kept. */
export class ExpansionRecord {
	/** Something was said. */
	reported = false;
	readonly used = new Set<Usable>();
	/** Definitions of texts that were read. */
	readonly defined = new Set<string>();
	lines = 0;
	words = 0;
	characters = 0;
}

/** Collects what expansion has to say, each mistake of the text once, however often the text is imported. */
export class ExpansionReport {
	readonly dialect: Dialect;
	/** `(name)` and `let name` of everything that stands somewhere in the files read: tells "unknown" from "too early". */
	get definedLater(): ReadonlySet<string> {
		return this.#definedLater;
	}

	/** True once an error was reported, by parsing or by expansion. */
	failed = false;
	/** True once a limit is passed: nothing more is expanded. */
	exhausted = false;
	readonly #report: Report;
	readonly #seen = new Set<string>();
	readonly #definedLater = new Set<string>();
	#reported = 0;
	#lines = 0;
	#words = 0;
	#characters = 0;
	#record: ExpansionRecord | undefined;
	/** Where the import being carried out stands. */
	#at: SourceSpan | undefined;

	constructor(dialect: Dialect, report: Report) {
		this.dialect = dialect;
		this.#report = report;
	}

	/** Reports once per place and code; with `eachUse`, once for each import of the text. */
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
		if (this.#reported < mostDiagnostics) this.#report(diagnostic);
		else if (this.#reported === mostDiagnostics) {
			const message = `There are more than ${mostDiagnostics} mistakes; the rest is not shown.`;
			this.#report({ code: 'syntax/too-many-mistakes', severity: 'error', message, span });
		}
	}

	/** Keeps a record from now on, instead of the one before; undefined ends it. */
	record(record: ExpansionRecord | undefined): void {
		this.#record = record;
	}

	/** True while a record is kept. */
	get recording(): boolean {
		return this.#record !== undefined;
	}

	/** Something was met that was spoken of before and would be spoken of now otherwise. */
	taint(): void {
		if (this.#record) this.#record.reported = true;
	}

	/** Marks a snippet or a constant used. */
	use(thing: Usable): void {
		thing.used = true;
		this.#record?.used.add(thing);
	}

	/** Notes `(name)` or `let name` of a text that was read. */
	define(name: string): void {
		this.#definedLater.add(name);
		this.#record?.defined.add(name);
	}

	/** Notes an import, for the message should it be the one that goes too far. */
	importing(at: SourceSpan): void {
		this.#at = at;
	}

	/** Counts what an expansion made. */
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

	/** Ends expansion, because of what an import made. */
	exhaust(): void {
		if (this.exhausted) return;
		this.exhausted = true;
		this.report({
			code: 'import/too-much',
			severity: 'error',
			message: `Imports make more than ${limits.lines.toLocaleString('en')} lines, or words as many as that; nothing more is expanded.`,
			span: this.#at,
			label: 'went past the limit here',
			hint: 'Look for snippets that import each other many times over.',
		});
	}
}

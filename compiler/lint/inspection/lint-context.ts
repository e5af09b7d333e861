/** The input to a lint rule: the syntax trees, the resulting document, its plan, and a dry run of it. */
import type { Plan } from '../../codegen/plan/plan.ts';

import type { Diagnostic, Fix } from '../../diagnostics/diagnostic.ts';
import { withWholePlaces } from '../../diagnostics/whole-places.ts';
import type { ConfigInput, Dialect } from '../../dialects/dialect.ts';
import type { Document } from '../../document/document.ts';
import type { DryRunResult } from '../../dry-run/dry-run.ts';
import type { DryRunRequest } from '../../dry-run/dry-run-request.ts';
import type { Reader } from '../../source/reader.ts';
import type { Source, SourceSpan } from '../../source/source.ts';
import type { Line } from '../../syntax/ast.ts';
import type { LintRule } from './lint-rule.ts';
import type { LintScope } from './lint-scope.ts';
import type { WalkedDocument } from './walk-document.ts';

/** The optional parts of a finding. */
export interface FindingDetails {
	readonly label?: string | undefined;
	readonly hint?: string | undefined;
	readonly related?: Diagnostic['related'];
	readonly fix?: Fix | undefined;
}

/**
 * The words in an object's text at which a finding about the object is shown. If they occur several times, the first occurrence
 * is used by default.
 */
export interface WordPlacement {
	readonly words?: string | undefined;
	readonly lastOccurrence?: boolean | undefined;
}

/** The configuration that is checked, and everything that rules may inspect. */
export interface LintSubject {
	/** The compiler's diagnostics. */
	readonly diagnostics: readonly Diagnostic[];
	readonly input: ConfigInput;
	readonly document: Document;
	readonly plan: Plan;
	/** The complete source files, main file first; empty for JSON. */
	readonly sources: readonly Source[];
	readonly reader: Reader;
	/** Returns a text of the main file in canonical form. */
	readonly formatMainFile: (text: string) => string;
	/**
	 * Returns the place in the source from which an object of the document was compiled; undefined if there is none, as for JSON.
	 */
	readonly locate: (pointer: string) => SourceSpan | undefined;
	/**
	 * Sends a request through the handler graph, without a network. Returns undefined if nothing listens at the request's address.
	 */
	readonly dryRun: (request: DryRunRequest) => Promise<DryRunResult | undefined>;
}

/** A rule, applied to one configuration, or to a part of it if the rule declares what it depends on. */
export class LintContext {
	readonly subject: LintSubject;
	readonly dialect: Dialect | undefined;
	readonly document: Document;
	readonly plan: Plan;
	readonly reader: Reader;
	/** The part of the configuration to inspect. */
	readonly scope: LintScope;
	readonly #rule: LintRule;
	readonly #findings: Diagnostic[];
	#mustInspectAgain = false;

	constructor(subject: LintSubject, scope: LintScope, rule: LintRule, findings: Diagnostic[]) {
		this.subject = subject;
		this.scope = scope;
		this.dialect = subject.input.format === 'json' ? undefined : subject.input.format;
		this.document = subject.document;
		this.plan = subject.plan;
		this.reader = subject.reader;
		this.#rule = rule;
		this.#findings = findings;
	}

	/** The steps and conditions in the scope. */
	get walkedDocument(): WalkedDocument {
		return this.scope.walkedDocument;
	}

	/** The expanded syntax trees in the scope; undefined for JSON. */
	get tree(): LintScope['tree'] {
		return this.scope.tree;
	}

	/** True if the scope must be inspected again next time, even if nothing that the rule declares in `dependsOn` has changed. */
	get mustInspectAgain(): boolean {
		return this.#mustInspectAgain || this.scope.isIncomplete;
	}

	/**
	 * Must be called if the absence of findings also depends on something that the rule does not declare in `dependsOn`, such as
	 * files.
	 */
	requestReinspection(): void {
		this.#mustInspectAgain = true;
	}

	/** Reports a finding at a place in the source. */
	report(span: SourceSpan, message: string, details: FindingDetails = {}): void {
		const { name, severity } = this.#rule;
		this.#findings.push(withWholePlaces({ ...details, code: name, severity, message, span }));
	}

	/**
	 * Reports a finding about an object of the document. It is shown at `words` if the object's text contains them, otherwise at
	 * the object's first line, and for JSON at the pointer.
	 */
	reportAt(pointer: string, message: string, details: FindingDetails & WordPlacement = {}): void {
		const { words, lastOccurrence, ...otherDetails } = details;
		const { name, severity } = this.#rule;
		const span = this.span(pointer, words, lastOccurrence);
		if (span && this.#isReported(span)) this.requestReinspection();
		else {
			const finding = { ...otherDetails, code: name, severity, message, ...(span ? { span } : { pointer }) };
			this.#findings.push(withWholePlaces(finding));
		}
	}

	/** Reports whether the compiler has already reported this rule's problem at a place. */
	#isReported({ source, start }: SourceSpan): boolean {
		return this.subject.diagnostics.some(
			({ code, span }) => code === this.#rule.name && span?.start === start && span.source.text === source.text,
		);
	}

	/**
	 * Returns the place of `words` in an object's text. If they do not occur, returns the object's first line; for JSON, undefined.
	 */
	span(pointer: string, words?: string, lastOccurrence?: boolean): SourceSpan | undefined {
		const span = this.subject.locate(pointer);
		if (!span) return undefined;
		if (words === undefined) return firstLineSpan(span);
		let occurrence = findWords(span, words);
		for (
			let nextOccurrence = occurrence;
			nextOccurrence && lastOccurrence;
			nextOccurrence = findWords({ ...span, start: nextOccurrence.end }, words)
		)
			occurrence = nextOccurrence;
		return occurrence ?? findOnlyOccurrence(span.source, words) ?? firstLineSpan(span);
	}

	/**
	 * Returns a `related` entry, for a diagnostic, that refers to an object; undefined if the object has no place in the source.
	 */
	relatedEntry(pointer: string, message: string): Diagnostic['related'] {
		const span = this.span(pointer);
		return span && [{ span, message }];
	}
}

/** Returns the first place in a span where `words` occur as complete words or as the complete content of a quoted word. */
function findWords(span: SourceSpan, words: string): SourceSpan | undefined {
	const { source, start, end } = span;
	for (let position = source.text.indexOf(words, start); position !== -1 && position + words.length <= end; ) {
		const charBefore = source.text[position - 1];
		const charAfter = source.text[position + words.length];
		if (!isWordPart(charBefore, words[0]) && !isWordPart(charAfter, words.at(-1))) {
			return { source, start: position, end: position + words.length };
		}
		position = source.text.indexOf(words, position + 1);
	}
	return undefined;
}

/** Returns the place of `words` in a source if they occur exactly once. */
function findOnlyOccurrence(source: Source, words: string): SourceSpan | undefined {
	const wholeSource = { source, start: 0, end: source.text.length };
	const occurrence = findWords(wholeSource, words);
	return occurrence && !findWords({ ...wholeSource, start: occurrence.end }, words) ? occurrence : undefined;
}

function isWordPart(neighborChar: string | undefined, edgeChar: string | undefined): boolean {
	if (neighborChar === undefined || edgeChar === undefined) return false;
	return /[\w/*.:-]/.test(neighborChar) && /[\w/*.:-]/.test(edgeChar);
}

/** Returns the first line of a span, without a comment and without the brace that opens a block. */
export function firstLineSpan({ source, start, end }: SourceSpan): SourceSpan {
	const newline = source.text.indexOf('\n', start);
	const line = source.text.slice(start, newline === -1 || newline > end ? end : newline);
	const trimmedLine = line.replace(/\s*\{?\s*(?:#.*)?$/, '');
	return { source, start, end: start + Math.max(1, trimmedLine.length) };
}

/** Yields every line of a tree together with the lines that enclose it, outermost first. */
export function* linesOf(
	tree: NonNullable<LintScope['tree']>,
): Generator<{ readonly line: Line; readonly enclosingLines: readonly Line[] }> {
	for (const { lines } of [...tree.namedRoutes, ...tree.sites]) yield* linesIn(lines, []);
}

function* linesIn(
	lines: readonly Line[],
	enclosingLines: readonly Line[],
): Generator<{ line: Line; enclosingLines: readonly Line[] }> {
	for (const line of lines) {
		yield { line, enclosingLines };
		if (line.block) yield* linesIn(line.block.lines, [...enclosingLines, line]);
		if (line.alternative) yield* linesIn([line.alternative], enclosingLines);
	}
}

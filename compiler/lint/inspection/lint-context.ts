/** The input to a lint rule: the syntax trees, the resulting document, its plan, and a dry run of it. */
import type { Plan } from '../../codegen/plan/plan.ts';

import type { Diagnostic, Fix } from '../../diagnostics/diagnostic.ts';
import type { ConfigInput, Dialect } from '../../dialects/dialect.ts';
import type { Document } from '../../document/document.ts';
import type { DryRunResult } from '../../dry-run/dry-run.ts';
import type { DryRunRequest } from '../../dry-run/dry-run-request.ts';
import type { Reader } from '../../source/reader.ts';
import type { Source, SourceSpan } from '../../source/source.ts';
import type { ConfigTree, Line } from '../../syntax/ast.ts';
import type { LintRule } from './lint-rule.ts';
import type { WalkedDocument } from './walk-document.ts';

/** The optional parts of a rule's finding. */
export interface FindingDetails {
	readonly label?: string | undefined;
	readonly hint?: string | undefined;
	readonly related?: Diagnostic['related'];
	readonly fix?: Fix | undefined;
}

/** The words at which a finding about an object is shown: their first or last occurrence in the object's text. */
export interface WordPlacement {
	readonly words?: string | undefined;
	readonly last?: boolean | undefined;
}

/** The configuration being linted. */
export interface LintSubject {
	/** The diagnostics of the compilation. */
	readonly diagnostics: readonly Diagnostic[];
	readonly input: ConfigInput;
	readonly document: Document;
	readonly plan: Plan;
	readonly walked: WalkedDocument;
	/** The expanded syntax tree; undefined for JSON. */
	readonly tree: ConfigTree | undefined;
	/** The complete source files, main file first; empty for JSON. */
	readonly sources: readonly Source[];
	readonly reader: Reader;
	/** Returns the place in the source from which an object of the document was compiled; undefined for JSON. */
	readonly locate: (pointer: string) => SourceSpan | undefined;
	/** Sends a request through the live handler graph, without a network. Returns undefined if nothing listens there. */
	readonly dryRun: (request: DryRunRequest) => Promise<DryRunResult | undefined>;
}

/** A rule, applied to one configuration. */
export class LintContext {
	readonly subject: LintSubject;
	readonly dialect: Dialect | undefined;
	readonly document: Document;
	readonly plan: Plan;
	readonly walked: WalkedDocument;
	readonly tree: ConfigTree | undefined;
	readonly reader: Reader;
	readonly #rule: LintRule;
	readonly #found: Diagnostic[];

	constructor(subject: LintSubject, rule: LintRule, found: Diagnostic[]) {
		this.subject = subject;
		this.dialect = subject.input.format === 'json' ? undefined : subject.input.format;
		this.document = subject.document;
		this.plan = subject.plan;
		this.walked = subject.walked;
		this.tree = subject.tree;
		this.reader = subject.reader;
		this.#rule = rule;
		this.#found = found;
	}

	/** Reports a finding at a place in the source. */
	report(span: SourceSpan, message: string, more: FindingDetails = {}): void {
		const { name, severity } = this.#rule;
		this.#found.push({ ...more, code: name, severity, message, span });
	}

	/**
	 * Reports a finding about an object of the document: at `words` if its text contains them, otherwise at the object's line,
	 * and for JSON at its pointer.
	 */
	at(pointer: string, message: string, more: FindingDetails & WordPlacement = {}): void {
		const { words, last, ...rest } = more;
		const { name, severity } = this.#rule;
		const span = this.span(pointer, words, last);
		if (span && this.#isReported(span)) return;
		this.#found.push({ ...rest, code: name, severity, message, ...(span ? { span } : { pointer }) });
	}

	/** Reports whether the compiler has already reported this place under the rule's name. */
	#isReported({ source, start }: SourceSpan): boolean {
		return this.subject.diagnostics.some(
			({ code, span }) => code === this.#rule.name && span?.start === start && span.source.text === source.text,
		);
	}

	/** Returns the place of `words` in an object's text, otherwise of the object's first line. Undefined for JSON. */
	span(pointer: string, words?: string, last?: boolean): SourceSpan | undefined {
		const span = this.subject.locate(pointer);
		if (!span) return undefined;
		if (words === undefined) return firstLineSpan(span);
		let found = wordsIn(span, words);
		for (let next = found; next && last; next = wordsIn({ ...span, start: next.end }, words)) found = next;
		return found ?? onlyIn(span.source, words) ?? firstLineSpan(span);
	}

	/** Returns an object's place as a related place of a diagnostic; undefined if it has none. */
	related(pointer: string, message: string): Diagnostic['related'] {
		const span = this.span(pointer);
		return span && [{ span, message }];
	}
}

/** Returns the first place in a span where `words` occur as a word or as a word's content. */
function wordsIn(span: SourceSpan, words: string): SourceSpan | undefined {
	const { source, start, end } = span;
	for (let at = source.text.indexOf(words, start); at !== -1 && at + words.length <= end; ) {
		const before = source.text[at - 1];
		const after = source.text[at + words.length];
		if (!isWordPart(before, words[0]) && !isWordPart(after, words.at(-1))) {
			return { source, start: at, end: at + words.length };
		}
		at = source.text.indexOf(words, at + 1);
	}
	return undefined;
}

/** Returns the place of `words` if they occur exactly once in a source. */
function onlyIn(source: Source, words: string): SourceSpan | undefined {
	const all = { source, start: 0, end: source.text.length };
	const found = wordsIn(all, words);
	return found && !wordsIn({ ...all, start: found.end }, words) ? found : undefined;
}

function isWordPart(neighbour: string | undefined, own: string | undefined): boolean {
	if (neighbour === undefined || own === undefined) return false;
	return /[\w/*.:-]/.test(neighbour) && /[\w/*.:-]/.test(own);
}

/** Returns the first line of a span, without the brace that opens a block. */
export function firstLineSpan({ source, start, end }: SourceSpan): SourceSpan {
	const newline = source.text.indexOf('\n', start);
	const line = source.text.slice(start, newline === -1 || newline > end ? end : newline);
	const trimmed = line.replace(/\s*\{?\s*(?:#.*)?$/, '');
	return { source, start, end: start + Math.max(1, trimmed.length) };
}

/** Yields every line of a tree with the lines that enclose it, outermost first. */
export function* linesOf(tree: ConfigTree): Generator<{ readonly line: Line; readonly around: readonly Line[] }> {
	for (const { lines } of [...tree.namedRoutes, ...tree.sites]) yield* linesIn(lines, []);
}

function* linesIn(lines: readonly Line[], around: readonly Line[]): Generator<{ line: Line; around: readonly Line[] }> {
	for (const line of lines) {
		yield { line, around };
		if (line.block) yield* linesIn(line.block.lines, [...around, line]);
		if (line.alternative) yield* linesIn([line.alternative], around);
	}
}

/** Gathers the diagnostics of all phases, so that what one phase said is not said again by the next. */
import type { Diagnostic, Severity } from '../diagnostics/diagnostic.ts';
import { sortDiagnostics } from '../diagnostics/sort-diagnostics.ts';
import type { SourceSpan } from '../source/source.ts';
import { withPlace } from './compatible-message.ts';

/** Most errors, and most warnings, of one compilation: nobody reads on, and each is rendered with its code frame. */
const MOST_OF_A_SEVERITY = 1000;

/** Most UTF-16 units of a message, of which the last may be a place: words in it may be as long as the file. */
const LONGEST_MESSAGE = 1000;
const KEPT_END = 200;

const UNKNOWN_WORDS: readonly string[] = ['let/unknown', 'let/list-inside-word', 'snippet/unknown-parameter'];

/** One compilation's diagnostics. */
export class DiagnosticCollector {
	/** True when an error was reported. */
	hasErrors = false;
	readonly #found: Diagnostic[] = [];
	readonly #errors: SourceSpan[] = [];
	/** Words of which nobody knows what they stand for: what else is wrong with them is that. */
	readonly #unknown: SourceSpan[] = [];
	readonly #counts: { [severity in Severity]: number } = { error: 0, warning: 0, note: 0 };

	/** Takes a finding of the text phases. */
	readonly report = (diagnostic: Diagnostic): void => {
		const { span, severity } = diagnostic;
		if (severity === 'error') {
			this.hasErrors = true;
			if (span && this.#unknown.some(word => within(span, word))) return;
			if (span && UNKNOWN_WORDS.includes(diagnostic.code)) this.#unknown.push(span);
		}
		const count = this.#counts[severity]++;
		if (count > MOST_OF_A_SEVERITY) return;
		if (span && severity === 'error') this.#errors.push(span);
		this.#found.push(count < MOST_OF_A_SEVERITY ? withPlace(shortened(diagnostic)) : tooMany(diagnostic));
	};

	/** A report for findings about a lowered document: given a span by its origins, dropped where an error was reported before. */
	ofDocument(locate: ((pointer: string) => SourceSpan | undefined) | undefined): (diagnostic: Diagnostic) => void {
		return diagnostic => {
			const span = diagnostic.span ?? (diagnostic.pointer === undefined ? undefined : locate?.(diagnostic.pointer));
			if (span && this.#errors.some(error => within(error, span))) return;
			this.report(span ? { ...diagnostic, span } : withoutCaret(diagnostic));
		};
	}

	/** All of them, each once, in the order of the main file. */
	sorted(): Diagnostic[] {
		return sortDiagnostics(this.#found);
	}
}

/** A diagnostic whose texts are short enough to be shown and sent. */
function shortened(diagnostic: Diagnostic): Diagnostic {
	const { message, label, hint, pointer } = diagnostic;
	const longest = Math.max(message.length, label?.length ?? 0, hint?.length ?? 0, pointer?.length ?? 0);
	if (longest <= LONGEST_MESSAGE) return diagnostic;
	return {
		...diagnostic,
		message: cut(message),
		...(label === undefined ? {} : { label: cut(label) }),
		...(hint === undefined ? {} : { hint: cut(hint) }),
		...(pointer === undefined ? {} : { pointer: cut(pointer) }),
	};
}

function cut(text: string): string {
	if (text.length <= LONGEST_MESSAGE) return text;
	return `${text.slice(0, LONGEST_MESSAGE - KEPT_END)}…${text.slice(-KEPT_END)}`;
}

function tooMany({ severity, span, pointer }: Diagnostic): Diagnostic {
	const what = severity === 'error' ? 'mistakes' : `${severity}s`;
	const message = `There are more than ${MOST_OF_A_SEVERITY} ${what}; the rest is not shown.`;
	return { code: 'document/too-many-mistakes', severity, message, span, pointer };
}

/** Where there is no text to point at, what would stand under the caret goes into the hint. */
function withoutCaret(diagnostic: Diagnostic): Diagnostic {
	const { label, hint } = diagnostic;
	if (label === undefined) return diagnostic;
	const sentence = label[0]!.toUpperCase() + label.slice(1);
	return { ...diagnostic, label: undefined, hint: hint === undefined ? sentence : `${sentence} ${hint}` };
}

function within(inner: SourceSpan, outer: SourceSpan): boolean {
	return (
		(inner.source === outer.source ||
			(inner.source.text === outer.source.text && inner.source.path === outer.source.path)) &&
		inner.start >= outer.start &&
		inner.end <= outer.end
	);
}

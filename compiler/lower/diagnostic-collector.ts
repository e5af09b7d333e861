/** Collects the diagnostics of all phases, and drops those that only repeat one of an earlier phase. */
import type { Diagnostic, Severity } from '../diagnostics/diagnostic.ts';
import { sortDiagnostics } from '../diagnostics/sort-diagnostics.ts';
import type { SourceSpan } from '../source/source.ts';
import { insertPlace } from './compatible-message.ts';

/** Maximum number of errors, and of warnings, per compilation. Nobody reads more, and each is rendered with a code frame. */
const MAX_PER_SEVERITY = 1000;

/** Maximum UTF-16 units of a message. It may quote words as long as the file. Its end is kept, because it may be a place. */
const MAX_MESSAGE = 1000;
const KEPT_END = 200;

const UNKNOWN_WORDS: readonly string[] = ['let/unknown', 'let/list-inside-word', 'snippet/unknown-parameter'];

/** The diagnostics of one compilation. */
export class DiagnosticCollector {
	/** True once an error has been reported. */
	hasErrors = false;
	readonly #found: Diagnostic[] = [];
	readonly #errors: SourceSpan[] = [];
	/** Words with an unknown meaning. Any other mistake in them is a consequence. */
	readonly #unknown: SourceSpan[] = [];
	readonly #counts: { [severity in Severity]: number } = { error: 0, warning: 0, note: 0 };

	/** Adds a diagnostic of a phase that processes text. */
	readonly report = (diagnostic: Diagnostic): void => {
		const { span, severity } = diagnostic;
		if (severity === 'error') {
			this.hasErrors = true;
			if (span && this.#unknown.some(word => within(span, word))) return;
			if (span && UNKNOWN_WORDS.includes(diagnostic.code)) this.#unknown.push(span);
		}
		const count = this.#counts[severity]++;
		if (count > MAX_PER_SEVERITY) return;
		if (span && severity === 'error') this.#errors.push(span);
		this.#found.push(count < MAX_PER_SEVERITY ? insertPlace(shortened(diagnostic)) : tooMany(diagnostic));
	};

	/**
	 * Returns a function that adds diagnostics about a lowered document. It adds the span from which the object was lowered, and
	 * drops diagnostics at a place that already has an error.
	 */
	ofDocument(locate: ((pointer: string) => SourceSpan | undefined) | undefined): (diagnostic: Diagnostic) => void {
		return diagnostic => {
			const span = diagnostic.span ?? (diagnostic.pointer === undefined ? undefined : locate?.(diagnostic.pointer));
			if (span && this.#errors.some(error => within(error, span))) return;
			this.report(span ? { ...diagnostic, span } : withoutCaret(diagnostic));
		};
	}

	/** Returns all diagnostics without repeats, sorted by place in the main file. */
	sorted(): Diagnostic[] {
		return sortDiagnostics(this.#found);
	}
}

/** Returns a diagnostic with its strings cut to a length that can be shown and sent. */
function shortened(diagnostic: Diagnostic): Diagnostic {
	const { message, label, hint, pointer } = diagnostic;
	const longest = Math.max(message.length, label?.length ?? 0, hint?.length ?? 0, pointer?.length ?? 0);
	if (longest <= MAX_MESSAGE) return diagnostic;
	return {
		...diagnostic,
		message: cut(message),
		...(label === undefined ? {} : { label: cut(label) }),
		...(hint === undefined ? {} : { hint: cut(hint) }),
		...(pointer === undefined ? {} : { pointer: cut(pointer) }),
	};
}

function cut(text: string): string {
	if (text.length <= MAX_MESSAGE) return text;
	return `${text.slice(0, MAX_MESSAGE - KEPT_END)}…${text.slice(-KEPT_END)}`;
}

function tooMany({ severity, span, pointer }: Diagnostic): Diagnostic {
	const what = severity === 'error' ? 'mistakes' : `${severity}s`;
	const message = `There are more than ${MAX_PER_SEVERITY} ${what}; the rest are not shown.`;
	return { code: 'document/too-many-mistakes', severity, message, span, pointer };
}

/** Moves the label under the caret to the hint, for a diagnostic without a place in a text. */
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

/** Collects the diagnostics of all phases, and drops those that only repeat a diagnostic of an earlier phase. */
import type { Diagnostic, Severity } from '../diagnostics/diagnostic.ts';
import { sortDiagnostics } from '../diagnostics/sort-diagnostics.ts';
import type { SourceSpan } from '../source/source.ts';
import { writePlaceIntoMessage } from './compatible-message.ts';

/** Maximum number of diagnostics of each severity in one compilation. Nobody reads more, and rendering each one takes time. */
const MAX_PER_SEVERITY = 1000;

/**
 * Maximum UTF-16 units of a message. A message may quote a word that is as long as the file. If a message is shortened, its end
 * is kept, because it may contain the file and line.
 */
const MAX_MESSAGE_UNITS = 1000;
const MESSAGE_END_UNITS = 200;

const UNKNOWN_WORD_CODES: readonly string[] = ['let/unknown', 'let/list-inside-word', 'snippet/unknown-parameter'];

/** The diagnostics of one compilation. */
export class DiagnosticCollector {
	hasErrors = false;
	readonly #diagnostics: Diagnostic[] = [];
	readonly #errorSpans: SourceSpan[] = [];
	/** Spans of words whose meaning is unknown. Further mistakes in these words are not reported. */
	readonly #unknownWords: SourceSpan[] = [];
	readonly #countsBySeverity: { [severity in Severity]: number } = { error: 0, warning: 0, note: 0 };

	/** Adds a diagnostic of a phase that processes text. */
	readonly report = (diagnostic: Diagnostic): void => {
		const { span, severity } = diagnostic;
		if (severity === 'error') {
			this.hasErrors = true;
			if (span && this.#unknownWords.some(word => isWithin(span, word))) return;
			if (span && UNKNOWN_WORD_CODES.includes(diagnostic.code)) this.#unknownWords.push(span);
		}
		const reportedCount = this.#countsBySeverity[severity]++;
		if (reportedCount > MAX_PER_SEVERITY) return;
		if (span && severity === 'error') this.#errorSpans.push(span);
		this.#diagnostics.push(
			reportedCount < MAX_PER_SEVERITY
				? writePlaceIntoMessage(withShortStrings(diagnostic))
				: tooManyDiagnostic(diagnostic),
		);
	};

	/**
	 * Returns a function that adds diagnostics about a lowered document. It gives each diagnostic the span from which the object at
	 * its pointer was lowered. It drops diagnostics at places that already have an error.
	 */
	createDocumentReport(
		locate: ((pointer: string) => SourceSpan | undefined) | undefined,
	): (diagnostic: Diagnostic) => void {
		return diagnostic => {
			const span = diagnostic.span ?? (diagnostic.pointer === undefined ? undefined : locate?.(diagnostic.pointer));
			if (span && this.#errorSpans.some(error => isWithin(error, span))) return;
			const placedDiagnostic = withRelatedPlace(diagnostic, locate);
			this.report(span ? { ...placedDiagnostic, span } : withoutCaret(placedDiagnostic));
		};
	}

	/** Returns all diagnostics, without repeats and sorted by place in the main file. */
	sortedDiagnostics(): Diagnostic[] {
		return sortDiagnostics(this.#diagnostics);
	}
}

/**
 * Replaces `relatedPointer` by the place in the text from which the object at the pointer was lowered; without a text, by a hint.
 */
function withRelatedPlace(
	diagnostic: Diagnostic,
	locate: ((pointer: string) => SourceSpan | undefined) | undefined,
): Diagnostic {
	const { relatedPointer, ...otherFields } = diagnostic;
	if (!relatedPointer) return diagnostic;
	const { pointer, message } = relatedPointer;
	const span = locate?.(pointer);
	if (span) return { ...otherFields, related: [...(diagnostic.related ?? []), { span, message }] };
	const place = `(${message}: ${pointer})`;
	return { ...otherFields, hint: diagnostic.hint === undefined ? place : `${diagnostic.hint} ${place}` };
}

/** Returns a diagnostic with long texts shortened, so that they can be shown and sent. */
function withShortStrings(diagnostic: Diagnostic): Diagnostic {
	const { message, label, hint, pointer } = diagnostic;
	const maxLength = Math.max(message.length, label?.length ?? 0, hint?.length ?? 0, pointer?.length ?? 0);
	if (maxLength <= MAX_MESSAGE_UNITS) return diagnostic;
	return {
		...diagnostic,
		message: shortenText(message),
		...(label === undefined ? {} : { label: shortenText(label) }),
		...(hint === undefined ? {} : { hint: shortenText(hint) }),
		...(pointer === undefined ? {} : { pointer: shortenText(pointer) }),
	};
}

function shortenText(text: string): string {
	if (text.length <= MAX_MESSAGE_UNITS) return text;
	return `${text.slice(0, MAX_MESSAGE_UNITS - MESSAGE_END_UNITS)}…${text.slice(-MESSAGE_END_UNITS)}`;
}

function tooManyDiagnostic({ severity, span, pointer }: Diagnostic): Diagnostic {
	const noun = severity === 'error' ? 'mistakes' : `${severity}s`;
	const message = `There are more than ${MAX_PER_SEVERITY} ${noun}; the rest are not shown.`;
	return { code: 'document/too-many-mistakes', severity, message, span, pointer };
}

/**
 * Moves the label of a diagnostic without a place in a text to its hint, because there is no caret under which to show the label.
 */
function withoutCaret(diagnostic: Diagnostic): Diagnostic {
	const { label, hint } = diagnostic;
	if (label === undefined) return diagnostic;
	const sentence = label[0]!.toUpperCase() + label.slice(1);
	return { ...diagnostic, label: undefined, hint: hint === undefined ? sentence : `${sentence} ${hint}` };
}

function isWithin(inner: SourceSpan, outer: SourceSpan): boolean {
	return (
		(inner.source === outer.source ||
			(inner.source.text === outer.source.text && inner.source.path === outer.source.path)) &&
		inner.start >= outer.start &&
		inner.end <= outer.end
	);
}

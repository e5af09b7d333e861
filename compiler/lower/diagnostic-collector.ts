/** Gathers the diagnostics of all phases, so that what one phase said is not said again by the next. */
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { sortDiagnostics } from '../diagnostics/sort-diagnostics.ts';
import type { SourceSpan } from '../source/source.ts';
import type { Origins } from './origins.ts';

/** One compilation's diagnostics. */
export class DiagnosticCollector {
	readonly #found: Diagnostic[] = [];
	readonly #errors: SourceSpan[] = [];

	/** True when an error was reported. */
	get hasErrors(): boolean {
		return this.#found.some(({ severity }) => severity === 'error');
	}

	/** Takes a finding of the text phases. */
	readonly report = (diagnostic: Diagnostic): void => {
		const { span, severity } = diagnostic;
		if (span && severity === 'error') this.#errors.push(span);
		this.#found.push(diagnostic);
	};

	/** A report for findings about a lowered document: given a span by its origins, dropped where an error was reported before. */
	ofDocument(document: unknown, origins: Origins | undefined): (diagnostic: Diagnostic) => void {
		return diagnostic => {
			const span =
				diagnostic.span ??
				(diagnostic.pointer === undefined ? undefined : origins?.locate(document, diagnostic.pointer));
			if (span && this.#errors.some(error => within(error, span))) return;
			this.report(span ? { ...diagnostic, span } : withoutCaret(diagnostic));
		};
	}

	/** All of them, each once, in the order of the main file. */
	sorted(): Diagnostic[] {
		return sortDiagnostics(this.#found);
	}
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

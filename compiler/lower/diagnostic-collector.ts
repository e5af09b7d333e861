/** Gathers the diagnostics of all phases, so that what one phase said is not said again by the next. */
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { SourceSpan } from '../source/source.ts';
import type { Origins } from './origins.ts';

/** One compilation's diagnostics. */
export class DiagnosticCollector {
	readonly #found: Diagnostic[] = [];
	readonly #seen = new Set<string>();
	readonly #errors: SourceSpan[] = [];

	/** True when an error was reported. */
	get hasErrors(): boolean {
		return this.#found.some(({ severity }) => severity === 'error');
	}

	/** Takes a finding of the text phases. The same finding at the same place of a text that is used twice is kept once. */
	readonly report = (diagnostic: Diagnostic): void => {
		const { code, message, span, pointer, severity } = diagnostic;
		const place = span ? `${span.source.path ?? span.source.name}:${span.start}` : (pointer ?? '');
		const key = `${code} ${place} ${message}`;
		if (this.#seen.has(key)) return;
		this.#seen.add(key);
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

	/** All of them: by file in the order in which the files were read, then by place. */
	sorted(files: readonly string[]): Diagnostic[] {
		const order = new Map(files.map((file, at) => [file, at]));
		const rank = ({ span }: Diagnostic): number =>
			span?.source.path === undefined ? -1 : (order.get(span.source.path) ?? files.length);
		return [...this.#found].sort((a, b) => rank(a) - rank(b) || (a.span?.start ?? 0) - (b.span?.start ?? 0));
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

/** Diagnostics without live objects, for threads, the Admin API and `--format json`. */
import type { Diagnostic, DiagnosticReport } from './diagnostic.ts';
import { renderDiagnostic } from './render.ts';

/** The report of a diagnostic: its place as numbers and its whole rendering as plain text. */
export function toReport(diagnostic: Diagnostic): DiagnosticReport {
	const { code, severity, message, span, pointer, hint } = diagnostic;
	const start = span?.source.position(span.start);
	const end = span?.source.position(span.end);
	return {
		code,
		severity,
		message,
		...(span && start && end
			? { file: span.source.name, line: start.line, column: start.column, end_line: end.line, end_column: end.column }
			: {}),
		...(pointer === undefined ? {} : { pointer }),
		...(hint === undefined ? {} : { hint }),
		text: renderDiagnostic(diagnostic),
	};
}

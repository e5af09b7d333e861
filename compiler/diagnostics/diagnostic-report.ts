/** Diagnostics without live objects, for threads, the Admin API and `--format json`. */
import type { Diagnostic, DiagnosticReport, ReportedEdit, TextEdit } from './diagnostic.ts';
import { renderDiagnostic } from './render.ts';

/** The report of a diagnostic: its place as numbers and its whole rendering as plain text. */
export function toReport(diagnostic: Diagnostic): DiagnosticReport {
	return reportOf(diagnostic, true);
}

/**
 * Reports a diagnostic to whoever may not see the contents of its file: its code and its place, nothing that quotes a word
 * of the file.
 */
export function toWithheldReport({ code, severity, span }: Diagnostic): DiagnosticReport {
	const message = 'What is wrong in this file is not shown, because the running configuration was not read from it.';
	return reportOf({ code, severity, span, message, hint: 'Run `svc validate` on the machine of the server.' }, false);
}

function reportOf(diagnostic: Diagnostic, frame: boolean): DiagnosticReport {
	const { code, severity, message, span, pointer, hint, fix } = diagnostic;
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
		...(fix && fix.length > 0 ? { fix: fix.map(reportedEdit) } : {}),
		text: renderDiagnostic(diagnostic, { frame }),
	};
}

function reportedEdit({ span, text }: TextEdit): ReportedEdit {
	const start = span.source.position(span.start);
	const end = span.source.position(span.end);
	return {
		file: span.source.name,
		line: start.line,
		column: start.column,
		end_line: end.line,
		end_column: end.column,
		text,
	};
}

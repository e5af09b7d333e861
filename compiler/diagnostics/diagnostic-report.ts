/** Converts diagnostics to plain data, for other threads, the Admin API and `--format json`. */
import type { Diagnostic, DiagnosticReport, ReportedEdit, TextEdit } from './diagnostic.ts';
import { renderDiagnostic } from './render.ts';

/** Converts a diagnostic to plain data, including its place as numbers and its full rendering without color. */
export function toReport(diagnostic: Diagnostic): DiagnosticReport {
	return buildReport(diagnostic, true);
}

/** Converts a diagnostic for a client that may not see the file: keeps its code, file and line, but quotes no text. */
export function toWithheldReport({ code, severity, span }: Diagnostic): DiagnosticReport {
	const message = 'Details are withheld: the running configuration was not read from this file.';
	return buildReport({ code, severity, span, message, hint: 'Run `svc validate` on the server itself.' }, false);
}

function buildReport(diagnostic: Diagnostic, includesFrame: boolean): DiagnosticReport {
	const { code, severity, message, span, pointer, hint, fix } = diagnostic;
	const startPosition = span?.source.position(span.start);
	const endPosition = span?.source.position(span.end);
	return {
		code,
		severity,
		message,
		...(span && startPosition && endPosition
			? {
					file: span.source.name,
					line: startPosition.line,
					column: startPosition.column,
					end_line: endPosition.line,
					end_column: endPosition.column,
				}
			: {}),
		...(pointer === undefined ? {} : { pointer }),
		...(hint === undefined ? {} : { hint }),
		...(fix ? { fixes: [{ safety: fix.safety, edits: fix.edits.map(toReportedEdit) }] } : {}),
		text: renderDiagnostic(diagnostic, { frame: includesFrame }),
	};
}

function toReportedEdit({ span, text }: TextEdit): ReportedEdit {
	const startPosition = span.source.position(span.start);
	const endPosition = span.source.position(span.end);
	return {
		file: span.source.name,
		line: startPosition.line,
		column: startPosition.column,
		end_line: endPosition.line,
		end_column: endPosition.column,
		text,
	};
}

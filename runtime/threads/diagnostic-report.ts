/** A diagnostic as it crosses threads. */
import type { Diagnostic, DiagnosticReport } from '../../compiler/diagnostics/diagnostic.ts';

export function diagnosticReport(diagnostic: Diagnostic): DiagnosticReport {
	const { code, severity, message, pointer, hint } = diagnostic;
	return {
		code,
		severity,
		message,
		...(pointer === undefined ? {} : { pointer }),
		...(hint === undefined ? {} : { hint }),
		text: `${severity}[${code}]: ${message}`,
	};
}

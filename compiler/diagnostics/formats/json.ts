/** Findings as one JSON object: `--format json`. */
import { toReport } from '../diagnostic-report.ts';
import type { Findings } from './findings.ts';

/** The report, with a line end. The members of a diagnostic are those of the Admin API. */
export function jsonReport({ name, valid, diagnostics, tests }: Findings): string {
	return `${JSON.stringify({ name, valid, tests, diagnostics: diagnostics.map(toReport) }, undefined, 2)}\n`;
}

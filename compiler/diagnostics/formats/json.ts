/** Findings as one JSON object, of however many configurations: `--format json`. */
import { toReport } from '../diagnostic-report.ts';
import type { Findings } from './findings.ts';

/**
 * The report, with a line end. The members of a diagnostic are those of the Admin API. Of several configurations it holds
 * whether all are valid, the sum of their tests, and the report of each under `configurations`.
 */
export function jsonReport(all: readonly Findings[]): string {
	const reports = all.map(({ name, valid, tests, diagnostics }) => {
		return { name, valid, tests, diagnostics: diagnostics.map(toReport) };
	});
	return `${JSON.stringify(reports.length === 1 ? reports[0] : merged(reports), undefined, 2)}\n`;
}

function merged(configurations: readonly Pick<Findings, 'valid' | 'tests'>[]): object {
	const sum = (of: 'passed' | 'failed'): number => configurations.reduce((count, { tests }) => count + tests[of], 0);
	return {
		valid: configurations.every(({ valid }) => valid),
		tests: { passed: sum('passed'), failed: sum('failed') },
		configurations,
	};
}

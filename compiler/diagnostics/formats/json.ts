/** Findings about one or more configurations as one JSON object: `--format json`. */
import { toReport } from '../diagnostic-report.ts';
import type { Findings } from './findings.ts';

/**
 * Returns the report, ending in a newline. A diagnostic has the same members as in the Admin API. For several configurations,
 * the report says whether all are valid, sums up their tests, and holds the report of each under `configurations`.
 */
export function jsonReport(configurations: readonly Findings[]): string {
	const reports = configurations.map(({ name, valid, tests, diagnostics }) => {
		return { name, valid, tests, diagnostics: diagnostics.map(toReport) };
	});
	return `${JSON.stringify(reports.length === 1 ? reports[0] : mergeReports(reports), undefined, 2)}\n`;
}

function mergeReports(configurations: readonly Pick<Findings, 'valid' | 'tests'>[]): object {
	const sum = (counter: 'passed' | 'failed'): number =>
		configurations.reduce((count, { tests }) => count + tests[counter], 0);
	return {
		valid: configurations.every(({ valid }) => valid),
		tests: { passed: sum('passed'), failed: sum('failed') },
		configurations,
	};
}

/** Renders test coverage as text, as an lcov file, and as a page. */
import { escapeHtml } from '../exchange/html-text.ts';
import type { CoveredLine, TestCoverage } from './test-coverage.ts';

/** The totals over a whole configuration. */
interface Totals {
	readonly directives: number;
	readonly reachedDirectives: number;
	/** Number of branches: each condition has two, one for each result. */
	readonly branches: number;
	readonly takenBranches: number;
}

/** Returns a line for each directive or branch that no test reaches, and a summary. Ends in a newline. */
export function renderCoverage(coverage: TestCoverage): string {
	const lines = coverage.lines.flatMap(line => {
		const gap = describeGap(line);
		return gap === undefined ? [] : [`${line.file}:${line.line}: ${gap}: ${line.text}`];
	});
	const { directives, reachedDirectives, branches, takenBranches } = countTotals(coverage);
	lines.push(
		`Tests reach ${reachedDirectives} of ${directives} directives and ${takenBranches} of ${branches} branches.`,
	);
	return `${lines.join('\n')}\n`;
}

/** Returns the coverage as an lcov tracefile, which editors and coverage services read. */
export function coverageAsLcov(coverage: TestCoverage): string {
	const records = [...coverage.texts.keys()].sort().map(file => {
		const fileLines = coverage.lines.filter(line => line.file === file);
		const linesWithRuns = fileLines.filter(({ runs }) => runs !== undefined);
		const branchRecords = fileLines.flatMap(({ line, condition }) =>
			condition ? [`BRDA:${line},0,0,${condition.held}`, `BRDA:${line},0,1,${condition.failed}`] : [],
		);
		return [
			'TN:',
			`SF:${file}`,
			...branchRecords,
			`BRF:${branchRecords.length}`,
			`BRH:${branchRecords.filter(text => !text.endsWith(',0')).length}`,
			...linesWithRuns.map(({ line, runs }) => `DA:${line},${runs}`),
			`LF:${linesWithRuns.length}`,
			`LH:${linesWithRuns.filter(({ runs }) => runs! > 0).length}`,
			'end_of_record',
			'',
		].join('\n');
	});
	return records.join('');
}

/** Returns the coverage as a self-contained HTML page. */
export function coverageAsHtml(coverage: TestCoverage): string {
	const { directives, reachedDirectives, branches, takenBranches } = countTotals(coverage);
	const fileSections = [...coverage.texts]
		.sort(([one], [other]) => (one < other ? -1 : 1))
		.map(([file, text]) => {
			const lineByNumber = new Map(coverage.lines.filter(line => line.file === file).map(line => [line.line, line]));
			const rows = text
				.replace(/\n$/, '')
				.split('\n')
				.map((lineText, index) => {
					const line = lineByNumber.get(index + 1);
					const gap = line && describeGap(line);
					const cssClass =
						line === undefined ? '' : gap === undefined ? 'full' : (line.runs ?? 1) > 0 ? 'part' : 'none';
					const runsText = line?.runs === undefined ? '' : `${line.runs}×`;
					const titleAttribute = gap === undefined ? '' : ` title="${escapeHtml(gap)}"`;
					return `<tr class="${cssClass}"${titleAttribute}><td>${index + 1}</td><td>${runsText}</td><td>${escapeHtml(lineText)}</td></tr>`;
				});
			return `<h2>${escapeHtml(file)}</h2>\n<table>\n${rows.join('\n')}\n</table>`;
		});
	return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Coverage of a configuration</title>
<style>
:root { color-scheme: light dark; font-family: system-ui, sans-serif; }
body { margin: 2rem; }
table { border-collapse: collapse; font: 0.9rem/1.5 ui-monospace, monospace; }
td { padding: 0 0.8em; white-space: pre; tab-size: 4; }
td:nth-child(-n + 2) { text-align: right; opacity: 0.6; }
.full td:nth-child(3) { background: light-dark(#e3f6e5, #12351a); }
.part td:nth-child(3) { background: light-dark(#fff3c9, #4a3c05); }
.none td:nth-child(3) { background: light-dark(#ffdfdc, #4d1512); }
</style>
<h1>Coverage of a configuration</h1>
<p>Tests reach ${reachedDirectives} of ${directives} directives and ${takenBranches} of ${branches} branches.</p>
${fileSections.join('\n')}
</html>
`;
}

function describeGap({ runs, condition }: CoveredLine): string | undefined {
	if (condition && condition.held + condition.failed === 0) return 'no test evaluates this condition';
	if (condition && condition.held === 0) return 'in no test does this condition hold';
	if (runs === 0) return 'no test reaches this directive';
	if (condition && condition.failed === 0) return 'in all tests, this condition holds';
	return undefined;
}

function countTotals({ lines }: TestCoverage): Totals {
	const directives = lines.filter(({ runs }) => runs !== undefined);
	const conditions = lines.flatMap(({ condition }) => condition ?? []);
	return {
		directives: directives.length,
		reachedDirectives: directives.filter(({ runs }) => runs! > 0).length,
		branches: conditions.length * 2,
		takenBranches: conditions.reduce((sum, { held, failed }) => sum + Math.min(held, 1) + Math.min(failed, 1), 0),
	};
}

/** Results of a configuration's tests in JUnit's XML, which CI services show: `svc test --format junit`. */
import { renderDiagnostic } from '../diagnostics/render.ts';
import type { TestResult } from './test-case.ts';

export interface TestedConfiguration {
	readonly name: string;
	readonly results: readonly TestResult[];
}

/** Returns a JUnit report with one suite per configuration. */
export function junitReport(configurations: readonly TestedConfiguration[]): string {
	const suiteElements = configurations.map(({ name, results }) => {
		const failedCount = results.filter(({ diagnostics }) => diagnostics.length > 0).length;
		const totalMs = results.reduce((sum, { milliseconds }) => sum + milliseconds, 0);
		const caseElements = results.map(({ test, diagnostics, milliseconds }) => {
			const { line } = test.span.source.position(test.span.start);
			const tagStart = `    <testcase name="${escapeXml(test.name)}" classname="${escapeXml(name)}" file="${escapeXml(test.span.source.name)}" line="${line}" time="${formatSeconds(milliseconds)}"`;
			if (diagnostics.length === 0) return `${tagStart}/>`;
			const failures = diagnostics.map(
				diagnostic =>
					`      <failure message="${escapeXml(diagnostic.message)}">${escapeXml(renderDiagnostic(diagnostic))}</failure>`,
			);
			return `${tagStart}>\n${failures.join('\n')}\n    </testcase>`;
		});
		return `  <testsuite name="${escapeXml(name)}" tests="${results.length}" failures="${failedCount}" time="${formatSeconds(totalMs)}">\n${caseElements.join('\n')}${caseElements.length > 0 ? '\n' : ''}  </testsuite>`;
	});
	return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n${suiteElements.join('\n')}\n</testsuites>\n`;
}

function formatSeconds(milliseconds: number): string {
	return (milliseconds / 1000).toFixed(3);
}

/** Escapes text for XML 1.0, which cannot represent most control characters. */
function escapeXml(text: string): string {
	return text
		.toWellFormed()
		.replace(/[^\t\n\r\u0020-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd')
		.replace(/[&<>"\t\n\r]/g, character => `&#${character.charCodeAt(0)};`);
}

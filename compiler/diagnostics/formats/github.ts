/** Findings as GitHub workflow commands, which GitHub shows next to the lines of a change: `--format github`. */
import type { Diagnostic } from '../diagnostic.ts';
import { lineAfterFix } from '../fixes.ts';
import type { Findings } from './findings.ts';

const COMMAND_BY_SEVERITY: { readonly [severity in Diagnostic['severity']]: string } = {
	error: 'error',
	warning: 'warning',
	note: 'notice',
};

/**
 * Returns one line per finding, or '' if there are none. A finding in a file that several configurations import appears once.
 */
export function githubReport(configurations: readonly Findings[]): string {
	const lines = configurations.flatMap(({ name, diagnostics }) =>
		diagnostics.map(diagnostic => `${workflowCommand(diagnostic, name)}\n`),
	);
	return [...new Set(lines)].join('');
}

function workflowCommand(diagnostic: Diagnostic, name: string): string {
	const { severity, code, message, label, hint, span, pointer, fix } = diagnostic;
	const properties = [`file=${escapeProperty(span?.source.name ?? name)}`];
	if (span) {
		const startPosition = span.source.position(span.start);
		const endPosition = span.source.position(span.end);
		properties.push(`line=${startPosition.line}`, `endLine=${endPosition.line}`);
		// GitHub shows columns only for a finding within one line.
		if (startPosition.line === endPosition.line)
			properties.push(`col=${startPosition.column}`, `endColumn=${endPosition.column}`);
	}
	properties.push(`title=${escapeProperty(code)}`);
	const pointerPrefix = span || pointer === undefined ? '' : `${pointer}: `;
	const fixedText = fix && lineAfterFix(fix);
	const suggestion = fixedText === undefined ? undefined : `Suggested: ${fixedText}`;
	const lines = [`${pointerPrefix}${message}`, label, hint, suggestion].filter(line => line !== undefined);
	return `::${COMMAND_BY_SEVERITY[severity]} ${properties.join(',')}::${escapeData(lines.join('\n'))}`;
}

/** Escapes a text for GitHub's runner. The percent sign must be replaced first, because the other replacements contain it. */
function escapeData(text: string): string {
	return text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
}

function escapeProperty(text: string): string {
	return escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C');
}

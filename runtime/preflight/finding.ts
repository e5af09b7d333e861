/** What a preflight finds, and on which machine. */
import type { Diagnostic } from '../../compiler/diagnostics/diagnostic.ts';
import type { SourceSpan } from '../../compiler/source/source.ts';

/** The machine that is to serve a configuration. */
export interface Machine {
	/** Relative paths start here. */
	readonly workingDirectory: string;
	readonly environment: { readonly [name: string]: string | undefined };
}

/** One thing that a start would refuse or warn of, at its place in the document. */
export type Finding = Pick<Diagnostic, 'code' | 'message' | 'pointer' | 'hint'> & {
	readonly severity: 'error' | 'warning';
};

/** Returns findings at their places in the text that the document was compiled from. */
export function locateFindings(
	findings: readonly Finding[],
	locate: (pointer: string) => SourceSpan | undefined,
): Diagnostic[] {
	return findings.map(finding => {
		const span = finding.pointer === undefined ? undefined : locate(finding.pointer);
		return span ? { ...finding, span } : finding;
	});
}

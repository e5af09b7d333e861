/** Preflight findings, and the machine that they are about. */
import type { Diagnostic } from '../../compiler/diagnostics/diagnostic.ts';
import type { SourceSpan } from '../../compiler/source/source.ts';

/** The machine on which the configuration would run. */
export interface TargetMachine {
	/** Base folder of relative paths. */
	readonly workingDirectory: string;
	readonly environment: { readonly [name: string]: string | undefined };
}

/** A reason why a start would fail or warn, with its location in the document. */
export type PreflightFinding = Pick<Diagnostic, 'code' | 'message' | 'pointer' | 'hint'> & {
	readonly severity: 'error' | 'warning';
};

/** Converts locations in the document to locations in the source text from which it was compiled. */
export function locateFindings(
	findings: readonly PreflightFinding[],
	locate: (pointer: string) => SourceSpan | undefined,
): Diagnostic[] {
	return findings.map(finding => {
		const span = finding.pointer === undefined ? undefined : locate(finding.pointer);
		return span ? { ...finding, span } : finding;
	});
}

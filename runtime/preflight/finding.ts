/** A preflight finding, and the machine that it is about. */
import type { Diagnostic } from '../../compiler/diagnostics/diagnostic.ts';
import type { SourceSpan } from '../../compiler/source/source.ts';

/** The machine on which the configuration would run. */
export interface Machine {
	/** Base folder of relative paths. */
	readonly workingDirectory: string;
	readonly environment: { readonly [name: string]: string | undefined };
}

/** A reason for which a start would fail or warn, with its place in the document. */
export type Finding = Pick<Diagnostic, 'code' | 'message' | 'pointer' | 'hint'> & {
	readonly severity: 'error' | 'warning';
};

/** Locates findings in the text from which the document was compiled. */
export function locateFindings(
	findings: readonly Finding[],
	locate: (pointer: string) => SourceSpan | undefined,
): Diagnostic[] {
	return findings.map(finding => {
		const span = finding.pointer === undefined ? undefined : locate(finding.pointer);
		return span ? { ...finding, span } : finding;
	});
}

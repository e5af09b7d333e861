/** The input to a report for another tool: the findings about one configuration. */
import type { Diagnostic } from '../diagnostic.ts';

/** The result of checking one configuration, as reports show it. */
export interface Findings {
	/** The configuration's name as given: a file, or `<stdin>`. */
	readonly name: string;
	/** True if the configuration would be accepted: it has no errors and, with `--strict`, no warnings. */
	readonly valid: boolean;
	/** This server's version. */
	readonly version: string;
	readonly diagnostics: readonly Diagnostic[];
	/** Results of the configuration's own tests, if they were run. */
	readonly tests: { readonly passed: number; readonly failed: number };
}

/** A lint rule or diagnostic code, with its description for reports. */
export interface DescribedRule {
	readonly name: string;
	readonly severity: Diagnostic['severity'];
	readonly summary: string;
	readonly documentation: string;
}

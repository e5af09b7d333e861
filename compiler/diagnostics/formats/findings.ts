/** What a report to a tool holds: the findings about one configuration. */
import type { Diagnostic } from '../diagnostic.ts';

/** The outcome of checking one configuration. */
export interface Findings {
	/** The name of the configuration as it was given: a file, or `<stdin>`. */
	readonly name: string;
	/** Whether it would be accepted: no error, and with `--strict` no warning either. */
	readonly valid: boolean;
	/** Release of this server. */
	readonly version: string;
	readonly diagnostics: readonly Diagnostic[];
	/** The configuration's own tests, where they were run. */
	readonly tests: { readonly passed: number; readonly failed: number };
}

/** A rule that a report describes. */
export interface DescribedRule {
	readonly name: string;
	readonly severity: Diagnostic['severity'];
	readonly summary: string;
	readonly documentation: string;
}

/** The definition of a lint rule: its code, its documentation and its check, in one object. */
import type { Severity } from '../../diagnostics/diagnostic.ts';
import type { LintContext } from './lint-context.ts';

/** Default severity of a finding: a `warning` makes `--strict` fail, a `note` only informs. */
export type LintSeverity = Exclude<Severity, 'error'>;

/** A lint rule. Registered by one line in lint/index.ts; its fixture is `fixtures/lint/<name with - for />/`. */
export interface LintRule {
	/** The code of its findings, `area/what`. Stable, because the comments that silence it name it. */
	readonly name: string;
	readonly severity: LintSeverity;
	/** What is wrong where it reports, in one sentence. */
	readonly summary: string;
	/** Why that matters and what to do: Markdown paragraphs for the manual. */
	readonly documentation: string;
	/** Checked by every `svc validate` of a Configfile, with or without `--lint`. */
	readonly ofConfigfile?: true;
	/** Checked by every `svc validate`, whatever the language. */
	readonly always?: true;
	/** Finds and reports problems. Omitted if the compiler itself reports them in every language. */
	readonly check?: (cx: LintContext) => void | Promise<void>;
}

/** What one lint rule is: its code, its words for the manual, and what it looks for, in one object. */
import type { Severity } from '../diagnostics/diagnostic.ts';
import type { LintContext } from './lint-context.ts';

/** How much a finding matters by default: a `warning` makes `--strict` fail, a `note` only informs. */
export type LintSeverity = Exclude<Severity, 'error'>;

/** A lint rule. Registered by one line in lint/index.ts; its fixture is `fixtures/lint/<name with - for />/`. */
export interface LintRule {
	/** The code of its findings, `area/what`. Stable: comments that silence it name it. */
	readonly name: string;
	readonly severity: LintSeverity;
	/** What is wrong where it reports, in one sentence. */
	readonly summary: string;
	/** Why that matters and what to do, Markdown paragraphs for the manual. */
	readonly documentation: string;
	/** Part of what a Configfile promises: looked for by every `svc validate` of a Configfile, `--lint` or not. */
	readonly ofConfigfile?: true;
	/** Looked for by every `svc validate`, whatever the language. */
	readonly always?: true;
	/** Finds and reports. Left out where compiling alone finds it in every language. */
	readonly check?: (cx: LintContext) => void | Promise<void>;
}

/** The definition of a lint rule: its code, its documentation and its check in one object. */
import type { Severity } from '../../diagnostics/diagnostic.ts';
import type { LintContext } from './lint-context.ts';

/** The default severity of a rule's findings. A `warning` makes `--strict` fail, while a `note` only informs. */
export type LintSeverity = Exclude<Severity, 'error'>;

/** A lint rule. It is registered by one line in lint/index.ts, and its fixture is `fixtures/lint/<name with - for />/`. */
export interface LintRule {
	/**
	 * The code of the rule's findings, in the form `area/what`. It must not change, because users silence findings by it in
	 * comments.
	 */
	readonly name: string;
	readonly severity: LintSeverity;
	/** What a finding of this rule means, in one sentence. */
	readonly summary: string;
	/** Why the finding matters and what to do about it: Markdown paragraphs for the manual. */
	readonly documentation: string;
	/** True if `svc validate` checks the rule for every Configfile, even without `--lint`. */
	readonly checkedForConfigfile?: true;
	/** True if `svc validate` always checks the rule, in every language. */
	readonly alwaysChecked?: true;
	/**
	 * What the rule's findings depend on besides settings, upstreams and named routes. `site`: a finding in a site depends only on
	 * that site. `served site`: it also depends on the listeners of the plan. `listeners`: findings depend on the addresses of sites
	 * and on the listeners. The rule is not run again for anything unchanged. With `site` and `served site`, it inspects one site at
	 * a time. Default: everything.
	 */
	readonly dependsOn?: 'site' | 'served site' | 'listeners';
	/** Finds and reports problems. Omitted if the compiler itself reports them in all languages. */
	readonly check?: (cx: LintContext) => void | Promise<void>;
}

/** What a `test` block becomes: requests in order, and what is expected of each answer. */
import type { Plan } from '../codegen/plan.ts';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { DryRunResult } from '../dry-run/dry-run.ts';
import type { DryRunRequest } from '../dry-run/dry-run-request.ts';
import type { UpstreamAnswer } from '../dry-run/fake-exchange.ts';
import type { SourceSpan } from '../source/source.ts';

/** One `test "name" { … }`. */
export interface TestCase {
	readonly name: string;
	/** The name's place. */
	readonly span: SourceSpan;
	readonly steps: readonly TestStep[];
}

/** One request and what belongs to it. */
export interface TestStep {
	readonly request: DryRunRequest;
	/** Place of method and URL. */
	readonly span: SourceSpan;
	/** What the fake upstream answers: 200 without a body where nothing was written. */
	readonly upstream: UpstreamAnswer | undefined;
	readonly expectations: readonly Expectation[];
}

/** One `expect` line. */
export interface Expectation {
	readonly span: SourceSpan;
	/** Undefined when it holds. */
	readonly check: (came: DryRunResult, plan: Plan) => Mismatch | undefined | Promise<Mismatch | undefined>;
}

/** How an answer differs from what was expected. */
export interface Mismatch {
	/** Goes on after the test's name: `the status is 200, not 308`. */
	readonly text: string;
	/** Under the caret: what came instead. */
	readonly label?: string;
}

/** What running tests gave. */
export interface TestReport {
	readonly passed: number;
	readonly failed: number;
	/** An error for each `expect` that does not hold. */
	readonly diagnostics: readonly Diagnostic[];
}

/** The compiled form of a `test` block: requests in order, with the expectations for each response. */
import type { Plan } from '../codegen/plan/plan.ts';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { DryRunResult } from '../dry-run/dry-run.ts';
import type { DryRunRequest } from '../dry-run/dry-run-request.ts';
import type { ScriptedAnswer } from '../dry-run/fake-exchange.ts';
import type { SourceSpan } from '../source/source.ts';

/** One `test "name" { … }`. */
export interface TestCase {
	readonly name: string;
	/** The span of the test's name. */
	readonly span: SourceSpan;
	/** The span of the test's row in its table, if it has one. */
	readonly row?: SourceSpan | undefined;
	readonly steps: readonly TestStep[];
}

/** One request with the behavior of its upstreams and its expectations. */
export interface TestStep {
	readonly request: DryRunRequest;
	/** The span of the method and the URL. */
	readonly span: SourceSpan;
	/** What the fake upstreams do, in order; if empty, they answer 200 with an empty body. */
	readonly upstreams: readonly TestUpstream[];
	/** The zones of `limit_concurrent` that are full, so that they admit no further request. */
	readonly busyZones: readonly BusyZone[];
	/** True if the request sends the cookies that earlier responses of the test have set. */
	readonly sendsCookies: boolean;
	/** Number of times that the request is sent. */
	readonly repetitions: number;
	/** Milliseconds that pass after the step. */
	readonly pauseMs: number;
	readonly expectations: readonly Expectation[];
}

/** An `upstream` line of a step. */
export interface TestUpstream extends ScriptedAnswer {
	readonly span: SourceSpan;
}

/** A zone that a `busy` line names. */
export interface BusyZone {
	readonly zone: string;
	readonly span: SourceSpan;
}

/** An `expect` line of a step. */
export interface Expectation {
	readonly span: SourceSpan;
	/** Checks the result. Returns undefined if the expectation is met. */
	readonly check: (result: DryRunResult, plan: Plan) => Mismatch | undefined | Promise<Mismatch | undefined>;
}

/** How a response differs from an expectation. */
export interface Mismatch {
	/** The end of a sentence that begins with the test's name: `the status is 200, not 308`. */
	readonly text: string;
	/** The label under the caret, which shows the actual value. */
	readonly label?: string;
}

/** The result of running tests. */
export interface TestReport {
	readonly passed: number;
	readonly failed: number;
	/** The errors, one for each `expect` that is not met. */
	readonly diagnostics: readonly Diagnostic[];
	/** The result of each test, in order. */
	readonly results: readonly TestResult[];
}

export interface TestResult {
	readonly test: TestCase;
	/** The unmet expectations, as errors; empty if the test passed. */
	readonly diagnostics: readonly Diagnostic[];
	readonly milliseconds: number;
}

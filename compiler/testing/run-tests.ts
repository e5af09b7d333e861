/** Runs the tests of a configuration, each on the compiled handler graph. */
import type { Plan } from '../codegen/plan/plan.ts';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { DryRun, type DryRunEnvironment, type DryRunResult, type DryRunTracer } from '../dry-run/dry-run.ts';
import { listenersText } from '../dry-run/listener-choice.ts';
import type { TestCase, TestReport, TestResult, TestStep } from './test-case.ts';

/** Runs all tests, one after another, each with freshly reset pools. A failing step does not end its test. */
export async function runTests(
	tests: readonly TestCase[],
	plan: Plan,
	deps: DryRunEnvironment,
	tracer?: DryRunTracer,
): Promise<TestReport> {
	const results: TestResult[] = [];
	const dryRun = new DryRun(plan, deps, tracer);
	for (const test of tests) {
		const diagnostics: Diagnostic[] = [];
		const began = performance.now();
		dryRun.reset();
		for (const step of test.steps) await runStep(test, step, dryRun, diagnostics);
		results.push({ test, diagnostics, milliseconds: performance.now() - began });
	}
	const passed = results.filter(({ diagnostics }) => diagnostics.length === 0).length;
	const all = results.flatMap(({ diagnostics }) => diagnostics);
	return { passed, failed: tests.length - passed, diagnostics: all, results };
}

async function runStep(test: TestCase, step: TestStep, dryRun: DryRun, diagnostics: Diagnostic[]): Promise<void> {
	const came = await dryRun.run(step.request, step.upstream);
	const { plan } = dryRun;
	if (!came) {
		const { url } = step.request;
		diagnostics.push({
			code: 'test/nothing-listens',
			severity: 'error',
			span: step.span,
			message: `${JSON.stringify(test.name)}: nothing listens where \`${url.text}\` leads.`,
			hint: `The configuration listens on ${listenersText(plan)}.`,
		});
		return;
	}
	for (const { span, check } of step.expectations) {
		const mismatch = await check(came, plan);
		if (!mismatch) continue;
		diagnostics.push({
			code: 'test/failed',
			severity: 'error',
			span,
			message: `${JSON.stringify(test.name)}: ${mismatch.text}.`,
			label: mismatch.label,
			related: test.steps.length > 1 ? [{ span: step.span, message: 'the request' }] : undefined,
			hint: whatHappened(came, plan),
		});
	}
	came.response?.close();
}

/** Describes the response in one or two sentences. */
function whatHappened({ site, exchange: x, response, failure }: DryRunResult, plan: Plan): string {
	const name = site === -1 ? undefined : plan.document.sites![site]!.addresses[0];
	if (name === undefined) return 'No site served the request: it was answered with 200 and an empty body.';
	const error = x.error
		? ` after the error ${x.error.status}${x.error.message === '' ? '' : `, ${x.error.message}`}`
		: '';
	if (failure !== undefined) return `No error route of \`${name}\` answered${error}.`;
	if (!response) return `\`abort\` of \`${name}\` closed the connection${error}.`;
	const by = x.answeredBy === '' ? 'nothing' : `\`${x.answeredBy}\``;
	return `Answered ${response.status} by ${by} of \`${name}\`${error}.`;
}

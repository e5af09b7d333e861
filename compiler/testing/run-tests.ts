/** Runs the tests of a configuration, each on the compiled handler graph. */
import type { Plan } from '../codegen/plan/plan.ts';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { DryRun, type DryRunEnvironment, type DryRunResult, type DryRunTracer } from '../dry-run/dry-run.ts';
import type { DryRunRequest } from '../dry-run/dry-run-request.ts';
import { UpstreamScript } from '../dry-run/fake-exchange.ts';
import { listenersText } from '../dry-run/listener-choice.ts';
import { CookieJar } from './cookie-jar.ts';
import type { BusyZone, TestCase, TestReport, TestResult, TestStep, TestUpstream } from './test-case.ts';

/** Runs all tests, one after another, each with freshly reset upstream pools. A failing step does not end its test. */
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
		const startedAt = performance.now();
		const surplusAnswers: TestUpstream[] = [];
		const idleZones: BusyZone[] = [];
		const unusedUpstreams = new Set(
			test.steps.flatMap(({ upstreams }) => upstreams.filter(({ upstreamName: of }) => of !== undefined)),
		);
		await sendRequests(
			test,
			dryRun,
			async (step, result, repetition) => {
				const mismatches = result
					? await findMismatches(test, step, result, plan, repetition)
					: [nothingListensDiagnostic(test, step, plan)];
				diagnostics.push(...mismatches);
				for (const { settings, upstream } of result?.exchange.upstreamRequests ?? []) {
					for (const line of unusedUpstreams)
						if (line.upstreamName === upstream.address || line.upstreamName === settings.name)
							unusedUpstreams.delete(line);
				}
				return mismatches.length === 0;
			},
			(script, { busyZones }) => {
				surplusAnswers.push(...(script.unusedAnswers as TestUpstream[]));
				const unenteredZones = script.unenteredBusyZones;
				idleZones.push(...busyZones.filter(({ zone }) => unenteredZones.includes(zone)));
			},
		);
		if (diagnostics.length === 0) {
			diagnostics.push(...[...unusedUpstreams].map(line => upstreamNotAskedDiagnostic(test, line)));
			diagnostics.push(...idleZones.map(zone => zoneNotEnteredDiagnostic(test, zone)));
			diagnostics.push(
				...surplusAnswers.filter(line => !unusedUpstreams.has(line)).map(line => surplusAnswerDiagnostic(test, line)),
			);
		}
		results.push({ test, diagnostics, milliseconds: performance.now() - startedAt });
	}
	const passedCount = results.filter(({ diagnostics }) => diagnostics.length === 0).length;
	const allDiagnostics = results.flatMap(({ diagnostics }) => diagnostics);
	return { passed: passedCount, failed: tests.length - passedCount, diagnostics: allDiagnostics, results };
}

/**
 * Resets the dry run and sends the requests of a test. Time passes only where the steps say so, so that results are the same on any
 * machine. `onResult` receives each result, or undefined if nothing listens at the URL; if it returns false, the remaining
 * repetitions of the step are skipped.
 */
export async function sendRequests(
	{ steps }: TestCase,
	dryRun: DryRun,
	onResult: (step: TestStep, result: DryRunResult | undefined, repetition: number) => Promise<boolean> | boolean,
	onStepEnd: (script: UpstreamScript, step: TestStep) => void = () => {},
): Promise<void> {
	dryRun.reset();
	const cookieJar = new CookieJar();
	let nowMs = Date.now();
	for (const step of steps) {
		nowMs = step.request.at ?? nowMs;
		const busyZones = step.busyZones.map(({ zone }) => zone);
		const script = new UpstreamScript(step.upstreams, undefined, busyZones);
		for (let repetition = 1; repetition <= step.repetitions; repetition++) {
			const result = await dryRun.run(requestWithCookies(step, cookieJar, nowMs), script);
			if (result?.response) cookieJar.storeCookies(result.response.headers, step.request.url, nowMs);
			const shouldContinue = await onResult(step, result, repetition);
			result?.response?.close();
			if (!shouldContinue) break;
		}
		onStepEnd(script, step);
		nowMs += step.pauseMs;
	}
}

/** Returns the request of a step with its time and the client's cookies. Adds none if the test sets `Cookie` itself. */
function requestWithCookies({ request, sendsCookies }: TestStep, cookieJar: CookieJar, nowMs: number): DryRunRequest {
	const { url, headers } = request;
	const hasCookieField = headers.some(([name]) => name.toLowerCase() === 'cookie');
	const cookieValue = sendsCookies && !hasCookieField ? cookieJar.cookieHeaderFor(url, nowMs) : undefined;
	return {
		...request,
		at: nowMs,
		headers: cookieValue === undefined ? headers : [...headers, ['Cookie', cookieValue]],
	};
}

function upstreamNotAskedDiagnostic(test: TestCase, { upstreamName, span }: TestUpstream): Diagnostic {
	return {
		code: 'test/upstream-not-asked',
		severity: 'error',
		span,
		message: `${JSON.stringify(test.name)}: the upstream \`${upstreamName}\` received no request.`,
		hint: 'Give the address of an upstream, or the name of an `upstream` block, that the request reaches.',
	};
}

function zoneNotEnteredDiagnostic(test: TestCase, { zone, span }: BusyZone): Diagnostic {
	return {
		code: 'test/zone-not-entered',
		severity: 'error',
		span,
		message: `${JSON.stringify(test.name)}: the request needed no place of a zone \`${zone}\`.`,
		hint: 'Write the name of a zone of `limit_concurrent` that counts the request.',
	};
}

function surplusAnswerDiagnostic(test: TestCase, { span }: TestUpstream): Diagnostic {
	return {
		code: 'test/surplus-answer',
		severity: 'error',
		span,
		message: `${JSON.stringify(test.name)}: no request reached an upstream for this answer.`,
		hint: 'Several `upstream` lines are answers in order, one for each request that reaches an upstream.',
	};
}

function nothingListensDiagnostic(test: TestCase, { request: { url }, span }: TestStep, plan: Plan): Diagnostic {
	return {
		code: 'test/nothing-listens',
		severity: 'error',
		span,
		message: `${JSON.stringify(test.name)}: nothing listens where \`${url.text}\` leads.`,
		hint: `The configuration listens on ${listenersText(plan)}.`,
	};
}

/** Returns an error for each expectation that a result does not meet. */
async function findMismatches(
	test: TestCase,
	step: TestStep,
	result: DryRunResult,
	plan: Plan,
	repetition: number,
): Promise<Diagnostic[]> {
	const diagnostics: Diagnostic[] = [];
	const repetitionText = step.repetitions === 1 ? '' : `, at request ${repetition} of ${step.repetitions}`;
	for (const { span, check } of step.expectations) {
		const mismatch = await check(result, plan);
		if (!mismatch) continue;
		diagnostics.push({
			code: 'test/failed',
			severity: 'error',
			span,
			message: `${JSON.stringify(test.name)}: ${mismatch.text}${repetitionText}.`,
			label: mismatch.label,
			related: relatedPlaces(test, step),
			hint: describeResult(result, plan),
		});
	}
	return diagnostics;
}

/**
 * Returns the other lines that help to explain a failed expectation: the request if the test has several, and the row if the test
 * has a table.
 */
function relatedPlaces({ steps, row }: TestCase, { span }: TestStep): Diagnostic['related'] {
	const related = [
		...(steps.length > 1 ? [{ span, message: 'the request' }] : []),
		...(row ? [{ span: row, message: 'the case' }] : []),
	];
	return related.length > 0 ? related : undefined;
}

/** Describes the response in one or two sentences. */
function describeResult({ site, exchange: x, response, failure }: DryRunResult, plan: Plan): string {
	const siteAddress = site === -1 ? undefined : plan.document.sites![site]!.addresses[0];
	if (siteAddress === undefined) return 'No site served the request: it was answered with 200 and an empty body.';
	const errorText = x.error
		? ` after the error ${x.error.status}${x.error.message === '' ? '' : `, ${x.error.message}`}`
		: '';
	if (failure !== undefined) return `No error route of \`${siteAddress}\` answered${errorText}.`;
	if (!response) return `\`abort\` of \`${siteAddress}\` closed the connection${errorText}.`;
	const answererText = x.answeredBy === '' ? 'nothing' : `\`${x.answeredBy}\``;
	return `Answered ${response.status} by ${answererText} of \`${siteAddress}\`${errorText}.`;
}

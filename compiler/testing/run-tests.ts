/** Runs the tests of a configuration, each on the compiled handler graph. */
import type { Plan } from '../codegen/plan/plan.ts';
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import { DryRun, type DryRunEnvironment, type DryRunResult, type DryRunTracer } from '../dry-run/dry-run.ts';
import type { DryRunRequest } from '../dry-run/dry-run-request.ts';
import { UpstreamScript } from '../dry-run/fake-exchange.ts';
import { listenersText } from '../dry-run/listener-choice.ts';
import { CookieJar } from './cookie-jar.ts';
import type { BusyZone, TestCase, TestReport, TestResult, TestStep, TestUpstream } from './test-case.ts';

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
		const surplus: TestUpstream[] = [];
		const unused: BusyZone[] = [];
		const idle = new Set(test.steps.flatMap(({ upstreams }) => upstreams.filter(({ of }) => of !== undefined)));
		await sendRequests(
			test,
			dryRun,
			async (step, came, time) => {
				const found = came ? await mismatchesOf(test, step, came, plan, time) : [nothingListens(test, step, plan)];
				diagnostics.push(...found);
				for (const { settings, upstream } of came?.exchange.sent ?? []) {
					for (const line of idle) if (line.of === upstream.address || line.of === settings.name) idle.delete(line);
				}
				return found.length === 0;
			},
			(script, { busy }) => {
				surplus.push(...(script.surplus as TestUpstream[]));
				const notEntered = script.idleZones;
				unused.push(...busy.filter(({ zone }) => notEntered.includes(zone)));
			},
		);
		if (diagnostics.length === 0) {
			diagnostics.push(...[...idle].map(line => notAsked(test, line)));
			diagnostics.push(...unused.map(one => notEntered(test, one)));
			diagnostics.push(...surplus.filter(line => !idle.has(line)).map(line => notNeeded(test, line)));
		}
		results.push({ test, diagnostics, milliseconds: performance.now() - began });
	}
	const passed = results.filter(({ diagnostics }) => diagnostics.length === 0).length;
	const all = results.flatMap(({ diagnostics }) => diagnostics);
	return { passed, failed: tests.length - passed, diagnostics: all, results };
}

/**
 * Resets the dry run and sends the requests of a test. The clock stands still, so that results are the same on any machine, and only
 * steps move it. `answered` returns false if the rest of a step is to be left out; its result is undefined if nothing listens.
 */
export async function sendRequests(
	{ steps }: TestCase,
	dryRun: DryRun,
	answered: (step: TestStep, came: DryRunResult | undefined, time: number) => Promise<boolean> | boolean,
	ended: (script: UpstreamScript, step: TestStep) => void = () => {},
): Promise<void> {
	dryRun.reset();
	const jar = new CookieJar();
	let now = Date.now();
	for (const step of steps) {
		now = step.request.at ?? now;
		const busy = step.busy.map(({ zone }) => zone);
		const script = new UpstreamScript(step.upstreams, undefined, busy);
		for (let time = 1; time <= step.repeat; time++) {
			const came = await dryRun.run(withCookies(step, jar, now), script);
			if (came?.response) jar.take(came.response.headers, step.request.url, now);
			const goesOn = await answered(step, came, time);
			came?.response?.close();
			if (!goesOn) break;
		}
		ended(script, step);
		now += step.pause;
	}
}

/** Returns the request of a step at a time, with the client's cookies. A field that the test gives itself takes their place. */
function withCookies({ request, cookies }: TestStep, jar: CookieJar, now: number): DryRunRequest {
	const { url, headers } = request;
	const isGiven = headers.some(([name]) => name.toLowerCase() === 'cookie');
	const sent = cookies && !isGiven ? jar.valueFor(url, now) : undefined;
	return { ...request, at: now, headers: sent === undefined ? headers : [...headers, ['Cookie', sent]] };
}

function notAsked(test: TestCase, { of, span }: TestUpstream): Diagnostic {
	return {
		code: 'test/upstream-not-asked',
		severity: 'error',
		span,
		message: `${JSON.stringify(test.name)}: the upstream \`${of}\` received no request.`,
		hint: 'Give the address of an upstream, or the name of an `upstream` block, that the request reaches.',
	};
}

function notEntered(test: TestCase, { zone, span }: BusyZone): Diagnostic {
	return {
		code: 'test/zone-not-entered',
		severity: 'error',
		span,
		message: `${JSON.stringify(test.name)}: the request needed no place of a zone \`${zone}\`.`,
		hint: 'Write the name of a zone of `limit_concurrent` that counts the request.',
	};
}

function notNeeded(test: TestCase, { span }: TestUpstream): Diagnostic {
	return {
		code: 'test/surplus-answer',
		severity: 'error',
		span,
		message: `${JSON.stringify(test.name)}: no request reached an upstream for this answer.`,
		hint: 'Several `upstream` lines are answers in order, one for each request that reaches an upstream.',
	};
}

function nothingListens(test: TestCase, { request: { url }, span }: TestStep, plan: Plan): Diagnostic {
	return {
		code: 'test/nothing-listens',
		severity: 'error',
		span,
		message: `${JSON.stringify(test.name)}: nothing listens where \`${url.text}\` leads.`,
		hint: `The configuration listens on ${listenersText(plan)}.`,
	};
}

/** Returns an error for each expectation that is not met. */
async function mismatchesOf(
	test: TestCase,
	step: TestStep,
	came: DryRunResult,
	plan: Plan,
	time: number,
): Promise<Diagnostic[]> {
	const found: Diagnostic[] = [];
	const which = step.repeat === 1 ? '' : `, at request ${time} of ${step.repeat}`;
	for (const { span, check } of step.expectations) {
		const mismatch = await check(came, plan);
		if (!mismatch) continue;
		found.push({
			code: 'test/failed',
			severity: 'error',
			span,
			message: `${JSON.stringify(test.name)}: ${mismatch.text}${which}.`,
			label: mismatch.label,
			related: relatedTo(test, step),
			hint: whatHappened(came, plan),
		});
	}
	return found;
}

/** Returns the request if the test has several, and the row if it is one of a table. */
function relatedTo({ steps, row }: TestCase, { span }: TestStep): Diagnostic['related'] {
	const related = [
		...(steps.length > 1 ? [{ span, message: 'the request' }] : []),
		...(row ? [{ span: row, message: 'the case' }] : []),
	];
	return related.length > 0 ? related : undefined;
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

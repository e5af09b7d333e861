/** Code lenses: run a test, explain a request, and how many tests reach a route. */
import type { CompileResult } from '../compiler.ts';
import { renderDiagnostic } from '../diagnostics/render.ts';
import { DryRun, type DryRunEnvironment, type DryRunTracer } from '../dry-run/dry-run.ts';
import { methodMistake } from '../dry-run/dry-run-request.ts';
import { Explainer } from '../explain/explanation.ts';
import { renderExplanation } from '../explain/render-explanation.ts';
import { sampleGet, siteOrigins } from '../lint/inspection/sample-request.ts';
import { registryOf } from '../lower/registry.ts';
import { runTests, sendRequests } from '../testing/run-tests.ts';
import {
	everyLine,
	type FileRange,
	kindOfTopLevel,
	rangeOfLine,
	type TextRange,
	type TextSyntax,
} from './text-syntax.ts';

/** What an editor shows above a line. */
export type Lens = TextRange &
	(
		| { readonly kind: 'test'; readonly name: string }
		| { readonly kind: 'explain'; readonly url: string }
		| { readonly kind: 'coverage'; readonly tests: number; readonly of: 'site' | 'route' }
	);

type Place = readonly { readonly path: string | undefined; readonly start: number }[];

/** The places of the sites and steps that each test of a configuration reaches. */
export type Reached = readonly (readonly Place[])[];

/** Runs each test without files and network, and returns what it reaches. Empty if the configuration does not compile. */
export async function reachedByTests(
	{ plan, tests, locate }: CompileResult,
	deps: DryRunEnvironment,
): Promise<Reached> {
	if (!plan || tests.length === 0) return [];
	let hits = new Set<string>();
	const tracer: DryRunTracer = {
		begins: (_x, _listener, site) => void hits.add(`/sites/${site}`),
		handler: (pointer, _step, handler) => x => {
			hits.add(pointer);
			return handler(x);
		},
		matcher: (_pointer, _matcher, predicate) => predicate,
	};
	const dryRun = new DryRun(plan, deps, tracer);
	const places = new Map<string, Place>();
	const placeOf = (pointer: string): Place => {
		const known = places.get(pointer);
		if (known) return known;
		const place: { path: string | undefined; start: number }[] = [];
		for (let at = locate(pointer); at; at = at.source.importedAt) place.push({ path: at.source.path, start: at.start });
		places.set(pointer, place);
		return place;
	};
	const reached: Place[][] = [];
	for (const test of tests) {
		hits = new Set();
		await sendRequests(test, dryRun, () => true);
		reached.push([...hits].map(placeOf));
	}
	return reached;
}

/** Returns the lenses of a text. `compiled` is the configuration that it belongs to, if it compiles. */
export function lensesOf(syntax: TextSyntax, compiled: CompileResult | undefined, reached: Reached): Lens[] {
	const { dialect, lines, path } = syntax;
	const { directives } = registryOf(dialect);
	const lenses: Lens[] = [];
	const plan = compiled?.plan;
	const sites = new Map<number, string>();
	for (let site = 0; plan && site < (plan.document.sites?.length ?? 0); site++) {
		const span = compiled.locate(`/sites/${site}`);
		const [origin] = siteOrigins(plan, site);
		if (span?.source.path === path && origin !== undefined) sites.set(span.start, `${origin}/`);
	}
	for (const { line, around } of everyLine(lines)) {
		const [first, second] = line.words;
		if (!first) continue;
		const range = { start: first.span.start, end: first.span.end };
		const kind = around.length === 0 ? kindOfTopLevel(line, dialect, directives) : undefined;
		if (kind === 'test') {
			if (second) lenses.push({ ...range, kind: 'test', name: second.text });
			continue;
		}
		const isSite = kind === 'site' && line.block !== undefined;
		const url = isSite ? sites.get(first.span.start) : undefined;
		if (url !== undefined) lenses.push({ ...range, kind: 'explain', url });
		const directive = around.length > 0 || kind === 'directive' ? directives.get(first.text) : undefined;
		if (
			reached.length === 0 ||
			!line.block ||
			!(isSite || directive?.isBlock || (around.length > 0 && first.text === 'else'))
		)
			continue;
		if (kindOfTopLevel(around[0] ?? line, dialect, directives) === 'options') continue;
		const { start, end } = isSite ? rangeOfLine(line) : { start: line.block.open.start, end: line.block.close.end };
		const isWithin = (place: Place): boolean =>
			place.some(at => at.path === path && at.start >= start && at.start < end);
		const tests = reached.filter(places => places.some(isWithin)).length;
		lenses.push({ ...range, kind: 'coverage', tests, of: isSite ? 'site' : 'route' });
	}
	return lenses;
}

export interface TestResult {
	readonly passed: boolean;
	readonly text: string;
	/** The expectation that failed. */
	readonly at?: FileRange;
}

/** Runs one test of a configuration. Returns its result as text; undefined if there is no such test. */
export async function runTest(
	{ plan, tests }: CompileResult,
	name: string,
	deps: DryRunEnvironment,
): Promise<TestResult | undefined> {
	const test = tests.find(one => one.name === name);
	if (!plan || !test) return undefined;
	const { failed, diagnostics } = await runTests([test], plan, deps);
	if (failed === 0) return { passed: true, text: `${JSON.stringify(name)} passed.` };
	const text = diagnostics.map(one => renderDiagnostic(one)).join('\n');
	const { source, start, end } = diagnostics[0]?.span ?? test.span;
	return { passed: false, text, ...(source.path === undefined ? {} : { at: { path: source.path, start, end } }) };
}

/**
 * Explains a request, which is a URL, optionally after a method. Returns undefined if the configuration does not compile or
 * nothing listens there.
 */
export async function explainRequest(
	{ plan, locate }: CompileResult,
	text: string,
	deps: DryRunEnvironment,
): Promise<string | undefined> {
	const [, method = 'GET', url] = /^\s*(?:(\S+)\s+)?(\S+)\s*$/.exec(text) ?? [];
	const sample = url === undefined ? undefined : sampleGet(url);
	if (!plan || !sample || methodMistake(method)) return undefined;
	const request = { ...sample, method };
	const explained = await new Explainer({ plan, locate }, deps).explain(request);
	explained?.result.response?.close();
	return explained && renderExplanation(explained.explanation);
}

/** Code lenses: commands to run a test or explain a request, and how many tests reach a site or route. */
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

/** A command or note that an editor shows above a line. */
export type Lens = TextRange &
	(
		| { readonly kind: 'test'; readonly name: string }
		| { readonly kind: 'explain'; readonly url: string }
		| { readonly kind: 'coverage'; readonly tests: number; readonly of: 'site' | 'route' }
	);

type PlaceChain = readonly { readonly path: string | undefined; readonly start: number }[];

/** For each test, where the sites and steps that it reaches are written: the line itself, and the imports that lead to it. */
export type ReachedPlaces = readonly (readonly PlaceChain[])[];

/**
 * Runs each test without files and network, and returns where the sites and steps that it reaches are written. Returns an empty
 * list if the configuration does not compile or has no tests.
 */
export async function placesReachedByTests(
	{ plan, tests, locate }: CompileResult,
	deps: DryRunEnvironment,
): Promise<ReachedPlaces> {
	if (!plan || tests.length === 0) return [];
	let reachedPointers = new Set<string>();
	const tracer: DryRunTracer = {
		onRequestStart: (_x, _listener, site) => void reachedPointers.add(`/sites/${site}`),
		wrapHandler: (pointer, _step, handler) => x => {
			reachedPointers.add(pointer);
			return handler(x);
		},
		wrapMatcher: (_pointer, _matcher, predicate) => predicate,
	};
	const dryRun = new DryRun(plan, deps, tracer);
	const chainByPointer = new Map<string, PlaceChain>();
	const placeChainOf = (pointer: string): PlaceChain => {
		const cached = chainByPointer.get(pointer);
		if (cached) return cached;
		const chain: { path: string | undefined; start: number }[] = [];
		for (let span = locate(pointer); span; span = span.source.importedAt)
			chain.push({ path: span.source.path, start: span.start });
		chainByPointer.set(pointer, chain);
		return chain;
	};
	const reachedPlaces: PlaceChain[][] = [];
	for (const test of tests) {
		reachedPointers = new Set();
		await sendRequests(test, dryRun, () => true);
		reachedPlaces.push([...reachedPointers].map(placeChainOf));
	}
	return reachedPlaces;
}

/** Returns the lenses for a text. `compiled` is the configuration that contains the text; undefined if it does not compile. */
export function lensesOf(
	syntax: TextSyntax,
	compiled: CompileResult | undefined,
	reachedPlaces: ReachedPlaces,
): Lens[] {
	const { dialect, lines, path } = syntax;
	const { directives } = registryOf(dialect);
	const lenses: Lens[] = [];
	const plan = compiled?.plan;
	const urlsByOffset = new Map<number, string>();
	for (let site = 0; plan && site < (plan.document.sites?.length ?? 0); site++) {
		const span = compiled.locate(`/sites/${site}`);
		const [origin] = siteOrigins(plan, site);
		if (span?.source.path === path && origin !== undefined) urlsByOffset.set(span.start, `${origin}/`);
	}
	for (const { line, enclosingLines } of everyLine(lines)) {
		const [firstWord, secondWord] = line.words;
		if (!firstWord) continue;
		const range = { start: firstWord.span.start, end: firstWord.span.end };
		const kind = enclosingLines.length === 0 ? kindOfTopLevel(line, dialect, directives) : undefined;
		if (kind === 'test') {
			if (secondWord) lenses.push({ ...range, kind: 'test', name: secondWord.text });
			continue;
		}
		const isSite = kind === 'site' && line.block !== undefined;
		const url = isSite ? urlsByOffset.get(firstWord.span.start) : undefined;
		if (url !== undefined) lenses.push({ ...range, kind: 'explain', url });
		const directive = enclosingLines.length > 0 || kind === 'directive' ? directives.get(firstWord.text) : undefined;
		if (
			reachedPlaces.length === 0 ||
			!line.block ||
			!(isSite || directive?.isBlock || (enclosingLines.length > 0 && firstWord.text === 'else'))
		)
			continue;
		if (kindOfTopLevel(enclosingLines[0] ?? line, dialect, directives) === 'options') continue;
		const { start, end } = isSite ? rangeOfLine(line) : { start: line.block.open.start, end: line.block.close.end };
		const isInBlock = (place: PlaceChain): boolean =>
			place.some(position => position.path === path && position.start >= start && position.start < end);
		const tests = reachedPlaces.filter(places => places.some(isInBlock)).length;
		lenses.push({ ...range, kind: 'coverage', tests, of: isSite ? 'site' : 'route' });
	}
	return lenses;
}

export interface TestResult {
	readonly passed: boolean;
	readonly text: string;
	/** The range of the expectation that failed; undefined if it is not in a file. */
	readonly failedAt?: FileRange;
}

/** Runs the test with a name. Returns undefined if there is none or if the configuration does not compile. */
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
	return { passed: false, text, ...(source.path === undefined ? {} : { failedAt: { path: source.path, start, end } }) };
}

/**
 * Explains a request that is given as `[METHOD] URL`. Returns undefined if the text is invalid, the configuration does not compile,
 * or nothing listens at the URL.
 */
export async function explainRequest(
	{ plan, locate }: CompileResult,
	text: string,
	deps: DryRunEnvironment,
): Promise<string | undefined> {
	const [, method = 'GET', url] = /^\s*(?:(\S+)\s+)?(\S+)\s*$/.exec(text) ?? [];
	const sampleRequest = url === undefined ? undefined : sampleGet(url);
	if (!plan || !sampleRequest || methodMistake(method)) return undefined;
	const request = { ...sampleRequest, method };
	const answer = await new Explainer({ plan, locate }, deps).explain(request);
	answer?.result.response?.close();
	return answer && renderExplanation(answer.explanation);
}

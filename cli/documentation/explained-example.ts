/**
 * Explains an example of the documentation: runs a request through the compiled handlers, either one of the example's first test or
 * one that `svc diff` derives from the example. There is no network, and every file that a request looks for is assumed to exist.
 */
import { HTTPS_REDIRECT_HANDLER } from '../../compiler/codegen/plan/https-redirect.ts';
import { type CompileResult, compile } from '../../compiler/compiler.ts';
import type { Dialect } from '../../compiler/dialects/dialect.ts';
import { diffConfigurations } from '../../compiler/diff/configuration-diff.ts';
import type { DryRunEnvironment } from '../../compiler/dry-run/dry-run.ts';
import type { DryRunRequest } from '../../compiler/dry-run/dry-run-request.ts';
import { UpstreamScript } from '../../compiler/dry-run/fake-exchange.ts';
import type { FileReader, LeaseKinds } from '../../compiler/exchange/leases.ts';
import { Explainer, type Explanation } from '../../compiler/explain/explanation.ts';
import { renderExplanation } from '../../compiler/explain/render-explanation.ts';
import { ReadError, type Reader } from '../../compiler/source/reader.ts';
import { dryRunEnvironment } from '../../runtime/compile/dry-run-environment.ts';

/** An example of a configuration. */
export interface Example {
	readonly dialect: Dialect;
	readonly text: string;
	/** The name of the example's file, which the explanation shows. */
	readonly name: string;
	/** The files in the folder of the example, by name. */
	readonly files: ReadonlyMap<string, string>;
}

/** A request and the path that it takes. */
export interface ExplainedExample {
	/** The method and the URL. */
	readonly request: string;
	/** What `svc explain` prints for the request. */
	readonly text: string;
}

/** The folder in which examples are assumed to be. It does not exist, so that no real file has an effect. */
const FOLDER = '/example';
/** Maximum number of requests that are derived from an example. */
const MAX_REQUESTS = 300;
/** The time of all requests, so that explanations are reproducible. */
const NOW = Date.UTC(2026, 0, 1, 12);

/**
 * Returns the explanation of an example; undefined if the example does not compile by itself, or if no request shows anything of
 * interest.
 */
export async function explainExample(example: Example): Promise<ExplainedExample | undefined> {
	const reader = exampleReader(example.files);
	const fileResult = compileExample(example.text, example, reader);
	// An example of a directive may be lines of a site.
	const compilation = fileResult?.plan?.document.sites?.length
		? { result: fileResult, added: 0 }
		: { result: compileExample(`:8080 {\n${example.text}}\n`, example, reader), added: 1 };
	const { result, added } = compilation;
	if (!result?.plan?.document.sites?.length) return undefined;
	const deps = exampleEnvironment();
	const configuration = { plan: result.plan, locate: result.locate };
	const step = result.tests[0]?.steps[0];
	let explanation: Explanation | undefined;
	if (step) {
		const { upstreams, busy } = step;
		const needsScript = upstreams.length > 0 || busy.length > 0;
		const script = needsScript
			? new UpstreamScript(
					upstreams,
					undefined,
					busy.map(({ zone }) => zone),
				)
			: undefined;
		const explained = await new Explainer(configuration, deps).explain({ ...step.request, at: NOW }, script);
		explained?.result.response?.close();
		explanation = explained?.explanation;
	} else explanation = await mostInformative(configuration, reader, deps);
	if (!explanation) return undefined;
	const { method, url } = explanation.request;
	return { request: `${method} ${url}`, text: renderExplanation(added === 0 ? explanation : shiftLines(explanation)) };
}

function compileExample(text: string, { dialect, name }: Example, reader: Reader): CompileResult | undefined {
	const result = compile({ format: dialect, text, name, path: `${FOLDER}/${name}` }, reader);
	return result.plan ? result : undefined;
}

/**
 * Returns the explanation of the most informative request. Of the requests that are answered in the same way, only one is
 * considered; of these, the one that runs through the most handlers is chosen.
 */
async function mostInformative(
	configuration: { readonly plan: NonNullable<CompileResult['plan']>; readonly locate: CompileResult['locate'] },
	reader: Reader,
	deps: DryRunEnvironment,
): Promise<Explanation | undefined> {
	const emptyResult = compile({ format: 'json', text: '{}', name: 'nothing' }, reader);
	if (!emptyResult.plan) return undefined;
	const emptyConfiguration = { plan: emptyResult.plan, locate: emptyResult.locate };
	const { changes } = await diffConfigurations(emptyConfiguration, configuration, deps, MAX_REQUESTS);
	let best: { readonly request: DryRunRequest; readonly score: number } | undefined;
	for (const { request, upstream, after } of changes) {
		if (upstream !== undefined || !after?.answer || after.answer.handler === HTTPS_REDIRECT_HANDLER) continue;
		const handlers = after.steps.filter(({ kind }) => kind === 'handler').length;
		const score = handlers + after.upstreams.length - (after.answer.status >= 400 ? 1 : 0);
		if (!best || score > best.score) best = { request, score };
	}
	if (!best) return undefined;
	const explainer = new Explainer(configuration, deps);
	const explain = async (request: DryRunRequest): Promise<Explanation | undefined> => {
		const explained = await explainer.explain(request);
		explained?.result.response?.close();
		return explained?.explanation;
	};
	// A derived query is left out if it makes no difference.
	const { url } = best.request;
	const withoutQuery = { ...best.request, url: { ...url, text: url.text.replace(/\?.*$/, ''), query: undefined } };
	const [originalExplanation, plainExplanation] = [await explain(best.request), await explain(withoutQuery)];
	return comparisonKey(originalExplanation) === comparisonKey(plainExplanation)
		? plainExplanation
		: originalExplanation;
}

/** Returns a key that is equal for explanations with the same steps and status. */
function comparisonKey(explanation: Explanation | undefined): string {
	const places = explanation?.steps.map(({ kind, place, ...rest }) => [
		kind,
		place.pointer,
		'holds' in rest ? rest.holds : undefined,
	]);
	return JSON.stringify([places, explanation?.answer?.status]);
}

/** Returns an explanation with the line numbers of the example itself, which was put into a site to compile it. */
function shiftLines(explanation: Explanation): Explanation {
	return JSON.parse(
		JSON.stringify(explanation, (_key, value) => {
			if (typeof value !== 'object' || value === null || typeof value.line !== 'number') return value;
			const { file, line, ...rest } = value as { file: string; line: number };
			return line === 1 ? rest : { file, line: line - 1, ...rest };
		}),
	) as Explanation;
}

/** Returns a reader that knows only the files of an example. Every environment variable is set. */
function exampleReader(files: ReadonlyMap<string, string>): Reader {
	const readText = (path: string): string => {
		const content = files.get(path.replace(`${FOLDER}/`, ''));
		if (content === undefined) throw new ReadError('ENOENT', path);
		return content;
	};
	return {
		workingDirectory: FOLDER,
		readText,
		readBytes: path => new TextEncoder().encode(readText(path)),
		list: path => {
			throw new ReadError('ENOENT', path);
		},
		kind: path => (files.has(path.replace(`${FOLDER}/`, '')) ? 'file' : undefined),
		env: () => 'value-of-the-variable',
	};
}

function exampleEnvironment(): DryRunEnvironment {
	const deps = dryRunEnvironment(FOLDER);
	return {
		...deps,
		// Explanations must not depend on the machine on which the site is generated.
		facts: {
			hostname: 'example',
			os: 'linux',
			arch: 'x64',
			workingDirectory: FOLDER,
			env: () => 'value-of-the-variable',
		},
		lease<K extends keyof LeaseKinds>(kind: K, settings: LeaseKinds[K]['settings']) {
			if (kind === 'files') return ASSUMED_FILES as LeaseKinds[K]['lease'];
			return deps.lease(kind, settings);
		},
	};
}

const CONTENT = new TextEncoder().encode('Hello.\n');

/** A reader for which every path without a final slash is a small file. */
const ASSUMED_FILES: FileReader = {
	open: (root, path) => ({
		path: `${root.replace(/\/$/, '')}${path}`,
		relativePath: path,
		size: CONTENT.length,
		modified: { seconds: NOW / 1000, nanoseconds: 0 },
		source: 'memory',
		body: (start, end) => CONTENT.subarray(start, end),
		close: () => {},
	}),
	kind: (_root, path) => (path.endsWith('/') ? 'directory' : 'file'),
	stat: (_root, path) => ({
		type: path.endsWith('/') ? 'directory' : 'file',
		size: CONTENT.length,
		mtimeNs: BigInt(NOW) * 1_000_000n,
	}),
	list: () => [],
	entries: () => Promise.resolve({ entries: [], mtimeNs: BigInt(NOW) * 1_000_000n }),
	readStart: () => CONTENT,
};

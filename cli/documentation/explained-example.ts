/**
 * Explains an example of the documentation by running a request through the compiled handlers. The request is the first one in
 * the example's first test or, without a test, one that `svc diff` derives from the example. There is no network, and every file
 * that a request looks for is assumed to exist.
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

/** A request and the explanation of how it is handled. */
export interface ExplainedExample {
	/** The method and the URL. */
	readonly request: string;
	/** What `svc explain` prints for the request. */
	readonly text: string;
}

/** The folder in which examples are assumed to be. It does not exist, so that no real file has an effect. */
const EXAMPLE_FOLDER = '/example';
/** Maximum number of requests that are derived from an example. */
const MAX_DERIVED_REQUESTS = 300;
/** The time of all requests, so that explanations are reproducible. */
const REQUEST_TIME_MS = Date.UTC(2026, 0, 1, 12);

/**
 * Returns the explanation of an example; undefined if the example does not compile by itself, or if no informative request is
 * found.
 */
export async function explainExample(example: Example): Promise<ExplainedExample | undefined> {
	const reader = exampleReader(example.files);
	const fileResult = compileExample(example.text, example, reader);
	// The example of a directive may consist of lines that belong inside a site. In that case, it is compiled again within a site.
	const attempt = fileResult?.plan?.document.sites?.length
		? { result: fileResult, added: 0 }
		: { result: compileExample(`:8080 {\n${example.text}}\n`, example, reader), added: 1 };
	const { result, added: addedLines } = attempt;
	if (!result?.plan?.document.sites?.length) return undefined;
	const environment = exampleEnvironment();
	const configuration = { plan: result.plan, locate: result.locate };
	const testStep = result.tests[0]?.steps[0];
	let explanation: Explanation | undefined;
	if (testStep) {
		const { upstreams, busyZones: busy } = testStep;
		const needsScript = upstreams.length > 0 || busy.length > 0;
		const upstreamScript = needsScript
			? new UpstreamScript(
					upstreams,
					undefined,
					busy.map(({ zone }) => zone),
				)
			: undefined;
		const explained = await new Explainer(configuration, environment).explain(
			{ ...testStep.request, at: REQUEST_TIME_MS },
			upstreamScript,
		);
		explained?.result.response?.close();
		explanation = explained?.explanation;
	} else explanation = await explainBestRequest(configuration, reader, environment);
	if (!explanation) return undefined;
	const { method, url } = explanation.request;
	return {
		request: `${method} ${url}`,
		text: renderExplanation(addedLines === 0 ? explanation : shiftLines(explanation)),
	};
}

function compileExample(text: string, { dialect, name }: Example, reader: Reader): CompileResult | undefined {
	const result = compile({ format: dialect, text, name, path: `${EXAMPLE_FOLDER}/${name}` }, reader);
	return result.plan ? result : undefined;
}

/**
 * Returns the explanation of the request that runs through the most handlers. Of requests that are answered in the same way, only
 * one is considered.
 */
async function explainBestRequest(
	configuration: { readonly plan: NonNullable<CompileResult['plan']>; readonly locate: CompileResult['locate'] },
	reader: Reader,
	environment: DryRunEnvironment,
): Promise<Explanation | undefined> {
	const emptyResult = compile({ format: 'json', text: '{}', name: 'nothing' }, reader);
	if (!emptyResult.plan) return undefined;
	const emptyConfiguration = { plan: emptyResult.plan, locate: emptyResult.locate };
	const { changes } = await diffConfigurations(emptyConfiguration, configuration, environment, MAX_DERIVED_REQUESTS);
	let bestCandidate: { readonly request: DryRunRequest; readonly score: number } | undefined;
	for (const { request, upstream, after } of changes) {
		if (upstream !== undefined || !after?.answer || after.answer.handler === HTTPS_REDIRECT_HANDLER) continue;
		const handlerCount = after.steps.filter(({ kind }) => kind === 'handler').length;
		const score = handlerCount + after.upstreams.length - (after.answer.status >= 400 ? 1 : 0);
		if (!bestCandidate || score > bestCandidate.score) bestCandidate = { request, score };
	}
	if (!bestCandidate) return undefined;
	const explainer = new Explainer(configuration, environment);
	const explain = async (request: DryRunRequest): Promise<Explanation | undefined> => {
		const explained = await explainer.explain(request);
		explained?.result.response?.close();
		return explained?.explanation;
	};
	// If the explanation is the same without the derived query, the simpler URL is shown.
	const { url } = bestCandidate.request;
	const requestWithoutQuery = {
		...bestCandidate.request,
		url: { ...url, text: url.text.replace(/\?.*$/, ''), query: undefined },
	};
	const [originalExplanation, plainExplanation] = [
		await explain(bestCandidate.request),
		await explain(requestWithoutQuery),
	];
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

/** Subtracts 1 from the line numbers of an explanation, because a line for the site was put above the example to compile it. */
function shiftLines(explanation: Explanation): Explanation {
	return JSON.parse(
		JSON.stringify(explanation, (_key, value) => {
			if (typeof value !== 'object' || value === null || typeof value.line !== 'number') return value;
			const { file, line, ...rest } = value as { file: string; line: number };
			return line === 1 ? rest : { file, line: line - 1, ...rest };
		}),
	) as Explanation;
}

/** Returns a reader that finds only the files of an example, and a made-up value for every environment variable. */
function exampleReader(files: ReadonlyMap<string, string>): Reader {
	const readText = (path: string): string => {
		const content = files.get(path.replace(`${EXAMPLE_FOLDER}/`, ''));
		if (content === undefined) throw new ReadError('ENOENT', path);
		return content;
	};
	return {
		workingDirectory: EXAMPLE_FOLDER,
		readText,
		readBytes: path => new TextEncoder().encode(readText(path)),
		list: path => {
			throw new ReadError('ENOENT', path);
		},
		kind: path => (files.has(path.replace(`${EXAMPLE_FOLDER}/`, '')) ? 'file' : undefined),
		env: () => 'value-of-the-variable',
	};
}

function exampleEnvironment(): DryRunEnvironment {
	const environment = dryRunEnvironment(EXAMPLE_FOLDER);
	return {
		...environment,
		// Explanations must not depend on the machine on which the site is generated.
		facts: {
			hostname: 'example',
			os: 'linux',
			arch: 'x64',
			workingDirectory: EXAMPLE_FOLDER,
			env: () => 'value-of-the-variable',
		},
		lease<K extends keyof LeaseKinds>(kind: K, settings: LeaseKinds[K]['settings']) {
			if (kind === 'files') return ASSUMED_FILES as LeaseKinds[K]['lease'];
			return environment.lease(kind, settings);
		},
	};
}

const ASSUMED_FILE_CONTENT = new TextEncoder().encode('Hello.\n');

/** A reader for which every path without a final slash is a small file. */
const ASSUMED_FILES: FileReader = {
	open: (root, path) => ({
		path: `${root.replace(/\/$/, '')}${path}`,
		relativePath: path,
		size: ASSUMED_FILE_CONTENT.length,
		modified: { seconds: REQUEST_TIME_MS / 1000, nanoseconds: 0 },
		source: 'memory',
		body: (start, end) => ASSUMED_FILE_CONTENT.subarray(start, end),
		close: () => {},
	}),
	kind: (_root, path) => (path.endsWith('/') ? 'directory' : 'file'),
	stat: (_root, path) => ({
		type: path.endsWith('/') ? 'directory' : 'file',
		size: ASSUMED_FILE_CONTENT.length,
		mtimeNs: BigInt(REQUEST_TIME_MS) * 1_000_000n,
	}),
	list: () => [],
	entries: () => Promise.resolve({ entries: [], mtimeNs: BigInt(REQUEST_TIME_MS) * 1_000_000n }),
	readStart: () => ASSUMED_FILE_CONTENT,
};

/**
 * Checks `explain` against live serving. Loads random configurations into one server, sends random requests over sockets,
 * and compares every response, and every request that reached an upstream, with the explanation.
 *
 * Usage: node test/agreement/agreement.ts [--pairs N] [--seed N]
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { type CompileResult, compile } from '../../compiler/compiler.ts';
import { renderDiagnostic } from '../../compiler/diagnostics/render.ts';
import type { ConfigInput, Dialect } from '../../compiler/dialects/dialect.ts';
import { type DryRunRequest, isRequestUrl, parseRequestUrl } from '../../compiler/dry-run/dry-run-request.ts';
import { type ExplainedResult, Explainer } from '../../compiler/explain/explanation.ts';
import { renderExplanation } from '../../compiler/explain/render-explanation.ts';
import { diskReader } from '../../runtime/compile/disk-reader.ts';
import { dryRunEnvironment } from '../../runtime/compile/dry-run-environment.ts';
import { freePorts, rawExchange, temporaryFolder } from '../harness.ts';
import { jsonInput, withServer } from '../runtime/running-server.ts';
import { SeededChance } from './chance.ts';
import {
	type Answer,
	comparedFields,
	describingUpstream,
	description,
	parseAnswer,
	UPSTREAM_FIELDS,
	wireRequest,
	withoutLength,
} from './live-answers.ts';
import {
	type ConfigurationTargets,
	type RandomRequest,
	randomConfiguration,
	randomRequest,
} from './random-configuration.ts';

/** The result of a run of comparisons. */
export interface AgreementResult {
	readonly pairs: number;
	readonly configurations: number;
	/** Number of responses that each handler sent, by the handler's name. */
	readonly answers: { readonly [handler: string]: number };
	/** A report of each disagreement: its seed, the request, the explanation and the configuration. */
	readonly disagreements: readonly string[];
}

/** A template page that configurations with `templates` serve. */
const TEMPLATE = [
	'{{.Req.Method}} {{.Req.URL.Path}} {{.OriginalReq.URL.Path}} [{{.Req.Header.Get "X-A"}}] {{ph "http.vars.v"}}',
	'{{if eq .Host "x.test"}}{{httpError 418}}{{end}}{{.RespHeader.Set "X-Page" (upper .Host)}}{{markdown "*a*"}}',
].join('\n');
/** Number of requests that are sent to each configuration. */
const REQUESTS_PER_CONFIGURATION = 40;
/** Number of disagreements after which a run stops. */
const MAX_DISAGREEMENTS = 5;
/** Returns a folder with the files that random configurations serve. */
export function siteFolder(): string {
	const root = temporaryFolder();
	mkdirSync(path.join(root, 'dir'));
	mkdirSync(path.join(root, 'a'));
	writeFileSync(path.join(root, 'page.html'), '<p>page');
	writeFileSync(path.join(root, 'template.html'), TEMPLATE);
	writeFileSync(path.join(root, 'dir/index.html'), '<p>folder');
	writeFileSync(path.join(root, 'a/b'), 'file b');
	return root;
}

/** Makes `pairs` comparisons with random requests and configurations. The same `seed` gives the same run. */
export async function findDisagreements(pairs: number, seed: number): Promise<AgreementResult> {
	const root = siteFolder();
	const servers = await Promise.all([describingUpstream(), describingUpstream()]);
	const addresses = servers.map(({ server }) => `127.0.0.1:${(server.address() as AddressInfo).port}`);
	const [port] = (await freePorts(1)) as [number];
	const place: ConfigurationTargets = { port, upstreams: [addresses[0]!, addresses[1]!], root };
	const answers: { [handler: string]: number } = {};
	const disagreements: string[] = [];
	// Spans are discarded, because there is no collector.
	const environment = { ...process.env, OTEL_TRACES_EXPORTER: 'none' };
	let doneCount = 0;
	let configurations = 0;
	const first = { settings: { trusted_proxies: ['127.0.0.0/8'] }, sites: [{ addresses: [`:${port}`], pipeline: [] }] };
	try {
		await withServer(undefined, { input: jsonInput(first), threads: 1, environment }, async ({ runtime }) => {
			while (doneCount < pairs && disagreements.length < MAX_DISAGREEMENTS) {
				const own = seed + configurations++;
				const chance = new SeededChance(own);
				const { input, compiled } = randomInput(chance, place);
				const outcome = await runtime.load(input);
				if (outcome.result !== 'applied')
					throw new Error(`seed ${own}: the configuration was not loaded: ${JSON.stringify(outcome)}\n${input.text}`);
				const { plan, locate } = compiled;
				const explainer = new Explainer({ plan: plan!, locate }, dryRunEnvironment(process.cwd()));
				for (let i = 0; i < REQUESTS_PER_CONFIGURATION && doneCount < pairs; i++, doneCount++) {
					const request = randomRequest(chance, port);
					const explained = await explainer.explain(dryRunRequest(request));
					if (!explained) throw new Error(`seed ${own}: no listener matches`);
					const live = parseAnswer(await rawExchange(port, wireRequest(request)));
					const expected = await expectedAnswer(explained, place);
					const by = expected === 'dropped' ? 'abort' : explained.result.exchange.answeredBy;
					answers[by] = (answers[by] ?? 0) + 1;
					const difference = differenceOf(expected, live);
					if (difference === undefined) continue;
					disagreements.push(
						[
							`seed ${own}, request ${i}: ${difference}`,
							wireRequest(request),
							renderExplanation(explained.explanation),
							input.text,
						].join('\n'),
					);
				}
			}
		});
	} finally {
		for (const { server } of servers) {
			server.closeAllConnections();
			server.close();
		}
	}
	return { pairs: doneCount, configurations, answers, disagreements };
}

/** Returns a random configuration that compiles: source text in either language, or the JSON document adapted from it. */
function randomInput(
	chance: SeededChance,
	place: ConfigurationTargets,
): { input: ConfigInput; compiled: CompileResult } {
	const format: Dialect = chance.happens(65) ? 'configfile' : 'compatfile';
	const text = randomConfiguration(chance, format, place);
	const compiled = compiledOf({ format, text, name: format });
	if (!chance.happens(15)) return { input: { format, text, name: format }, compiled };
	const input: ConfigInput = { format: 'json', text: JSON.stringify(compiled.document), name: 'json' };
	return { input, compiled: compiledOf(input) };
}

function compiledOf(input: ConfigInput): CompileResult {
	const compiled = compile(input, diskReader(process.cwd()));
	if (compiled.plan) return compiled;
	const errors = compiled.diagnostics.filter(({ severity }) => severity === 'error').map(one => renderDiagnostic(one));
	throw new Error(`the generator made an invalid configuration:\n${errors.join('\n')}\n${input.text}`);
}

function dryRunRequest({ method, target, authority, headers, body }: RandomRequest): DryRunRequest {
	const url = parseRequestUrl(`http://${authority}${target}`);
	if (!isRequestUrl(url)) throw new Error(`the generator made an invalid URL: ${authority} ${target}`);
	return { method, url, headers, body, from: undefined, at: undefined };
}

/**
 * Returns the response that the explanation predicts. A fake upstream describes the request that it receives, so its response can
 * be predicted, too.
 */
async function expectedAnswer({ result }: ExplainedResult, place: ConfigurationTargets): Promise<Answer | 'dropped'> {
	const { response, exchange: x } = result;
	if (!response) return 'dropped';
	const sent = x.upstreamRequests.at(-1);
	const fields = comparedFields([...response.headers]);
	if (!sent || x.answeredBy !== 'proxy' || result.failure !== undefined) {
		return { status: response.status, fields, body: Buffer.from(await response.bytes()).toString('latin1') };
	}
	const { request, upstream } = sent;
	const seen: { [name: string]: string } = {};
	for (const name of UPSTREAM_FIELDS) {
		const value = request.headers.getCombined(name);
		if (value !== undefined) seen[name] = value;
	}
	const port = Number(upstream.address.split(':').at(-1));
	if (!place.upstreams.includes(upstream.address)) throw new Error(`${upstream.address} is not an upstream`);
	const bodiless = x.received.method === 'HEAD' || request.method === 'HEAD';
	const text = description(port, request.method, request.target, seen);
	return { status: response.status, fields: withoutLength(fields), body: bodiless ? '' : text };
}

/** Describes the difference between two responses. Returns undefined if they are equal. */
function differenceOf(expected: Answer | 'dropped', live: Answer | 'dropped'): string | undefined {
	if (expected === 'dropped' || live === 'dropped') {
		return expected === live ? undefined : `explained ${JSON.stringify(expected)}, came ${JSON.stringify(live)}`;
	}
	const proxied = live.body.startsWith('{"port"') || !expected.fields.some(field => /^content-length:/i.test(field));
	const liveFields = proxied ? withoutLength(live.fields) : live.fields;
	const expectedFields = proxied ? withoutLength(expected.fields) : expected.fields;
	const [left, right] = [expectedFields, liveFields].map(fields => fields.toSorted().join('\n')) as [string, string];
	if (expected.status === live.status && left === right && expected.body === live.body) return undefined;
	return `\nexplained ${expected.status}\n${left}\n\n${expected.body}\n\ncame ${live.status}\n${right}\n\n${live.body}\n`;
}

if (import.meta.main) {
	const { values } = parseArgs({
		options: { pairs: { type: 'string', default: '10000' }, seed: { type: 'string', default: '1' } },
	});
	const startedAt = performance.now();
	const { pairs, configurations, answers, disagreements } = await findDisagreements(
		Number(values.pairs),
		Number(values.seed),
	);
	for (const one of disagreements) console.log(`${one}\n${'='.repeat(72)}`);
	const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
	console.log(
		`${pairs} pairs of ${configurations} configurations in ${seconds} s, answered by ${JSON.stringify(answers)}`,
	);
	console.log(`${disagreements.length} disagreements`);
	process.exitCode = disagreements.length > 0 ? 1 : 0;
}

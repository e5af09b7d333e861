/**
 * Checks `svc diff` against live serving. Serves two configurations, one of which is a random change of the other, sends the same
 * random requests to both, and compares what differs with what the diff reports. Then sends every witness that the diff reports.
 *
 * Usage: node test/agreement/diff-trial.ts [--pairs N] [--requests N] [--seed N]
 */
import type { AddressInfo } from 'node:net';
import { parseArgs } from 'node:util';
import { type CompileResult, compile } from '../../compiler/compiler.ts';
import type { ConfigInput, Dialect } from '../../compiler/dialects/dialect.ts';
import { type ConfigurationDiff, diffConfigurations } from '../../compiler/diff/configuration-diff.ts';
import { isSame, renderDiff } from '../../compiler/diff/render-diff.ts';
import type { DryRunRequest } from '../../compiler/dry-run/dry-run-request.ts';
import { diskReader } from '../../runtime/compile/disk-reader.ts';
import { dryRunEnvironment } from '../../runtime/compile/dry-run-environment.ts';
import type { Runtime } from '../../runtime/main/runtime.ts';
import { freePorts } from '../harness.ts';
import { jsonInput, withServer } from '../runtime/running-server.ts';
import { siteFolder } from './agreement.ts';
import { SeededChance } from './chance.ts';
import { changedConfiguration, refactoredConfiguration } from './changed-configuration.ts';
import { type Answer, describingUpstream, type FailureMode, UPSTREAM_FIELDS, wireRequest } from './live-answers.ts';
import { PersistentClient } from './persistent-client.ts';
import { type ConfigurationTargets, randomConfiguration, randomRequest } from './random-configuration.ts';

/** The result of a trial. */
export interface DiffTrial {
	readonly pairs: number;
	/** Number of pairs whose answers to the random requests differ. */
	readonly differing: number;
	/** Number of pairs for which the diff reports a difference. */
	readonly reported: number;
	/** Number of pairs that the diff calls equal. */
	readonly equal: number;
	/** Number of witnesses that were sent, and of those that cannot be sent from this machine. */
	readonly witnesses: number;
	readonly unsendable: number;
	/** Number of differences that the diff misses, and for which it names a blind spot. */
	readonly inBlindSpots: number;
	/** Missed differences of requests whose path contains a zero byte. They get 400 only where something evaluates the path. */
	readonly withoutPath: number;
	/** A report of each mistake of the diff. */
	readonly mistakes: readonly string[];
}

/** Number of mistakes after which a trial stops. */
const ENOUGH = 5;

interface Pair {
	readonly before: CompileResult;
	readonly after: CompileResult;
	readonly texts: readonly [ConfigInput, ConfigInput];
	/** True if the change must not change any answer. */
	readonly isRefactoring: boolean;
}

/** Compares `pairs` pairs of configurations. Sends `requests` random requests to both configurations of each pair. */
export async function tryDiff(pairs: number, requests: number, seed: number): Promise<DiffTrial> {
	const upstreams = await Promise.all([describingUpstream(), describingUpstream()]);
	const addresses = upstreams.map(({ server }) => `127.0.0.1:${(server.address() as AddressInfo).port}`);
	const [port, otherPort] = (await freePorts(2)) as [number, number];
	const targets = { port, upstreams: [addresses[0]!, addresses[1]!], root: siteFolder() } as const;
	const environment = { ...process.env, OTEL_TRACES_EXPORTER: 'none' };
	const first = (at: number) =>
		jsonInput({ settings: { trusted_proxies: ['127.0.0.0/8'] }, sites: [{ addresses: [`:${at}`], pipeline: [] }] });
	const trial = {
		pairs: 0,
		differing: 0,
		reported: 0,
		equal: 0,
		witnesses: 0,
		unsendable: 0,
		inBlindSpots: 0,
		withoutPath: 0,
	};
	const mistakes: string[] = [];
	const options = (at: number) => ({ input: first(at), threads: 1, environment });
	try {
		await withServer(undefined, options(port), ({ runtime: one }) =>
			withServer(undefined, options(otherPort), async ({ runtime: other }) => {
				for (; trial.pairs < pairs && mistakes.length < ENOUGH; trial.pairs++) {
					const own = seed + trial.pairs;
					const chance = new SeededChance(own);
					const pair = randomPair(chance, targets);
					await load(one, pair.texts[0], own);
					await load(other, withPort(pair.texts[1], port, otherPort), own);
					const found = await diffOf(pair);
					const clients = [new PersistentClient(port), new PersistentClient(otherPort)] as const;
					const report = (what: string, details: string): void => {
						mistakes.push([`seed ${own}: ${what}`, details, ...pair.texts.map(({ text }) => text)].join('\n---\n'));
					};
					if (isSame(found)) trial.equal++;
					else trial.reported++;
					if (pair.isRefactoring && !isSame(found)) {
						report('a refactoring is reported as a change', renderDiff(found, 'before', 'after'));
					}
					let differs = false;
					for (let i = 0; i < requests; i++) {
						const request = randomRequest(chance, port);
						const wire = wireRequest({
							...request,
							headers: request.headers.filter(([name]) => name !== 'Connection'),
						});
						const [before, after] = await Promise.all(clients.map(client => client.exchange(wire, request.method)));
						const difference = differenceOf(before!, after!);
						if (difference === undefined) continue;
						if (!differs) trial.differing++;
						const isFirst = !differs;
						differs = true;
						if (!isSame(found) || !isFirst) continue;
						if (found.blindSpots.length > 0) trial.inBlindSpots++;
						else if (wire.includes('%00')) trial.withoutPath++;
						else report('a difference is missed', `${wire}${difference}`);
					}
					for (const { request, upstream, aspects } of found.changes) {
						if (!aspects.some(({ name }) => isVisible(name))) continue;
						const wire = witnessBytes(request);
						const mode = modeOf(upstream);
						if (wire === undefined || mode === undefined) {
							trial.unsendable++;
							continue;
						}
						trial.witnesses++;
						for (const one of upstreams) one.mode = mode;
						const seen: string[] = [];
						const answersOf = async (client: PersistentClient) => {
							for (const { received } of upstreams) received.length = 0;
							const answer = await client.exchange(wire, request.method);
							seen.push(JSON.stringify(upstreams.map(({ received }) => received)));
							return answer;
						};
						const before = await answersOf(clients[0]);
						const after = await answersOf(clients[1]);
						for (const one of upstreams) one.mode = {};
						if (differenceOf(before, after) === undefined && seen[0] === seen[1]) {
							report('a false witness', `${wire}${JSON.stringify({ upstream, aspects, before }, null, '\t')}`);
						}
					}
					for (const client of clients) client.close();
					for (const { received } of upstreams) received.length = 0;
				}
			}),
		);
	} finally {
		for (const { server } of upstreams) {
			server.closeAllConnections();
			server.close();
		}
	}
	return { ...trial, mistakes };
}

/** Returns two configurations that compile. */
function randomPair(chance: SeededChance, targets: ConfigurationTargets): Pair {
	const format: Dialect = chance.happens(65) ? 'configfile' : 'compatfile';
	const isRefactoring = chance.happens(15);
	for (;;) {
		const text = randomConfiguration(chance, format, targets);
		const changed = isRefactoring
			? refactoredConfiguration(chance, text)
			: changedConfiguration(chance, text, randomConfiguration(chance, format, targets));
		if (changed === text) continue;
		const texts = [text, changed].map((one): ConfigInput => ({ format, text: one, name: format })) as [
			ConfigInput,
			ConfigInput,
		];
		const [before, after] = texts.map(input => compile(input, diskReader(process.cwd()))) as [
			CompileResult,
			CompileResult,
		];
		if (before.plan && after.plan) return { before, after, texts, isRefactoring };
	}
}

async function diffOf({ before, after }: Pair): Promise<ConfigurationDiff> {
	const sides = [before, after].map(({ plan, locate }) => ({ plan: plan!, locate }));
	return diffConfigurations(sides[0]!, sides[1]!, dryRunEnvironment(process.cwd()));
}

async function load(runtime: Runtime, input: ConfigInput, seed: number): Promise<void> {
	const outcome = await runtime.load(input);
	if (outcome.result === 'applied') return;
	throw new Error(`seed ${seed}: the configuration was not loaded: ${JSON.stringify(outcome)}\n${input.text}`);
}

function withPort(input: ConfigInput, from: number, to: number): ConfigInput {
	return { ...input, text: input.text.replaceAll(`:${from}`, `:${to}`) };
}

/** Returns the request of a witness as bytes; undefined if its client address does not exist on this machine. */
function witnessBytes({ method, url, headers, body, from, protocol }: DryRunRequest): string | undefined {
	if ((from !== undefined && from !== '127.0.0.1') || (protocol !== undefined && protocol !== 'h1')) return undefined;
	if (url.scheme !== 'http') return undefined;
	const target = url.path + (url.query === undefined ? '' : `?${url.query}`);
	const own = headers.find(([name]) => /^host$/i.test(name));
	const others = headers.filter(([name]) => !/^host$/i.test(name));
	return wireRequest({ method, target, authority: own?.[1] ?? url.authority, headers: others, body });
}

/** Returns how the upstreams must behave for a witness; undefined if they cannot behave so, or if only one of them is to fail. */
function modeOf(assumption: ConfigurationDiff['changes'][number]['upstream']): FailureMode | undefined {
	if (assumption === undefined) return {};
	const { status, headers, unreachable, timesOut, unavailable, once, of, disconnects } = assumption;
	if (unreachable || timesOut || unavailable || once || of !== undefined) return undefined;
	return disconnects ? { disconnects } : { status, headers };
}

/** Reports whether an aspect can be seen in a single answer. Settings, such as the level of a compression, cannot. */
function isVisible(aspect: string): boolean {
	const field = /^upstream(?: \d+)? field (.*)$/.exec(aspect)?.[1];
	if (field !== undefined) return UPSTREAM_FIELDS.includes(field);
	return !aspect.startsWith('settings of') && aspect !== 'file looked for';
}

/** Describes the difference between two answers; undefined if there is none. */
function differenceOf(before: Answer | 'dropped', after: Answer | 'dropped'): string | undefined {
	const [one, other] = [before, after].map(answer => (answer === 'dropped' ? answer : comparable(answer)));
	return one === other ? undefined : `\nbefore: ${one}\nafter: ${other}\n`;
}

function comparable({ status, fields, body }: Answer): string {
	return JSON.stringify([status, fields.toSorted(), body], null, '\t');
}

if (import.meta.main) {
	const { values } = parseArgs({
		options: {
			pairs: { type: 'string', default: '500' },
			requests: { type: 'string', default: '2000' },
			seed: { type: 'string', default: '1' },
		},
	});
	const started = performance.now();
	const { mistakes, ...trial } = await tryDiff(Number(values.pairs), Number(values.requests), Number(values.seed));
	for (const one of mistakes) console.log(`${one}\n${'='.repeat(72)}`);
	console.log(
		JSON.stringify(trial),
		`${((performance.now() - started) / 1000).toFixed(1)} s, ${mistakes.length} mistakes`,
	);
	process.exitCode = mistakes.length > 0 ? 1 : 0;
}

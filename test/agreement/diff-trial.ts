/**
 * Checks `svc diff` against live serving. Serves two configurations, one of which is a random change of the other, sends the same
 * random requests to both, and compares the differences between the answers with the differences that the diff reports. Then
 * sends every witness: the example request that the diff gives for a difference.
 *
 * Usage: node test/agreement/diff-trial.ts [--pairs N] [--requests N] [--seed N] [--mistakes N]
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
import {
	type Answer,
	type DescribingUpstream,
	describingUpstream,
	type FailureMode,
	UPSTREAM_FIELDS,
	wireRequest,
} from './live-answers.ts';
import { PersistentClient } from './persistent-client.ts';
import { type ConfigurationTargets, randomConfiguration, randomRequest } from './random-configuration.ts';

/** The result of a trial of `svc diff`. */
export interface DiffTrial {
	readonly pairs: number;
	/** Number of pairs whose answers to the random requests differ. */
	readonly differing: number;
	/** Number of pairs for which the diff reports a difference. */
	readonly reported: number;
	/** Number of pairs that the diff calls equal. */
	readonly equal: number;
	/** Number of witnesses that were sent. */
	readonly witnesses: number;
	/**
	 * Number of sent witnesses that assume a failing upstream, an upstream response other than a plain 200, or an exceeded rate
	 * limit.
	 */
	readonly withFailures: number;
	/** Number of reported changes that no response can show: settings, and attempts to reach an unreachable upstream. */
	readonly invisible: number;
	/** Number of witnesses that cannot be sent from this machine, by reason. */
	readonly unsendable: { readonly [reason: string]: number };
	/** Number of differences that the diff misses, but warns about as one of its blind spots. */
	readonly inBlindSpots: number;
	/**
	 * Number of missed differences for requests whose path contains a zero byte. Such a request gets 400 only if
	 * something evaluates its path.
	 */
	readonly withoutPath: number;
	/** A report of each mistake of the diff. */
	readonly mistakes: readonly string[];
}

/** Number of mistakes after which a trial stops, by default. */
const MAX_MISTAKES = 5;
/** Loopback addresses at which nothing listens: the ports need privileges and belong to no common service. */
const DEAD_ADDRESSES = ['127.0.0.1:2', '127.0.0.1:3', '127.0.0.1:4'];
/** The highest rate limit of a zone in random configurations. */
const MAX_RATE_LIMIT = 20;
/** Credentials of the accounts in random configurations. */
const CREDENTIALS = ['alice:svc-diff', 'bob:svc-diff', 'alice:wrong'].map(text => `Basic ${btoa(text)}`);

interface Pair {
	readonly before: CompileResult;
	readonly after: CompileResult;
	readonly texts: readonly [ConfigInput, ConfigInput];
	/** True if the second configuration must answer every request like the first. */
	readonly isRefactoring: boolean;
}

/**
 * Compares `pairs` pairs of configurations. Sends `requests` random requests to both configurations of each pair. Calls
 * `progress` after each pair, with the mistakes found in it.
 */
export async function tryDiff(
	pairs: number,
	requests: number,
	seed: number,
	enough = MAX_MISTAKES,
	progress: (trial: Omit<DiffTrial, 'mistakes' | 'unsendable'>, mistakes: readonly string[]) => void = () => {},
): Promise<DiffTrial> {
	const upstreams = await Promise.all([describingUpstream(), describingUpstream(), describingUpstream()]);
	const addresses = upstreams.map(({ server }) => `127.0.0.1:${(server.address() as AddressInfo).port}`);
	const [port, otherPort] = (await freePorts(2)) as [number, number];
	const spare = addresses[2]!;
	const targets = { port, upstreams: [addresses[0]!, addresses[1]!], root: siteFolder(), spare } as const;
	const environment = { ...process.env, OTEL_TRACES_EXPORTER: 'none' };
	const first = (at: number) =>
		jsonInput({ settings: { trusted_proxies: ['127.0.0.0/8'] }, sites: [{ addresses: [`:${at}`], pipeline: [] }] });
	const trial = {
		pairs: 0,
		differing: 0,
		reported: 0,
		equal: 0,
		witnesses: 0,
		withFailures: 0,
		invisible: 0,
		inBlindSpots: 0,
		withoutPath: 0,
	};
	const mistakes: string[] = [];
	const unsendable: { [reason: string]: number } = {};
	const options = (at: number) => ({ input: first(at), threads: 1, environment });
	try {
		await withServer(undefined, options(port), ({ runtime: one }) =>
			withServer(undefined, options(otherPort), async ({ runtime: other }) => {
				for (; trial.pairs < pairs && mistakes.length < enough; trial.pairs++) {
					const own = seed + trial.pairs;
					const chance = new SeededChance(own);
					const pair = randomPair(chance, targets);
					const known = mistakes.length;
					let loads = 0;
					// Rate limit counts survive reloads, so every load uses new zones.
					const loadBoth = async (edited: (text: string) => string): Promise<void> => {
						const zones = `zone${own}of${loads++}n`;
						const [before, after] = pair.texts.map(
							(input): ConfigInput => ({
								...input,
								text: edited(input.text)
									.replace(/\bzone(?=\d)/g, zones)
									// Shortens the pauses between attempts, so that requests to an unreachable upstream fail quickly.
									.replace(/^\s*lb_retries .*$/gm, '$&\nlb_try_interval 1ms'),
							}),
						) as [ConfigInput, ConfigInput];
						await load(one, before, own);
						await load(other, withPort(after, port, otherPort), own);
					};
					// While random requests are sent, the spare upstream cannot be reached.
					await loadBoth(text => text.replaceAll(spare, DEAD_ADDRESSES[2]!));
					const configurationDiff = await diffOf(pair);
					const clients = [new PersistentClient(port), new PersistentClient(otherPort)] as const;
					const report = (what: string, details: string): void => {
						mistakes.push([`seed ${own}: ${what}`, details, ...pair.texts.map(({ text }) => text)].join('\n---\n'));
					};
					if (isSame(configurationDiff)) trial.equal++;
					else trial.reported++;
					if (pair.isRefactoring && !isSame(configurationDiff)) {
						report('a refactoring is reported as a change', renderDiff(configurationDiff, 'before', 'after'));
					}
					const zoneCount = new Set(pair.texts.flatMap(({ text }) => text.match(/\bzone\d+/g) ?? [])).size;
					let differs = false;
					const reportedParts = new Set<string>();
					for (let i = 0; i < requests; i++) {
						const request = randomRequest(chance, port);
						const headers = request.headers.filter(([name]) => name !== 'Connection');
						if (chance.happens(30)) headers.push(['Authorization', chance.of(CREDENTIALS)]);
						if (chance.happens(20)) headers.push(['Accept-Encoding', chance.of(['gzip', 'br, gzip'])]);
						const wire = wireRequest({ ...request, headers });
						// The rate limit of only one configuration may count a request that gets 400. After that, the counts of the two would
						// differ.
						if (zoneCount > 0 && hasZeroByte(wire)) continue;
						const [before, after] = await Promise.all(clients.map(client => client.exchange(wire, request.method)));
						const difference = differenceOf(before!, after!);
						if (difference === undefined) continue;
						if (!differs) trial.differing++;
						const isFirst = !differs;
						differs = true;
						// A pair that the diff calls equal is reported once. For other pairs, the diff must list every
						// part of an answer that differs.
						const missing = isSame(configurationDiff)
							? isFirst
								? ['everything']
								: []
							: findUnannounced(configurationDiff, before!, after!);
						if (missing.length === 0 || reportedParts.has(missing.join())) continue;
						reportedParts.add(missing.join());
						if (configurationDiff.blindSpots.length > 0) trial.inBlindSpots++;
						else if (hasZeroByte(wire)) trial.withoutPath++;
						else report('a difference is missed', `${wire}${difference}`);
					}
					let loaded = 'random';
					for (const change of configurationDiff.changes) {
						const { request, upstream, aspects } = change;
						// A refused connection leaves no trace at the upstream, so nothing that concerns the upstream request shows.
						const shows = (name: string) => isVisible(name) && !(upstream?.unreachable && /^upstream\b/.test(name));
						if (!aspects.some(({ name }) => shows(name))) {
							trial.invisible++;
							continue;
						}
						const wire = witnessBytes(request);
						const failure = failureOf(change, addresses, zoneCount);
						if (typeof wire === 'object' || typeof failure === 'string') {
							const reason = typeof wire === 'object' ? wire.because : (failure as string);
							unsendable[reason] = (unsendable[reason] ?? 0) + 1;
							continue;
						}
						trial.witnesses++;
						if (upstream !== undefined) trial.withFailures++;
						if (zoneCount > 0 || failure.dead.join() !== loaded) {
							await loadBoth(text =>
								failure.dead.reduce(
									(edited, address, index) => edited.replaceAll(address, DEAD_ADDRESSES[index]!),
									text,
								),
							);
							loaded = failure.dead.join();
						}
						const seen: string[] = [];
						const answersOf = async (client: PersistentClient) => {
							for (let i = failure.exceeds === undefined ? 0 : MAX_RATE_LIMIT; i > 0; i--)
								await client.exchange(wire, request.method);
							setFailure(upstreams, addresses, failure);
							const answer = await client.exchange(wire, request.method);
							seen.push(JSON.stringify(upstreams.map(({ received }) => received)));
							return answer;
						};
						const before = await answersOf(clients[0]);
						const after = await answersOf(clients[1]);
						for (const one of upstreams) one.mode = {};
						const wrong = aspects.filter(
							({ name }) => shows(name) && !isShownBy(name, [before, after], seen as [string, string]),
						);
						if (wrong.length > 0) {
							report(
								'a false witness',
								`${wire}${JSON.stringify({ upstream, aspects, wrong, before, after, seen }, null, '\t')}`,
							);
						}
					}
					for (const client of clients) client.close();
					for (const { received } of upstreams) received.length = 0;
					progress({ ...trial, pairs: trial.pairs + 1 }, mistakes.slice(known));
				}
			}),
		);
	} finally {
		for (const { server } of upstreams) {
			server.closeAllConnections();
			server.close();
		}
	}
	return { ...trial, unsendable, mistakes };
}

function hasZeroByte(wire: string): boolean {
	return wire.includes('%00');
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

/** Returns the request of a witness as bytes, or the reason why it cannot be sent. */
function witnessBytes({ method, url, headers, body, from, protocol }: DryRunRequest): string | { because: string } {
	if (from !== undefined && from !== '127.0.0.1') return { because: 'comes from another address' };
	if (protocol !== undefined && protocol !== 'h1') return { because: 'is not HTTP/1' };
	if (url.scheme !== 'http') return { because: 'needs TLS' };
	const target = url.path + (url.query === undefined ? '' : `?${url.query}`);
	const own = headers.find(([name]) => /^host$/i.test(name));
	const others = headers.filter(([name]) => !/^host$/i.test(name));
	return wireRequest({ method, target, authority: own?.[1] ?? url.authority, headers: others, body });
}

/** What the upstreams must do, and which rate limit must be exceeded, so that the assumptions of a witness hold. */
interface UpstreamFailure {
	/** Addresses on which nothing may listen. */
	readonly dead: readonly string[];
	/** Address of the only upstream that fails in this way; undefined if all do. */
	readonly of: string | undefined;
	readonly mode: FailureMode;
	/** The rate limit zone that must be used up before the request. */
	readonly exceeds?: string | undefined;
	/** True if only the first request fails. */
	readonly once: boolean;
}

/** Returns what the upstreams must do to meet a witness's assumptions, or the reason why they cannot. */
function failureOf(
	{ upstream, before, after }: ConfigurationDiff['changes'][number],
	addresses: readonly string[],
	zones: number,
): UpstreamFailure | string {
	const none = { dead: [], of: undefined, mode: {}, once: false };
	if (upstream === undefined) return none;
	const {
		status,
		headers,
		unreachable,
		timesOut,
		unavailable,
		once = false,
		of,
		disconnects,
		exceeds,
		busy,
	} = upstream;
	// A request that several rate limit zones count would use up all of them.
	if (exceeds !== undefined) return zones > 1 ? 'only one of several zones is exceeded' : { ...none, exceeds };
	if (busy !== undefined) return 'a concurrency zone is full';
	if (unavailable) return 'an upstream is unavailable';
	if (timesOut) return unreachable ? 'a connection is not established in time' : 'an answer takes too long';
	if (!unreachable) return { dead: [], of, mode: disconnects ? { disconnects, headers } : { status, headers }, once };
	if (!once) return { ...none, dead: of === undefined ? addresses : [of], mode: { headers } };
	// An upstream that stays unreachable has the same effect as one failed request, provided that no retry returns to it.
	const attempts = [before, after].map(side => side?.upstreams.map(({ address }) => address) ?? []);
	const first = attempts.find(list => list.length > 0)?.[0];
	const isOnce = first !== undefined && attempts.every(list => list.length === 0 || list.lastIndexOf(first) === 0);
	return isOnce ? { ...none, dead: [first], mode: { headers } } : 'an upstream is back between two attempts';
}

/** Sets how the upstreams treat the next requests, and forgets the requests that they have received. */
function setFailure(
	upstreams: readonly DescribingUpstream[],
	addresses: readonly string[],
	{ of, mode, once }: UpstreamFailure,
): void {
	const next = once ? { ...mode, remaining: { requests: 1 } } : mode;
	upstreams.forEach((one, index) => {
		one.received.length = 0;
		one.mode = of === undefined || of === addresses[index] ? next : { headers: mode.headers };
	});
}

/**
 * Reports whether two answers differ in an aspect, which is what the diff names as different, such as `status`. If the aspect
 * concerns the upstream, whether the upstreams received different requests.
 */
function isShownBy(aspect: string, answers: readonly (Answer | 'dropped')[], seen: readonly [string, string]): boolean {
	if (/^upstream\b/.test(aspect)) return seen[0] !== seen[1];
	const [one, other] = answers.map(answer => partOf(aspect, answer));
	return one !== other;
}

/** Returns the parts of two answers that differ although no change in the diff mentions them. */
function findUnannounced(found: ConfigurationDiff, before: Answer | 'dropped', after: Answer | 'dropped'): string[] {
	const announced = found.changes.flatMap(({ aspects }) => aspects.map(({ name }) => name));
	// If the diff announces that the request goes elsewhere, or that only one side executes a template, that explains every
	// difference in the answer.
	if (announced.some(name => /^(connection|upstream( \d+)?|file looked for|settings of `render`)$/.test(name)))
		return [];
	// If the balancer has changed, it may choose other upstreams, and any part of the answer may differ.
	const balanceOf = (settings = '{}'): string => JSON.stringify(JSON.parse(settings).balance) ?? '';
	const pools = found.changes.flatMap(({ aspects }) =>
		aspects.filter(({ name }) => /^settings of the upstream/.test(name)),
	);
	if (pools.some(pool => balanceOf(pool.before) !== balanceOf(pool.after))) return [];
	if (before === 'dropped' || after === 'dropped') return ['connection'];
	const names = new Set([...before.fields, ...after.fields].map(field => field.split(':', 1)[0]!.toLowerCase()));
	const fields = [...names]
		.filter(name => !/^(content-length|transfer-encoding)$/.test(name))
		.map(name => `header ${name}`);
	const sentFields = announced.flatMap(name => /^upstream(?: \d+)? field (.*)$/.exec(name)?.[1] ?? []);
	const [one, other] = [before, after].map(answer => ({ ...answer, body: withoutFields(answer.body, sentFields) }));
	const differing = ['status', 'body', ...fields].filter(part => partOf(part, one!) !== partOf(part, other!));
	// If the diff announces another status or body, the other differences follow from this one.
	if (announced.includes('status') || announced.includes('body'))
		return differing.filter(part => part === 'status' && !announced.includes('status'));
	const compressed = announced.includes('settings of `compress`') ? COMPRESSION_PARTS : [];
	return differing.filter(part => !announced.includes(part) && !compressed.includes(part));
}

/** Returns the body of an answer. If it is an upstream's description of its request, the fields with these names are left out. */
function withoutFields(body: string, names: readonly string[]): string {
	if (names.length === 0 || !body.startsWith('{"port":')) return body;
	return JSON.stringify(JSON.parse(body), (name, value) => (names.includes(name) ? undefined : value));
}

/** The parts of an answer that depend on whether it is compressed. */
const COMPRESSION_PARTS: readonly string[] = ['body', 'header content-encoding', 'header etag', 'header accept-ranges'];

/** Returns the part of an answer that an aspect is about, as text. */
function partOf(aspect: string, answer: Answer | 'dropped'): string {
	if (answer === 'dropped') return 'dropped';
	const { status, fields, body } = answer;
	const name = /^header (.*)$/.exec(aspect)?.[1];
	if (name !== undefined)
		return fields
			.filter(field => field.toLowerCase().startsWith(`${name}:`))
			.map(withoutSeconds)
			.join();
	if (aspect === 'status') return String(status);
	return aspect === 'body' ? body : 'answered';
}

/** Reports whether an aspect can be seen in a single answer. Settings, such as a compression level, cannot be seen. */
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
	return JSON.stringify([status, fields.map(withoutSeconds).toSorted(), body], null, '\t');
}

/** Returns a field without a rate limit's remaining seconds, because the two servers may answer in different seconds. */
function withoutSeconds(field: string): string {
	return field.replace(/^(RateLimit:.*;t=|Retry-After: )\d+$/i, '$1…');
}

if (import.meta.main) {
	const { values } = parseArgs({
		options: {
			pairs: { type: 'string', default: '500' },
			requests: { type: 'string', default: '2000' },
			seed: { type: 'string', default: '1' },
			mistakes: { type: 'string', default: String(MAX_MISTAKES) },
		},
	});
	const startedAt = performance.now();
	const [pairs, requests, seed, enough] = [values.pairs, values.requests, values.seed, values.mistakes].map(Number);
	const { mistakes, ...trial } = await tryDiff(pairs!, requests!, seed!, enough, (soFar, found) => {
		for (const one of found) console.log(`${one}\n${'='.repeat(72)}`);
		if (soFar.pairs % 10 === 0) console.error(JSON.stringify(soFar));
	});
	console.log(
		JSON.stringify(trial),
		`${((performance.now() - startedAt) / 1000).toFixed(1)} s, ${mistakes.length} mistakes`,
	);
	process.exitCode = mistakes.length > 0 ? 1 : 0;
}

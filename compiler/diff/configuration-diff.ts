/**
 * Compares the effects of two configurations on requests. Requests are derived from both: first, every origin with every path at
 * the border of a pattern; then, requests for which one of the evaluated matchers has the opposite result, until no new route
 * through either handler graph is found. Each request runs through both graphs, with fakes instead of the network.
 */
import type { ListenerSpec, Plan } from '../codegen/plan/plan.ts';
import type { CompileResult } from '../compiler.ts';
import { canonicalJson } from '../document/canonical-json.ts';
import type { Document, Step } from '../document/document.ts';
import { DryRun, type DryRunEnvironment, type DryRunResult } from '../dry-run/dry-run.ts';
import type { DryRunRequest } from '../dry-run/dry-run-request.ts';
import type { LeaseKinds } from '../exchange/leases.ts';
import { Explainer, type Explanation } from '../explain/explanation.ts';
import { type GraphTrace, GraphTracer, type MatcherEvent } from '../explain/graph-tracer.ts';
import { walkDocument } from '../lint/inspection/walk-document.ts';
import { changeOfPlaceholder, type RequestChange, UNMENTIONED_VALUE } from '../modules/contract/request-change.ts';
import type { PasswordVerifier } from '../modules/directives/basic-auth/password-verifier.ts';
import type { LimitConcurrentStep } from '../modules/directives/limit-concurrent/limit-concurrent-handler.ts';
import type { RateLimitStep } from '../modules/directives/rate-limit/rate-limit-handler.ts';
import { HANDLERS } from '../modules/registry/handlers.ts';
import { MATCHERS_BY_TYPE } from '../modules/registry/matchers.ts';
import { valueAt } from '../schema/validate.ts';
import { differingAspects, type Outcome, outcomeOf } from './outcome.ts';
import { RecordedFiles } from './recorded-files.ts';
import { changedDraft, draftKey, type RequestDraft, requestOf } from './request-draft.ts';
import { SecretMask } from './secret-mask.ts';
import { scriptOf, type UpstreamAssumption, upstreamAssumptions } from './upstream-assumption.ts';

/** A configuration to compare. */
export interface ComparedConfiguration extends Pick<CompileResult, 'locate'> {
	readonly plan: Plan;
	/** Absolute paths of the configuration's own files. */
	readonly files?: readonly string[];
}

/** One difference in the outcome of requests. */
export interface MeaningChange {
	/** A request that shows the difference. */
	readonly request: DryRunRequest;
	/**
	 * The assumed behavior of upstreams and limits; undefined for the usual one: upstreams answer 200 with an empty body, and no
	 * limit is exceeded.
	 */
	readonly upstream: UpstreamAssumption | undefined;
	readonly aspects: readonly ChangedAspect[];
	/** Number of request classes that show this difference. */
	readonly classes: number;
	/** The explanation of the request in the first configuration; undefined if nothing listens at the request's address. */
	readonly before: Explanation | undefined;
	readonly after: Explanation | undefined;
}

/** An aspect of an outcome, such as the status, before and after; undefined where the outcome lacks it. */
export interface ChangedAspect {
	readonly name: string;
	readonly before: string | undefined;
	readonly after: string | undefined;
}

/** The result of a comparison. */
export interface ConfigurationDiff {
	readonly changes: readonly MeaningChange[];
	/** Settings of the process that differ. */
	readonly settings: readonly ChangedAspect[];
	/**
	 * Number of request classes. Requests are in the same class if they have the same origin and take the same route through both
	 * handler graphs.
	 */
	readonly classes: number;
	readonly requests: number;
	/** Possible causes of undetected differences: matchers for which no requests can be derived, and limits that were reached. */
	readonly blindSpots: readonly string[];
}

/** Default maximum number of requests. */
export const DEFAULT_MAX_REQUESTS = 10_000;
/** Maximum number of paths that are tried at each origin. */
const MAX_PATHS = 400;
/** The time of every request in both configurations, so that it makes no difference. */
const NOW = Date.UTC(2026, 0, 1, 12);
const CLIENT = '127.0.0.1';

/** Compares two configurations by at most `maxRequests` requests, for as long as `hasTime` returns true. */
export async function diffConfigurations(
	before: ComparedConfiguration,
	after: ComparedConfiguration,
	deps: DryRunEnvironment,
	maxRequests: number = DEFAULT_MAX_REQUESTS,
	hasTime: () => boolean = () => true,
): Promise<ConfigurationDiff> {
	const faked = withFakePasswords(deps);
	const comparison = new Comparison(new Side(before, faked), new Side(after, faked), maxRequests, hasTime);
	await comparison.run();
	return comparison.result();
}

/**
 * Returns dependencies that accept one password for every account, because the real passwords cannot be derived from their hashes.
 */
function withFakePasswords(deps: DryRunEnvironment): DryRunEnvironment {
	const verifier: PasswordVerifier = {
		live: false,
		verify: (_x, _user, _hash, password) => password === UNMENTIONED_VALUE,
	};
	return {
		...deps,
		lease<K extends keyof LeaseKinds>(kind: K, settings: LeaseKinds[K]['settings']) {
			if (kind === 'password_verifier') return verifier as unknown as LeaseKinds[K]['lease'];
			return deps.lease(kind, settings);
		},
	};
}

/** One of the two configurations, with its dry run. */
class Side {
	readonly plan: Plan;
	readonly document: Document;
	readonly #configuration: ComparedConfiguration;
	readonly #deps: DryRunEnvironment;
	readonly #tracer = new GraphTracer();
	readonly #files = new RecordedFiles();
	readonly #dryRun: DryRun;
	readonly #ownFiles: ReadonlySet<string>;

	constructor(configuration: ComparedConfiguration, deps: DryRunEnvironment) {
		this.plan = configuration.plan;
		this.document = configuration.plan.document;
		this.#configuration = configuration;
		this.#deps = deps;
		this.#ownFiles = new Set(configuration.files);
		this.#dryRun = new DryRun(this.plan, this.#files.in(deps), this.#tracer);
	}

	/** Runs one request from the initial state. */
	async run(request: DryRunRequest, upstream: UpstreamAssumption): Promise<SideRun> {
		this.#dryRun.reset();
		this.#files.reset();
		const result = await this.#dryRun.run(request, scriptOf(upstream));
		const trace = result && this.#tracer.traceOf(result.exchange);
		const outcome = new Map(await outcomeOf(result, trace, this.document, this.#ownFiles));
		if (this.#files.last !== undefined) outcome.set('file looked for', this.#files.last);
		return { result, trace, outcome };
	}

	/** Names of this configuration's own files. */
	get ownNames(): readonly string[] {
		return [...this.#ownFiles].map(file => file.slice(file.lastIndexOf('/') + 1));
	}

	/** Returns paths of requests for files that exist where the last request, for `path`, looked for a file. */
	async existingPaths(path: string, omitted: ReadonlySet<string>): Promise<readonly string[]> {
		const found = [...this.#files.roots].map(async ([root, asked]) => {
			// For a request for a folder, the path asked for is that of an index file, so its folder is compared as well.
			const part = [asked, asked.slice(0, asked.lastIndexOf('/') + 1)].find(end => path.endsWith(end)) ?? path;
			const prefix = path.slice(0, path.length - part.length);
			return (await this.#files.examplesIn(root)).filter(name => !omitted.has(name)).map(name => `${prefix}/${name}`);
		});
		return (await Promise.all(found)).flat();
	}

	async explain(request: DryRunRequest, upstream: UpstreamAssumption): Promise<Explanation | undefined> {
		const explained = await new Explainer(this.#configuration, this.#deps).explain(request, scriptOf(upstream));
		explained?.result.response?.close();
		return explained?.explanation;
	}
}

interface SideRun {
	readonly result: DryRunResult | undefined;
	readonly trace: GraphTrace | undefined;
	readonly outcome: Outcome;
}

interface Group {
	readonly request: DryRunRequest;
	readonly upstream: UpstreamAssumption;
	readonly aspects: readonly ChangedAspect[];
	classes: number;
}

class Comparison {
	readonly #sides: readonly [Side, Side];
	readonly #maxRequests: number;
	readonly #hasTime: () => boolean;
	readonly #queue: RequestDraft[] = [];
	/** Keys of all drafts that were ever in the queue. */
	readonly #known = new Set<string>();
	readonly #classes = new Set<string>();
	readonly #groups = new Map<string, Group>();
	readonly #blindSpots = new Set<string>();
	readonly #assumptions: readonly UpstreamAssumption[];
	/** Paths and hosts of the initial drafts in the queue. */
	readonly #seeded = new Set<string>();
	/** Keys of the initial drafts without their paths and origins; see `restOf`. */
	readonly #seededRests = new Set<string>();
	/** True if the handling of a response depends on its status. */
	readonly #judgesStatuses: boolean;
	/** Classes for which range requests and conditional requests have been added. */
	readonly #askedForLess = new Set<string>();
	#requests = 0;

	constructor(before: Side, after: Side, maxRequests: number, hasTime: () => boolean) {
		this.#hasTime = hasTime;
		this.#sides = [before, after];
		this.#maxRequests = maxRequests;
		const documents = [before.document, after.document];
		this.#judgesStatuses = /"status":\[|\{http\.response\.status|\bstatus\(/.test(JSON.stringify(documents));
		this.#assumptions = upstreamAssumptions(documents, answeredFields(documents));
		this.#seed();
	}

	async run(): Promise<void> {
		for (let at = 0; at < this.#queue.length; at++) {
			if (this.#reachedBound()) return;
			await this.#compare(this.#queue[at]!);
		}
	}

	/** Reports whether no further request may be made. If so, records the reason as a blind spot. */
	#reachedBound(): boolean {
		if (this.#requests >= this.#maxRequests) {
			this.#blindSpots.add(`more requests than ${this.#maxRequests} could be derived; --max raises this bound`);
			return true;
		}
		if (this.#hasTime()) return false;
		this.#blindSpots.add(`the time ran out after ${this.#requests} requests`);
		return true;
	}

	async result(): Promise<ConfigurationDiff> {
		const [before, after] = this.#sides;
		const mask = new SecretMask([before.document, after.document]);
		const changes: MeaningChange[] = [];
		for (const { request, upstream, aspects, classes } of this.#groups.values()) {
			changes.push({
				request,
				upstream: upstream === this.#assumptions[0] ? undefined : upstream,
				aspects: aspects.map(aspect => masked(aspect, mask)),
				classes,
				before: await before.explain(request, upstream),
				after: await after.explain(request, upstream),
			});
		}
		return {
			changes,
			settings: settingsChanges(before.document, after.document).map(change => masked(change, mask)),
			classes: this.#classes.size,
			requests: this.#requests,
			blindSpots: [...this.#blindSpots],
		};
	}

	/** Fills the queue with every origin and every path at the border of a pattern. */
	#seed(): void {
		const documents = this.#sides.map(({ document }) => document);
		const mentioned = mentionedChanges(documents);
		const all = documents.flatMap(witnessChanges);
		const paths = [...new Set(['/', `/${UNMENTIONED_VALUE}`, ...all.flatMap(({ path }) => path ?? [])])];
		if (paths.length > MAX_PATHS) {
			this.#blindSpots.add(
				`${paths.length} paths are at the border of a pattern; the first ${MAX_PATHS} are tried at each host`,
			);
		}
		const hosts = new Set(all.flatMap(({ host }) => host ?? []));
		for (const text of [...paths, ...hosts]) this.#seeded.add(text);
		const tried = paths.slice(0, MAX_PATHS);
		const everywhere = origins(
			this.#sides.flatMap(({ plan }) => plan.listeners),
			hosts,
		);
		for (const origin of everywhere) for (const path of tried) this.#seedAt(origin, path, mentioned);
		// Other spellings come last, so that differences are shown with plain paths if possible.
		const spellings = new Set(tried.flatMap(path => otherSpellings(path, documents)));
		for (const path of tried) spellings.delete(path);
		for (const origin of everywhere) for (const path of spellings) this.#seedAt(origin, path, mentioned);
	}

	#seedAt(origin: Origin, path: string, mentioned: readonly RequestChange[]): void {
		const bare: RequestDraft = {
			...origin,
			method: 'GET',
			path,
			parameters: new Map([[UNMENTIONED_VALUE, '1']]),
			headers: new Map(),
			body: '',
			from: CLIENT,
		};
		for (const draft of [bare, mentioned.reduce(changedDraft, bare)]) {
			this.#seededRests.add(restOf(draft));
			this.#add(draft);
		}
	}

	#add(draft: RequestDraft): void {
		const key = draftKey(draft);
		if (this.#known.has(key)) return;
		this.#known.add(key);
		this.#queue.push(draft);
	}

	async #compare(draft: RequestDraft): Promise<void> {
		const request = requestOf(draft, NOW);
		if (!request) return;
		const reported = new Set<string>();
		let differs = false;
		const [plain, ...others] = this.#assumptions as [UpstreamAssumption, ...UpstreamAssumption[]];
		const queue = [plain];
		const asked = new Set<string>();
		for (const upstream of queue) {
			if (this.#reachedBound()) return;
			this.#requests++;
			const [before, after] = await this.#both(request, upstream);
			const signature = [before, after].map(({ trace, result }) => signatureOf(trace, result?.site)).join('|');
			const { scheme, host, port } = draft;
			const key = `${scheme}://${host}:${port}|${signature}`;
			const isNew = !this.#classes.has(key);
			this.#classes.add(key);
			if (await this.#judge(request, upstream, before, after, isNew, reported)) differs = true;
			if (isNew) await this.#tryFiles(draft);
			if (isNew) this.#flip(draft, [before, after]);
			if (isNew) this.#followRedirects(draft, [before, after]);
			if (this.#judgesStatuses) this.#askForLess(draft, [before, after], key);
			const sent = [before, after].map(({ result }) => result?.exchange.sent ?? []);
			if (upstream === plain) {
				const zonesOf = (handler: string): Set<string> =>
					new Set([before, after].flatMap(({ trace }, side) => this.#zonesOf(side, trace, handler)));
				for (const exceeds of zonesOf('rate_limit')) queue.push({ ...plain, exceeds });
				for (const busy of zonesOf('limit_concurrent')) queue.push({ ...plain, busy });
				if (sent.every(requests => requests.length === 0)) continue;
				// If only one side asks an upstream, other upstream answers would only show the same difference again.
				if (differs && sent.some(requests => requests.length === 0)) continue;
				queue.push(...others);
			}
			if (upstream.exceeds !== undefined || upstream.busy !== undefined) continue;
			for (const requests of sent) {
				requests.forEach(({ upstream: { address } }, index) => {
					if (asked.has(address)) return;
					asked.add(address);
					// An upstream that is asked later is reached only if those before it answer.
					if (index > 0) queue.push(...others.map(one => ({ ...one, of: address })));
				});
			}
		}
	}

	/** Returns the zones of all limits of one kind (`handler`) that a request has passed. */
	#zonesOf(side: number, trace: GraphTrace | undefined, handler: string): string[] {
		const { document } = this.#sides[side]!;
		return (trace?.events ?? []).flatMap(event => {
			if (event.kind !== 'handler' || event.handler !== handler) return [];
			return (valueAt(document, event.pointer) as RateLimitStep | LimitConcurrentStep).zones.map(({ name }) => name);
		});
	}

	async #both(request: DryRunRequest, upstream: UpstreamAssumption): Promise<readonly [SideRun, SideRun]> {
		const [before, after] = this.#sides;
		return [await before.run(request, upstream), await after.run(request, upstream)];
	}

	/**
	 * Records a difference. Returns true if the difference affects the outcome itself rather than only settings. `reported` holds
	 * the aspects of the same request that differ under other assumptions; these are not recorded again, and new ones are added to
	 * `reported`.
	 */
	async #judge(
		request: DryRunRequest,
		upstream: UpstreamAssumption,
		before: SideRun,
		after: SideRun,
		isNew: boolean,
		reported: Set<string>,
	): Promise<boolean> {
		const textOf = (name: string): string =>
			JSON.stringify([name, before.outcome.get(name) ?? null, after.outcome.get(name) ?? null]);
		let names = differingAspects(before.outcome, after.outcome).filter(name => !reported.has(textOf(name)));
		if (names.length === 0) return false;
		// An aspect that differs between two runs of the same configuration, such as a random number, is not a change.
		const [again, later] = await this.#both(request, upstream);
		const unsteady = new Set([
			...differingAspects(before.outcome, again.outcome),
			...differingAspects(after.outcome, later.outcome),
		]);
		for (const name of unsteady) this.#blindSpots.add(`${name} is different for each request`);
		names = names.filter(name => !unsteady.has(name));
		if (names.length === 0) return false;
		for (const name of names) reported.add(textOf(name));
		const aspects = names.map(name => ({ name, before: before.outcome.get(name), after: after.outcome.get(name) }));
		const key = JSON.stringify([decidersOf(before), decidersOf(after), names]);
		const group = this.#groups.get(key);
		if (!group) this.#groups.set(key, { request, upstream, aspects, classes: 1 });
		else if (isNew) group.classes++;
		return names.some(name => !name.startsWith('settings of'));
	}

	/** Adds requests for which an evaluated matcher, or a step with conditions of its own, has another result. */
	#flip(draft: RequestDraft, runs: readonly SideRun[]): void {
		runs.forEach(({ trace }, index) => {
			const { document } = this.#sides[index]!;
			for (const event of trace?.events ?? []) {
				if (event.kind === 'matcher') for (const leaf of leavesOf(event)) this.#flipMatcher(draft, leaf);
				else if (event.kind === 'handler') {
					const witnesses = HANDLERS.get(event.handler)?.probeChanges;
					if (!witnesses) continue;
					for (const change of witnesses(valueAt(document, event.pointer) as Step))
						this.#add(changedDraft(draft, change));
				}
			}
		});
	}

	/**
	 * Adds requests for files that exist in the folders where files were looked for, because the documents may not mention any of
	 * these files.
	 */
	async #tryFiles(draft: RequestDraft): Promise<void> {
		// Each configuration hides its own files, so requests for these would always show a difference.
		const own = new Set(this.#sides.flatMap(({ ownNames }) => ownNames));
		for (const side of this.#sides)
			for (const path of await side.existingPaths(draft.path, own)) this.#add(changedDraft(draft, { path }));
	}

	/**
	 * Adds requests for the paths to which the request is redirected. For example, a folder is served only if its path ends with a
	 * slash.
	 */
	#followRedirects(draft: RequestDraft, runs: readonly SideRun[]): void {
		for (const { outcome } of runs) {
			const path = /^\/(?!\/)[\w./-]*/.exec(outcome.get('header location') ?? '')?.[0];
			if (path !== undefined) this.#add(changedDraft(draft, { path }));
		}
	}

	/** Adds a range request and a conditional request for the same resource. `key` identifies the request class. */
	#askForLess(draft: RequestDraft, runs: readonly SideRun[], key: string): void {
		const has = (aspect: string): boolean => runs.some(({ outcome }) => outcome.has(aspect));
		if (this.#askedForLess.has(key) || !(has('header accept-ranges') || has('header etag'))) return;
		this.#askedForLess.add(key);
		if (draft.headers.has('range') || draft.headers.has('if-none-match')) return;
		if (has('header accept-ranges')) this.#add(changedDraft(draft, { header: ['Range', 'bytes=0-0'] }));
		if (has('header etag')) this.#add(changedDraft(draft, { header: ['If-None-Match', '*'] }));
	}

	#flipMatcher(draft: RequestDraft, { matcher }: MatcherEvent): void {
		const module = MATCHERS_BY_TYPE.get(matcher.type);
		if (!module?.probeChanges) {
			this.#blindSpots.add(`\`${matcher.type}\` matchers: requests for both of their results cannot be derived`);
			return;
		}
		for (const change of module.probeChanges(matcher)) {
			// The initial drafts already contain each path and host of the documents' matchers, except those in expressions.
			const text = change.path ?? change.host;
			if (text !== undefined && this.#seeded.has(text) && this.#seededRests.has(restOf(draft))) continue;
			this.#add(changedDraft(draft, change));
		}
	}
}

/** Returns a text that is equal for drafts that differ only in their paths and origins. */
function restOf(draft: RequestDraft): string {
	return draftKey({ ...draft, scheme: 'http', host: '', port: 0, path: '' });
}

/** Returns other spellings of a path, which only some steps treat as the same. */
function otherSpellings(path: string, documents: readonly Document[]): readonly string[] {
	const text = JSON.stringify(documents);
	// `%*` in a pattern stands for a part with encoded slashes, and regular expressions of `uri` see the path as it was sent.
	const seesEncoded = text.includes('"path_regexp":');
	const hasEncoded = seesEncoded || text.includes('%*');
	const encodedLetter = path.replace(/[A-Za-z](?=[^/]*$)/, letter => `%${letter.charCodeAt(0).toString(16)}`);
	const encoded = `/${path.slice(1).replaceAll('/', '%2f')}`;
	// Path patterns ignore case, but later steps may not, and can distinguish requests that a pattern treats alike.
	const isCaseSensitive = /path_regexp|"expression":|"handler":"(?:lookup|files)"|"type":"file"/.test(text);
	return [
		`/.${path}`,
		...(hasEncoded ? [encoded, `${encoded}%2f`] : []),
		...(seesEncoded ? [encodedLetter] : []),
		...(isCaseSensitive ? [path.toUpperCase()] : []),
	];
}

/** Returns the site, and the places of the answer and of failures, which together determine the outcome. */
function decidersOf({ trace, result }: SideRun): readonly string[] {
	const failures = (trace?.events ?? []).flatMap(event => (event.kind === 'failure' ? [event.pointer] : []));
	return [String(result?.site), trace?.answer?.pointer ?? '', ...failures];
}

/** Returns a text that identifies the route of a request through a handler graph. */
function signatureOf(trace: GraphTrace | undefined, site: number | undefined): string {
	if (!trace) return String(site);
	const parts = trace.events.map(event => {
		if (event.kind !== 'matcher') return event.pointer;
		return leavesOf(event)
			.map(({ pointer, holds }) => `${pointer}=${holds}`)
			.join();
	});
	return `${site} ${parts.join(' ')}`;
}

function leavesOf(event: MatcherEvent): readonly MatcherEvent[] {
	return event.parts.length === 0 ? [event] : event.parts.flatMap(leavesOf);
}

/** Returns the changes that the matchers of a document declare. */
function witnessChanges(document: Document): readonly RequestChange[] {
	const walked = walkDocument(document);
	const changes: RequestChange[] = [];
	const visit = (value: unknown): void => {
		if (typeof value !== 'object' || value === null) return;
		const { type } = value as { type?: unknown };
		const module = typeof type === 'string' ? MATCHERS_BY_TYPE.get(type) : undefined;
		if (module?.probeChanges) changes.push(...module.probeChanges(value as never));
		for (const inner of Object.values(value)) visit(inner);
	};
	for (const { matcher } of walked.matchers) visit(matcher);
	for (const { step } of walked.steps) changes.push(...(HANDLERS.get(step.handler)?.probeChanges?.(step) ?? []));
	return changes;
}

/** Returns the changes that set every part of a request that the documents mention in placeholders or field edits. */
function mentionedChanges(documents: readonly Document[]): readonly RequestChange[] {
	const names = new Set<string>();
	for (const [, name] of JSON.stringify(documents).matchAll(
		/\{(http\.request\.(?:(?:header|uri\.query|cookie)\.[^{}*]+|body(?=\}|_base64)))/g,
	)) {
		names.add(name!);
	}
	const fields = documents.flatMap(document => editedFields(document, ['request', 'upstream_request']));
	return [
		...[...names].flatMap(name => changeOfPlaceholder(name, UNMENTIONED_VALUE) ?? []),
		...[...new Set(fields)].map((name): RequestChange => ({ header: [name, UNMENTIONED_VALUE] })),
	];
}

/** Returns the names of the fields that steps edit in these messages, without wildcards and placeholders. */
function editedFields(document: Document, messages: readonly string[]): string[] {
	return walkDocument(document).steps.flatMap(({ step }) => {
		const edits = Object.entries(HANDLERS.get(step.handler)?.fieldEdits ?? {});
		return edits
			.filter(([, message]) => messages.includes(message))
			.flatMap(([field]) => fieldNames(step[field]))
			.filter(name => /^[\w-]+$/.test(name) && !/^(?:host|connection|content-length|transfer-encoding)$/i.test(name));
	});
}

function fieldNames(edits: unknown): string[] {
	if (typeof edits !== 'object' || edits === null) return [];
	return Object.values(edits).flatMap(list => {
		if (!Array.isArray(list)) return [];
		return list.flatMap(one =>
			typeof one === 'string' ? [one] : typeof one?.name === 'string' ? [one.name as string] : [],
		);
	});
}

/** Returns the fields in the responses of fake upstreams: those that the documents edit in responses. */
function answeredFields(documents: readonly Document[]): readonly (readonly [name: string, value: string])[] {
	const names = documents.flatMap(document => editedFields(document, ['response', 'upstream_response']));
	return [...new Set(names)].map(name => [name, UNMENTIONED_VALUE] as const);
}

type Origin = Pick<RequestDraft, 'scheme' | 'host' | 'port'>;

/** Returns schemes, hosts and ports that reach every site of the listeners, and a host that no site names. */
function origins(listeners: readonly ListenerSpec[], mentioned: ReadonlySet<string>): readonly Origin[] {
	const found = new Map<string, Origin>();
	const all = new Set([...mentioned, ...listeners.flatMap(({ sites }) => sites.flatMap(({ hosts }) => hosts))]);
	const other = ['example.com', 'example.net', `${UNMENTIONED_VALUE}.invalid`].find(host => !all.has(host))!;
	for (const { scheme, port, host: bound, sites } of listeners) {
		if (bound.includes('/')) continue;
		const named = sites.flatMap(({ hosts }) => hosts).map(host => host.replace('*', UNMENTIONED_VALUE));
		for (const host of new Set([...named, ...mentioned, other])) {
			found.set(`${scheme} ${host} ${port}`, { scheme, host, port });
		}
	}
	return [...found.values()];
}

function settingsChanges(before: Document, after: Document): readonly ChangedAspect[] {
	const [one, other] = [before.settings ?? {}, after.settings ?? {}];
	const names = [...new Set([...Object.keys(one), ...Object.keys(other)])].filter(name => name !== '@id');
	return names
		.map(name => ({ name, before: shown(one[name]), after: shown(other[name]) }))
		.filter(change => change.before !== change.after);
}

/** Returns a change without the secrets in its values. */
function masked({ name, before, after }: ChangedAspect, mask: SecretMask): ChangedAspect {
	const hide = (text: string | undefined): string | undefined => text && mask.hide(text);
	return { name, before: hide(before), after: hide(after) };
}

function shown(value: unknown): string | undefined {
	return value === undefined ? undefined : canonicalJson(value as never);
}

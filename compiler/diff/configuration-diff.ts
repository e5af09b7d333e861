/**
 * Compares the effects of two configurations on requests. Requests are derived from both: first, for every origin, paths that
 * just match or just miss a path pattern; then, requests for which one of the evaluated matchers has the opposite result, until
 * no new path through either handler graph is found. Each request runs through both graphs, with fakes instead of the network.
 */
import type { ListenerSpec, Plan } from '../codegen/plan/plan.ts';
import type { CompileResult } from '../compiler.ts';
import { canonicalJson } from '../document/canonical-json.ts';
import type { Document, Step } from '../document/document.ts';
import { valueAt } from '../document/json-pointer.ts';
import { DryRun, type DryRunEnvironment, type DryRunResult } from '../dry-run/dry-run.ts';
import type { DryRunRequest } from '../dry-run/dry-run-request.ts';
import type { LeaseKinds } from '../exchange/leases.ts';
import { Explainer, type Explanation } from '../explain/explanation.ts';
import { type GraphTrace, GraphTracer, type MatcherEvent } from '../explain/graph-tracer.ts';
import { walkDocument } from '../lint/inspection/walk-document.ts';
import { changeSettingPlaceholder, type RequestChange, UNMENTIONED_VALUE } from '../modules/contract/request-change.ts';
import type { PasswordVerifier } from '../modules/directives/basic-auth/password-verifier.ts';
import type { LimitConcurrentStep } from '../modules/directives/limit-concurrent/limit-concurrent-handler.ts';
import type { RateLimitStep } from '../modules/directives/rate-limit/rate-limit-handler.ts';
import { HANDLERS } from '../modules/registry/handlers.ts';
import { MATCHERS_BY_TYPE } from '../modules/registry/matchers.ts';
import {
	type ChangedAspect,
	type ComparedOutcome,
	changedAspects,
	maskAspect,
	unknownValue,
} from './changed-aspect.ts';
import { differingAspects, outcomeOf } from './outcome.ts';
import { RecordedFiles } from './recorded-files.ts';
import { changedDraft, draftKey, type RequestDraft, requestOf } from './request-draft.ts';
import { SecretMask } from './secret-mask.ts';
import { scriptOf, type UpstreamAssumption, upstreamAssumptions } from './upstream-assumption.ts';

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
	 * The assumed behavior of upstreams and limits. Undefined stands for the usual behavior: upstreams answer 200 with an empty
	 * body, and no limit is exceeded.
	 */
	readonly upstream: UpstreamAssumption | undefined;
	readonly aspects: readonly ChangedAspect[];
	/** Number of request classes that show this difference. */
	readonly classes: number;
	/** The explanation of the request in the first configuration; undefined if nothing listens at the request's address. */
	readonly before: Explanation | undefined;
	readonly after: Explanation | undefined;
}

/** The differences between two configurations. */
export interface ConfigurationDiff {
	readonly changes: readonly MeaningChange[];
	/** Differences in the settings of the process, which no request shows. */
	readonly settings: readonly ChangedAspect[];
	/**
	 * Number of request classes. Requests are in the same class if they have the same origin and take the same path through both
	 * handler graphs.
	 */
	readonly classes: number;
	readonly requests: number;
	/** Possible causes of undetected differences: matchers for which no requests can be derived, and limits that were reached. */
	readonly blindSpots: readonly string[];
}

/** Default maximum number of requests with which two configurations are compared. */
export const DEFAULT_MAX_REQUESTS = 10_000;
/** Maximum number of paths that are tried at each origin. */
const MAX_PATHS_PER_HOST = 400;
/** The time of every request in both configurations, so that it makes no difference. */
const REQUEST_TIME_MS = Date.UTC(2026, 0, 1, 12);
const CLIENT_ADDRESS = '127.0.0.1';

/**
 * Compares two configurations with at most `maxRequests` requests. Stops earlier if `hasTimeLeft`, which is called before each
 * request, returns false.
 */
export async function diffConfigurations(
	before: ComparedConfiguration,
	after: ComparedConfiguration,
	deps: DryRunEnvironment,
	maxRequests: number = DEFAULT_MAX_REQUESTS,
	hasTimeLeft: () => boolean = () => true,
): Promise<ConfigurationDiff> {
	const depsWithFakePasswords = withFakePasswords(deps);
	const comparison = new Comparison(
		new ComparedSide(before, depsWithFakePasswords),
		new ComparedSide(after, depsWithFakePasswords),
		maxRequests,
		hasTimeLeft,
	);
	await comparison.run();
	return comparison.buildDiff();
}

/**
 * Returns dependencies that accept {@link UNMENTIONED_VALUE} as the password of every account, because the real passwords cannot be
 * derived from their hashes.
 */
function withFakePasswords(deps: DryRunEnvironment): DryRunEnvironment {
	const verifier: PasswordVerifier = {
		isLive: false,
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

/** One of the two configurations, which runs requests in dry runs. */
class ComparedSide {
	readonly plan: Plan;
	readonly document: Document;
	readonly #configuration: ComparedConfiguration;
	readonly #deps: DryRunEnvironment;
	readonly #tracer = new GraphTracer();
	readonly #recordedFiles = new RecordedFiles();
	readonly #dryRun: DryRun;
	readonly #configurationFiles: ReadonlySet<string>;

	constructor(configuration: ComparedConfiguration, deps: DryRunEnvironment) {
		this.plan = configuration.plan;
		this.document = configuration.plan.document;
		this.#configuration = configuration;
		this.#deps = deps;
		this.#configurationFiles = new Set(configuration.files);
		this.#dryRun = new DryRun(this.plan, this.#recordedFiles.recordingDeps(deps), this.#tracer);
	}

	/** Runs one request from the initial state. */
	async run(request: DryRunRequest, upstream: UpstreamAssumption): Promise<SideRun> {
		this.#dryRun.reset();
		this.#recordedFiles.reset();
		const result = await this.#dryRun.run(request, scriptOf(upstream));
		const trace = result && this.#tracer.traceOf(result.exchange);
		const outcome = new Map(await outcomeOf(result, trace, this.document, this.#configurationFiles));
		if (this.#recordedFiles.lastLookupPath !== undefined)
			outcome.set('file looked for', this.#recordedFiles.lastLookupPath);
		return { result, trace, outcome, unknown: name => unknownValue(name, result, outcome, upstream) };
	}

	/** Base names of the configuration's own files. */
	get configurationFileNames(): readonly string[] {
		return [...this.#configurationFiles].map(file => file.slice(file.lastIndexOf('/') + 1));
	}

	/**
	 * Returns paths of existing files to request, in the folders in which the last request looked for files. `path` is the path of
	 * that request. Leaves out files whose names are in `omitted`.
	 */
	async existingPaths(path: string, omitted: ReadonlySet<string>): Promise<readonly string[]> {
		const pathListPromises = [...this.#recordedFiles.firstPathByRoot].map(async ([root, lookedUpPath]) => {
			// A request for a folder looks up its index file. The file's name is not part of `path`, so the folder is compared as
			// well.
			const pathInRoot =
				[lookedUpPath, lookedUpPath.slice(0, lookedUpPath.lastIndexOf('/') + 1)].find(candidate =>
					path.endsWith(candidate),
				) ?? path;
			const prefix = path.slice(0, path.length - pathInRoot.length);
			return (await this.#recordedFiles.examplesIn(root))
				.filter(name => !omitted.has(name))
				.map(name => `${prefix}/${name}`);
		});
		return (await Promise.all(pathListPromises)).flat();
	}

	/** The folders in which requests have looked for files, but which cannot be listed on this machine. */
	get unreadableFolders(): ReadonlySet<string> {
		return this.#recordedFiles.unreadableRoots;
	}

	async explain(request: DryRunRequest, upstream: UpstreamAssumption): Promise<Explanation | undefined> {
		const explainedRun = await new Explainer(this.#configuration, this.#deps).explain(request, scriptOf(upstream));
		explainedRun?.result.response?.close();
		return explainedRun?.explanation;
	}
}

interface SideRun extends ComparedOutcome {
	readonly result: DryRunResult | undefined;
	readonly trace: GraphTrace | undefined;
}

interface DifferenceGroup {
	readonly request: DryRunRequest;
	readonly upstream: UpstreamAssumption;
	readonly aspects: readonly ChangedAspect[];
	classes: number;
}

class Comparison {
	readonly #sides: readonly [ComparedSide, ComparedSide];
	readonly #maxRequests: number;
	readonly #hasTimeLeft: () => boolean;
	readonly #queue: RequestDraft[] = [];
	/** Keys of all drafts that have ever been in the queue. */
	readonly #queuedDraftKeys = new Set<string>();
	readonly #classKeys = new Set<string>();
	readonly #groupsByDifference = new Map<string, DifferenceGroup>();
	readonly #blindSpots = new Set<string>();
	readonly #assumptions: readonly UpstreamAssumption[];
	/** Paths and hosts of the initial drafts in the queue. */
	readonly #seededTexts = new Set<string>();
	/** For each initial draft, its key without origin and path; see `keyWithoutTarget`. */
	readonly #initialKeysWithoutTarget = new Set<string>();
	/** True if a configuration treats responses differently depending on their statuses. */
	readonly #dependsOnStatuses: boolean;
	/** Keys of the classes for which range requests and conditional requests have been added. */
	readonly #partialRequestKeys = new Set<string>();
	#requestCount = 0;

	constructor(before: ComparedSide, after: ComparedSide, maxRequests: number, hasTimeLeft: () => boolean) {
		this.#hasTimeLeft = hasTimeLeft;
		this.#sides = [before, after];
		this.#maxRequests = maxRequests;
		const documents = [before.document, after.document];
		this.#dependsOnStatuses = /"status":\[|\{http\.response\.status|\bstatus\(/.test(JSON.stringify(documents));
		this.#assumptions = upstreamAssumptions(documents, upstreamResponseFields(documents));
		this.#enqueueSeedRequests();
	}

	async run(): Promise<void> {
		for (let index = 0; index < this.#queue.length; index++) {
			if (this.#recordReachedLimit()) return;
			await this.#compare(this.#queue[index]!);
		}
	}

	/** Reports whether the maximum number of requests or the time limit is reached. If so, records that as a blind spot. */
	#recordReachedLimit(): boolean {
		if (this.#requestCount >= this.#maxRequests) {
			this.#blindSpots.add(`more requests than ${this.#maxRequests} could be derived; --max raises this bound`);
			return true;
		}
		if (this.#hasTimeLeft()) return false;
		this.#blindSpots.add(`the time ran out after ${this.#requestCount} requests`);
		return true;
	}

	async buildDiff(): Promise<ConfigurationDiff> {
		const [before, after] = this.#sides;
		const mask = new SecretMask([before.document, after.document]);
		for (const folder of new Set([...before.unreadableFolders, ...after.unreadableFolders]))
			this.#blindSpots.add(`the files in ${folder} are not known, as this machine cannot read the folder`);
		const changes: MeaningChange[] = [];
		for (const { request, upstream, aspects, classes } of this.#groupsByDifference.values()) {
			changes.push({
				request,
				upstream: upstream === this.#assumptions[0] ? undefined : upstream,
				aspects: aspects.map(aspect => maskAspect(aspect, mask)),
				classes,
				before: await before.explain(request, upstream),
				after: await after.explain(request, upstream),
			});
		}
		return {
			changes,
			settings: settingsChanges(before.document, after.document).map(change => maskAspect(change, mask)),
			classes: this.#classKeys.size,
			requests: this.#requestCount,
			blindSpots: [...this.#blindSpots],
		};
	}

	/** Fills the queue with the initial requests: at every origin, for paths that just match or just miss a pattern. */
	#enqueueSeedRequests(): void {
		const documents = this.#sides.map(({ document }) => document);
		const mentionedParts = changesOfMentionedParts(documents);
		const witnesses = documents.flatMap(witnessChanges);
		const paths = [...new Set(['/', `/${UNMENTIONED_VALUE}`, ...witnesses.flatMap(({ path }) => path ?? [])])];
		if (paths.length > MAX_PATHS_PER_HOST) {
			this.#blindSpots.add(
				`${paths.length} paths are at the border of a pattern; the first ${MAX_PATHS_PER_HOST} are tried at each host`,
			);
		}
		const hosts = new Set(witnesses.flatMap(({ host }) => host ?? []));
		for (const text of [...paths, ...hosts]) this.#seededTexts.add(text);
		const triedPaths = paths.slice(0, MAX_PATHS_PER_HOST);
		const allOrigins = origins(
			this.#sides.flatMap(({ plan }) => plan.listeners),
			hosts,
		);
		for (const origin of allOrigins) for (const path of triedPaths) this.#enqueueSeedsAt(origin, path, mentionedParts);
		// Other spellings are queued last, so that a difference is shown with a plain path if possible.
		const pathSpellings = new Set(triedPaths.flatMap(path => otherSpellings(path, documents)));
		for (const path of triedPaths) pathSpellings.delete(path);
		for (const origin of allOrigins)
			for (const path of pathSpellings) this.#enqueueSeedsAt(origin, path, mentionedParts);
	}

	#enqueueSeedsAt(origin: Origin, path: string, mentionedParts: readonly RequestChange[]): void {
		const minimalDraft: RequestDraft = {
			...origin,
			method: 'GET',
			path,
			parameters: new Map([[UNMENTIONED_VALUE, '1']]),
			headers: new Map(),
			body: '',
			from: CLIENT_ADDRESS,
		};
		for (const draft of [minimalDraft, mentionedParts.reduce(changedDraft, minimalDraft)]) {
			this.#initialKeysWithoutTarget.add(keyWithoutTarget(draft));
			this.#enqueue(draft);
		}
	}

	#enqueue(draft: RequestDraft): void {
		const key = draftKey(draft);
		if (this.#queuedDraftKeys.has(key)) return;
		this.#queuedDraftKeys.add(key);
		this.#queue.push(draft);
	}

	async #compare(draft: RequestDraft): Promise<void> {
		const request = requestOf(draft, REQUEST_TIME_MS);
		if (!request) return;
		const reportedAspectKeys = new Set<string>();
		let differs = false;
		const [usualAssumption, ...otherAssumptions] = this.#assumptions as [UpstreamAssumption, ...UpstreamAssumption[]];
		const pendingAssumptions = [usualAssumption];
		const contactedAddresses = new Set<string>();
		for (const assumption of pendingAssumptions) {
			if (this.#recordReachedLimit()) return;
			this.#requestCount++;
			const [before, after] = await this.#runBoth(request, assumption);
			const combinedSignature = [before, after]
				.map(({ trace, result }) => routeSignature(trace, result?.site))
				.join('|');
			const { scheme, host, port } = draft;
			const classKey = `${scheme}://${host}:${port}|${combinedSignature}`;
			const isNewClass = !this.#classKeys.has(classKey);
			this.#classKeys.add(classKey);
			if (await this.#recordDifference(request, assumption, before, after, isNewClass, reportedAspectKeys))
				differs = true;
			if (isNewClass) await this.#addFileRequests(draft);
			if (isNewClass) this.#addOppositeRequests(draft, [before, after]);
			if (isNewClass) this.#addRedirectTargets(draft, [before, after]);
			if (this.#dependsOnStatuses) this.#addPartialRequests(draft, [before, after], classKey);
			const upstreamRequests = [before, after].map(({ result }) => result?.exchange.upstreamRequests ?? []);
			if (assumption === usualAssumption) {
				const zonesOf = (handler: string): Set<string> =>
					new Set([before, after].flatMap(({ trace }, side) => this.#zonesOf(side, trace, handler)));
				for (const exceededZone of zonesOf('rate_limit'))
					pendingAssumptions.push({ ...usualAssumption, exceeds: exceededZone });
				for (const busyZone of zonesOf('limit_concurrent'))
					pendingAssumptions.push({ ...usualAssumption, busy: busyZone });
				if (upstreamRequests.every(requests => requests.length === 0)) continue;
				// If only one configuration sends the request to an upstream, other upstream answers would only show the same
				// difference again.
				if (differs && upstreamRequests.some(requests => requests.length === 0)) continue;
				pendingAssumptions.push(...otherAssumptions);
			}
			if (assumption.exceeds !== undefined || assumption.busy !== undefined) continue;
			for (const requests of upstreamRequests) {
				requests.forEach(({ upstream: { address } }, index) => {
					if (contactedAddresses.has(address)) return;
					contactedAddresses.add(address);
					// The request reached other upstreams before this one, so only this one's behavior is varied; otherwise it would not be
					// reached.
					if (index > 0)
						pendingAssumptions.push(...otherAssumptions.map(otherAssumption => ({ ...otherAssumption, of: address })));
				});
			}
		}
	}

	/**
	 * Returns the names of the zones of all limits that a request has passed. `handler` is the kind of the limits: `rate_limit` or
	 * `limit_concurrent`.
	 */
	#zonesOf(side: number, trace: GraphTrace | undefined, handler: string): string[] {
		const { document } = this.#sides[side]!;
		return (trace?.events ?? []).flatMap(event => {
			if (event.kind !== 'handler' || event.handler !== handler) return [];
			return (valueAt(document, event.pointer) as RateLimitStep | LimitConcurrentStep).zones.map(({ name }) => name);
		});
	}

	async #runBoth(request: DryRunRequest, upstream: UpstreamAssumption): Promise<readonly [SideRun, SideRun]> {
		const [before, after] = this.#sides;
		return [await before.run(request, upstream), await after.run(request, upstream)];
	}

	/**
	 * Records a difference between the outcomes of a request. Returns true if an aspect other than settings differs.
	 * `reportedAspectKeys` holds the differing aspects of this request that were recorded under other assumptions. They are not
	 * recorded again; newly recorded ones are added.
	 */
	async #recordDifference(
		request: DryRunRequest,
		assumption: UpstreamAssumption,
		before: SideRun,
		after: SideRun,
		isNewClass: boolean,
		reportedAspectKeys: Set<string>,
	): Promise<boolean> {
		const aspectKey = (name: string): string =>
			JSON.stringify([name, before.outcome.get(name) ?? null, after.outcome.get(name) ?? null]);
		let differingNames = differingAspects(before.outcome, after.outcome).filter(
			name => !reportedAspectKeys.has(aspectKey(name)),
		);
		if (differingNames.length === 0) return false;
		// An aspect that differs between two runs of the same configuration, such as a random number, is not a change.
		const [beforeAgain, afterAgain] = await this.#runBoth(request, assumption);
		const unsteadyNames = new Set([
			...differingAspects(before.outcome, beforeAgain.outcome),
			...differingAspects(after.outcome, afterAgain.outcome),
		]);
		for (const name of unsteadyNames) this.#blindSpots.add(`${name} is different for each request`);
		differingNames = differingNames.filter(name => !unsteadyNames.has(name));
		if (differingNames.length === 0) return false;
		for (const name of differingNames) reportedAspectKeys.add(aspectKey(name));
		const aspects = changedAspects(differingNames, before, after);
		const groupKey = JSON.stringify([decidingParts(before), decidingParts(after), differingNames]);
		const group = this.#groupsByDifference.get(groupKey);
		if (!group) this.#groupsByDifference.set(groupKey, { request, upstream: assumption, aspects, classes: 1 });
		else if (isNewClass) group.classes++;
		return differingNames.some(name => !name.startsWith('settings of'));
	}

	/**
	 * Adds requests for which an evaluated matcher has the opposite result, or for which a step with conditions of its own acts
	 * differently.
	 */
	#addOppositeRequests(draft: RequestDraft, runs: readonly SideRun[]): void {
		runs.forEach(({ trace }, index) => {
			const { document } = this.#sides[index]!;
			for (const event of trace?.events ?? []) {
				if (event.kind === 'matcher') for (const leaf of leavesOf(event)) this.#addMatcherProbes(draft, leaf);
				else if (event.kind === 'handler') {
					const probeChanges = HANDLERS.get(event.handler)?.probeChanges;
					if (!probeChanges) continue;
					for (const change of probeChanges(valueAt(document, event.pointer) as Step))
						this.#enqueue(changedDraft(draft, change));
				}
			}
		});
	}

	/**
	 * Adds requests for existing files in the folders in which the last request looked for files, because the documents may not
	 * mention any of these files.
	 */
	async #addFileRequests(draft: RequestDraft): Promise<void> {
		// File servers hide the configuration's own files. If these have different names on the two sides, requests for them would
		// show a difference that says nothing about the configurations.
		const configurationFileNames = new Set(this.#sides.flatMap(({ configurationFileNames: ownNames }) => ownNames));
		for (const side of this.#sides)
			for (const path of await side.existingPaths(draft.path, configurationFileNames))
				this.#enqueue(changedDraft(draft, { path }));
	}

	/**
	 * Adds requests for the paths to which the draft's request is redirected. For example, the server redirects a request for a
	 * folder to the path with a slash at the end.
	 */
	#addRedirectTargets(draft: RequestDraft, runs: readonly SideRun[]): void {
		for (const { outcome } of runs) {
			const path = /^\/(?!\/)[\w./-]*/.exec(outcome.get('header location') ?? '')?.[0];
			if (path !== undefined) this.#enqueue(changedDraft(draft, { path }));
		}
	}

	/**
	 * Adds a range request and a conditional request for the draft's resource, once per request class. `classKey` identifies the class.
	 */
	#addPartialRequests(draft: RequestDraft, runs: readonly SideRun[], classKey: string): void {
		const hasAspect = (aspect: string): boolean => runs.some(({ outcome }) => outcome.has(aspect));
		if (this.#partialRequestKeys.has(classKey) || !(hasAspect('header accept-ranges') || hasAspect('header etag')))
			return;
		this.#partialRequestKeys.add(classKey);
		if (draft.headers.has('range') || draft.headers.has('if-none-match')) return;
		if (hasAspect('header accept-ranges')) this.#enqueue(changedDraft(draft, { header: ['Range', 'bytes=0-0'] }));
		if (hasAspect('header etag')) this.#enqueue(changedDraft(draft, { header: ['If-None-Match', '*'] }));
	}

	#addMatcherProbes(draft: RequestDraft, { matcher }: MatcherEvent): void {
		const matcherModule = MATCHERS_BY_TYPE.get(matcher.type);
		if (!matcherModule?.probeChanges) {
			this.#blindSpots.add(`\`${matcher.type}\` matchers: requests for both of their results cannot be derived`);
			return;
		}
		for (const change of matcherModule.probeChanges(matcher)) {
			// The initial requests already include each path and host of the documents' matchers, except those in expressions.
			const changedTarget = change.path ?? change.host;
			if (
				changedTarget !== undefined &&
				this.#seededTexts.has(changedTarget) &&
				this.#initialKeysWithoutTarget.has(keyWithoutTarget(draft))
			)
				continue;
			this.#enqueue(changedDraft(draft, change));
		}
	}
}

/** Returns a text that is equal for drafts that differ only in their origins and paths. */
function keyWithoutTarget(draft: RequestDraft): string {
	return draftKey({ ...draft, scheme: 'http', host: '', port: 0, path: '' });
}

/** Returns other spellings of a path that some matchers and steps treat like the original and others do not. */
function otherSpellings(path: string, documents: readonly Document[]): readonly string[] {
	const documentsJson = JSON.stringify(documents);
	// `%*` in a pattern matches a part with encoded slashes, and regular expressions for `uri` match the path as it was sent.
	const matchesEncodedPaths = documentsJson.includes('"path_regexp":');
	const distinguishesEncodedSlashes = matchesEncodedPaths || documentsJson.includes('%*');
	const letterEncodedPath = path.replace(/[A-Za-z](?=[^/]*$)/, letter => `%${letter.charCodeAt(0).toString(16)}`);
	const slashEncodedPath = `/${path.slice(1).replaceAll('/', '%2f')}`;
	// Path patterns ignore case, but later steps may not. These steps can distinguish requests that a pattern treats alike.
	const isCaseSensitive = /path_regexp|"expression":|"handler":"(?:lookup|files)"|"type":"file"/.test(documentsJson);
	return [
		`/.${path}`,
		...(distinguishesEncodedSlashes ? [slashEncodedPath, `${slashEncodedPath}%2f`] : []),
		...(matchesEncodedPaths ? [letterEncodedPath] : []),
		...(isCaseSensitive ? [path.toUpperCase()] : []),
	];
}

/**
 * Returns what determines the outcome: the site, the pointer of the step that answered, and the pointers of the steps that failed.
 */
function decidingParts({ trace, result }: SideRun): readonly string[] {
	const failurePointers = (trace?.events ?? []).flatMap(event => (event.kind === 'failure' ? [event.pointer] : []));
	return [String(result?.site), trace?.answeringHandler?.pointer ?? '', ...failurePointers];
}

/** Returns a text that is equal for requests that take the same path through a handler graph. */
function routeSignature(trace: GraphTrace | undefined, site: number | undefined): string {
	if (!trace) return String(site);
	const eventTexts = trace.events.map(event => {
		if (event.kind !== 'matcher') return event.pointer;
		return leavesOf(event)
			.map(({ pointer, holds }) => `${pointer}=${holds}`)
			.join();
	});
	return `${site} ${eventTexts.join(' ')}`;
}

function leavesOf(event: MatcherEvent): readonly MatcherEvent[] {
	return event.parts.length === 0 ? [event] : event.parts.flatMap(leavesOf);
}

/** Returns the changes with which requests probe the matchers and steps of a document; see `probeChanges`. */
function witnessChanges(document: Document): readonly RequestChange[] {
	const documentParts = walkDocument(document);
	const changes: RequestChange[] = [];
	const visit = (value: unknown): void => {
		if (typeof value !== 'object' || value === null) return;
		const { type } = value as { type?: unknown };
		const matcherModule = typeof type === 'string' ? MATCHERS_BY_TYPE.get(type) : undefined;
		if (matcherModule?.probeChanges) changes.push(...matcherModule.probeChanges(value as never));
		for (const inner of Object.values(value)) visit(inner);
	};
	for (const { matcher } of documentParts.matchers) visit(matcher);
	for (const { step } of documentParts.steps) changes.push(...(HANDLERS.get(step.handler)?.probeChanges?.(step) ?? []));
	return changes;
}

/** Returns changes that set every part of a request that the documents read in placeholders or edit as a field. */
function changesOfMentionedParts(documents: readonly Document[]): readonly RequestChange[] {
	const placeholderNames = new Set<string>();
	for (const [, name] of JSON.stringify(documents).matchAll(
		/\{(http\.request\.(?:(?:header|uri\.query|cookie)\.[^{}*]+|body(?=\}|_base64)))/g,
	)) {
		placeholderNames.add(name!);
	}
	const editedFieldNames = documents.flatMap(document => editedFields(document, ['request', 'upstream_request']));
	return [
		...[...placeholderNames].flatMap(name => changeSettingPlaceholder(name, UNMENTIONED_VALUE) ?? []),
		...[...new Set(editedFieldNames)].map((name): RequestChange => ({ header: [name, UNMENTIONED_VALUE] })),
	];
}

/**
 * Returns the names of the header fields that steps edit in the given kinds of messages, such as `upstream_request`. Leaves out
 * names with wildcards or placeholders.
 */
function editedFields(document: Document, messageKinds: readonly string[]): string[] {
	return walkDocument(document).steps.flatMap(({ step }) => {
		const edits = Object.entries(HANDLERS.get(step.handler)?.fieldEdits ?? {});
		return edits
			.filter(([, message]) => messageKinds.includes(message))
			.flatMap(([field]) => fieldNames(step[field]))
			.filter(name => /^[\w-]+$/.test(name) && !/^(?:host|connection|content-length|transfer-encoding)$/i.test(name));
	});
}

function fieldNames(edits: unknown): string[] {
	if (typeof edits !== 'object' || edits === null) return [];
	return Object.values(edits).flatMap(list => {
		if (!Array.isArray(list)) return [];
		return list.flatMap(edit =>
			typeof edit === 'string' ? [edit] : typeof edit?.name === 'string' ? [edit.name as string] : [],
		);
	});
}

/** Returns the header fields of fake upstream responses: every field that the documents edit in responses. */
function upstreamResponseFields(documents: readonly Document[]): readonly (readonly [name: string, value: string])[] {
	const editedFieldNames = documents.flatMap(document => editedFields(document, ['response', 'upstream_response']));
	return [...new Set(editedFieldNames)].map(name => [name, UNMENTIONED_VALUE] as const);
}

type Origin = Pick<RequestDraft, 'scheme' | 'host' | 'port'>;

/**
 * Returns origins that together reach every site of the listeners, and one origin per listener with a host that no site names.
 * `mentionedHosts` are the hosts in the documents' matchers.
 */
function origins(listeners: readonly ListenerSpec[], mentionedHosts: ReadonlySet<string>): readonly Origin[] {
	const originsByText = new Map<string, Origin>();
	const knownHosts = new Set([
		...mentionedHosts,
		...listeners.flatMap(({ sites }) => sites.flatMap(({ hosts }) => hosts)),
	]);
	const unknownHost = ['example.com', 'example.net', `${UNMENTIONED_VALUE}.invalid`].find(
		host => !knownHosts.has(host),
	)!;
	for (const { scheme, port, host: boundHost, sites } of listeners) {
		if (boundHost.includes('/')) continue;
		const siteHosts = sites.flatMap(({ hosts }) => hosts).map(host => host.replace('*', UNMENTIONED_VALUE));
		for (const host of new Set([...siteHosts, ...mentionedHosts, unknownHost])) {
			originsByText.set(`${scheme} ${host} ${port}`, { scheme, host, port });
		}
	}
	return [...originsByText.values()];
}

function settingsChanges(before: Document, after: Document): readonly ChangedAspect[] {
	const [beforeSettings, afterSettings] = [before.settings ?? {}, after.settings ?? {}];
	const names = [...new Set([...Object.keys(beforeSettings), ...Object.keys(afterSettings)])].filter(
		name => name !== '@id',
	);
	return names
		.map(name => ({ name, before: settingText(beforeSettings[name]), after: settingText(afterSettings[name]) }))
		.filter(change => change.before !== change.after);
}

function settingText(value: unknown): string | undefined {
	return value === undefined ? undefined : canonicalJson(value as never);
}

/** Builds a generation from the previous one and a delta, a few milliseconds at a time between requests. */
import { buildSite } from '../../compiler/codegen/build-site.ts';
import { fakeLeases } from '../../compiler/codegen/context/fake-leases.ts';
import type { HostFacts } from '../../compiler/codegen/placeholders/placeholder.ts';
import type { ListenedSite } from '../../compiler/codegen/plan/plan.ts';
import { SharedCode } from '../../compiler/codegen/shared-code.ts';
import { SiteTable } from '../../compiler/codegen/site-table.ts';
import type { Settings, Site, Step } from '../../compiler/document/document.ts';
import type { LeaseKinds, Leases } from '../../compiler/exchange/leases.ts';
import type { PageWork } from '../../compiler/exchange/page-work.ts';
import { StepPlaceTable } from '../../compiler/exchange/step-place.ts';
import { tlsFilePaths } from '../../compiler/modules/directives/reverse-proxy/transports/tls-material.ts';
import type { LogEntry } from '../logs/log-entry.ts';
import type { LeaseHandle } from '../threads/lease-registry.ts';
import type { ThreadActivity } from '../threads/thread-activity.ts';
import {
	type BuiltSiteWithLeases,
	Generation,
	type GenerationPlaces,
	type Generations,
	type ListenerTable,
} from './generation.ts';
import { createStepTracer } from './step-tracer.ts';
import type { GenerationDelta } from './worker-messages.ts';

/** Milliseconds of building after which the thread handles requests before it continues to build. */
const MAX_SLICE_MS = 2;

/** The parts of a document, besides the site itself, on which sites depend. */
export interface SharedDocumentParts {
	readonly settings: Settings;
	readonly upstreams: { readonly [name: string]: unknown };
	readonly routes: { readonly [name: string]: readonly Step[] };
	/** The protocols that the `bind` of a site sets for its listeners, by listener key. */
	readonly protocols?: { readonly [listener: string]: readonly string[] };
	/** Digests of the files named by upstream TLS settings, by path. The entry '' is the number of forced loads. */
	readonly material?: { readonly [path: string]: string };
}

/** Provides leases to the sites being built. */
export interface LeaseSource {
	/**
	 * Acquires a lease and returns its handle. Uses with equal settings share a lease, unless their files (`material`) differ.
	 * Throws NeedsSharedMemory if shared memory has to be requested first.
	 */
	acquire<K extends keyof LeaseKinds>(
		kind: K,
		settings: LeaseKinds[K]['settings'],
		material?: string,
	): { readonly lease: LeaseKinds[K]['lease']; readonly handle: LeaseHandle };
	release(handle: LeaseHandle): void;
	/** Runs expensive template functions on another thread. */
	readonly pageWork?: PageWork | undefined;
	/** Resolves when all memory requested so far has arrived. */
	whenMemoryArrives(): Promise<void>;
}

/**
 * Thrown if a lease needs shared memory, which only the main thread can allocate. The site is built again once the memory has
 * arrived.
 */
export class NeedsSharedMemory extends Error {
	constructor() {
		super('shared memory has been requested');
		this.name = 'MemoryWanted';
	}
}

/** Thrown if the machine does not have enough memory. */
export class OutOfSharedMemory extends Error {
	constructor(bytes: number) {
		super(`${Math.ceil(bytes / 2 ** 20)} MiB of memory are not available.`);
		this.name = 'MemoryRefused';
	}
}

/** Thrown if the build was aborted by the code that started it. */
export class BuildAborted extends Error {
	constructor() {
		super('the build was aborted');
		this.name = 'BuildAborted';
	}
}

/** The result of a build: the generation, and the shared parts for the next delta. */
export interface BuildResult {
	readonly generation: Generation;
	readonly shared: SharedDocumentParts;
}

/**
 * The build of one generation. If it fails, releases everything that it has acquired. Rejects with BuildAborted, or with the
 * error that `buildSite` throws.
 */
export class GenerationBuild {
	readonly #leaseSource: LeaseSource;
	readonly #facts: HostFacts;
	/** The sites built so far. Sites reused from the previous generation are not among them. */
	readonly builtSites: BuiltSiteWithLeases[] = [];
	readonly #log: (entry: LogEntry) => void;
	readonly #sharedCode = new SharedCode();
	readonly #routePlaces: StepPlaceTable;
	readonly #activity: ThreadActivity | undefined;
	#sliceStart = performance.now();
	#isAborted = false;

	/**
	 * @param log Receives log entries about the handlers that run, if `servers { trace }` is on. `routePlaces` and `activity`
	 * belong to the thread.
	 */
	constructor(
		leaseSource: LeaseSource,
		facts: HostFacts,
		log: (entry: LogEntry) => void = () => {},
		routePlaces: StepPlaceTable = new StepPlaceTable(''),
		activity?: ThreadActivity,
	) {
		this.#routePlaces = routePlaces;
		this.#activity = activity;
		this.#leaseSource = leaseSource;
		this.#facts = facts;
		this.#log = log;
	}

	/** Aborts the build. It stops when it next pauses to let the thread handle requests. */
	abort(): void {
		this.#isAborted = true;
	}

	async run(
		delta: GenerationDelta,
		number: number,
		generations: Generations,
		previousShared: SharedDocumentParts,
	): Promise<BuildResult> {
		const baseGeneration = generations.newest;
		this.#activity?.enterPhase('build');
		try {
			const shared = delta.shared === undefined ? previousShared : (JSON.parse(delta.shared) as SharedDocumentParts);
			const { sites, dropped } = await this.#buildSites(delta, baseGeneration, shared);
			const perHost = shared.settings.metrics?.per_host === true;
			const tables = await this.#buildTables(delta, baseGeneration, perHost);
			const places = await this.#readPlaces(delta);
			return { generation: new Generation(number, sites, tables, dropped, places), shared };
		} catch (error) {
			for (const site of this.builtSites) for (const lease of site.leases) this.#leaseSource.release(lease);
			throw error;
		} finally {
			this.#activity?.leavePhase('build');
		}
	}

	async #buildSites(delta: GenerationDelta, baseGeneration: Generation, shared: SharedDocumentParts) {
		const sites: (BuiltSiteWithLeases | undefined)[] = [];
		const changedIndexes: number[] = [];
		let reusedCount = 0;
		for (const [oldIndex, count] of delta.siteRanges) {
			for (let i = 0; i < count; i++) {
				if (oldIndex === -1) changedIndexes.push(sites.length);
				sites.push(oldIndex === -1 ? undefined : baseGeneration.sites[oldIndex + i]);
			}
			if (oldIndex !== -1) reusedCount += count;
		}
		const waitingSites: { index: number; site: Site }[] = [];
		let changedCount = 0;
		for (const chunk of delta.changed) {
			for (const site of JSON.parse(chunk) as Site[]) {
				const index = changedIndexes[changedCount++]!;
				sites[index] = this.#buildSite(site, index, shared);
				if (!sites[index]) waitingSites.push({ index, site });
				await this.#yieldIfDue();
			}
		}
		while (waitingSites.length > 0) {
			this.#activity?.leavePhase('build');
			await this.#leaseSource.whenMemoryArrives();
			this.#activity?.enterPhase('build');
			if (this.#isAborted) throw new BuildAborted();
			for (const waitingSite of waitingSites.splice(0)) {
				sites[waitingSite.index] = this.#buildSite(waitingSite.site, waitingSite.index, shared);
				if (!sites[waitingSite.index]) {
					waitingSites.push(waitingSite);
					this.#requestAllMemory(waitingSite.site, waitingSite.index, shared);
				}
				await this.#yieldIfDue();
			}
		}
		return {
			sites: sites as BuiltSiteWithLeases[],
			dropped: reusedCount === baseGeneration.sites.length ? [] : droppedSites(baseGeneration, delta),
		};
	}

	/** Builds one site. Returns undefined if shared memory must be requested from the main thread first. */
	#buildSite(site: Site, index: number, shared: SharedDocumentParts): BuiltSiteWithLeases | undefined {
		const leaseHandles: LeaseHandle[] = [];
		const leases: Leases = {
			lease: (kind, settings) => {
				const material = materialOf(kind, settings, shared);
				const { lease, handle } = this.#leaseSource.acquire(kind, settings, material);
				leaseHandles.push(handle);
				return lease;
			},
			pageWork: this.#leaseSource.pageWork,
		};
		try {
			const tracer = createStepTracer(shared.settings, this.#log);
			const built = buildSite(site, index, {
				...shared,
				leases,
				facts: this.#facts,
				tracer,
				sharedCode: this.#sharedCode,
			});
			const builtSite = { built, leases: leaseHandles, places: new StepPlaceTable(`/sites/${index}`) };
			this.builtSites.push(builtSite);
			return builtSite;
		} catch (error) {
			for (const handle of leaseHandles) this.#leaseSource.release(handle);
			if (error instanceof NeedsSharedMemory) return undefined;
			throw error;
		}
	}

	/**
	 * Requests the memory of all leases of a site at once. If each attempt to build the site requested only one piece of memory, a
	 * site with many leases would be built many times. Builds the site with fake leases in place of the leases that wait for
	 * memory, and discards the result.
	 */
	#requestAllMemory(site: Site, index: number, shared: SharedDocumentParts): void {
		const leaseHandles: LeaseHandle[] = [];
		const leases: Leases = {
			lease: (kind, settings) => {
				try {
					const { lease, handle } = this.#leaseSource.acquire(kind, settings, materialOf(kind, settings, shared));
					leaseHandles.push(handle);
					return lease;
				} catch (error) {
					if (!(error instanceof NeedsSharedMemory)) throw error;
					return fakeLeases.lease(kind, settings);
				}
			},
			pageWork: this.#leaseSource.pageWork,
		};
		try {
			buildSite(site, index, {
				...shared,
				leases,
				facts: this.#facts,
				tracer: undefined,
				sharedCode: new SharedCode(),
			});
		} catch {
			// The error is ignored here: the next attempt to build the site will report it.
		} finally {
			for (const handle of leaseHandles) this.#leaseSource.release(handle);
		}
	}

	async #readPlaces({ places }: GenerationDelta): Promise<GenerationPlaces> {
		const sites = new Map<number, string>();
		for (const chunk of places.sites) {
			for (const [index, json] of JSON.parse(chunk) as [number, string][]) sites.set(index, json);
			await this.#yieldIfDue();
		}
		return { sites, routes: places.routes, routePlaces: this.#routePlaces };
	}

	async #buildTables(
		delta: GenerationDelta,
		baseGeneration: Generation,
		perHost: boolean,
	): Promise<Map<string, ListenerTable>> {
		const tables = new Map<string, ListenerTable>();
		for (const { key, sites, tls: changedTls } of delta.listeners) {
			const oldTable = baseGeneration.tables.get(key);
			const tls = changedTls ?? oldTable?.tls;
			if (!sites && oldTable) {
				tables.set(key, tls === oldTable.tls ? oldTable : { ...oldTable, tls });
				continue;
			}
			const listedSites: ListenedSite[] = [];
			for (const chunk of sites ?? []) {
				for (const listedSite of JSON.parse(chunk) as ListenedSite[]) listedSites.push(listedSite);
				await this.#yieldIfDue();
			}
			const hosts = perHost
				? new Set(listedSites.flatMap(entry => entry.hosts.filter(host => !host.includes('*'))))
				: undefined;
			tables.set(key, { table: new SiteTable(listedSites), servedHosts: hosts, tls });
			await this.#yieldIfDue();
		}
		return tables;
	}

	/** Yields to the event loop once the current time slice is over, so that requests are served. */
	async #yieldIfDue(): Promise<void> {
		if (performance.now() - this.#sliceStart < MAX_SLICE_MS) return;
		this.#activity?.leavePhase('build');
		await new Promise(resolve => setImmediate(resolve));
		this.#activity?.enterPhase('build');
		if (this.#isAborted) throw new BuildAborted();
		this.#sliceStart = performance.now();
	}
}

/** Returns the digests of the files that a lease reads when it is opened; undefined if it reads no files. */
function materialOf(kind: keyof LeaseKinds, settings: unknown, { material }: SharedDocumentParts): string | undefined {
	if (kind !== 'upstreams' || material === undefined) return undefined;
	const { transport } = settings as LeaseKinds['upstreams']['settings'];
	if (transport?.type !== 'http' || !transport.tls) return undefined;
	return ['', ...tlsFilePaths(transport.tls)].map(path => material[path] ?? '').join();
}

/** Returns the sites of the base generation that are not reused. */
function droppedSites(baseGeneration: Generation, delta: GenerationDelta): BuiltSiteWithLeases[] {
	const reusedFlags = new Uint8Array(baseGeneration.sites.length);
	for (const [oldIndex, count] of delta.siteRanges)
		if (oldIndex !== -1) reusedFlags.fill(1, oldIndex, oldIndex + count);
	return baseGeneration.sites.filter((_, index) => reusedFlags[index] === 0);
}

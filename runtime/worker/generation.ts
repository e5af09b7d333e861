/** The generations of one thread, and the switch from one to the next without disturbing requests. */
import type { BuiltSite } from '../../compiler/codegen/built-site.ts';
import type { SiteTable } from '../../compiler/codegen/site-table.ts';
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import type { Handler } from '../../compiler/exchange/handler.ts';
import { FIRST_ROUTE_STEP, type StepPlaceTable } from '../../compiler/exchange/step-place.ts';
import { CONTROL_GENERATION } from '../threads/control-words.ts';
import type { LeaseHandle, LeaseRegistry } from '../threads/lease-registry.ts';

/** A site's closures and the leases that they hold. */
export interface BuiltSiteWithLeases {
	readonly built: BuiltSite;
	readonly leases: readonly LeaseHandle[];
	/** Where the site's steps are in the configuration files. */
	readonly places?: StepPlaceTable | undefined;
}

/** Where the steps of a generation are in the configuration files. */
export interface GenerationPlaces {
	/** JSON of where the steps of each site are, by the index of the site. Sites that are missing here have not moved. */
	readonly sites: ReadonlyMap<number, string>;
	/** JSON of where the steps of named routes are; undefined if unchanged. */
	readonly routes: string | undefined;
	/** The thread's table of where the steps of named routes are. */
	readonly routePlaces: StepPlaceTable;
}

/** Finds the site for a request to a listener. */
export interface ListenerTable {
	/** Returns an index into {@link Generation.sites}. */
	readonly table: SiteTable;
	/** Exact host names that the listener serves, for the label `host`; undefined unless that label is on. */
	readonly servedHosts: ReadonlySet<string> | undefined;
	/** JSON of the listener's ListenerTls; undefined without TLS. */
	readonly tls?: string | undefined;
}

/** One configuration as a thread serves it. Unchanged sites are shared with the previous generation. */
export class Generation {
	/** The number that shared memory contains while this generation is served. */
	readonly number: number;
	readonly sites: readonly BuiltSiteWithLeases[];
	readonly tables: ReadonlyMap<string, ListenerTable>;
	/** Sites of the previous generation that this one does not have. */
	readonly droppedSites: readonly BuiltSiteWithLeases[];
	/** Number of exchanges that began in this generation and have not ended. */
	openExchangeCount = 0;
	readonly #places: GenerationPlaces | undefined;
	/**
	 * The handlers of the sites. They are kept apart from `sites`, because every object on the path of a request costs a cache miss
	 * if there are thousands of sites.
	 */
	readonly #mainHandlers: readonly (Handler | undefined)[];
	readonly #siteNames: readonly string[];

	constructor(
		number: number,
		sites: readonly BuiltSiteWithLeases[],
		tables: ReadonlyMap<string, ListenerTable>,
		droppedSites: readonly BuiltSiteWithLeases[],
		places?: GenerationPlaces,
	) {
		this.number = number;
		this.sites = sites;
		this.tables = tables;
		this.droppedSites = droppedSites;
		this.#places = places;
		this.#mainHandlers = sites.map(({ built }) => built.mainHandler);
		this.#siteNames = sites.map(({ built }) => built.name);
	}

	/** Updates the places of sites shared with the previous generation, which may have moved in the file. */
	updatePlaces(): void {
		const places = this.#places;
		if (places === undefined) return;
		for (let index = 0; index < this.sites.length; index++) {
			this.sites[index]!.places?.set(`/sites/${index}`, places.sites.get(index));
		}
		places.routePlaces.set('', places.routes);
	}

	/** Returns the place of the step that decided an exchange: `Configfile:12`. */
	placeOf({ siteIndex, decidingStep: step }: Exchange): string | undefined {
		if (siteIndex < 0 || step < 0) return undefined;
		return step < FIRST_ROUTE_STEP
			? this.sites[siteIndex]!.places?.placeOf(step)
			: this.#places?.routePlaces.placeOf(step - FIRST_ROUTE_STEP);
	}

	runSite(index: number, x: Exchange): void | Promise<void> {
		x.siteIndex = index;
		const mainHandler = this.#mainHandlers[index];
		if (mainHandler === undefined) return this.sites[index]!.built.runSite(x);
		x.siteName = this.#siteNames[index]!;
		return mainHandler(x);
	}
}

/** A thread's generations: the current one, one built ahead, and older ones, each until its last exchange ends. */
export class Generations {
	readonly #controlWords: Int32Array;
	readonly #leases: LeaseRegistry;
	#currentGeneration = new Generation(0, [], new Map(), []);
	#preparedGeneration: Generation | undefined;
	/** Previous generations with unfinished exchanges, oldest first. */
	readonly #oldGenerations: Generation[] = [];

	constructor(controlWords: Int32Array, leases: LeaseRegistry) {
		this.#controlWords = controlWords;
		this.#leases = leases;
	}

	/**
	 * Returns the generation whose number is in shared memory. Reads it without `Atomics.load`, because a function call per request
	 * would cost more.
	 */
	currentGeneration(): Generation {
		const number = this.#controlWords[CONTROL_GENERATION]!;
		return number === this.#currentGeneration.number ? this.#currentGeneration : this.#switchTo(number);
	}

	/** The generation that was activated last, without looking at shared memory. The next build is based on it. */
	get newest(): Generation {
		return this.#currentGeneration;
	}

	/** Number of old generations that still have unfinished exchanges. */
	get oldCount(): number {
		return this.#oldGenerations.length;
	}

	/** Keeps a built generation until its number is in shared memory. */
	prepare(generation: Generation): void {
		this.#preparedGeneration = generation;
	}

	/** Discards the generation built ahead, except for the sites that it shares with the current one. */
	discard(): void {
		const preparedGeneration = this.#preparedGeneration;
		if (!preparedGeneration) return;
		this.#preparedGeneration = undefined;
		const currentSites = new Set(this.#currentGeneration.sites);
		for (const site of preparedGeneration.sites) if (!currentSites.has(site)) this.releaseSite(site);
	}

	/** Counts the end of an exchange. An old generation is released after its last exchange. */
	onExchangeEnded(generation: Generation): void {
		if (--generation.openExchangeCount === 0 && generation !== this.#currentGeneration) this.#releaseOld();
	}

	/** Releases a site's leases. */
	releaseSite(site: BuiltSiteWithLeases): void {
		for (const lease of site.leases) this.#leases.release(lease);
	}

	#switchTo(number: number): Generation {
		const preparedGeneration = this.#preparedGeneration;
		// A thread that starts late may find the number of a generation that it has not built yet. Until it has built it, it serves
		// the one it has.
		if (preparedGeneration?.number !== number) return this.#currentGeneration;
		this.#preparedGeneration = undefined;
		this.#oldGenerations.push(this.#currentGeneration);
		this.#currentGeneration = preparedGeneration;
		preparedGeneration.updatePlaces();
		this.#releaseOld();
		return preparedGeneration;
	}

	/** Releases old generations, oldest first, because a site that a generation has dropped may still run in an older one. */
	#releaseOld(): void {
		while (this.#oldGenerations.length > 0 && this.#oldGenerations[0]!.openExchangeCount === 0) {
			this.#oldGenerations.shift();
			const successor = this.#oldGenerations[0] ?? this.#currentGeneration;
			for (const site of successor.droppedSites) this.releaseSite(site);
		}
	}
}

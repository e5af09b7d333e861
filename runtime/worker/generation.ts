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
	/** JSON of the places of sites, by the index of the site. Sites that are missing are unchanged. */
	readonly sites: ReadonlyMap<number, string>;
	/** JSON of the places of named routes; undefined if unchanged. */
	readonly routes: string | undefined;
	/** The thread's table of route places. */
	readonly routePlaces: StepPlaceTable;
}

/** Finds the site for a request to a listener. */
export interface ListenerTable {
	/** Returns an index into {@link Generation.sites}. */
	readonly table: SiteTable;
	/** Exact host names that the listener serves, for the label `host`; undefined unless that label is on. */
	readonly hosts: ReadonlySet<string> | undefined;
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
	readonly dropped: readonly BuiltSiteWithLeases[];
	/** Number of exchanges that began in this generation and have not ended. */
	exchanges = 0;
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
		dropped: readonly BuiltSiteWithLeases[],
		places?: GenerationPlaces,
	) {
		this.number = number;
		this.sites = sites;
		this.tables = tables;
		this.dropped = dropped;
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

	/** Runs the site with that index. */
	handle(index: number, x: Exchange): void | Promise<void> {
		x.siteIndex = index;
		const mainHandler = this.#mainHandlers[index];
		if (mainHandler === undefined) return this.sites[index]!.built.handle(x);
		x.site = this.#siteNames[index]!;
		return mainHandler(x);
	}
}

/** A thread's generations: the current one, one built ahead, and older ones until their last exchange ends. */
export class Generations {
	readonly #control: Int32Array;
	readonly #leases: LeaseRegistry;
	#current = new Generation(0, [], new Map(), []);
	#prepared: Generation | undefined;
	/** Previous generations with unfinished exchanges, oldest first. */
	readonly #oldGenerations: Generation[] = [];

	constructor(control: Int32Array, leases: LeaseRegistry) {
		this.#control = control;
		this.#leases = leases;
	}

	/**
	 * Returns the generation whose number is in shared memory. Reads it without `Atomics.load`, because a function call per request
	 * would cost more.
	 */
	current(): Generation {
		const number = this.#control[CONTROL_GENERATION]!;
		return number === this.#current.number ? this.#current : this.#switchTo(number);
	}

	/** The generation that was activated last, without looking at shared memory. The next build is based on it. */
	get newest(): Generation {
		return this.#current;
	}

	/** Number of old generations that still have unfinished exchanges. */
	get oldCount(): number {
		return this.#oldGenerations.length;
	}

	/** Keeps a built generation until its number is in shared memory. */
	prepare(generation: Generation): void {
		this.#prepared = generation;
	}

	/** Discards the generation built ahead, except for the sites that it shares with the current one. */
	discard(): void {
		const prepared = this.#prepared;
		if (!prepared) return;
		this.#prepared = undefined;
		const currentSites = new Set(this.#current.sites);
		for (const site of prepared.sites) if (!currentSites.has(site)) this.release(site);
	}

	/** Records the end of an exchange. */
	exchangeEnded(generation: Generation): void {
		if (--generation.exchanges === 0 && generation !== this.#current) this.#releaseOld();
	}

	/** Releases a site's leases. */
	release(site: BuiltSiteWithLeases): void {
		for (const lease of site.leases) this.#leases.release(lease);
	}

	#switchTo(number: number): Generation {
		const prepared = this.#prepared;
		// A thread that starts late builds the generation already named in memory, and until then serves the one it has.
		if (prepared?.number !== number) return this.#current;
		this.#prepared = undefined;
		this.#oldGenerations.push(this.#current);
		this.#current = prepared;
		prepared.updatePlaces();
		this.#releaseOld();
		return prepared;
	}

	/** Releases old generations, oldest first, because a site that a generation has dropped may still run in an older one. */
	#releaseOld(): void {
		while (this.#oldGenerations.length > 0 && this.#oldGenerations[0]!.exchanges === 0) {
			this.#oldGenerations.shift();
			const successor = this.#oldGenerations[0] ?? this.#current;
			for (const site of successor.dropped) this.release(site);
		}
	}
}

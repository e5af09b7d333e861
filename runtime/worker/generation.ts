/** What one thread serves at one time, and how it moves from one generation to the next without a request noticing. */
import type { BuiltSite } from '../../compiler/codegen/built-site.ts';
import type { SiteTable } from '../../compiler/codegen/site-table.ts';
import type { Exchange } from '../../compiler/exchange/exchange.ts';
import type { Handler } from '../../compiler/exchange/handler.ts';
import { FIRST_ROUTE_STEP, type PlaceTable } from '../../compiler/exchange/step-place.ts';
import { CONTROL_GENERATION } from '../threads/messages.ts';
import type { LeaseHandle, LeaseRegistry } from './lease-table.ts';

/** A site's closures and the uses of shared resources that they hold. */
export interface SiteUnit {
	readonly built: BuiltSite;
	readonly leases: readonly LeaseHandle[];
	/** Where its steps stand. */
	readonly places?: PlaceTable | undefined;
}

/** Places that the steps of a generation have in its text. */
export interface GenerationPlaces {
	/** JSON for sites by index; those that are not there stay as they are. */
	readonly sites: ReadonlyMap<number, string>;
	/** JSON for named routes; undefined when it stays as it is. */
	readonly routes: string | undefined;
	/** The thread's table of them. */
	readonly ofRoutes: PlaceTable;
}

/** How one listener finds its site: an index into the generation's sites. */
export interface ListenerTable {
	readonly table: SiteTable;
	/** Exact hosts served there, for the `host` label; undefined unless it is asked for. */
	readonly hosts: ReadonlySet<string> | undefined;
	/** JSON of its ListenerTls; undefined for one without TLS. */
	readonly tls?: string | undefined;
}

/** One configuration as a thread serves it. Sites that did not change are shared with the generation before. */
export class Generation {
	/** The number that shared memory holds while this generation is served. */
	readonly number: number;
	readonly sites: readonly SiteUnit[];
	readonly tables: ReadonlyMap<string, ListenerTable>;
	/** Sites of the generation before that this one does not have. */
	readonly dropped: readonly SiteUnit[];
	/** Exchanges that began in this generation and have not ended. */
	exchanges = 0;
	/** Beside `sites`: a request of one site among thousands finds the memory of each object on its way cold. */
	readonly #places: GenerationPlaces | undefined;
	readonly #mains: readonly (Handler | undefined)[];
	readonly #names: readonly string[];

	constructor(
		number: number,
		sites: readonly SiteUnit[],
		tables: ReadonlyMap<string, ListenerTable>,
		dropped: readonly SiteUnit[],
		places?: GenerationPlaces,
	) {
		this.number = number;
		this.sites = sites;
		this.tables = tables;
		this.dropped = dropped;
		this.#places = places;
		this.#mains = sites.map(({ built }) => built.main);
		this.#names = sites.map(({ built }) => built.name);
	}

	/** Sites that it shares with the one before may stand elsewhere now. */
	place(): void {
		const places = this.#places;
		if (places === undefined) return;
		for (let index = 0; index < this.sites.length; index++) {
			this.sites[index]!.places?.set(`/sites/${index}`, places.sites.get(index));
		}
		places.ofRoutes.set('', places.routes);
	}

	/** Where the step stands that decided an exchange: `Configfile:12`. */
	placeOf({ siteIndex, decidedAt }: Exchange): string | undefined {
		if (siteIndex < 0 || decidedAt < 0) return undefined;
		return decidedAt < FIRST_ROUTE_STEP
			? this.sites[siteIndex]!.places?.textOf(decidedAt)
			: this.#places?.ofRoutes.textOf(decidedAt - FIRST_ROUTE_STEP);
	}

	/** Runs the site of that index. */
	handle(index: number, x: Exchange): void | Promise<void> {
		x.siteIndex = index;
		const main = this.#mains[index];
		if (main === undefined) return this.sites[index]!.built.handle(x);
		x.site = this.#names[index]!;
		return main(x);
	}
}

/** The generations of a thread: the one being served, one built ahead, and older ones until their last exchange. */
export class Generations {
	readonly #control: Int32Array;
	readonly #leases: LeaseRegistry;
	#current = new Generation(0, [], new Map(), []);
	#prepared: Generation | undefined;
	/** Oldest first. */
	readonly #old: Generation[] = [];

	constructor(control: Int32Array, leases: LeaseRegistry) {
		this.#control = control;
		this.#leases = leases;
	}

	/** The generation that shared memory says is served: looked at for each request, so not by Atomics.load, which is a call. */
	current(): Generation {
		const number = this.#control[CONTROL_GENERATION]!;
		return number === this.#current.number ? this.#current : this.#flip(number);
	}

	/** The newest generation taken, without looking at shared memory: what the next one is built upon. */
	get newest(): Generation {
		return this.#current;
	}

	/** Old generations that still have exchanges. */
	get lingering(): number {
		return this.#old.length;
	}

	/** Holds a built generation until shared memory names it. */
	hold(generation: Generation): void {
		this.#prepared = generation;
	}

	/** Gives up the generation that was built ahead. `kept` are the sites it shares with the current one. */
	discard(): void {
		const prepared = this.#prepared;
		if (!prepared) return;
		this.#prepared = undefined;
		const kept = new Set(this.#current.sites);
		for (const unit of prepared.sites) if (!kept.has(unit)) this.release(unit);
	}

	/** An exchange of that generation has ended. */
	ended(generation: Generation): void {
		if (--generation.exchanges === 0 && generation !== this.#current) this.#releaseOld();
	}

	/** Gives back what a site used. */
	release(unit: SiteUnit): void {
		for (const lease of unit.leases) this.#leases.release(lease);
	}

	#flip(number: number): Generation {
		const next = this.#prepared;
		// A thread that joins late is built with the number that already stands in memory; until then it serves what it has.
		if (next?.number !== number) return this.#current;
		this.#prepared = undefined;
		this.#old.push(this.#current);
		this.#current = next;
		next.place();
		this.#releaseOld();
		return next;
	}

	/** Releases from the oldest on: a site dropped by a generation may still run in any older one. */
	#releaseOld(): void {
		while (this.#old.length > 0 && this.#old[0]!.exchanges === 0) {
			this.#old.shift();
			const successor = this.#old[0] ?? this.#current;
			for (const unit of successor.dropped) this.release(unit);
		}
	}
}

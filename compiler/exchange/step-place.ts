/**
 * The place of the step that decided a request. Closures know steps by number, because equal sites share closures and closures
 * outlive the lines they came from. A number is looked up when a log needs the place.
 */

/** Numbers of the steps of named routes begin here; those of a site are less. */
export const FIRST_ROUTE_STEP: number = 1 << 24;

/** Places of the steps of one site, or of the named routes, by their numbers. */
export class PlaceTable {
	#base: string;
	/** JSON of an array; '' before anything is known. */
	#json = '';
	#places: readonly string[] | undefined;

	/** `base` goes before places that are JSON pointers. */
	constructor(base: string) {
		this.#base = base;
	}

	/** Gives it the places of a generation, JSON of an array; undefined when only the base may have changed. */
	set(base: string, json: string | undefined): void {
		if (base === this.#base && (json === undefined || json === this.#json)) return;
		this.#base = base;
		this.#json = json ?? this.#json;
		this.#places = undefined;
	}

	/** `Configfile:12`, or a JSON pointer where no text is known; undefined for a number that stands for no step. */
	textOf(step: number): string | undefined {
		this.#places ??= this.#read();
		return this.#places[step] || undefined;
	}

	#read(): string[] {
		const places = this.#json === '' ? [] : (JSON.parse(this.#json) as string[]);
		return places.map(place => (place.startsWith('/') ? this.#base + place : place));
	}
}

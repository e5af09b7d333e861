/**
 * The place of the step that decided a request. Closures know steps by number, because equal sites share closures and closures
 * outlive the lines they came from. A number is looked up when a log needs the place.
 */

/** Numbers of named routes' steps start here; those of a site are lower. */
export const FIRST_ROUTE_STEP: number = 1 << 24;

/** Places of the steps of one site, or of the named routes, by number. */
export class PlaceTable {
	#base: string;
	/** JSON of an array; '' before anything is known. */
	#json = '';
	#places: readonly string[] | undefined;

	/** `base` is prepended to places that are JSON pointers. */
	constructor(base: string) {
		this.#base = base;
	}

	/** Sets the places of a generation, as JSON of an array; undefined if only the base may have changed. */
	set(base: string, json: string | undefined): void {
		if (base === this.#base && (json === undefined || json === this.#json)) return;
		this.#base = base;
		this.#json = json ?? this.#json;
		this.#places = undefined;
	}

	/** Returns `Configfile:12`, or a JSON pointer if the text is unknown; undefined for a number without a step. */
	textOf(step: number): string | undefined {
		this.#places ??= this.#read();
		return this.#places[step] || undefined;
	}

	#read(): string[] {
		const places = this.#json === '' ? [] : (JSON.parse(this.#json) as string[]);
		return places.map(place => (place.startsWith('/') ? this.#base + place : place));
	}
}

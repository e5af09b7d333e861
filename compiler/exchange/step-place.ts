/**
 * Converts the numbers of steps to places in the configuration, such as `Configfile:12`, so that logs can name the step that
 * decided a request. Handlers know their step by its number, because equal sites share handlers, and because handlers stay in use
 * when only the lines of their steps change. A number is converted to a place only when a log needs it.
 */

/** Number of the first step in named routes. Steps in sites have lower numbers. */
export const FIRST_ROUTE_STEP: number = 1 << 24;

/** The places of all steps in one site or in the named routes, by the number of the step. */
export class StepPlaceTable {
	#base: string;
	/** The places as a JSON array; '' until they are set. */
	#placesJson = '';
	#places: readonly string[] | undefined;

	/** `base` is prepended to places that are JSON pointers. */
	constructor(base: string) {
		this.#base = base;
	}

	/**
	 * Sets the places for a generation. `json` is a JSON array of places; if it is undefined, the places stay the same and only
	 * `base` changes.
	 */
	set(base: string, json: string | undefined): void {
		if (base === this.#base && (json === undefined || json === this.#placesJson)) return;
		this.#base = base;
		this.#placesJson = json ?? this.#placesJson;
		this.#places = undefined;
	}

	/**
	 * Returns the place of a step, such as `Configfile:12`, or its JSON pointer if its place in the text is unknown; undefined if
	 * no step has the number.
	 */
	placeOf(step: number): string | undefined {
		this.#places ??= this.#parsePlaces();
		return this.#places[step] || undefined;
	}

	#parsePlaces(): string[] {
		const places = this.#placesJson === '' ? [] : (JSON.parse(this.#placesJson) as string[]);
		return places.map(place => (place.startsWith('/') ? this.#base + place : place));
	}
}

/** The places of a document's steps in its source, for logs: `Configfile:12`, with paths relative to the main file's folder. */
import { dirname, relative } from 'node:path';
import { forEachStep } from '../codegen/context/step-numbers.ts';
import type { Document } from '../document/document.ts';
import type { SourceSpan } from '../source/source.ts';
import type { Origins } from './origins.ts';

/** The places of all steps of a document: a JSON array, indexed by step number, for each site and for the named routes. */
export interface StepPlaces {
	readonly sites: readonly string[];
	readonly routes: string;
}

/**
 * Returns the spans of all steps within a value, in the order of their numbers. A step without a span gets that of its parent.
 */
export function stepSpans(value: object, origins: Origins): (SourceSpan | undefined)[] {
	const found: (SourceSpan | undefined)[] = [];
	const visit = (part: object, around: SourceSpan | undefined): void => {
		const span = origins.spanOf(part) ?? around;
		if ('handler' in part) found.push(span);
		for (const inner of Object.values(part)) if (typeof inner === 'object' && inner !== null) visit(inner, span);
	};
	visit(value, origins.spanOf(value));
	return found;
}

/** Maximum characters of a place that was received as JSON. */
const MAX_PLACE = 4096;

/** Returns JSON text with a document and its places: `{"document":{},"places":{"sites":[["Configfile:3"]],"routes":[]}}`. */
export function formatPlacedDocument(document: string, { sites, routes }: StepPlaces): string {
	return `{"document":${document},"places":{"sites":[${sites.join(',')}],"routes":${routes}}}`;
}

/** Parses the result of {@link formatPlacedDocument}. Drops invalid places. Any other value is taken for a document without places. */
export function parsePlacedDocument(value: unknown): { document: unknown; places: StepPlaces | undefined } {
	const { document, places } = (value ?? {}) as { document?: unknown; places?: unknown };
	if (document === undefined) return { document: value, places: undefined };
	const { sites, routes } = (places ?? {}) as { sites?: unknown; routes?: unknown };
	const known = (document as { sites?: unknown } | null)?.sites;
	const count = Array.isArray(known) ? known.length : 0;
	if (!Array.isArray(sites) || sites.length !== count || ![...sites, routes].every(isListOfPlaces)) {
		return { document, places: undefined };
	}
	return { document, places: { sites: sites.map(list => JSON.stringify(list)), routes: JSON.stringify(routes) } };
}

function isListOfPlaces(value: unknown): boolean {
	return Array.isArray(value) && value.every(place => typeof place === 'string' && place.length <= MAX_PLACE);
}

/** Returns a JSON array with the pointers of all steps within a value, for steps without a known place in the source. */
export function stepPointersJson(value: object, base: string): string {
	const pointers: string[] = [];
	forEachStep(value, base, (_, pointer) => pointers.push(pointer));
	return JSON.stringify(pointers);
}

/** Formats the places of steps. */
export class PlaceWriter {
	readonly #folder: string | undefined;
	readonly #names = new Map<string, string>();

	/** `main` is the path of the main file. */
	constructor(main: string | undefined) {
		this.#folder = main === undefined ? undefined : dirname(main);
	}

	/** Returns a JSON array of places. An unknown place is ''. */
	json(spans: readonly (SourceSpan | undefined)[]): string {
		return JSON.stringify(spans.map(span => (span ? this.#placeOf(span) : '')));
	}

	/** Returns the places of all steps. `spans` holds those of each site, and `origins` those of named routes. */
	texts(
		spans: readonly (readonly (SourceSpan | undefined)[])[],
		{ routes = {} }: Document,
		origins: Origins,
	): StepPlaces {
		return { sites: spans.map(list => this.json(list)), routes: this.json(stepSpans(routes, origins)) };
	}

	#placeOf({ source, start }: SourceSpan): string {
		return `${this.#name(source.path, source.name)}:${source.position(start).line}`;
	}

	#name(path: string | undefined, name: string): string {
		if (path === undefined || this.#folder === undefined) return name;
		let short = this.#names.get(path);
		if (short === undefined) {
			short = relative(this.#folder, path);
			this.#names.set(path, short);
		}
		return short;
	}
}

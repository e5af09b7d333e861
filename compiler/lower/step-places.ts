/**
 * The places of a document's steps in its source, such as `Configfile:12`, for logs. Paths are relative to the folder of the main
 * file.
 */
import { dirname, relative } from 'node:path';
import { forEachStep } from '../codegen/context/step-numbers.ts';
import type { Document } from '../document/document.ts';
import type { SourceSpan } from '../source/source.ts';
import type { Origins } from './origins.ts';

/**
 * The places of all steps of a document. For each site, and for the named routes, there is a JSON array of places, indexed by the
 * number of the step.
 */
export interface StepPlaces {
	readonly sites: readonly string[];
	readonly routes: string;
}

/**
 * Returns the spans of all steps inside a value, in order of their numbers. A step without a span gets the span of the enclosing
 * object.
 */
export function stepSpans(value: object, origins: Origins): (SourceSpan | undefined)[] {
	const spans: (SourceSpan | undefined)[] = [];
	const collectSpans = (value: object, parentSpan: SourceSpan | undefined): void => {
		const span = origins.spanOf(value) ?? parentSpan;
		if ('handler' in value) spans.push(span);
		for (const child of Object.values(value))
			if (typeof child === 'object' && child !== null) collectSpans(child, span);
	};
	collectSpans(value, origins.spanOf(value));
	return spans;
}

/** Maximum characters of a place that was received as JSON. */
const MAX_PLACE_CHARS = 4096;

/**
 * Returns a JSON text with a document and its places, such as `{"document":{},"places":{"sites":[["Configfile:3"]],"routes":[]}}`.
 * `document` is the JSON text of the document.
 */
export function formatPlacedDocument(document: string, { sites, routes }: StepPlaces): string {
	return `{"document":${document},"places":{"sites":[${sites.join(',')}],"routes":${routes}}}`;
}

/**
 * Parses the result of {@link formatPlacedDocument}, and drops places that are invalid. Any other value is treated as a document
 * without places.
 */
export function parsePlacedDocument(value: unknown): { document: unknown; places: StepPlaces | undefined } {
	const { document, places } = (value ?? {}) as { document?: unknown; places?: unknown };
	if (document === undefined) return { document: value, places: undefined };
	const { sites, routes } = (places ?? {}) as { sites?: unknown; routes?: unknown };
	const documentSites = (document as { sites?: unknown } | null)?.sites;
	const siteCount = Array.isArray(documentSites) ? documentSites.length : 0;
	if (!Array.isArray(sites) || sites.length !== siteCount || ![...sites, routes].every(isListOfPlaces)) {
		return { document, places: undefined };
	}
	return { document, places: { sites: sites.map(list => JSON.stringify(list)), routes: JSON.stringify(routes) } };
}

function isListOfPlaces(value: unknown): boolean {
	return Array.isArray(value) && value.every(place => typeof place === 'string' && place.length <= MAX_PLACE_CHARS);
}

/** Returns a JSON array with the pointers of all steps inside a value, for a document without known places in a source. */
export function stepPointersJson(value: object, basePointer: string): string {
	const pointers: string[] = [];
	forEachStep(value, basePointer, (_, pointer) => pointers.push(pointer));
	return JSON.stringify(pointers);
}

/** Formats the places of steps as JSON. */
export class PlaceWriter {
	readonly #folder: string | undefined;
	readonly #namesByPath = new Map<string, string>();

	/** `mainPath` is the path of the main file; undefined if the configuration has none. */
	constructor(mainPath: string | undefined) {
		this.#folder = mainPath === undefined ? undefined : dirname(mainPath);
	}

	/** Returns a JSON array of places. An unknown place is an empty string. */
	formatPlaces(spans: readonly (SourceSpan | undefined)[]): string {
		return JSON.stringify(spans.map(span => (span ? this.#formatPlace(span) : '')));
	}

	/**
	 * Returns the places of all steps of a document. `spans` are the spans of the steps of each site, and `origins` has those of
	 * named routes.
	 */
	formatStepPlaces(
		spans: readonly (readonly (SourceSpan | undefined)[])[],
		{ routes = {} }: Document,
		origins: Origins,
	): StepPlaces {
		return { sites: spans.map(list => this.formatPlaces(list)), routes: this.formatPlaces(stepSpans(routes, origins)) };
	}

	#formatPlace({ source, start }: SourceSpan): string {
		return `${this.#shortName(source.path, source.name)}:${source.position(start).line}`;
	}

	#shortName(path: string | undefined, name: string): string {
		if (path === undefined || this.#folder === undefined) return name;
		let shortName = this.#namesByPath.get(path);
		if (shortName === undefined) {
			shortName = relative(this.#folder, path);
			this.#namesByPath.set(path, shortName);
		}
		return shortName;
	}
}

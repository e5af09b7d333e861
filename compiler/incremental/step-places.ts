/** Where the steps of a document stand in its text, for logs: `Configfile:12`, files named from the main one's folder. */
import { dirname, relative } from 'node:path';
import { eachStep } from '../codegen/step-numbers.ts';
import type { Origins } from '../lower/origins.ts';
import type { SourceSpan } from '../source/source.ts';

/** Places of all steps of a document by their numbers, each a JSON array: for each site, and for the named routes. */
export interface PlaceTexts {
	readonly sites: readonly string[];
	readonly routes: string;
}

/** The spans of all steps within a value, in the order of their numbers; of what is around where one has none itself. */
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

/** Characters of one place that somebody sends. */
const LONGEST_PLACE = 4096;

/** A document that travels with its places: `{"document":{},"places":{"sites":[["Configfile:3"]],"routes":[]}}`. */
export function placedText(document: string, { sites, routes }: PlaceTexts): string {
	return `{"document":${document},"places":{"sites":[${sites.join(',')}],"routes":${routes}}}`;
}

/** Takes apart what {@link placedText} made. Places that are none are left out; what is no such thing is the document. */
export function placedDocument(value: unknown): { document: unknown; places: PlaceTexts | undefined } {
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
	return Array.isArray(value) && value.every(place => typeof place === 'string' && place.length <= LONGEST_PLACE);
}

/** JSON of the pointers of all steps within a value, where nobody knows a text of it. */
export function pointersOf(value: object, base: string): string {
	const pointers: string[] = [];
	eachStep(value, base, (_, pointer) => pointers.push(pointer));
	return JSON.stringify(pointers);
}

/** Writes places. */
export class PlaceWriter {
	readonly #folder: string | undefined;
	readonly #names = new Map<string, string>();

	/** `main` is the path of the main file. */
	constructor(main: string | undefined) {
		this.#folder = main === undefined ? undefined : dirname(main);
	}

	/** JSON of an array of places; '' stands for one that is not known. */
	json(spans: readonly (SourceSpan | undefined)[]): string {
		return JSON.stringify(spans.map(span => (span ? this.#placeOf(span) : '')));
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

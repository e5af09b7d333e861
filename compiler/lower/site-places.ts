/** Finds the places of a document's objects in the source. If a place in a site is needed, the site is lowered again. */
import type { Document, Site } from '../document/document.ts';
import type { SourceSpan } from '../source/source.ts';
import type { SiteBlock } from '../syntax/ast.ts';
import type { TreeLowering } from './lower-tree.ts';
import type { Origins } from './origins.ts';

/** The places of the objects of one document. Places in sites are not stored, because most are never needed. */
export class SitePlaces {
	readonly #lowering: TreeLowering;
	readonly #sharedOrigins: Origins;
	readonly #siteBlock: (index: number) => SiteBlock | undefined;
	readonly #logCountsBefore: readonly number[];
	readonly #placesBySite = new Map<number, { readonly site: Site; readonly origins: Origins }>();

	/**
	 * @param sharedOrigins Spans of everything outside of the sites.
	 * @param logCountsBefore For each site, the number of anonymous logs in the sites before it.
	 */
	constructor(
		lowering: TreeLowering,
		sharedOrigins: Origins,
		siteBlock: (index: number) => SiteBlock | undefined,
		logCountsBefore: readonly number[],
	) {
		this.#lowering = lowering;
		this.#sharedOrigins = sharedOrigins;
		this.#siteBlock = siteBlock;
		this.#logCountsBefore = logCountsBefore;
	}

	/** Returns the place of the object to which a JSON pointer leads; undefined if it has none. */
	locate(document: Document, pointer: string): SourceSpan | undefined {
		const match = /^\/sites\/(\d+)(?=\/|$)/.exec(pointer);
		const index = match ? Number(match[1]) : -1;
		const block = match ? this.#siteBlock(index) : undefined;
		if (!block) return this.#sharedOrigins.locate(document, pointer);
		let places = this.#placesBySite.get(index);
		if (!places) {
			places = this.#lowering.lowerForPlaces(block, this.#logCountsBefore[index]!);
			this.#placesBySite.set(index, places);
		}
		return places.origins.locate(places.site, pointer.slice(match![0].length));
	}
}

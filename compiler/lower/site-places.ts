/** Finds the places of a lowered document's objects. When a place in a site is needed, the site is lowered once more. */
import type { Document, Site } from '../document/document.ts';
import type { SourceSpan } from '../source/source.ts';
import type { SiteBlock } from '../syntax/ast.ts';
import type { TreeLowering } from './lower-tree.ts';
import type { Origins } from './origins.ts';

/** The places of one document. Most are never needed, so those in sites are not stored. */
export class SitePlaces {
	readonly #lowering: TreeLowering;
	readonly #shared: Origins;
	readonly #blockOf: (index: number) => SiteBlock | undefined;
	readonly #logsBefore: readonly number[];
	readonly #known = new Map<number, { readonly site: Site; readonly origins: Origins }>();

	/**
	 * @param shared Spans of everything outside of sites.
	 * @param logsBefore Number of anonymous logs before each site.
	 */
	constructor(
		lowering: TreeLowering,
		shared: Origins,
		blockOf: (index: number) => SiteBlock | undefined,
		logsBefore: readonly number[],
	) {
		this.#lowering = lowering;
		this.#shared = shared;
		this.#blockOf = blockOf;
		this.#logsBefore = logsBefore;
	}

	/** Returns the place of an object in the document, given its JSON pointer. */
	locate(document: Document, pointer: string): SourceSpan | undefined {
		const match = /^\/sites\/(\d+)(?=\/|$)/.exec(pointer);
		const index = match ? Number(match[1]) : -1;
		const block = match ? this.#blockOf(index) : undefined;
		if (!block) return this.#shared.locate(document, pointer);
		let places = this.#known.get(index);
		if (!places) {
			places = this.#lowering.placesOf(block, this.#logsBefore[index]!);
			this.#known.set(index, places);
		}
		return places.origins.locate(places.site, pointer.slice(match![0].length));
	}
}

/** The part of a configuration that a rule inspects at a time: one site, everything outside of sites, or the whole. */
import type { Document, Site } from '../../document/document.ts';
import type { ConfigTree, SiteBlock } from '../../syntax/ast.ts';
import type { ParsedText } from '../../syntax/parsed-text.ts';
import { joinWalked, type WalkedDocument, walkRoutes } from './walk-document.ts';

/** One part of a configuration. */
export interface LintScope {
	/** The site; undefined if the scope is not exactly one site. */
	readonly site: Site | undefined;
	/** This part of the document. Sites have their usual indexes. */
	readonly document: Document;
	readonly walked: WalkedDocument;
	/** The syntax trees of the sites and, outside of sites, of the named routes; undefined for JSON. */
	readonly tree: Pick<ConfigTree, 'sites' | 'namedRoutes'> | undefined;
	/** True if the tree lacks a site, because its text is no longer known. */
	readonly isIncomplete: boolean;
}

/** Divides a configuration into scopes. Everything is prepared only when a rule first needs it. */
export class LintScopes {
	readonly #document: Document;
	readonly #text: ParsedText | undefined;
	readonly #walkSite: (site: Site, index: number) => WalkedDocument;
	readonly #scopes = new Map<number, LintScope>();
	#outside: LintScope | undefined;
	#whole: LintScope | undefined;

	/** `text` is undefined for JSON. */
	constructor(
		document: Document,
		text: ParsedText | undefined,
		walkSite: (site: Site, index: number) => WalkedDocument,
	) {
		this.#document = document;
		this.#text = text;
		this.#walkSite = walkSite;
	}

	/** Everything outside of sites. */
	get outside(): LintScope {
		this.#outside ??= this.#scope(undefined, { ...this.#document, sites: [] }, [], true);
		return this.#outside;
	}

	/** The whole configuration. */
	get whole(): LintScope {
		const { sites = [] } = this.#document;
		this.#whole ??= this.#scope(undefined, this.#document, [...sites.entries()], true);
		return this.#whole;
	}

	/** Returns the scope of one site. */
	site(site: Site, index: number): LintScope {
		let scope = this.#scopes.get(index);
		if (!scope) {
			// The list has holes, so that the site keeps its index.
			const sites: Site[] = [];
			sites[index] = site;
			scope = this.#scope(site, { sites }, [[index, site]], false);
			this.#scopes.set(index, scope);
		}
		return scope;
	}

	#scope(
		site: Site | undefined,
		document: Document,
		sites: readonly (readonly [number, Site])[],
		withRoutes: boolean,
	): LintScope {
		const text = this.#text;
		const walkSite = this.#walkSite;
		let walked: WalkedDocument | undefined;
		let blocks: readonly (SiteBlock | undefined)[] | undefined;
		const siteBlocks = (): readonly (SiteBlock | undefined)[] => {
			blocks ??= sites.map(([index]) => text?.siteBlock(index));
			return blocks;
		};
		return {
			site,
			document,
			get walked() {
				if (!walked) {
					const parts = sites.map(([index, one]) => walkSite(one, index));
					if (withRoutes) parts.push(walkRoutes(document));
					walked = parts.length === 1 ? parts[0]! : joinWalked(parts);
				}
				return walked;
			},
			get tree() {
				if (!text) return undefined;
				return {
					sites: siteBlocks().flatMap(block => block ?? []),
					namedRoutes: withRoutes ? text.namedRoutes : [],
				};
			},
			get isIncomplete() {
				return text !== undefined && (blocks?.includes(undefined) ?? false);
			},
		};
	}
}

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
	readonly walkedDocument: WalkedDocument;
	/** The syntax trees of the sites and, outside of sites, of the named routes; undefined for JSON. */
	readonly tree: Pick<ConfigTree, 'sites' | 'namedRoutes'> | undefined;
	/** True if the tree lacks a site, because its text is no longer known. */
	readonly isIncomplete: boolean;
}

/** Divides a configuration into scopes. Everything is prepared only when a rule first needs it. */
export class LintScopes {
	readonly #document: Document;
	readonly #parsedText: ParsedText | undefined;
	readonly #walkSite: (site: Site, index: number) => WalkedDocument;
	readonly #scopesBySite = new Map<number, LintScope>();
	#outsideScope: LintScope | undefined;
	#wholeScope: LintScope | undefined;

	/** `text` is undefined for JSON. */
	constructor(
		document: Document,
		text: ParsedText | undefined,
		walkSite: (site: Site, index: number) => WalkedDocument,
	) {
		this.#document = document;
		this.#parsedText = text;
		this.#walkSite = walkSite;
	}

	/** Everything outside of sites. */
	get outsideScope(): LintScope {
		this.#outsideScope ??= this.#createScope(undefined, { ...this.#document, sites: [] }, [], true);
		return this.#outsideScope;
	}

	/** The whole configuration. */
	get wholeScope(): LintScope {
		const { sites = [] } = this.#document;
		this.#wholeScope ??= this.#createScope(undefined, this.#document, [...sites.entries()], true);
		return this.#wholeScope;
	}

	/** Returns the scope of one site. */
	siteScope(site: Site, index: number): LintScope {
		let scope = this.#scopesBySite.get(index);
		if (!scope) {
			// The list has holes, so that the site keeps its index.
			const sites: Site[] = [];
			sites[index] = site;
			scope = this.#createScope(site, { sites }, [[index, site]], false);
			this.#scopesBySite.set(index, scope);
		}
		return scope;
	}

	#createScope(
		site: Site | undefined,
		document: Document,
		sites: readonly (readonly [number, Site])[],
		withRoutes: boolean,
	): LintScope {
		const parsedText = this.#parsedText;
		const walkSite = this.#walkSite;
		let walked: WalkedDocument | undefined;
		let cachedBlocks: readonly (SiteBlock | undefined)[] | undefined;
		const loadSiteBlocks = (): readonly (SiteBlock | undefined)[] => {
			cachedBlocks ??= sites.map(([index]) => parsedText?.siteBlock(index));
			return cachedBlocks;
		};
		return {
			site,
			document,
			get walkedDocument() {
				if (!walked) {
					const parts = sites.map(([index, currentSite]) => walkSite(currentSite, index));
					if (withRoutes) parts.push(walkRoutes(document));
					walked = parts.length === 1 ? parts[0]! : joinWalked(parts);
				}
				return walked;
			},
			get tree() {
				if (!parsedText) return undefined;
				return {
					sites: loadSiteBlocks().flatMap(block => block ?? []),
					namedRoutes: withRoutes ? parsedText.namedRoutes : [],
				};
			},
			get isIncomplete() {
				return parsedText !== undefined && (cachedBlocks?.includes(undefined) ?? false);
			},
		};
	}
}

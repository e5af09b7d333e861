/** The part of a configuration that a rule inspects at a time: one site, everything outside of sites, or the whole. */
import type { Document, Site } from '../../document/document.ts';
import type { ConfigTree, SiteBlock } from '../../syntax/ast.ts';
import type { ParsedText } from '../../syntax/parsed-text.ts';
import { joinWalked, type WalkedDocument, walkRoutes } from './walk-document.ts';

/** A part of a configuration that a rule inspects at a time. */
export interface LintScope {
	/** The site; undefined if the scope is not exactly one site. */
	readonly site: Site | undefined;
	/** A document that contains only this part. Each site has the same index as in the whole document. */
	readonly document: Document;
	readonly walkedDocument: WalkedDocument;
	/** The syntax trees of the scope's sites and, if the scope is not a single site, of the named routes; undefined for JSON. */
	readonly tree: Pick<ConfigTree, 'sites' | 'namedRoutes'> | undefined;
	/** True if the tree lacks a site, because its text is no longer known. */
	readonly isIncomplete: boolean;
}

/** Divides a configuration into scopes. Each scope is prepared when a rule first needs it. */
export class LintScopes {
	readonly #document: Document;
	readonly #parsedText: ParsedText | undefined;
	readonly #walkSite: (site: Site, index: number) => WalkedDocument;
	readonly #scopesBySite = new Map<number, LintScope>();
	#outsideScope: LintScope | undefined;
	#wholeScope: LintScope | undefined;

	/** `text` is the parsed configuration; undefined for JSON. */
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

	get wholeScope(): LintScope {
		const { sites = [] } = this.#document;
		this.#wholeScope ??= this.#createScope(undefined, this.#document, [...sites.entries()], true);
		return this.#wholeScope;
	}

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
		let walkedDocument: WalkedDocument | undefined;
		let cachedBlocks: readonly (SiteBlock | undefined)[] | undefined;
		const loadSiteBlocks = (): readonly (SiteBlock | undefined)[] => {
			cachedBlocks ??= sites.map(([index]) => parsedText?.siteBlock(index));
			return cachedBlocks;
		};
		return {
			site,
			document,
			get walkedDocument() {
				if (!walkedDocument) {
					const parts = sites.map(([index, currentSite]) => walkSite(currentSite, index));
					if (withRoutes) parts.push(walkRoutes(document));
					walkedDocument = parts.length === 1 ? parts[0]! : joinWalked(parts);
				}
				return walkedDocument;
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

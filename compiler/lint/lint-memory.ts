/** Remembers where rules found nothing, so that they need not inspect it again while it is unchanged. */
import type { Plan } from '../codegen/plan/plan.ts';
import type { Document, Site } from '../document/document.ts';
import type { LintRule } from './inspection/lint-rule.ts';
import { type WalkedDocument, walkSite } from './inspection/walk-document.ts';

/**
 * The memory of one configuration. Sites are identified by object identity, so it is of use only for the results of one compiler
 * session.
 */
export class LintMemory {
	/** The parts of the document on which every site may depend, as JSON. */
	#sharedText: string | undefined;
	#listeners: Plan['listeners'] | undefined;
	/** By rule, the sites in which it found nothing. */
	#clearSites = new Map<LintRule, WeakSet<Site>>();
	/** The same for rules that also depend on the listeners. */
	#clearServedSites = new Map<LintRule, WeakSet<Site>>();
	/** Rules that depend only on the listeners, and found nothing. */
	#clearListeners = new Set<LintRule>();
	readonly #walkedSites = new WeakMap<Site, { readonly index: number; readonly walked: WalkedDocument }>();

	/** Starts an inspection. Forgets what no longer holds. */
	begin({ sites: _, ...sharedParts }: Document, { listeners }: Plan): void {
		const sharedText = JSON.stringify(sharedParts);
		if (sharedText !== this.#sharedText) this.#clearSites = new Map();
		if (sharedText !== this.#sharedText || listeners !== this.#listeners) {
			this.#clearServedSites = new Map();
			this.#clearListeners = new Set();
		}
		this.#sharedText = sharedText;
		this.#listeners = listeners;
	}

	/** Reports whether a rule is known to find nothing in a site; in the whole document, if `site` is undefined. */
	isClear(rule: LintRule, site: Site | undefined): boolean {
		if (!site) return this.#clearListeners.has(rule);
		return this.#sitesOf(rule).get(rule)?.has(site) ?? false;
	}

	/** Remembers that a rule found nothing. */
	setClear(rule: LintRule, site: Site | undefined): void {
		if (!site) {
			if (rule.dependsOn === 'listeners') this.#clearListeners.add(rule);
			return;
		}
		const sitesByRule = this.#sitesOf(rule);
		const sites = sitesByRule.get(rule);
		if (sites) sites.add(site);
		else sitesByRule.set(rule, new WeakSet([site]));
	}

	#sitesOf(rule: LintRule): Map<LintRule, WeakSet<Site>> {
		return rule.dependsOn === 'site' ? this.#clearSites : this.#clearServedSites;
	}

	/** Returns the steps and conditions of a site. */
	readonly walkSite = (site: Site, index: number): WalkedDocument => {
		const known = this.#walkedSites.get(site);
		// The pointers of the steps contain the index.
		if (known?.index === index) return known.walked;
		const walked = walkSite(site, index);
		this.#walkedSites.set(site, { index, walked });
		return walked;
	};
}

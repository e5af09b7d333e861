/** Remembers in which parts of a configuration rules found nothing, so that unchanged parts need not be inspected again. */
import type { Plan } from '../codegen/plan/plan.ts';
import type { Document, Site } from '../document/document.ts';
import { FormatMemory } from '../syntax/format.ts';
import type { LintRule } from './inspection/lint-rule.ts';
import { type WalkedDocument, walkSite } from './inspection/walk-document.ts';

/**
 * Records where lint rules have found nothing in one configuration, so that unchanged sites need not be checked again. Sites are
 * compared by object identity, so a memory is useful only for the results of one compiler session.
 */
export class LintMemory {
	/** The parts of the document on which every site may depend, as JSON. */
	#sharedPartsJson: string | undefined;
	#listeners: Plan['listeners'] | undefined;
	/** The sites in which rules with `dependsOn: 'site'` found nothing, by rule. */
	#cleanSites = new Map<LintRule, WeakSet<Site>>();
	/** The sites in which rules with `dependsOn: 'served site'` found nothing, by rule. */
	#cleanServedSites = new Map<LintRule, WeakSet<Site>>();
	/** Rules that depend only on the listeners, and found nothing. */
	#cleanListenerRules = new Set<LintRule>();
	readonly #walkedSites = new WeakMap<Site, { readonly index: number; readonly walked: WalkedDocument }>();

	/** Formats the main file, and reuses the results for sections that have not changed. */
	readonly formatMemory = new FormatMemory();

	/** Starts an inspection. Forgets results that are no longer valid. */
	beginInspection({ sites: _, ...sharedParts }: Document, { listeners }: Plan): void {
		const sharedPartsJson = JSON.stringify(sharedParts);
		if (sharedPartsJson !== this.#sharedPartsJson) this.#cleanSites = new Map();
		if (sharedPartsJson !== this.#sharedPartsJson || listeners !== this.#listeners) {
			this.#cleanServedSites = new Map();
			this.#cleanListenerRules = new Set();
		}
		this.#sharedPartsJson = sharedPartsJson;
		this.#listeners = listeners;
	}

	/** Reports whether a rule is known to find nothing in a site, or in the whole document if `site` is undefined. */
	isClean(rule: LintRule, site: Site | undefined): boolean {
		if (!site) return this.#cleanListenerRules.has(rule);
		return this.#cleanSitesOf(rule).get(rule)?.has(site) ?? false;
	}

	/** Remembers that a rule found nothing in a site, or in the whole document if `site` is undefined. */
	markClean(rule: LintRule, site: Site | undefined): void {
		if (!site) {
			if (rule.dependsOn === 'listeners') this.#cleanListenerRules.add(rule);
			return;
		}
		const sitesByRule = this.#cleanSitesOf(rule);
		const sites = sitesByRule.get(rule);
		if (sites) sites.add(site);
		else sitesByRule.set(rule, new WeakSet([site]));
	}

	#cleanSitesOf(rule: LintRule): Map<LintRule, WeakSet<Site>> {
		return rule.dependsOn === 'site' ? this.#cleanSites : this.#cleanServedSites;
	}

	/** Returns the steps and conditions of a site. */
	readonly walkSite = (site: Site, index: number): WalkedDocument => {
		const previousWalk = this.#walkedSites.get(site);
		// The pointers of the steps contain the site's index, so an earlier result is valid only for the same index.
		if (previousWalk?.index === index) return previousWalk.walked;
		const walkedSite = walkSite(site, index);
		this.#walkedSites.set(site, { index, walked: walkedSite });
		return walkedSite;
	};
}

/** The phases after lowering, the same for text and JSON; a session keeps what it knows of the sites that come again. */
import { checkBuild } from '../codegen/check-build.ts';
import type { ListenerSpec, Plan } from '../codegen/plan.ts';
import { planDocument } from '../codegen/plan-document.ts';
import type { Report } from '../diagnostics/diagnostic.ts';
import { checkValues } from '../document/check-values.ts';
import type { Document, Site } from '../document/document.ts';
import { checkDocument } from '../document/validate.ts';

/** Where the sites of a document are served. */
interface KnownListeners {
	/** What the addresses are read with. */
	readonly settings: string;
	readonly sites: readonly Site[];
	readonly listeners: readonly ListenerSpec[];
}

/** Checks documents, one after the other; sites are told apart by identity. */
export class DocumentChecks {
	readonly #valid = new WeakSet<Site>();
	/** Sites that build together with {@link #shared}. */
	#built = new WeakSet<Site>();
	#shared = '';
	#listeners: KnownListeners | undefined;

	/** The plan; undefined when the document does not fit its schema. */
	check(document: Document, report: Report): Plan | undefined {
		if (!checkDocument(document, report, this.#valid)) return undefined;
		checkValues(document, report);
		const plan = this.#plan(document, report);
		const { sites: _, ...rest } = document;
		const shared = JSON.stringify(rest);
		if (shared !== this.#shared) {
			this.#shared = shared;
			this.#built = new WeakSet();
		}
		checkBuild(document, report, this.#built);
		return plan;
	}

	/** Plans the listeners, unless every site is still served where it was. */
	#plan(document: Document, report: Report): Plan {
		const { http_port, https_port, default_bind } = document.settings ?? {};
		const settings = JSON.stringify([http_port, https_port, default_bind]);
		const sites = document.sites ?? [];
		const known = this.#listeners;
		if (known?.settings === settings && known.sites.length === sites.length && sites.every(isServedAs(known.sites))) {
			return { document, listeners: known.listeners };
		}
		let reported = false;
		const plan = planDocument(document, diagnostic => {
			reported = true;
			report(diagnostic);
		});
		this.#listeners = reported ? undefined : { settings, sites, listeners: plan.listeners };
		return plan;
	}
}

function isServedAs(before: readonly Site[]): (site: Site, index: number) => boolean {
	return (site, index) => {
		const old = before[index]!;
		return site === old || (sameTexts(site.addresses, old.addresses) && sameTexts(site.bind, old.bind));
	};
}

function sameTexts(a: readonly string[] | undefined, b: readonly string[] | undefined): boolean {
	return a === b || (a?.length === b?.length && (a?.every((text, index) => text === b![index]) ?? false));
}

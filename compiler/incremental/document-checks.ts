/** The phases after lowering, which reuse results for sites that have not changed since the last compilation. */
import { checkBuild, type ReadsBySite } from '../codegen/check-build.ts';
import type { HostFacts } from '../codegen/placeholders/placeholder.ts';
import { CertificateCheck } from '../codegen/plan/certificate-check.ts';
import type { Plan } from '../codegen/plan/plan.ts';
import { planDocument } from '../codegen/plan/plan-document.ts';
import type { Report } from '../diagnostics/diagnostic.ts';
import type { Document, Site } from '../document/document.ts';
import { checkDocument } from '../schema/validate.ts';
import type { Reader } from '../source/reader.ts';
import type { RecordedRead, RecordingReader } from '../source/recording-reader.ts';

/** The last plan of the listeners, with its input. */
interface PlannedListeners {
	/** The settings with which the addresses and TLS of sites were planned. */
	readonly settingsJson: string;
	readonly sites: readonly Site[];
	readonly plan: Plan;
}

/** Checks successive documents. A site that is the same object as before is unchanged. */
export class DocumentChecks {
	readonly #validSites = new WeakSet<Site>();
	/** Sites that were built without a mistake, given that the other parts of the document equal {@link #sharedPartsJson}. */
	#builtSites: ReadsBySite = new WeakMap();
	#sharedPartsJson = '';
	#lastPlanned: PlannedListeners | undefined;
	readonly #certificateCheck = new CertificateCheck();
	readonly #facts: HostFacts | undefined;

	/** `facts` describe the machine that will serve the documents. Without them, values from its environment are not checked. */
	constructor(facts?: HostFacts) {
		this.#facts = facts;
	}

	/** Validates a document against its schema. Returns true if it matches. */
	validate(document: Document, report: Report): boolean {
		return checkDocument(document, report, this.#validSites);
	}

	/** Builds the changed sites, or all sites if another part of the document has changed. Returns all sites that can be built. */
	build(document: Document, report: Report, reader: RecordingReader): ReadsBySite {
		const { sites: _, ...sharedParts } = document;
		const sharedPartsJson = JSON.stringify(sharedParts);
		if (sharedPartsJson !== this.#sharedPartsJson) {
			this.#sharedPartsJson = sharedPartsJson;
			this.#builtSites = new WeakMap();
		}
		checkBuild(document, report, this.#builtSites, reader, this.#facts);
		return this.#builtSites;
	}

	/**
	 * Plans the listeners. Reuses the last plan if the addresses, `bind` and TLS of all sites are unchanged. `reads` are the
	 * accesses to files and the environment that `reader` has recorded.
	 */
	plan(document: Document, report: Report, reader: Reader, reads: readonly RecordedRead[]): Plan {
		const { admin: _, logs: _logs, ...relevantSettings } = document.settings ?? {};
		const settingsJson = JSON.stringify(relevantSettings);
		const sites = document.sites ?? [];
		const lastPlanned = this.#lastPlanned;
		if (
			lastPlanned?.settingsJson === settingsJson &&
			lastPlanned.sites.length === sites.length &&
			sites.every(isServedAs(lastPlanned.sites))
		) {
			return { ...lastPlanned.plan, document };
		}
		let hasReported = false;
		const planInputs = { reader, certificateCheck: this.#certificateCheck, facts: this.#facts };
		const plan = planDocument(
			document,
			diagnostic => {
				hasReported = true;
				report(diagnostic);
			},
			planInputs,
		);
		// A plan that depends on files cannot be reused, because the files may change.
		const isReusable = !hasReported && reads.length === 0;
		this.#lastPlanned = isReusable ? { settingsJson, sites, plan } : undefined;
		return plan;
	}
}

function isServedAs(plannedSites: readonly Site[]): (site: Site, index: number) => boolean {
	return (site, index) => {
		const plannedSite = plannedSites[index]!;
		if (site === plannedSite) return true;
		if (
			!areSameTexts(site.addresses, plannedSite.addresses) ||
			JSON.stringify(site.bind) !== JSON.stringify(plannedSite.bind)
		)
			return false;
		return (site.tls ?? plannedSite.tls) === undefined || JSON.stringify(site.tls) === JSON.stringify(plannedSite.tls);
	};
}

function areSameTexts(a: readonly string[] | undefined, b: readonly string[] | undefined): boolean {
	return a === b || (a?.length === b?.length && (a?.every((text, index) => text === b![index]) ?? false));
}

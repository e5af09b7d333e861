/** The phases after lowering, as a session runs them. Results for unchanged sites are remembered. */
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

/** The last planned sites and their listeners. */
interface KnownListeners {
	/** The settings with which the addresses and TLS of sites were planned. */
	readonly settings: string;
	readonly sites: readonly Site[];
	readonly plan: Plan;
}

/** Checks successive documents; sites are identified by object identity. */
export class DocumentChecks {
	readonly #valid = new WeakSet<Site>();
	/** Sites that are known to build with the rest of the document as in {@link #shared}. */
	#built: ReadsBySite = new WeakMap();
	#shared = '';
	#listeners: KnownListeners | undefined;
	readonly #certificates = new CertificateCheck();
	readonly #facts: HostFacts | undefined;

	/** `facts` describe the machine that will serve the documents. Without them, values from its environment are not checked. */
	constructor(facts?: HostFacts) {
		this.#facts = facts;
	}

	/** Validates a document against its schema. Returns true if it matches. */
	validate(document: Document, report: Report): boolean {
		return checkDocument(document, report, this.#valid);
	}

	/** Builds the sites that are not yet known to build. Returns all sites that can be built. */
	build(document: Document, report: Report, reader: RecordingReader): ReadsBySite {
		const { sites: _, ...rest } = document;
		const shared = JSON.stringify(rest);
		if (shared !== this.#shared) {
			this.#shared = shared;
			this.#built = new WeakMap();
		}
		checkBuild(document, report, this.#built, reader, this.#facts);
		return this.#built;
	}

	/**
	 * Plans the listeners. The last plan is reused if the addresses, `bind` and TLS of all sites are unchanged. `asked` are the
	 * reads that `reader` recorded.
	 */
	plan(document: Document, report: Report, reader: Reader, asked: readonly RecordedRead[]): Plan {
		const { admin: _, logs: _logs, ...relevant } = document.settings ?? {};
		const settings = JSON.stringify(relevant);
		const sites = document.sites ?? [];
		const known = this.#listeners;
		if (known?.settings === settings && known.sites.length === sites.length && sites.every(isServedAs(known.sites))) {
			return { ...known.plan, document };
		}
		let reported = false;
		const files = { reader, certificateCheck: this.#certificates, facts: this.#facts };
		const plan = planDocument(
			document,
			diagnostic => {
				reported = true;
				report(diagnostic);
			},
			files,
		);
		// A plan that depends on files must not be reused, because files may change.
		const lasting = !reported && asked.length === 0;
		this.#listeners = lasting ? { settings, sites, plan } : undefined;
		return plan;
	}
}

function isServedAs(before: readonly Site[]): (site: Site, index: number) => boolean {
	return (site, index) => {
		const old = before[index]!;
		if (site === old) return true;
		if (!sameTexts(site.addresses, old.addresses) || JSON.stringify(site.bind) !== JSON.stringify(old.bind))
			return false;
		return (site.tls ?? old.tls) === undefined || JSON.stringify(site.tls) === JSON.stringify(old.tls);
	};
}

function sameTexts(a: readonly string[] | undefined, b: readonly string[] | undefined): boolean {
	return a === b || (a?.length === b?.length && (a?.every((text, index) => text === b![index]) ?? false));
}

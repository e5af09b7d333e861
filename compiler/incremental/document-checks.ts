/** The phases after lowering, as a session carries them out: it remembers what it knows about unchanged sites. */
import { type BuiltSites, checkBuild } from '../codegen/check-build.ts';
import type { HostFacts } from '../codegen/placeholders/placeholder.ts';
import type { Plan } from '../codegen/plan.ts';
import { planDocument } from '../codegen/plan-document.ts';
import { CertificateCheck } from '../codegen/tls/certificate-check.ts';
import type { Report } from '../diagnostics/diagnostic.ts';
import type { Document, Site } from '../document/document.ts';
import { checkDocument } from '../document/validate.ts';
import type { Reader } from '../source/reader.ts';
import type { Asked, RecordingReader } from '../source/recording-reader.ts';

/** Where the sites of a document are served. */
interface KnownListeners {
	/** The settings with which the addresses and TLS of sites were planned. */
	readonly settings: string;
	readonly sites: readonly Site[];
	readonly plan: Plan;
}

/** Checks successive documents; sites are identified by object identity. */
export class DocumentChecks {
	readonly #valid = new WeakSet<Site>();
	/** Sites that build together with {@link #shared}. */
	#built: BuiltSites = new WeakMap();
	#shared = '';
	#listeners: KnownListeners | undefined;
	readonly #certificates = new CertificateCheck();
	readonly #facts: HostFacts | undefined;

	/** `facts` are about the machine that will serve the documents; without them its environment is ignored. */
	constructor(facts?: HostFacts) {
		this.#facts = facts;
	}

	/** Reports whether a document matches its schema. */
	validate(document: Document, report: Report): boolean {
		return checkDocument(document, report, this.#valid);
	}

	/** Builds the sites that are not known to build. Returns all that can be built. */
	build(document: Document, report: Report, reader: RecordingReader): BuiltSites {
		const { sites: _, ...rest } = document;
		const shared = JSON.stringify(rest);
		if (shared !== this.#shared) {
			this.#shared = shared;
			this.#built = new WeakMap();
		}
		checkBuild(document, report, this.#built, reader, this.#facts);
		return this.#built;
	}

	/** Plans the listeners, unless all sites are served where and how they were before. `asked` is the record of `reader`. */
	plan(document: Document, report: Report, reader: Reader, asked: readonly Asked[]): Plan {
		const { admin: _, logs: _logs, ...relevant } = document.settings ?? {};
		const settings = JSON.stringify(relevant);
		const sites = document.sites ?? [];
		const known = this.#listeners;
		if (known?.settings === settings && known.sites.length === sites.length && sites.every(isServedAs(known.sites))) {
			return { ...known.plan, document };
		}
		let reported = false;
		const files = { reader, check: this.#certificates, facts: this.#facts };
		const plan = planDocument(
			document,
			diagnostic => {
				reported = true;
				report(diagnostic);
			},
			files,
		);
		// Results that depend on files must be recomputed, because files may change.
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

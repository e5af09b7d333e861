/** The phases after lowering, the same for text and JSON; a session keeps what it knows of the sites that come again. */
import { checkBuild } from '../codegen/check-build.ts';
import type { Plan } from '../codegen/plan.ts';
import { planDocument } from '../codegen/plan-document.ts';
import type { Report } from '../diagnostics/diagnostic.ts';
import { checkValues } from '../document/check-values.ts';
import type { Document, Site } from '../document/document.ts';
import { checkDocument } from '../document/validate.ts';
import type { Reader } from '../source/reader.ts';
import { namesAuthorityFiles } from '../tls/authority-files.ts';
import { CertificateCheck } from '../tls/certificate-check.ts';
import type { SiteTls } from '../tls/site-tls.ts';

/** Where the sites of a document are served. */
interface KnownListeners {
	/** What the addresses and the TLS of sites are read with. */
	readonly settings: string;
	readonly sites: readonly Site[];
	readonly plan: Plan;
}

/** Checks documents, one after the other; sites are told apart by identity. */
export class DocumentChecks {
	readonly #valid = new WeakSet<Site>();
	/** Sites that build together with {@link #shared}. */
	#built = new WeakSet<Site>();
	#shared = '';
	#listeners: KnownListeners | undefined;
	readonly #certificates = new CertificateCheck();

	/** The plan; undefined when the document does not fit its schema. */
	check(document: Document, report: Report, reader: Reader): Plan | undefined {
		if (!checkDocument(document, report, this.#valid)) return undefined;
		checkValues(document, report);
		const plan = this.#plan(document, report, reader);
		const { sites: _, ...rest } = document;
		const shared = JSON.stringify(rest);
		if (shared !== this.#shared) {
			this.#shared = shared;
			this.#built = new WeakSet();
		}
		checkBuild(document, report, this.#built, reader);
		return plan;
	}

	/** Plans the listeners, unless every site is still served where it was and as it was. */
	#plan(document: Document, report: Report, reader: Reader): Plan {
		const { admin: _, logs: _logs, ...relevant } = document.settings ?? {};
		const settings = JSON.stringify(relevant);
		const sites = document.sites ?? [];
		const known = this.#listeners;
		if (known?.settings === settings && known.sites.length === sites.length && sites.every(isServedAs(known.sites))) {
			return { ...known.plan, document };
		}
		let reported = false;
		const files = { reader, check: this.#certificates };
		const plan = planDocument(
			document,
			diagnostic => {
				reported = true;
				report(diagnostic);
			},
			files,
		);
		// Files may have changed when they are looked at again.
		const lasting = !reported && !sites.some(({ tls }) => namesFiles(tls)) && !namesAuthorityFiles(document);
		this.#listeners = lasting ? { settings, sites, plan } : undefined;
		return plan;
	}
}

function namesFiles(tls: SiteTls | undefined): boolean {
	return tls !== undefined && (tls.certificates ?? tls.load ?? tls.client_auth) !== undefined;
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

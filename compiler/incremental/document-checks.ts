/** The phases after lowering, shared by text and JSON; a session remembers what it knows about unchanged sites. */
import { hash } from 'node:crypto';
import { type BuiltSites, checkBuild } from '../codegen/check-build.ts';
import type { HostFacts } from '../codegen/placeholders/placeholder.ts';
import type { NamedFiles, Plan } from '../codegen/plan.ts';
import { planDocument } from '../codegen/plan-document.ts';
import { CertificateCheck } from '../codegen/tls/certificate-check.ts';
import type { Report } from '../diagnostics/diagnostic.ts';
import { checkValues } from '../document/check-values.ts';
import type { Document, Site } from '../document/document.ts';
import { checkDocument } from '../document/validate.ts';
import type { Reader } from '../source/reader.ts';
import { type Asked, RecordingReader } from '../source/recording-reader.ts';

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

	/** Returns the plan; undefined if the document does not match its schema. */
	check(document: Document, report: Report, files: Reader): Plan | undefined {
		if (!checkDocument(document, report, this.#valid)) return undefined;
		checkValues(document, report);
		const reader = new RecordingReader(files);
		const asked = reader.record();
		const plan = this.#plan(document, report, reader, asked);
		reader.stop();
		const { sites = [], ...rest } = document;
		const shared = JSON.stringify(rest);
		if (shared !== this.#shared) {
			this.#shared = shared;
			this.#built = new WeakMap();
		}
		checkBuild(document, report, this.#built, reader, this.#facts);
		const named = namedFiles(
			asked,
			sites.map(site => this.#built.get(site) ?? []),
		);
		return named ? { ...plan, files: named } : plan;
	}

	/** Plans the listeners, unless all sites are served where and how they were before. `asked` is the record of `reader`. */
	#plan(document: Document, report: Report, reader: Reader, asked: readonly Asked[]): Plan {
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

/** Returns the recorded file reads for the plan and for each site; undefined if there were none. */
function namedFiles(plan: readonly Asked[], sites: readonly (readonly Asked[])[]): NamedFiles | undefined {
	const bySite = sites.map(digest);
	const identity = digest(plan) + bySite.join();
	if (/^,*$/.test(identity)) return undefined;
	const contents: { [path: string]: string } = {};
	for (const { what, of, answer } of sites.flat()) if (what === 'readBytes') contents[of] = answer;
	return { identity: hash('sha256', identity, 'base64'), sites: bySite, contents };
}

function digest(asked: readonly Asked[]): string {
	if (asked.length === 0) return '';
	const answers = asked.map(({ what, of, answer }) => `${what} ${of} ${answer}`);
	return hash('sha256', answers.join('\0'), 'base64');
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

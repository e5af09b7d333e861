/** Compiles one configuration again and again: what did not change since the last time is not done again. */
import type { HostFacts } from '../codegen/placeholders/placeholder.ts';
import type { Plan } from '../codegen/plan.ts';
import { ConcealedValues } from '../diagnostics/concealed-values.ts';
import type { Diagnostic, Report } from '../diagnostics/diagnostic.ts';
import type { ConfigInput, Dialect } from '../dialects/dialect.ts';
import { checkLogFiles } from '../document/check-values.ts';
import type { Document, Site } from '../document/document.ts';
import { checkNesting } from '../document/nesting.ts';
import { objectIds } from '../document/object-ids.ts';
import { parseJson } from '../document/parse-json.ts';
import { refuseRedacted } from '../document/secrets.ts';
import { upgradeDocument } from '../document/upgrade.ts';
import { DiagnosticCollector } from '../lower/diagnostic-collector.ts';
import { registryOf } from '../lower/registry.ts';
import { checkLines } from '../source/line-limit.ts';
import type { Reader } from '../source/reader.ts';
import { RecordingReader } from '../source/recording-reader.ts';
import type { SourceSpan } from '../source/source.ts';
import { lowerTests } from '../testing/lower-tests.ts';
import type { TestCase } from '../testing/test-case.ts';
import { DocumentChecks } from './document-checks.ts';
import { PieceStore } from './piece-store.ts';
import { SiteMemory } from './site-memory.ts';
import { type PlaceTexts, placedDocument } from './step-places.ts';
import { compileText, type TextKnowledge } from './text-compilation.ts';

/** What compiling gave. `document` and `plan` are there when no diagnostic is an error. */
export interface Compiled {
	readonly document: Document | undefined;
	readonly plan: Plan | undefined;
	readonly diagnostics: readonly Diagnostic[];
	/** What `test` blocks check; they add nothing to the document. */
	readonly tests: readonly TestCase[];
	/** Absolute paths of the files read. */
	readonly files: readonly string[];
	/**
	 * Where in the text an object of the document came from, by JSON pointer; always undefined for JSON, and for what a
	 * session compiled before the last time.
	 */
	readonly locate: (pointer: string) => SourceSpan | undefined;
	/** Where its steps stand; undefined unless the session was asked for it, and where nothing is known of a text. */
	readonly places?: PlaceTexts | undefined;
}

/** How a session works. */
export interface SessionOptions {
	/** Reads every text as a whole and finds nothing again: the measure that everything else is compared with. */
	readonly whole?: boolean | undefined;
	/** Tells where steps stand, for logs. */
	readonly places?: boolean | undefined;
	/**
	 * Facts of the machine that is to serve the configuration. With them, what is taken from its environment when it is loaded
	 * is judged too: it is refused where a server would refuse it.
	 */
	readonly facts?: HostFacts | undefined;
}

/**
 * A compiler with a memory. Every result is what a new session would give for the same input and the same files; objects
 * of sites that came out before are the same objects again.
 */
export class CompilerSession {
	readonly #reader: Reader;
	readonly #whole: boolean;
	readonly #places: boolean;
	readonly #checks: DocumentChecks;
	#text: { readonly dialect: Dialect; readonly known: TextKnowledge } | undefined;
	/** Sites of the last JSON document by their text. */
	#jsonSites: ReadonlyMap<string, Site> = new Map();
	#compilations = 0;

	constructor(reader: Reader, options: SessionOptions = {}) {
		this.#reader = reader;
		this.#whole = options.whole === true;
		this.#places = options.places === true;
		this.#checks = new DocumentChecks(options.facts);
	}

	/**
	 * Compiles a configuration: parse, expand, lower, validate, plan, and a trial build of every site. Never throws for
	 * input; every mistake that can be found is in `diagnostics`, sorted by file and place.
	 */
	compile(input: ConfigInput): Compiled {
		this.#compilations++;
		const { format } = input;
		return format === 'json' ? this.#compileJson(input) : this.#compileText(input, format);
	}

	#compileText(input: ConfigInput, dialect: Dialect): Compiled {
		const tooLong = refuseTooLong(input);
		if (tooLong) return tooLong;
		if (this.#text?.dialect !== dialect) {
			this.#text = { dialect, known: { pieces: new PieceStore(dialect), sites: new SiteMemory() } };
		}
		const directives = new Set(registryOf(dialect).directives.keys());
		const concealed = new ConcealedValues();
		const reader = new RecordingReader(concealed.watching(this.#reader));
		let known: TextKnowledge | undefined = this.#whole ? undefined : this.#text.known;
		for (let pass = 1; ; pass++) {
			const collector = new DiagnosticCollector();
			const { report } = collector;
			const result = compileText({ input, dialect, reader, directives, report, known, places: this.#places });
			if (typeof result === 'string') {
				if (result === 'whole' || pass === MOST_PASSES) known = undefined;
				continue;
			}
			const { document, tree, places } = result;
			const { files } = tree;
			const ofDocument = collector.ofDocument(result.locate);
			// A text that was made of what the Admin API shows.
			if (input.text.includes('redacted')) refuseRedacted(document, ofDocument);
			const plan = this.#check(document, ofDocument);
			const tests = lowerTests(tree.tests, report);
			const compiled = conclude(collector, {
				...{ document, plan, files, tests, places },
				locate: this.#untilNext(result.locate),
			});
			return { ...compiled, diagnostics: compiled.diagnostics.map(diagnostic => concealed.conceal(diagnostic)) };
		}
	}

	/** A function that answers until the session compiles again. */
	#untilNext(locate: Compiled['locate']): Compiled['locate'] {
		const compilation = this.#compilations;
		return pointer => (compilation === this.#compilations ? locate(pointer) : undefined);
	}

	#compileJson(input: ConfigInput): Compiled {
		const collector = new DiagnosticCollector();
		const files = input.path === undefined ? [] : [input.path];
		const whole = parseJson(input.text, input.name, input.path, collector.report);
		const { document: parsed, places } = input.placed ? placedDocument(whole) : { document: whole, places: undefined };
		const rest = { files, tests: [], places, locate: (): undefined => undefined };
		if (parsed === undefined || !checkNesting(parsed, collector.report)) {
			return conclude(collector, { document: undefined, plan: undefined, ...rest });
		}
		const document = this.#known(upgradeDocument(parsed) as Document);
		const report = collector.ofDocument(undefined);
		if (input.text.includes('@id')) objectIds(document, report);
		if (input.text.includes('redacted')) refuseRedacted(document, report);
		return conclude(collector, { document, plan: this.#check(document, report), ...rest });
	}

	#check(document: Document, report: Report): Plan | undefined {
		const plan = this.#checks.check(document, report, this.#reader);
		if (plan) checkLogFiles(document, this.#reader, report);
		return plan;
	}

	/** The document with the sites that were there before. */
	#known(document: Document): Document {
		const { sites } = (document ?? {}) as { sites?: unknown };
		if (!Array.isArray(sites)) return document;
		const known = this.#jsonSites;
		const next = new Map<string, Site>();
		this.#jsonSites = next;
		const same = (sites as readonly Site[]).map(site => {
			const text = JSON.stringify(site);
			const found = known.get(text) ?? site;
			if (typeof found === 'object' && found !== null) next.set(text, found);
			return found;
		});
		return { ...document, sites: same };
	}
}

/** Passes after which a text is read as a whole: each learns of a piece what the one before did not know. */
const MOST_PASSES = 4;

/** The refusal of a text that is longer than any configuration. */
function refuseTooLong(input: ConfigInput): Compiled | undefined {
	const collector = new DiagnosticCollector();
	if (checkLines(input, collector.report)) return undefined;
	const files = input.path === undefined ? [] : [input.path];
	return conclude(collector, { document: undefined, plan: undefined, files, tests: [], locate: () => undefined });
}

/** Document and plan are given out only when there was no error. */
function conclude(collector: DiagnosticCollector, made: Omit<Compiled, 'diagnostics'>): Compiled {
	const usable = !collector.hasErrors;
	return {
		...made,
		document: usable ? made.document : undefined,
		plan: usable ? made.plan : undefined,
		diagnostics: collector.sorted(),
	};
}

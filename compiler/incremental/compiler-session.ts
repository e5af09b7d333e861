/** Compiles one configuration repeatedly, reusing what has not changed. */
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
import type { Reader } from '../source/reader.ts';
import { RecordingReader } from '../source/recording-reader.ts';
import type { SourceSpan } from '../source/source.ts';
import { lowerTests } from '../testing/lower-tests.ts';
import type { TestCase } from '../testing/test-case.ts';
import { DocumentChecks } from './document-checks.ts';
import { checkLines } from './line-limit.ts';
import { PieceStore } from './piece-store.ts';
import { SiteMemory } from './site-memory.ts';
import { type PlaceTexts, placedDocument } from './step-places.ts';
import { compileText, type TextKnowledge } from './text-compilation.ts';

/** The result of compiling. `document` and `plan` are present if no diagnostic is an error. */
export interface Compiled {
	readonly document: Document | undefined;
	readonly plan: Plan | undefined;
	readonly diagnostics: readonly Diagnostic[];
	/** The checks of `test` blocks, which are not part of the document. */
	readonly tests: readonly TestCase[];
	/** Absolute paths of the files read. */
	readonly files: readonly string[];
	/**
	 * Returns the place in the text of an object of the document, by JSON pointer; always undefined for JSON, and for results
	 * older than the last compilation.
	 */
	readonly locate: (pointer: string) => SourceSpan | undefined;
	/** Places of its steps; undefined unless requested, and if the text is unknown. */
	readonly places?: PlaceTexts | undefined;
}

export interface SessionOptions {
	/** Parses every text as a whole and reuses nothing; the reference for all results. */
	readonly whole?: boolean | undefined;
	/** Records where steps are in the text, for logs. */
	readonly places?: boolean | undefined;
	/**
	 * Facts about the machine that will serve the configuration. With them, values from its environment are checked too, as
	 * they would be by the server.
	 */
	readonly facts?: HostFacts | undefined;
}

/**
 * A compiler with a memory. Every result equals that of a new session for the same input and files; unchanged sites are the
 * same objects as before.
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
	 * Compiles a configuration: parses, expands, lowers, validates, plans, and builds every site on trial. Never throws for bad
	 * input; `diagnostics` holds every mistake that can be found, sorted by file and place.
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
				if (result === 'whole' || pass === MAX_PASSES) known = undefined;
				continue;
			}
			const { document, tree, places } = result;
			const { files } = tree;
			const ofDocument = collector.ofDocument(result.locate);
			// The text may have been copied from the Admin API.
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

	/** Returns a function that stops answering when the session compiles again. */
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

	/** Returns the document with known sites replaced by the existing objects. */
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

/**
 * Maximum passes before a text is parsed as a whole: each pass learns something about a piece that the one before did not know.
 */
const MAX_PASSES = 4;

/** Rejects a text that is longer than any configuration. */
function refuseTooLong(input: ConfigInput): Compiled | undefined {
	const collector = new DiagnosticCollector();
	if (checkLines(input, collector.report)) return undefined;
	const files = input.path === undefined ? [] : [input.path];
	return conclude(collector, { document: undefined, plan: undefined, files, tests: [], locate: () => undefined });
}

/** Returns document and plan only if there were no errors. */
function conclude(collector: DiagnosticCollector, made: Omit<Compiled, 'diagnostics'>): Compiled {
	const usable = !collector.hasErrors;
	return {
		...made,
		document: usable ? made.document : undefined,
		plan: usable ? made.plan : undefined,
		diagnostics: collector.sorted(),
	};
}

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
import type { NamedBlock } from '../syntax/ast.ts';
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
		const concealed = new ConcealedValues();
		const read = this.#read(input, concealed);
		const { collector, document, locate } = read;
		const plan = document === undefined ? undefined : this.#check(document, input, collector.ofDocument(locate));
		const tests = lowerTests(read.tests, collector.report);
		const usable = !collector.hasErrors;
		return {
			document: usable ? document : undefined,
			plan: usable ? plan : undefined,
			diagnostics: collector.sorted().map(diagnostic => concealed.conceal(diagnostic)),
			tests,
			files: read.files,
			places: read.places,
			locate: this.#untilNext(locate),
		};
	}

	/** Reads the document of an input, in whichever format: the phases that differ between text and JSON. */
	#read(input: ConfigInput, concealed: ConcealedValues): ReadInput {
		const { format } = input;
		if (format === 'json') return this.#readJson(input);
		const collector = new DiagnosticCollector();
		// A text longer than any configuration is rejected before it is parsed.
		if (!checkLines(input, collector.report)) return nothingRead(input, collector);
		return this.#readText(input, format, concealed);
	}

	/** Parses, expands and lowers a text, reusing what the session knows; passes repeat until that was correct. */
	#readText(input: ConfigInput, dialect: Dialect, concealed: ConcealedValues): ReadInput {
		if (this.#text?.dialect !== dialect) {
			this.#text = { dialect, known: { pieces: new PieceStore(dialect), sites: new SiteMemory() } };
		}
		const directives = new Set(registryOf(dialect).directives.keys());
		const reader = new RecordingReader(concealed.watching(this.#reader));
		let known: TextKnowledge | undefined = this.#whole ? undefined : this.#text.known;
		for (let pass = 1; ; pass++) {
			const collector = new DiagnosticCollector();
			const { report } = collector;
			const result = compileText({ input, dialect, reader, directives, report, known, places: this.#places });
			if (typeof result !== 'string') {
				const { document, tree, places, locate } = result;
				return { collector, document, files: tree.files, tests: tree.tests, places, locate };
			}
			if (result === 'whole' || pass === MAX_PASSES) known = undefined;
		}
	}

	#readJson(input: ConfigInput): ReadInput {
		const collector = new DiagnosticCollector();
		const nothing = nothingRead(input, collector);
		const whole = parseJson(input.text, input.name, input.path, collector.report);
		const { document: parsed, places } = input.placed ? placedDocument(whole) : { document: whole, places: undefined };
		if (parsed === undefined || !checkNesting(parsed, collector.report)) return { ...nothing, places };
		return { ...nothing, document: this.#known(upgradeDocument(parsed) as Document), places };
	}

	/** Returns a function that stops answering when the session compiles again. */
	#untilNext(locate: ReadInput['locate']): Compiled['locate'] {
		const compilation = this.#compilations;
		return pointer => (compilation === this.#compilations ? locate?.(pointer) : undefined);
	}

	/** Checks a document and returns its plan; undefined if it does not match the schema. */
	#check(document: Document, { format, text }: ConfigInput, report: Report): Plan | undefined {
		if (format === 'json' && text.includes('@id')) objectIds(document, report);
		// The text may have been copied from the Admin API.
		if (text.includes('redacted')) refuseRedacted(document, report);
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

/** An input after the phases that depend on its format. */
interface ReadInput extends Pick<Compiled, 'document' | 'files' | 'places'> {
	readonly collector: DiagnosticCollector;
	readonly tests: readonly NamedBlock[];
	readonly locate: ((pointer: string) => SourceSpan | undefined) | undefined;
}

/** Returns an input without a document. */
function nothingRead({ path }: ConfigInput, collector: DiagnosticCollector): ReadInput {
	const files = path === undefined ? [] : [path];
	return { collector, document: undefined, files, tests: [], places: undefined, locate: undefined };
}

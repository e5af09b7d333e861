/** The compilation pipeline: turns a configuration, as text or JSON, into a checked document and its plan, phase by phase. */
import { hash } from 'node:crypto';
import { checkBuild, type ReadsBySite } from '../codegen/check-build.ts';
import type { HostFacts } from '../codegen/placeholders/placeholder.ts';
import { CertificateCheck } from '../codegen/plan/certificate-check.ts';
import type { FileIdentities, Plan } from '../codegen/plan/plan.ts';
import { planDocument } from '../codegen/plan/plan-document.ts';
import { ConcealedValues } from '../diagnostics/concealed-values.ts';
import type { Diagnostic, Report } from '../diagnostics/diagnostic.ts';
import type { ConfigInput, Dialect } from '../dialects/dialect.ts';
import type { AdminSettings, Document } from '../document/document.ts';
import { checkNesting } from '../document/nesting.ts';
import { parseJson } from '../document/parse-json.ts';
import { upgradeDocument } from '../document/upgrade.ts';
import { DiagnosticCollector } from '../lower/diagnostic-collector.ts';
import { knownPlaceholders } from '../lower/known-placeholders.ts';
import { TreeLowering } from '../lower/lower-tree.ts';
import { NoOrigins, Origins } from '../lower/origins.ts';
import { registryOf } from '../lower/registry.ts';
import { SitePlaces } from '../lower/site-places.ts';
import { PlaceWriter, parsePlacedDocument, type StepPlaces, stepSpans } from '../lower/step-places.ts';
import { checkLogFiles, checkValues } from '../schema/check-values.ts';
import { objectIds } from '../schema/object-ids.ts';
import { rejectRedactedSecrets } from '../schema/secrets.ts';
import { checkDocument } from '../schema/validate.ts';
import { type Reader, WITHHELD } from '../source/reader.ts';
import { type RecordedRead, RecordingReader } from '../source/recording-reader.ts';
import type { SourceSpan } from '../source/source.ts';
import type { NamedBlock } from '../syntax/ast.ts';
import { checkLineCount } from '../syntax/line-limit.ts';
import { parseConfig } from '../syntax/parse-config.ts';
import type { ParsedText } from '../syntax/parsed-text.ts';
import { lowerTests } from '../testing/lower-tests.ts';
import type { TestCase } from '../testing/test-case.ts';

/** The result of compiling. `document` and `plan` are present unless a diagnostic is an error. */
export interface CompileResult {
	readonly document: Document | undefined;
	readonly plan: Plan | undefined;
	/**
	 * The option `admin` as it is written, not validated, even if the configuration is refused; for commands that only have to reach a
	 * running server. Undefined if it is missing or cannot be read.
	 */
	readonly admin: AdminSettings | undefined;
	readonly diagnostics: readonly Diagnostic[];
	/** The test cases of `test` blocks, which are not part of the document. */
	readonly tests: readonly TestCase[];
	/** Absolute paths of the files that the compilation read. */
	readonly files: readonly string[];
	/**
	 * Returns the span of configuration text from which the object at a JSON pointer into the document was lowered. Returns
	 * undefined for JSON, and for results of a session that has compiled again since.
	 */
	readonly locate: (pointer: string) => SourceSpan | undefined;
	/** The parsed text; undefined for JSON, and for a text that is too long to be parsed. */
	readonly parsedText: ParsedText | undefined;
	/**
	 * Where the document's steps are written in the configuration text; undefined if this was not requested, or if the text is
	 * unknown.
	 */
	readonly places?: StepPlaces | undefined;
}

export interface CompileOptions {
	/** True to record where steps are in the configuration text, for logs. */
	readonly places?: boolean | undefined;
	/**
	 * Facts about the machine that will serve the configuration. If they are given, values from its environment are also checked,
	 * as the server would check them.
	 */
	readonly facts?: HostFacts | undefined;
}

/** The result of parsing, expanding and lowering a configuration text. */
export interface LoweredText {
	readonly document: Document;
	readonly tests: readonly NamedBlock[];
	readonly files: readonly string[];
	readonly locate: CompileResult['locate'];
	readonly parsedText: ParsedText | undefined;
	readonly places: StepPlaces | undefined;
	/** Holds the diagnostics found so far, and receives the diagnostics of later phases. */
	readonly collector: DiagnosticCollector;
}

/** The phases that can skip unchanged sites. A session implements them so that they reuse results of its last compilation. */
export interface CompilePhases {
	/** Parses, expands and lowers a configuration text. */
	readText(input: ConfigInput, dialect: Dialect, reader: RecordingReader): LoweredText;
	/** Returns a document that was read as JSON, with unchanged sites replaced by the objects of an earlier compilation. */
	readDocument(document: Document): Document;
	/** Reports whether a document fits the schema. */
	validate(document: Document, report: Report): boolean;
	/** Plans listeners and certificates. During the call, every read through `reader` is appended to `reads`. */
	plan(document: Document, report: Report, reader: Reader, reads: readonly RecordedRead[]): Plan;
	/** Builds every site once as a trial, with fakes of the runtime. Returns the sites that can be built. */
	build(document: Document, report: Report, reader: RecordingReader): ReadsBySite;
}

/**
 * Compiles a configuration: parse, expand, lower, validate, plan, and a trial build of every site. Never throws, whatever the
 * input; every mistake that can be found is in `diagnostics`, sorted by file and position.
 */
export function compile(input: ConfigInput, reader: Reader, options: CompileOptions = {}): CompileResult {
	return compileInPhases(new StatelessPhases(options), input, reader);
}

/** Compiles a configuration with the given implementation of the phases. */
export function compileInPhases(phases: CompilePhases, input: ConfigInput, reader: Reader): CompileResult {
	const concealedValues = new ConcealedValues();
	const { collector, document, tests, ...otherResults } =
		input.format === 'json'
			? readJson(input, phases)
			: readText(input, input.format, phases, new RecordingReader(concealedValues.watchedReader(reader)));
	const report = collector.createDocumentReport(otherResults.locate);
	let plan: Plan | undefined;
	// `null` is valid JSON, but it does not fit the schema.
	if (document !== undefined) {
		// A configuration copied from what the Admin API shows contains redacted values.
		if (input.text.includes('redacted')) rejectRedactedSecrets(document, report);
		if (phases.validate(document, report)) {
			checkValues(document, report);
			plan = planAndBuild(phases, document, withoutWithheldFindings(report), new RecordingReader(reader));
			checkLogFiles(document, reader, report);
		}
	}
	const testCases = lowerTests(tests, collector.report);
	const isUsable = !collector.hasErrors;
	return {
		...otherResults,
		locate: otherResults.locate ?? (() => undefined),
		tests: testCases,
		document: isUsable ? document : undefined,
		admin: document?.settings?.admin,
		plan: isUsable ? plan : undefined,
		diagnostics: collector.sortedDiagnostics().map(diagnostic => concealedValues.conceal(diagnostic)),
	};
}

/** The result of the phases before validation, for both text and JSON. */
type FirstPhases = Omit<LoweredText, 'document' | 'locate'> & {
	/** The lowered or parsed document; undefined if later phases cannot run. */
	readonly document: Document | undefined;
	readonly locate: CompileResult['locate'] | undefined;
};

function readText(input: ConfigInput, dialect: Dialect, phases: CompilePhases, reader: RecordingReader): FirstPhases {
	const collector = new DiagnosticCollector();
	if (checkLineCount(input, collector.report)) return phases.readText(input, dialect, reader);
	const emptyResults = { document: undefined, locate: undefined, parsedText: undefined, places: undefined };
	return { collector, tests: [], files: mainFilePaths(input), ...emptyResults };
}

function readJson(input: ConfigInput, phases: CompilePhases): FirstPhases {
	const collector = new DiagnosticCollector();
	const parsedValue = parseJson(input.text, input.name, input.path, collector.report);
	const { document: parsedDocument, places } = input.placed
		? parsePlacedDocument(parsedValue)
		: { document: parsedValue, places: undefined };
	const sharedResults = {
		collector,
		tests: [],
		files: mainFilePaths(input),
		locate: undefined,
		parsedText: undefined,
		places,
	};
	if (parsedDocument === undefined || !checkNesting(parsedDocument, collector.report))
		return { ...sharedResults, document: undefined };
	const document = phases.readDocument(upgradeDocument(parsedDocument) as Document);
	if (input.text.includes('@id')) objectIds(document, collector.createDocumentReport(undefined));
	return { ...sharedResults, document };
}

function mainFilePaths({ path }: ConfigInput): readonly string[] {
	return path === undefined ? [] : [path];
}

function planAndBuild(phases: CompilePhases, document: Document, report: Report, reader: RecordingReader): Plan {
	const reads = reader.startRecord();
	const plan = phases.plan(document, report, reader, reads);
	reader.endRecord();
	const readsBySite = phases.build(document, report, reader);
	const files = identifyFiles(
		reads,
		(document.sites ?? []).map(site => readsBySite.get(site) ?? []),
	);
	return files ? { ...plan, files } : plan;
}

/** Returns a report that drops findings about files that the reader withholds, because nothing is known about them. */
function withoutWithheldFindings(report: Report): Report {
	return diagnostic => {
		if (!diagnostic.message.includes(WITHHELD)) report(diagnostic);
	};
}

/** Returns a digest of what was read for the plan and for each site; undefined if nothing was read. */
function identifyFiles(
	planReads: readonly RecordedRead[],
	readsBySite: readonly (readonly RecordedRead[])[],
): FileIdentities | undefined {
	const digestBySite = readsBySite.map(digestReads);
	const identity = digestReads(planReads) + digestBySite.join();
	if (/^,*$/.test(identity)) return undefined;
	const contents: { [path: string]: string } = {};
	for (const { method, target, result: answer } of readsBySite.flat())
		if (method === 'readBytes') contents[target] = answer;
	return { identity: hash('sha256', identity, 'base64'), sites: digestBySite, contents };
}

function digestReads(reads: readonly RecordedRead[]): string {
	if (reads.length === 0) return '';
	const readTexts = reads.map(({ method, target, result: answer }) => `${method} ${target} ${answer}`);
	return hash('sha256', readTexts.join('\0'), 'base64');
}

/** The phases for a single compilation. They reuse nothing from earlier compilations. */
export class StatelessPhases implements CompilePhases {
	readonly #options: CompileOptions;

	constructor(options: CompileOptions) {
		this.#options = options;
	}

	readText(input: ConfigInput, dialect: Dialect, reader: RecordingReader): LoweredText {
		const collector = new DiagnosticCollector();
		const { report } = collector;
		const tree = parseConfig(input, reader, report, {
			knownDirectives: new Set(registryOf(dialect).directives.keys()),
		});
		const origins = new Origins();
		const loweringInput = { dialect, report, reader, placeholders: knownPlaceholders, origins };
		const lowering = new TreeLowering(tree, () => tree.sites, loweringInput);
		const logCountsBefore: number[] = [];
		const spansBySite: (readonly (SourceSpan | undefined)[])[] = [];
		const noOrigins = new NoOrigins();
		const sites = tree.sites.map(block => {
			logCountsBefore.push(lowering.logCount);
			const siteOrigins = this.#options.places ? new Origins() : noOrigins;
			const site = lowering.lowerSite(block, { origins: siteOrigins });
			if (this.#options.places) spansBySite.push(stepSpans(site, siteOrigins));
			return site;
		});
		const document = lowering.assembleDocument(sites);
		const sitePlaces = new SitePlaces(lowering, origins, index => tree.sites[index], logCountsBefore);
		return {
			...{ collector, document, tests: tree.tests, files: tree.files },
			locate: pointer => sitePlaces.locate(document, pointer),
			parsedText: {
				namedRoutes: tree.namedRoutes,
				siteBlock: index => tree.sites[index],
				unusedNames: tree.unusedNames,
			},
			places: this.#options.places
				? new PlaceWriter(input.path).formatStepPlaces(spansBySite, document, origins)
				: undefined,
		};
	}

	readDocument(document: Document): Document {
		return document;
	}

	validate(document: Document, report: Report): boolean {
		return checkDocument(document, report);
	}

	plan(document: Document, report: Report, reader: Reader): Plan {
		return planDocument(document, report, {
			reader,
			certificateCheck: new CertificateCheck(),
			facts: this.#options.facts,
		});
	}

	build(document: Document, report: Report, reader: RecordingReader): ReadsBySite {
		const readsBySite: ReadsBySite = new WeakMap();
		checkBuild(document, report, readsBySite, reader, this.#options.facts);
		return readsBySite;
	}
}

/** One pass over a configuration in text form: parses, expands and lowers it, and reuses the results of earlier passes. */
import { dirname } from 'node:path';
import type { Report } from '../diagnostics/diagnostic.ts';
import { withWholePlaces } from '../diagnostics/whole-places.ts';
import type { ConfigInput, Dialect } from '../dialects/dialect.ts';
import type { Document, Site } from '../document/document.ts';
import { DiagnosticCollector } from '../lower/diagnostic-collector.ts';
import { knownPlaceholders } from '../lower/known-placeholders.ts';
import { type LowerTreeInput, TreeLowering } from '../lower/lower-tree.ts';
import { NoOrigins, Origins } from '../lower/origins.ts';
import { registryOf } from '../lower/registry.ts';
import { SiteDependencies } from '../lower/site-dependencies.ts';
import { SitePlaces } from '../lower/site-places.ts';
import { PlaceWriter, stepSpans } from '../lower/step-places.ts';
import type { LoweredText } from '../pipeline/compile.ts';
import type { RecordedRead, RecordingReader } from '../source/recording-reader.ts';
import { Source, type SourceSpan, wholeSpan } from '../source/source.ts';
import type { ConfigTree, SiteBlock } from '../syntax/ast.ts';
import { Expander } from '../syntax/expander.ts';
import { ExpansionReport } from '../syntax/expansion-report.ts';
import { FileStructure, type SiteEntry } from '../syntax/file-structure.ts';
import { Importer } from '../syntax/importer.ts';
import { reportEmptyFile } from '../syntax/parse-config.ts';
import type { TextPiece } from '../syntax/text-piece.ts';
import type { PieceStore } from './piece-store.ts';
import type { LoweringDependencies, SiteMemory } from './site-memory.ts';
import { SiteReader } from './site-reader.ts';

/** The cached results of a session for a configuration in one dialect. */
export interface TextMemory {
	readonly pieces: PieceStore;
	readonly sites: SiteMemory;
}

export interface TextPassInput {
	readonly input: ConfigInput;
	readonly dialect: Dialect;
	readonly reader: RecordingReader;
	readonly memory: TextMemory;
	/** True to record the places of steps. */
	readonly recordsPlaces: boolean;
}

/**
 * Runs one pass. Returns `again` if an assumption about a piece was wrong; the next pass will not repeat it. Returns `whole` if the
 * text must be parsed as a whole.
 */
export function lowerPieces(pass: TextPassInput): LoweredText | 'again' | 'whole' {
	const { input, dialect, reader, memory } = pass;
	const collector = new DiagnosticCollector();
	const report: Report = diagnostic => collector.report(withWholePlaces(diagnostic));
	const directives = new Set(registryOf(dialect).directives.keys());
	const source = new Source({ name: input.name, text: input.text, path: input.path });
	const expansionReport = new ExpansionReport(dialect, report);
	const env = (name: string) => reader.env(name);
	memory.pieces.beginCompilation();
	const importer = new Importer(expansionReport, reader, {
		cut: (wholeSource: Source) => memory.pieces.cutIntoPieces(wholeSource, env),
		mayBeReused: (piece: TextPiece) => memory.sites.mayBeReused(piece),
	});
	const structure = new FileStructure(
		expansionReport,
		new Expander(expansionReport, importer),
		importer,
		directives,
		memory.sites,
	);
	const folder = input.path === undefined ? reader.workingDirectory : dirname(input.path);
	if (input.text === '') reportEmptyFile(source, expansionReport);
	const mainFile = importer.readMainFile(source);
	if (!mainFile.pieces) return 'whole';
	memory.sites.beginCompilation(input.path, folder, reader, expansionReport, path => importer.addFile(path));
	structure.addFile(mainFile);
	const tree = structure.finish();
	// Two cases require parsing the text as a whole: a limit that stopped the expansion, because the result then depends on the
	// order of processing, and a site without braces, because its lines may be in several pieces.
	if (expansionReport.isExhausted || tree.sites.some(site => !site.hasBraces)) return 'whole';
	const siteReader = new SiteReader(dialect, reader, directives);
	const origins = new Origins();
	const loweringInput = { dialect, report, reader, placeholders: knownPlaceholders, origins };
	const sitesLowering = new SitesLowering(pass, structure.sites, tree, siteReader, folder, loweringInput);
	const document = sitesLowering.buildDocument();
	if (!document) return 'again';
	const sitePlaces = sitesLowering.sitePlaces();
	return {
		...{ collector, document, tests: tree.tests, files: tree.files },
		locate: pointer => {
			const span = sitePlaces.locate(document, pointer);
			return span && wholeSpan(span);
		},
		parsedText: {
			namedRoutes: tree.namedRoutes,
			siteBlock: index => sitesLowering.siteBlock(index),
			unusedNames: () => structure.unusedNames(),
		},
		places: pass.recordsPlaces
			? new PlaceWriter(input.path).formatStepPlaces(sitesLowering.spansBySite, document, origins)
			: undefined,
	};
}

/** The dependencies of a site whose lowering depended only on its own lines. Most sites share this object. */
const NO_DEPENDENCIES: SiteDependencies = new SiteDependencies();
const NO_READS: readonly RecordedRead[] = [];
const NO_SPANS: readonly (SourceSpan | undefined)[] = [];

/** Lowers the sites in order, or reuses their earlier lowering. */
class SitesLowering {
	readonly #pass: TextPassInput;
	readonly #siteEntries: readonly SiteEntry[];
	readonly #siteReader: SiteReader;
	readonly #origins: Origins;
	readonly #lowering: TreeLowering;
	/** Number of logs without a name that come before each site. */
	readonly #logCountsBefore: number[] = [];
	/** Places of the steps of each site. */
	readonly spansBySite: (readonly (SourceSpan | undefined)[])[] = [];
	readonly #sharedDependencies: LoweringDependencies;
	#dependencies = new SiteDependencies();

	constructor(
		pass: TextPassInput,
		siteEntries: readonly SiteEntry[],
		tree: ConfigTree,
		siteReader: SiteReader,
		folder: string,
		input: LowerTreeInput,
	) {
		this.#pass = pass;
		this.#siteEntries = siteEntries;
		this.#siteReader = siteReader;
		this.#origins = input.origins;
		this.#lowering = new TreeLowering(tree, () => this.#siteBlocks(), input);
		this.#sharedDependencies = { context: this.#lowering.contextKey, folder, files: tree.files.join('\0') };
	}

	/** Returns the document; undefined if an assumption about a piece turned out to be wrong. */
	buildDocument(): Document | undefined {
		const sites: Site[] = [];
		let hasWrongAssumption = false;
		const noOrigins = new NoOrigins();
		for (const entry of this.#siteEntries) {
			this.#logCountsBefore.push(this.#lowering.logCount);
			const site = this.#lowerOrReuse(entry, noOrigins);
			if (site) sites.push(site);
			else hasWrongAssumption = true;
		}
		return hasWrongAssumption ? undefined : this.#lowering.assembleDocument(sites);
	}

	#lowerOrReuse(entry: SiteEntry, noOrigins: Origins): Site | undefined {
		const { piece } = entry;
		const lowering = this.#lowering;
		const { reader, memory, recordsPlaces } = this.#pass;
		const logsBefore = lowering.logCount;
		const deps = this.#sharedDependencies;
		const reusedLowering = piece && memory.sites.reusableLowering(piece, deps, logsBefore);
		if (reusedLowering) {
			lowering.repeatEffects(reusedLowering.dependencies, reusedLowering.logCount);
			this.spansBySite.push(reusedLowering.spans);
			return reusedLowering.site;
		}
		const reads = reader.startRecord();
		const block = this.#blockOfEntry(entry);
		const dependencies = this.#dependencies;
		const origins = recordsPlaces ? new Origins() : noOrigins;
		const site = block && lowering.lowerSite(block, { origins, dependencies });
		const spans = site && recordsPlaces ? stepSpans(site, origins) : NO_SPANS;
		this.spansBySite.push(spans);
		reader.endRecord();
		if (piece && !site) piece.isIndependentSite = false;
		if (piece && site) {
			const loweredSite = {
				site,
				dependencies: dependencies.isEmpty ? NO_DEPENDENCIES : dependencies,
				deps,
				logsBefore,
				spans,
			};
			const logCount = lowering.logCount - logsBefore;
			memory.sites.storeLowering(piece, { ...loweredSite, logCount, reads: reads.length > 0 ? reads : NO_READS });
		}
		if (!dependencies.isEmpty) this.#dependencies = new SiteDependencies();
		return site;
	}

	/** Returns a parsed site by its index in the document. */
	siteBlock(index: number): SiteBlock | undefined {
		const entry = this.#siteEntries[index];
		return entry && this.#blockOfEntry(entry);
	}

	#blockOfEntry({ block, piece }: SiteEntry): SiteBlock | undefined {
		return block ?? (piece && (this.#pass.memory.sites.blockOf(piece) ?? this.#siteReader.readSite(piece)));
	}

	/** Yields every site that was parsed, for checks across sites. */
	*#siteBlocks(): Iterable<SiteBlock> {
		for (const entry of this.#siteEntries) {
			const block = this.#blockOfEntry(entry);
			if (block) yield block;
		}
	}

	/** Returns the places of the document's objects. */
	sitePlaces(): SitePlaces {
		return new SitePlaces(this.#lowering, this.#origins, index => this.siteBlock(index), this.#logCountsBefore);
	}
}

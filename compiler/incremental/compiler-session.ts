/** Compiles one configuration again and again, and reuses the results for its unchanged parts. */
import type { ReadsBySite } from '../codegen/check-build.ts';
import type { Plan } from '../codegen/plan/plan.ts';
import type { Report } from '../diagnostics/diagnostic.ts';
import type { ConfigInput, Dialect } from '../dialects/dialect.ts';
import type { Document, Site } from '../document/document.ts';
import {
	type CompileOptions,
	type CompilePhases,
	type CompileResult,
	compileInPhases,
	type LoweredText,
	StatelessPhases,
} from '../pipeline/compile.ts';
import type { Reader } from '../source/reader.ts';
import type { RecordedRead, RecordingReader } from '../source/recording-reader.ts';
import { DocumentChecks } from './document-checks.ts';
import { PieceStore } from './piece-store.ts';
import { SiteMemory } from './site-memory.ts';
import { lowerPieces, type TextMemory } from './text-compilation.ts';

/**
 * A compiler that remembers earlier results. Each result equals the one that `compile` returns for the same input and files.
 * Unchanged sites are the same objects as in the previous result.
 */
export class CompilerSession {
	readonly #reader: Reader;
	readonly #phases: RememberingPhases;
	#compilationCount = 0;

	constructor(reader: Reader, options: CompileOptions = {}) {
		this.#reader = reader;
		this.#phases = new RememberingPhases(options);
	}

	/** Compiles a configuration as `compile` does. */
	compile(input: ConfigInput): CompileResult {
		const compilationNumber = ++this.#compilationCount;
		const result = compileInPhases(this.#phases, input, this.#reader);
		// Places and syntax trees are known only for the text that was compiled last.
		const isCurrent = (): boolean => compilationNumber === this.#compilationCount;
		const { parsedText } = result;
		return {
			...result,
			locate: pointer => (isCurrent() ? result.locate(pointer) : undefined),
			parsedText: parsedText && {
				...parsedText,
				siteBlock: index => (isCurrent() ? parsedText.siteBlock(index) : undefined),
			},
		};
	}
}

/**
 * Maximum passes before the text is parsed as a whole. A pass makes assumptions about the pieces of the text, such as that a
 * piece is an independent site. The next pass corrects the assumptions that were wrong.
 */
const MAX_PASSES = 4;

/** The compilation phases for successive versions of a configuration: unchanged parts are not processed again. */
class RememberingPhases implements CompilePhases {
	readonly #statelessPhases: StatelessPhases;
	readonly #recordsPlaces: boolean;
	readonly #documentChecks: DocumentChecks;
	#textMemory: { readonly dialect: Dialect; readonly memory: TextMemory } | undefined;
	/** The sites of the last JSON document, by their JSON text. */
	#siteByJson: ReadonlyMap<string, Site> = new Map();

	constructor(options: CompileOptions) {
		this.#statelessPhases = new StatelessPhases(options);
		this.#recordsPlaces = options.places === true;
		this.#documentChecks = new DocumentChecks(options.facts);
	}

	readText(input: ConfigInput, dialect: Dialect, reader: RecordingReader): LoweredText {
		if (this.#textMemory?.dialect !== dialect) {
			this.#textMemory = { dialect, memory: { pieces: new PieceStore(dialect), sites: new SiteMemory() } };
		}
		const { memory } = this.#textMemory;
		for (let pass = 1; pass <= MAX_PASSES; pass++) {
			const passResult = lowerPieces({ input, dialect, reader, memory, recordsPlaces: this.#recordsPlaces });
			if (passResult === 'whole') break;
			if (passResult !== 'again') return passResult;
		}
		return this.#statelessPhases.readText(input, dialect, reader);
	}

	readDocument(document: Document): Document {
		const { sites } = (document ?? {}) as { sites?: unknown };
		if (!Array.isArray(sites)) return document;
		const previousSites = this.#siteByJson;
		const nextSites = new Map<string, Site>();
		this.#siteByJson = nextSites;
		const reusedSites = (sites as readonly Site[]).map(site => {
			const siteJson = JSON.stringify(site);
			const reusedSite = previousSites.get(siteJson) ?? site;
			if (typeof reusedSite === 'object' && reusedSite !== null) nextSites.set(siteJson, reusedSite);
			return reusedSite;
		});
		return { ...document, sites: reusedSites };
	}

	validate(document: Document, report: Report): boolean {
		return this.#documentChecks.validate(document, report);
	}

	plan(document: Document, report: Report, reader: Reader, reads: readonly RecordedRead[]): Plan {
		return this.#documentChecks.plan(document, report, reader, reads);
	}

	build(document: Document, report: Report, reader: RecordingReader): ReadsBySite {
		return this.#documentChecks.build(document, report, reader);
	}
}

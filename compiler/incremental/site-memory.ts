/**
 * Caches the results of expanding and lowering the sites in pieces of text, together with everything on which these results
 * depended.
 */
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { Site } from '../document/document.ts';
import type { SiteDependencies } from '../lower/site-dependencies.ts';
import type { RecordedRead, RecordingReader } from '../source/recording-reader.ts';
import type { SourceSpan } from '../source/source.ts';
import type { SiteBlock } from '../syntax/ast.ts';
import type { Constant } from '../syntax/constants.ts';
import { ExpansionRecord, type ExpansionReport } from '../syntax/expansion-report.ts';
import type { DefinedNames, PieceMemory } from '../syntax/file-structure.ts';
import type { Snippet } from '../syntax/frame.ts';
import { TextPiece } from '../syntax/text-piece.ts';

/** The expansion of the site in a piece, and everything that it depended on. */
interface Expansion {
	readonly block: SiteBlock;
	/** A number that identifies everything before the piece except sites. Equal numbers mean equal contents. */
	readonly contextNumber: number;
	readonly reads: readonly RecordedRead[];
	readonly snippets: readonly string[];
	readonly constants: readonly string[];
	readonly record: ExpansionRecord;
}

/** Dependencies that the lowerings of all sites in one compilation share. */
export interface LoweringDependencies {
	/** Identifies everything that the lowering of any site may depend on; see {@link TreeLowering.contextKey}. */
	readonly context: string;
	/** Folder of the main file. */
	readonly folder: string;
	/** The names of all configuration files. */
	readonly files: string;
}

export interface LoweredSite {
	readonly site: Site;
	readonly dependencies: SiteDependencies;
	readonly deps: LoweringDependencies;
	/** Number of logs without a name that come before the site. Such logs are numbered, so the site's own numbers depend on it. */
	readonly logsBefore: number;
	/** Number of logs without a name in the site. */
	readonly logCount: number;
	readonly reads: readonly RecordedRead[];
	/** Places of the site's steps; empty unless they are requested. */
	readonly spans: readonly (SourceSpan | undefined)[];
}

/** A piece of the configuration text, with the cached results of expanding and lowering it. */
export class KnownPiece extends TextPiece {
	expansion: Expansion | undefined = undefined;
	loweredSite: LoweredSite | undefined = undefined;
}

/** A piece that is being parsed. */
interface PieceReading {
	readonly piece: TextPiece;
	readonly reads: readonly RecordedRead[];
	/** Number of the context in which the piece begins; see {@link Expansion.contextNumber}. */
	readonly contextBefore: number;
	/** True once parsing has entered an import inside the piece. */
	hasEntered: boolean;
}

/** The cached results for one configuration, kept between compilations. */
export class SiteMemory implements PieceMemory {
	/** The numbers of the contexts in the previous compilation. A context is everything before a piece except sites. */
	#previousContexts = new Map<string, number>();
	/** The numbers of the contexts in the current compilation. */
	#currentContexts = new Map<string, number>();
	#contextCount = 0;
	#currentContextNumber = 0;
	#reader: RecordingReader | undefined;
	#report: ExpansionReport | undefined;
	#mainPath: string | undefined;
	#addFile: ((path: string) => void) | undefined;
	/** The pieces that are being parsed, nested by imports. */
	readonly #openReadings: PieceReading[] = [];
	#record: ExpansionRecord | undefined;
	/**
	 * True while imported lines that are not pieces are parsed. Their definitions become part of the context only at the end of the
	 * import.
	 */
	#inLooseLines = false;

	/**
	 * Starts a compilation. `mainPath` is the path of the main file, and `rootKey` stands for everything on which all sites depend.
	 * `addFile` receives the files that a reused site has read.
	 */
	beginCompilation(
		mainPath: string | undefined,
		rootKey: string,
		reader: RecordingReader,
		report: ExpansionReport,
		addFile: (path: string) => void,
	): void {
		this.#addFile = addFile;
		this.#mainPath = mainPath;
		this.#reader = reader;
		this.#report = report;
		this.#previousContexts = this.#currentContexts;
		this.#currentContexts = new Map();
		this.#openReadings.length = 0;
		this.#inLooseLines = false;
		this.#currentContextNumber = this.#contextNumber(rootKey);
	}

	/**
	 * Reports whether the piece produced exactly one site in an earlier compilation. {@link recall} decides whether that site is
	 * still valid.
	 */
	mayBeReused(piece: TextPiece): boolean {
		return asKnownPiece(piece).expansion !== undefined;
	}

	recall(piece: TextPiece, { snippets, constants }: DefinedNames): boolean {
		const { expansion } = asKnownPiece(piece);
		if (!expansion || this.#inLooseLines) return false;
		this.#enterImport();
		if (expansion.contextNumber !== this.#currentContextNumber || !this.#reader!.confirms(expansion.reads))
			return false;
		// A piece that imports the main file cannot be reused, because the main file might now contain the piece.
		if (expansion.reads.some(({ method, target }) => method === 'readText' && target === this.#mainPath)) return false;
		const report = this.#report!;
		for (const { method, target, result: readResult } of expansion.reads) {
			if (method === 'readText' && !readResult.startsWith('!')) this.#addFile!(target);
		}
		for (const name of expansion.snippets) report.markUsed(snippets.get(name)!);
		for (const name of expansion.constants) report.markUsed(constants.find(name)!);
		const { lineCount, wordCount, characterCount, definedNames } = expansion.record;
		for (const name of definedNames) report.recordDefinition(name);
		report.countOutput(lineCount, wordCount, characterCount);
		return true;
	}

	onPieceBegin(piece: TextPiece): void {
		this.#enterImport();
		this.#openReadings.push({
			piece,
			reads: this.#reader!.startRecord(),
			contextBefore: this.#currentContextNumber,
			hasEntered: false,
		});
		this.#record = new ExpansionRecord();
		this.#report!.setRecord(this.#record);
	}

	onPieceEnd(site: SiteBlock | undefined, isReusable: boolean, { constants }: DefinedNames): void {
		this.#reader!.endRecord();
		this.#report!.setRecord(undefined);
		const { piece, reads, contextBefore } = this.#openReadings.pop()!;
		const record = this.#record;
		const hadLooseLines = this.#inLooseLines;
		this.#record = undefined;
		const knownPiece = asKnownPiece(piece);
		knownPiece.expansion = undefined;
		knownPiece.loweredSite = undefined;
		if (this.#openReadings.length === 0) this.#inLooseLines = false;
		if (!site) {
			const readTexts = reads.map(({ method, target, result: readResult }) => `${method} ${target} ${readResult}`);
			this.#currentContextNumber = this.#contextNumber([contextBefore, piece.source.text, ...readTexts].join('\0'));
			return;
		}
		if (!isReusable || !record || record.hasDiagnostics || hadLooseLines) return;
		const usedDefinitions = [...record.usedDefinitions] as (Snippet | Constant)[];
		knownPiece.expansion = {
			block: site,
			contextNumber: contextBefore,
			reads,
			snippets: usedDefinitions.flatMap(({ name }) => (typeof name === 'string' ? name : [])),
			constants: usedDefinitions.flatMap(definition =>
				typeof definition.name !== 'string' && constants.find(definition.name.text) === definition
					? definition.name.text
					: [],
			),
			record,
		};
	}

	onLooseLines(): void {
		this.#inLooseLines = true;
	}

	/**
	 * Adds the text of the enclosing piece to the context when its first import is entered, because the contents of the import can
	 * depend on that piece.
	 */
	#enterImport(): void {
		const outerReading = this.#openReadings.at(-1);
		if (!outerReading || outerReading.hasEntered) return;
		outerReading.hasEntered = true;
		this.#currentContextNumber = this.#contextNumber(
			`${outerReading.contextBefore}\0${outerReading.piece.source.text}`,
		);
	}

	/** Returns the block of a piece that was reused or parsed in this compilation. */
	blockOf(piece: TextPiece): SiteBlock | undefined {
		return asKnownPiece(piece).expansion?.block;
	}

	/** Returns the lowering of a piece; undefined if it is no longer valid or not known. */
	reusableLowering(
		piece: TextPiece,
		currentDependencies: LoweringDependencies,
		logsBefore: number,
	): LoweredSite | undefined {
		const { loweredSite } = asKnownPiece(piece);
		if (!loweredSite) return undefined;
		const { dependencies, deps: earlierDependencies } = loweredSite;
		if (earlierDependencies.context !== currentDependencies.context) return undefined;
		if (dependencies.usesFolder && earlierDependencies.folder !== currentDependencies.folder) return undefined;
		if (dependencies.usesFiles && earlierDependencies.files !== currentDependencies.files) return undefined;
		if (loweredSite.logCount > 0 && loweredSite.logsBefore !== logsBefore) return undefined;
		return this.#reader!.confirms(loweredSite.reads) ? loweredSite : undefined;
	}

	/** Stores the lowering of a piece, unless a later compilation would be unable to determine whether it is still valid. */
	storeLowering(piece: TextPiece, loweredSite: LoweredSite): void {
		const knownPiece = asKnownPiece(piece);
		const { dependencies } = loweredSite;
		const isReusable = !dependencies.definesUpstreams && dependencies.diagnostics.every(movesWithPiece);
		knownPiece.loweredSite = isReusable && (piece.isIndependentSite || knownPiece.expansion) ? loweredSite : undefined;
	}

	#contextNumber(context: string): number {
		const contextNumber =
			this.#previousContexts.get(context) ?? this.#currentContexts.get(context) ?? ++this.#contextCount;
		this.#currentContexts.set(context, contextNumber);
		return contextNumber;
	}
}

/** Returns the piece as a {@link KnownPiece}. All pieces of a session are created by its store, so the cast is safe. */
function asKnownPiece(piece: TextPiece): KnownPiece {
	return piece as KnownPiece;
}

/** Reports whether all places in a diagnostic move when their piece moves. */
function movesWithPiece({ span, related, fix }: Diagnostic): boolean {
	const isMovable = ({ source }: SourceSpan): boolean => source.canMove;
	return (
		(!span || isMovable(span)) &&
		(related ?? []).every(place => isMovable(place.span)) &&
		(fix?.edits ?? []).every(edit => isMovable(edit.span))
	);
}

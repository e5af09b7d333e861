/** Caches the sites made from pieces of text, expanded and lowered, and what these results depended on. */
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

/** The expansion of a piece's site, and everything that it depended on. */
interface Expansion {
	readonly block: SiteBlock;
	/** Number that identifies everything before the piece other than sites. */
	readonly context: number;
	readonly asked: readonly RecordedRead[];
	readonly snippets: readonly string[];
	readonly constants: readonly string[];
	readonly record: ExpansionRecord;
}

/** What the lowering of every site in one compilation depends on. */
export interface LoweringDependencies {
	/** See {@link TreeLowering.context}. */
	readonly context: string;
	/** Folder of the main file. */
	readonly folder: string;
	/** The names of all configuration files. */
	readonly files: string;
}

export interface LoweredSite {
	readonly site: Site;
	readonly watch: SiteDependencies;
	readonly deps: LoweringDependencies;
	/** Number of anonymous logs named before the site. */
	readonly logsBefore: number;
	/** Number of anonymous logs named by the site. */
	readonly logs: number;
	readonly asked: readonly RecordedRead[];
	/** Places of the site's steps; empty unless they are requested. */
	readonly spans: readonly (SourceSpan | undefined)[];
}

/** A piece of the configuration text, with the cached results of expanding and lowering it. */
export class KnownPiece extends TextPiece {
	expansion: Expansion | undefined = undefined;
	lowered: LoweredSite | undefined = undefined;
}

/** A piece that is being parsed. */
interface Reading {
	readonly piece: TextPiece;
	readonly asked: readonly RecordedRead[];
	/** Number of the context before the piece. */
	readonly before: number;
	/** True once the contents of an import are being parsed inside the piece. */
	entered: boolean;
}

/** The memory of one configuration, kept between compilations. */
export class SiteMemory implements PieceMemory {
	/** Numbers of the contexts in the previous compilation. */
	#contexts = new Map<string, number>();
	/** Numbers of the contexts in the current compilation. */
	#nextContexts = new Map<string, number>();
	#contextCount = 0;
	#context = 0;
	#reader: RecordingReader | undefined;
	#report: ExpansionReport | undefined;
	#main: string | undefined;
	#addFile: ((path: string) => void) | undefined;
	/** The pieces that are being parsed, nested by imports. */
	readonly #open: Reading[] = [];
	#record: ExpansionRecord | undefined;
	/** True while imported lines are parsed that are not pieces. What they define enters a context only when the import ends. */
	#loose = false;

	/**
	 * Starts a compilation. `main` is the path of the main file, and `root` stands for everything on which all sites depend.
	 * `addFile` receives the files that a reused site has read.
	 */
	begin(
		main: string | undefined,
		root: string,
		reader: RecordingReader,
		report: ExpansionReport,
		addFile: (path: string) => void,
	): void {
		this.#addFile = addFile;
		this.#main = main;
		this.#reader = reader;
		this.#report = report;
		this.#contexts = this.#nextContexts;
		this.#nextContexts = new Map();
		this.#open.length = 0;
		this.#loose = false;
		this.#context = this.#numberOf(root);
	}

	/**
	 * Reports whether the piece produced exactly one site in an earlier compilation. {@link recall} decides whether that site is
	 * still valid.
	 */
	expects(piece: TextPiece): boolean {
		return knowledge(piece).expansion !== undefined;
	}

	recall(piece: TextPiece, { snippets, constants }: DefinedNames): boolean {
		const { expansion } = knowledge(piece);
		if (!expansion || this.#loose) return false;
		this.#enter();
		if (expansion.context !== this.#context || !this.#reader!.confirms(expansion.asked)) return false;
		// A piece that imports the main file cannot be reused, because the main file might now contain the piece.
		if (expansion.asked.some(({ what, of }) => what === 'readText' && of === this.#main)) return false;
		const report = this.#report!;
		for (const { what, of, answer } of expansion.asked) {
			if (what === 'readText' && !answer.startsWith('!')) this.#addFile!(of);
		}
		for (const name of expansion.snippets) report.markUsed(snippets.get(name)!);
		for (const name of expansion.constants) report.markUsed(constants.find(name)!);
		const { lineCount: lines, wordCount: words, characterCount: characters, definedNames: defined } = expansion.record;
		for (const name of defined) report.define(name);
		report.countOutput(lines, words, characters);
		return true;
	}

	onPieceBegin(piece: TextPiece): void {
		this.#enter();
		this.#open.push({ piece, asked: this.#reader!.record(), before: this.#context, entered: false });
		this.#record = new ExpansionRecord();
		this.#report!.setRecord(this.#record);
	}

	onPieceEnd(site: SiteBlock | undefined, lasting: boolean, { constants }: DefinedNames): void {
		this.#reader!.stop();
		this.#report!.setRecord(undefined);
		const { piece, asked, before } = this.#open.pop()!;
		const record = this.#record;
		const loose = this.#loose;
		this.#record = undefined;
		const known = knowledge(piece);
		known.expansion = undefined;
		known.lowered = undefined;
		if (this.#open.length === 0) this.#loose = false;
		if (!site) {
			const answers = asked.map(({ what, of, answer }) => `${what} ${of} ${answer}`);
			this.#context = this.#numberOf([before, piece.source.text, ...answers].join('\0'));
			return;
		}
		if (!lasting || !record || record.reported || loose) return;
		const used = [...record.usedDefinitions] as (Snippet | Constant)[];
		known.expansion = {
			block: site,
			context: before,
			asked,
			snippets: used.flatMap(({ name }) => (typeof name === 'string' ? name : [])),
			constants: used.flatMap(one =>
				typeof one.name !== 'string' && constants.find(one.name.text) === one ? one.name.text : [],
			),
			record,
		};
	}

	onLooseLines(): void {
		this.#loose = true;
	}

	/**
	 * Adds the text of the surrounding piece to the context when its first import is entered, because what an import contains can
	 * depend on the piece around it.
	 */
	#enter(): void {
		const outer = this.#open.at(-1);
		if (!outer || outer.entered) return;
		outer.entered = true;
		this.#context = this.#numberOf(`${outer.before}\0${outer.piece.source.text}`);
	}

	/** Returns the block of a piece that was reused or parsed in this compilation. */
	block(piece: TextPiece): SiteBlock | undefined {
		return knowledge(piece).expansion?.block;
	}

	/** Returns the lowering of a piece if it is still valid in this context. */
	lowered(piece: TextPiece, now: LoweringDependencies, logsBefore: number): LoweredSite | undefined {
		const { lowered } = knowledge(piece);
		if (!lowered) return undefined;
		const { watch, deps: before } = lowered;
		if (before.context !== now.context) return undefined;
		if (watch.usesFolder && before.folder !== now.folder) return undefined;
		if (watch.usesFiles && before.files !== now.files) return undefined;
		if (lowered.logs > 0 && lowered.logsBefore !== logsBefore) return undefined;
		return this.#reader!.confirms(lowered.asked) ? lowered : undefined;
	}

	/** Stores the lowering of a piece, unless it could not be determined later whether it is still valid. */
	keep(piece: TextPiece, lowered: LoweredSite): void {
		const known = knowledge(piece);
		const { watch } = lowered;
		const lasting = !watch.definesUpstreams && watch.diagnostics.every(staysRight);
		known.lowered = lasting && (piece.isIndependentSite || known.expansion) ? lowered : undefined;
	}

	#numberOf(context: string): number {
		const number = this.#contexts.get(context) ?? this.#nextContexts.get(context) ?? ++this.#contextCount;
		this.#nextContexts.set(context, number);
		return number;
	}
}

/** Returns the piece as a {@link KnownPiece}. All pieces of a session are created by its store, so the cast is safe. */
function knowledge(piece: TextPiece): KnownPiece {
	return piece as KnownPiece;
}

/** Reports whether all places in a diagnostic move together with their piece. */
function staysRight({ span, related, fix }: Diagnostic): boolean {
	const moves = ({ source }: SourceSpan): boolean => source.moves;
	return (
		(!span || moves(span)) &&
		(related ?? []).every(one => moves(one.span)) &&
		(fix?.edits ?? []).every(edit => moves(edit.span))
	);
}

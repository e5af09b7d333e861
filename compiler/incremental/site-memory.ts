/** What is known of the sites that pieces make: what they were expanded from and lowered to, and what that depended on. */
import type { Diagnostic } from '../diagnostics/diagnostic.ts';
import type { Site } from '../document/document.ts';
import type { SiteWatch } from '../lower/site-watch.ts';
import type { Asked, RecordingReader } from '../source/recording-reader.ts';
import type { SourceSpan } from '../source/source.ts';
import type { SiteBlock } from '../syntax/ast.ts';
import type { Constant } from '../syntax/constants.ts';
import { ExpansionRecord, type ExpansionReport } from '../syntax/expansion-report.ts';
import type { DefinedNames, PieceMemory } from '../syntax/file-structure.ts';
import type { Snippet } from '../syntax/frame.ts';
import type { TextPiece } from '../syntax/text-piece.ts';

/** A site as it was expanded, for a piece that looks at what stands around it. */
interface Expansion {
	readonly block: SiteBlock;
	/** Everything that stood before it and is no site. */
	readonly context: number;
	readonly asked: readonly Asked[];
	readonly snippets: readonly string[];
	readonly constants: readonly string[];
	readonly record: ExpansionRecord;
}

/** A site as it was lowered. */
export interface LoweredSite {
	readonly site: Site;
	readonly watch: SiteWatch;
	/** {@link TreeLowering.context} of then. */
	readonly context: string;
	/** Folder of the main text, and the list of files, as {@link SurroundingFiles} has them. */
	readonly folder: string;
	readonly files: string;
	/** Anonymous logs named before it, and by it. */
	readonly logsBefore: number;
	readonly logs: number;
	readonly asked: readonly Asked[];
}

/** A piece being read. */
interface Reading {
	readonly piece: TextPiece;
	readonly asked: readonly Asked[];
	/** The context before it. */
	readonly before: number;
	/** Pieces of an imported file are read inside it. */
	entered: boolean;
}

interface Known {
	expansion: Expansion | undefined;
	lowered: LoweredSite | undefined;
}

/** One configuration's memory, from one compilation to the next. */
export class SiteMemory implements PieceMemory {
	readonly #known = new WeakMap<TextPiece, Known>();
	/** Numbers of the contexts of the compilation before and of this one. */
	#contexts = new Map<string, number>();
	#nextContexts = new Map<string, number>();
	#contextCount = 0;
	#context = 0;
	#reader: RecordingReader | undefined;
	#report: ExpansionReport | undefined;
	#addFile: ((path: string) => void) | undefined;
	/** The pieces being read, one inside the other by imports. */
	readonly #open: Reading[] = [];
	#record: ExpansionRecord | undefined;
	/** Lines that came with an import and are no pieces: what they define is in no context before the import ends. */
	#loose = false;

	/** A compilation begins. `root` is everything that every site depends on; `addFile` takes what was read for a site before. */
	begin(root: string, reader: RecordingReader, report: ExpansionReport, addFile: (path: string) => void): void {
		this.#addFile = addFile;
		this.#reader = reader;
		this.#report = report;
		this.#contexts = this.#nextContexts;
		this.#nextContexts = new Map();
		this.#open.length = 0;
		this.#loose = false;
		this.#context = this.#numberOf(root);
	}

	/** True when the piece is known to have made one site; whether it still does is told by {@link recall}. */
	expects(piece: TextPiece): boolean {
		return this.#known.get(piece)?.expansion !== undefined;
	}

	recall(piece: TextPiece, { snippets, constants }: DefinedNames): boolean {
		const expansion = this.#known.get(piece)?.expansion;
		if (!expansion || this.#loose) return false;
		this.#enter();
		if (expansion.context !== this.#context || !this.#reader!.confirms(expansion.asked)) {
			this.#known.delete(piece);
			return false;
		}
		const report = this.#report!;
		for (const { what, of, answer } of expansion.asked) {
			if (what === 'readText' && !answer.startsWith('!')) this.#addFile!(of);
		}
		for (const name of expansion.snippets) report.use(snippets.get(name)!);
		for (const name of expansion.constants) report.use(constants.find(name)!);
		const { lines, words, characters, defined } = expansion.record;
		for (const name of defined) report.define(name);
		report.spend(lines, words, characters);
		return true;
	}

	begins(piece: TextPiece): void {
		this.#enter();
		this.#open.push({ piece, asked: this.#reader!.record(), before: this.#context, entered: false });
		this.#record = new ExpansionRecord();
		this.#report!.record(this.#record);
	}

	ends(site: SiteBlock | undefined, lasting: boolean, { constants }: DefinedNames): void {
		this.#reader!.stop();
		this.#report!.record(undefined);
		const { piece, asked, before } = this.#open.pop()!;
		const record = this.#record;
		const loose = this.#loose;
		this.#record = undefined;
		this.#known.delete(piece);
		if (this.#open.length === 0) this.#loose = false;
		if (!site) {
			const answers = asked.map(({ what, of, answer }) => `${what} ${of} ${answer}`);
			this.#context = this.#numberOf([before, piece.source.text, ...answers].join('\0'));
			return;
		}
		if (!lasting || !record || record.reported || loose) return;
		const used = [...record.used] as (Snippet | Constant)[];
		const expansion: Expansion = {
			block: site,
			context: before,
			asked,
			snippets: used.flatMap(({ name }) => (typeof name === 'string' ? name : [])),
			constants: used.flatMap(one =>
				typeof one.name !== 'string' && constants.find(one.name.text) === one ? one.name.text : [],
			),
			record,
		};
		this.#known.set(piece, { expansion, lowered: undefined });
	}

	looseLines(): void {
		this.#loose = true;
	}

	/** What stands before an import in its piece is seen by what it brings in. */
	#enter(): void {
		const outer = this.#open.at(-1);
		if (!outer || outer.entered) return;
		outer.entered = true;
		this.#context = this.#numberOf(`${outer.before}\0${outer.piece.source.text}`);
	}

	/** The block of a piece that was recalled or that ended in this compilation. */
	block(piece: TextPiece): SiteBlock | undefined {
		return this.#known.get(piece)?.expansion?.block;
	}

	/** What the piece was lowered to, if that still holds in these surroundings. */
	lowered(
		piece: TextPiece,
		now: Pick<LoweredSite, 'context' | 'folder' | 'files' | 'logsBefore'>,
	): LoweredSite | undefined {
		const lowered = this.#known.get(piece)?.lowered;
		if (!lowered || lowered.context !== now.context) return undefined;
		const { watch } = lowered;
		if (watch.folder && lowered.folder !== now.folder) return undefined;
		if (watch.files && lowered.files !== now.files) return undefined;
		if (lowered.logs > 0 && lowered.logsBefore !== now.logsBefore) return undefined;
		return this.#reader!.confirms(lowered.asked) ? lowered : undefined;
	}

	/** Keeps what a piece was lowered to, if it can be told later whether it still holds. */
	keep(piece: TextPiece, lowered: LoweredSite): void {
		const known = this.#known.get(piece);
		if (!piece.sole && !known) return;
		const { watch } = lowered;
		const lasting = !watch.definesUpstreams && watch.diagnostics.every(staysRight);
		if (known) known.lowered = lasting ? lowered : undefined;
		else if (lasting) this.#known.set(piece, { expansion: undefined, lowered });
	}

	#numberOf(context: string): number {
		const number = this.#contexts.get(context) ?? this.#nextContexts.get(context) ?? ++this.#contextCount;
		this.#nextContexts.set(context, number);
		return number;
	}
}

/** True when every place moves along with its piece. */
function staysRight({ span, related, fix }: Diagnostic): boolean {
	const moves = ({ source }: SourceSpan): boolean => source.moves;
	return (
		(!span || moves(span)) &&
		(related ?? []).every(one => moves(one.span)) &&
		(fix ?? []).every(edit => moves(edit.span))
	);
}

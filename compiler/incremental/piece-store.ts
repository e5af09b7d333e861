/** Splits configuration files into pieces, and reuses the pieces known from the previous compilation. */
import type { Dialect } from '../dialects/dialect.ts';
import { substituteEnvironment } from '../source/environment.ts';
import type { Source } from '../source/source.ts';
import { cutAtTopLevel, type TextExtent } from '../syntax/cut-text.ts';
import type { TextPiece } from '../syntax/text-piece.ts';
import { KnownPiece } from './site-memory.ts';

/** The pieces of one file by their text. Pieces with equal text are in file order. */
type PiecesByText = Map<string, TextPiece[]>;

/** The pieces of one configuration, kept between compilations. */
export class PieceStore {
	readonly #dialect: Dialect;
	#known: ReadonlyMap<string, PiecesByText> = new Map();
	#next = new Map<string, PiecesByText>();

	constructor(dialect: Dialect) {
		this.#dialect = dialect;
	}

	/** Starts a compilation. The pieces of the previous compilation become the known pieces. */
	begin(): void {
		this.#known = this.#next;
		this.#next = new Map();
	}

	/** Returns the pieces of a file in order; undefined if the file must be parsed as a whole. Called once per file. */
	cut(whole: Source, env: (name: string) => string | undefined): readonly TextPiece[] | undefined {
		const file = whole.importedAt ? (whole.path ?? whole.name) : '';
		const known = this.#known.get(file);
		const extents = this.#extents(whole, env);
		if (!extents) {
			// While a user types, a missing brace is likely to be back soon, so the pieces are kept for the next compilation.
			if (known) this.#next.set(file, known);
			return undefined;
		}
		const next: PiecesByText = new Map();
		this.#next.set(file, next);
		return extents.map(({ start, end }) => {
			const text = whole.text.slice(start, end);
			const same = next.get(text);
			const found = known?.get(text)?.[same?.length ?? 0];
			// Copies the text, because a slice would keep the whole file in memory as long as the piece is known.
			const piece = found ?? new KnownPiece(` ${text}`.slice(1), whole, start, this.#dialect);
			if (found) piece.move(whole, start);
			if (same) same.push(piece);
			else next.set(piece.source.text, [piece]);
			return piece;
		});
	}

	/** Returns where the pieces begin and end in the original text; undefined if a cut would fall inside an environment value. */
	#extents(whole: Source, env: (name: string) => string | undefined): readonly TextExtent[] | undefined {
		const substituted = substituteEnvironment(whole.text, env);
		const extents = cutAtTopLevel(substituted.text, this.#dialect);
		if (!extents || substituted.text === whole.text) return extents;
		const clean = (offset: number): boolean => substituted.start(offset) === substituted.end(offset);
		if (!extents.every(({ start, end }) => clean(start) && clean(end))) return undefined;
		return extents.map(({ start, end }) => ({ start: substituted.start(start), end: substituted.end(end) }));
	}
}

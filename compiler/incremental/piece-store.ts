/** Cuts texts into pieces, and finds those again that the compilation before knew. */
import type { Dialect } from '../dialects/dialect.ts';
import { substituteEnvironment } from '../source/environment.ts';
import type { Source } from '../source/source.ts';
import { cutText, type Extent } from '../syntax/cut-text.ts';
import type { TextPiece } from '../syntax/text-piece.ts';
import { KnownPiece } from './site-memory.ts';

/** Pieces of one file by their text; of equal ones the first stands first. */
type PiecesByText = Map<string, TextPiece[]>;

/** The pieces of one configuration, from one compilation to the next. */
export class PieceStore {
	readonly #dialect: Dialect;
	#known: ReadonlyMap<string, PiecesByText> = new Map();
	#next = new Map<string, PiecesByText>();

	constructor(dialect: Dialect) {
		this.#dialect = dialect;
	}

	/** A compilation begins: what was cut in the one before is known. */
	begin(): void {
		this.#known = this.#next;
		this.#next = new Map();
	}

	/** The pieces of a text, in order; undefined when it has to be read as a whole. Not called twice for one file. */
	cut(whole: Source, env: (name: string) => string | undefined): readonly TextPiece[] | undefined {
		const file = whole.importedAt ? (whole.path ?? whole.name) : '';
		const known = this.#known.get(file);
		const extents = this.#extents(whole, env);
		if (!extents) {
			// Braces that are missing while somebody types are there again in the next text.
			if (known) this.#next.set(file, known);
			return undefined;
		}
		const next: PiecesByText = new Map();
		this.#next.set(file, next);
		return extents.map(({ start, end }) => {
			const text = whole.text.slice(start, end);
			const same = next.get(text);
			const found = known?.get(text)?.[same?.length ?? 0];
			// A slice keeps the whole text in memory for as long as the piece is known; this is a text of its own.
			const piece = found ?? new KnownPiece(` ${text}`.slice(1), whole, start, this.#dialect);
			if (found) piece.move(whole, start);
			if (same) same.push(piece);
			else next.set(piece.source.text, [piece]);
			return piece;
		});
	}

	/** The pieces in the text as written; undefined when a cut falls into a value of the environment. */
	#extents(whole: Source, env: (name: string) => string | undefined): readonly Extent[] | undefined {
		const substituted = substituteEnvironment(whole.text, env);
		const extents = cutText(substituted.text, this.#dialect);
		if (!extents || substituted.text === whole.text) return extents;
		const clean = (offset: number): boolean => substituted.start(offset) === substituted.end(offset);
		if (!extents.every(({ start, end }) => clean(start) && clean(end))) return undefined;
		return extents.map(({ start, end }) => ({ start: substituted.start(start), end: substituted.end(end) }));
	}
}

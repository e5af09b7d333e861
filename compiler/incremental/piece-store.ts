/** Splits configuration files into pieces, such as single sites, and reuses the pieces known from the previous compilation. */
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
	#previousPieces: ReadonlyMap<string, PiecesByText> = new Map();
	#currentPieces = new Map<string, PiecesByText>();

	constructor(dialect: Dialect) {
		this.#dialect = dialect;
	}

	/** Starts a compilation. The pieces of the previous compilation become the known pieces. */
	beginCompilation(): void {
		this.#previousPieces = this.#currentPieces;
		this.#currentPieces = new Map();
	}

	/** Returns the pieces of a file in order; undefined if the file must be parsed as a whole. Called once per file. */
	cutIntoPieces(source: Source, env: (name: string) => string | undefined): readonly TextPiece[] | undefined {
		const fileKey = source.importedAt ? (source.path ?? source.name) : '';
		const previousPieces = this.#previousPieces.get(fileKey);
		const extents = this.#pieceExtents(source, env);
		if (!extents) {
			// While a user types, a missing brace is likely to be back soon, so the pieces are kept for the next compilation.
			if (previousPieces) this.#currentPieces.set(fileKey, previousPieces);
			return undefined;
		}
		const currentPieces: PiecesByText = new Map();
		this.#currentPieces.set(fileKey, currentPieces);
		return extents.map(({ start, end }) => {
			const text = source.text.slice(start, end);
			const equalPieces = currentPieces.get(text);
			const knownPiece = previousPieces?.get(text)?.[equalPieces?.length ?? 0];
			// Copies the text, because a slice would keep the whole file in memory as long as the piece is known.
			const piece = knownPiece ?? new KnownPiece(` ${text}`.slice(1), source, start, this.#dialect);
			if (knownPiece) piece.move(source, start);
			if (equalPieces) equalPieces.push(piece);
			else currentPieces.set(piece.source.text, [piece]);
			return piece;
		});
	}

	/**
	 * Returns the ranges of the pieces in the original text; undefined if a piece would begin or end inside an environment value.
	 */
	#pieceExtents(source: Source, env: (name: string) => string | undefined): readonly TextExtent[] | undefined {
		const substitutedText = substituteEnvironment(source.text, env);
		const extents = cutAtTopLevel(substitutedText.text, this.#dialect);
		if (!extents || substitutedText.text === source.text) return extents;
		const isOutsideValues = (offset: number): boolean =>
			substitutedText.originalStart(offset) === substitutedText.originalEnd(offset);
		if (!extents.every(({ start, end }) => isOutsideValues(start) && isOutsideValues(end))) return undefined;
		return extents.map(({ start, end }) => ({
			start: substitutedText.originalStart(start),
			end: substitutedText.originalEnd(end),
		}));
	}
}

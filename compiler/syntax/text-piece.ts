/**
 * A piece of a text that was divided at the top level. A piece is parsed on its own, and its result is reused when only the text
 * around it changes.
 */
import type { Diagnostic, Report } from '../diagnostics/diagnostic.ts';
import type { Dialect } from '../dialects/dialect.ts';
import { type SubstitutedText, substituteEnvironment } from '../source/environment.ts';
import { type CutPlace, Source } from '../source/source.ts';
import { parseSubstitutedText } from './config-parser.ts';
import type { ParsedLine } from './parsed-file.ts';
import { isSnippetHead } from './snippet-definition.ts';

/** The result of parsing a piece. */
export interface ReadPiece {
	readonly lines: readonly ParsedLine[];
	/** The source to which the spans of the lines refer: the piece, or the complete text. */
	readonly source: Source;
	/** False if the piece contains anything but sites, snippets and constants. */
	readonly isPlain: boolean;
	/** True if structural mistakes were reported. */
	readonly hasMistakes: boolean;
}

/** Words that begin a top-level line which is not a site. */
const nonSiteKeywords: ReadonlySet<string> = new Set(['import', 'use', 'test', 'upstream']);

// The two patterns below are approximate. That is safe, because a piece that seems to be an independent site is checked again when
// it is parsed.
const dependencyPattern = /(?:^|\s)(?:import|use|let|else)(?=\s)|\{(?:args[[.]|block\}|blocks\.|let\.|param\.)|\\[{}]/;
const beginsAsSite = /^(?:\s|#[^\n]*\n)*(?!(?:import|use|let|test|upstream)\s|[\s#({&@]|$)/;

/** A piece of text, with the result of parsing it. */
export class TextPiece {
	readonly source: Source;
	/** True if the piece seems to be a single site that does not depend on its surroundings. */
	isIndependentSite: boolean;
	readonly #cutPlace: CutPlace;
	readonly #dialect: Dialect;
	#cachedResult: ReadPiece | undefined;
	/** True if the result stays valid when the text around the piece changes. */
	#keepsResult = false;

	constructor(text: string, wholeText: Source, offset: number, dialect: Dialect) {
		this.#cutPlace = { wholeText, offset };
		this.source = new Source({ name: '', text, cutPlace: this.#cutPlace });
		this.#dialect = dialect;
		this.isIndependentSite = beginsAsSite.test(text) && !dependencyPattern.test(text);
	}

	/** Sets the position of the piece in the complete text. */
	move(wholeText: Source, offset: number): void {
		this.#cutPlace.wholeText = wholeText;
		this.#cutPlace.offset = offset;
		this.release();
	}

	/** Discards the result, unless it stays valid when the text around the piece changes. */
	release(): void {
		if (!this.#keepsResult) this.#cachedResult = undefined;
	}

	/**
	 * Returns the result of parsing the piece. Mistakes are reported when the piece is parsed, but not when a cached result is
	 * returned. The environment is read each time, so that a recording reader notices the variables.
	 */
	read(env: (name: string) => string | undefined, report: Report): ReadPiece {
		const { source } = this;
		if (this.#cachedResult) {
			if (source.text.includes('{$')) substituteEnvironment(source.text, env);
			return this.#cachedResult;
		}
		const text = substituteEnvironment(source.text, env);
		const diagnostics: Diagnostic[] = [];
		const { lines } = parseSubstitutedText(source, text, this.#dialect, diagnostic => diagnostics.push(diagnostic));
		const isPlainPiece = lines.every(isPlainLine);
		if (isPlainPiece) {
			this.#cachedResult = { lines, source, isPlain: isPlainPiece, hasMistakes: diagnostics.length > 0 };
			this.#keepsResult = diagnostics.length === 0 && lines.some(isSnippetLine) && !source.text.includes('{$');
		} else {
			// Tests, options and imports are kept for longer than this piece, so they are parsed as parts of the complete text.
			const { wholeText, offset } = this.#cutPlace;
			diagnostics.length = 0;
			const { lines } = parseSubstitutedText(wholeText, shiftOffsets(text, offset), this.#dialect, diagnostic =>
				diagnostics.push(diagnostic),
			);
			this.#cachedResult = { lines, source: wholeText, isPlain: isPlainPiece, hasMistakes: diagnostics.length > 0 };
		}
		for (const diagnostic of diagnostics) report(diagnostic);
		return this.#cachedResult;
	}
}

function isPlainLine({ words, alternative }: ParsedLine): boolean {
	const firstWord = words[0];
	if (!firstWord || alternative) return false;
	return (
		firstWord.quote !== 'none' ||
		!(nonSiteKeywords.has(firstWord.text) || firstWord.text.startsWith('&(') || firstWord.text.startsWith('{block'))
	);
}

function isSnippetLine({ words }: ParsedLine): boolean {
	return words[0]!.quote === 'none' && isSnippetHead(words[0]!.text);
}

/** Returns the text of a piece, with offsets that refer to the complete text. */
function shiftOffsets(text: SubstitutedText, distance: number): SubstitutedText {
	return {
		text: text.text,
		originalStart: offset => text.originalStart(offset) + distance,
		originalEnd: offset => text.originalEnd(offset) + distance,
	};
}

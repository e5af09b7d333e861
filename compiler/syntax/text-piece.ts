/** One piece of a text that was cut at file level: read on its own, and kept while the text around it changes. */
import type { Diagnostic, Report } from '../diagnostics/diagnostic.ts';
import type { Dialect } from '../dialects/dialect.ts';
import { type SubstitutedText, substituteEnvironment } from '../source/environment.ts';
import { type Cut, Source } from '../source/source.ts';
import { parseText } from './config-parser.ts';
import type { ParsedLine } from './parsed-file.ts';
import { isSnippetHead } from './snippet-definition.ts';

/** What reading a piece gave. */
export interface ReadPiece {
	readonly lines: readonly ParsedLine[];
	/** What the spans of the lines point into: the piece, or the whole text. */
	readonly source: Source;
	/** Nothing in it says that it is more than sites, snippets and constants. */
	readonly plain: boolean;
	/** Mistakes of structure were reported. */
	readonly mistaken: boolean;
}

/** Words at file level that mean something else than the address of a site. */
const keywords: ReadonlySet<string> = new Set(['import', 'use', 'test', 'upstream']);

// Rough, and on the safe side where it matters: what is taken for a site of its own is looked at again when it is read.
const mayLookAround = /(?:^|\s)(?:import|use|let|else)(?=\s)|\{(?:args[[.]|block\}|blocks\.|let\.|param\.)|\\[{}]/;
const beginsAsSite = /^(?:\s|#[^\n]*\n)*(?!(?:import|use|let|test|upstream)\s|[\s#({&@]|$)/;

/** A piece, and what reading it gave. */
export class TextPiece {
	readonly source: Source;
	/** True while nothing is known that speaks against it being one site that looks at nothing around it. */
	sole: boolean;
	readonly #cut: Cut;
	readonly #dialect: Dialect;
	#read: ReadPiece | undefined;
	/** What was read holds for as long as the piece is kept. */
	#lasting = false;

	constructor(text: string, whole: Source, offset: number, dialect: Dialect) {
		this.#cut = { whole, offset };
		this.source = new Source({ name: '', text, cut: this.#cut });
		this.#dialect = dialect;
		this.sole = beginsAsSite.test(text) && !mayLookAround.test(text);
	}

	/** The piece stands there now. */
	move(whole: Source, offset: number): void {
		this.#cut.whole = whole;
		this.#cut.offset = offset;
		this.release();
	}

	/** What was read is not needed any more, and would be read again if it were; what lasts stays. */
	release(): void {
		if (!this.#lasting) this.#read = undefined;
	}

	/**
	 * The lines; mistakes are reported when they are read, not when they are there already. The environment is asked each
	 * time, for whoever keeps a record of what is asked.
	 */
	read(env: (name: string) => string | undefined, report: Report): ReadPiece {
		const { source } = this;
		if (this.#read) {
			if (source.text.includes('{$')) substituteEnvironment(source.text, env);
			return this.#read;
		}
		const text = substituteEnvironment(source.text, env);
		const found: Diagnostic[] = [];
		const { lines } = parseText(source, text, this.#dialect, diagnostic => found.push(diagnostic));
		const plain = lines.every(isPlain);
		if (plain) {
			this.#read = { lines, source, plain, mistaken: found.length > 0 };
			this.#lasting = found.length === 0 && lines.some(isSnippet) && !source.text.includes('{$');
		} else {
			// These are kept by what they define for longer than their place: tests, options and imports.
			const { whole, offset } = this.#cut;
			found.length = 0;
			const { lines } = parseText(whole, shifted(text, offset), this.#dialect, diagnostic => found.push(diagnostic));
			this.#read = { lines, source: whole, plain, mistaken: found.length > 0 };
		}
		for (const diagnostic of found) report(diagnostic);
		return this.#read;
	}
}

function isPlain({ words, alternative }: ParsedLine): boolean {
	const first = words[0];
	if (!first || alternative) return false;
	return (
		first.quote !== 'none' ||
		!(keywords.has(first.text) || first.text.startsWith('&(') || first.text.startsWith('{block'))
	);
}

function isSnippet({ words }: ParsedLine): boolean {
	return words[0]!.quote === 'none' && isSnippetHead(words[0]!.text);
}

/** A text of a piece whose offsets lead back to the whole text. */
function shifted(text: SubstitutedText, by: number): SubstitutedText {
	return { text: text.text, start: offset => text.start(offset) + by, end: offset => text.end(offset) + by };
}

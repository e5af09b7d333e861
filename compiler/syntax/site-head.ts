/** Collects the addresses of one site across lines and rejects words that cannot be addresses. */
import type { SourceSpan } from '../source/source.ts';
import type { Word } from './ast.ts';
import type { ExpansionReport } from './expansion-report.ts';
import type { ParsedWord } from './parsed-file.ts';
import { fileAndLine, structureMistake } from './structure-mistake.ts';

/** The addresses of the current site; their meaning is checked by lowering. */
export class SiteAddresses {
	/** True once a word has been taken. */
	started = false;
	/** True if the last word ended with a comma, so that the next line continues the list. */
	expectsMore = false;
	readonly #report: ExpansionReport;
	readonly #directives: ReadonlySet<string>;
	#words: Word[] = [];
	#refused = false;
	#comma: SourceSpan | undefined;

	constructor(report: ExpansionReport, directives: ReadonlySet<string>) {
		this.#report = report;
		this.#directives = directives;
	}

	/**
	 * Adds the words of one line. Returns `directive` for a directive outside of any site: nothing is added then. With `silent`, which
	 * is used for the second and later ones in a row, nothing is reported either.
	 */
	take(words: readonly ParsedWord[], silent: boolean): 'taken' | 'directive' {
		const first = words[0];
		if (first && !this.started && this.#directives.has(first.text)) {
			if (!silent) this.#directive(first);
			return 'directive';
		}
		if (first?.text.startsWith('@') && !this.started) {
			this.#matcher(first);
			this.#refused = false;
			return 'directive';
		}
		this.started = true;
		for (const word of words) this.#take(word);
		return 'taken';
	}

	#take(word: ParsedWord): void {
		let { text } = word;
		if (text.startsWith('@')) {
			this.#matcher(word);
			return;
		}
		if (text.endsWith('{')) {
			const message = `Site addresses cannot end with a curly brace: '${text}' - put a space between the token and the brace`;
			const fixed = `${text.slice(0, -1)} {`;
			this.#refuse('syntax/glued-brace', word, message, {
				label: `write \`${fixed}\``,
				fix: asWritten(word, text)
					? {
							safety: 'safe',
							edits: [{ span: { ...word.span, start: word.span.end - 1, end: word.span.end - 1 }, text: ' ' }],
						}
					: undefined,
			});
			return;
		}
		if (text === '') return;
		this.expectsMore = text.endsWith(',');
		if (this.expectsMore) {
			text = text.slice(0, -1);
			this.#comma = { ...word.span, start: word.span.end - 1 };
		}
		if (text.includes(',')) {
			const message = `Site addresses cannot contain a comma ',': '${text}' - put a space after the comma to separate site addresses`;
			this.#refuse('syntax/comma-in-address', word, message, {
				fix: asWritten(word, word.text)
					? { safety: 'safe', edits: [{ span: word.span, text: word.text.split(',').join(', ').trimEnd() }] }
					: undefined,
			});
			return;
		}
		if (text === '') return;
		if (this.#directives.has(text)) {
			this.#directive(word);
			this.#refused = true;
			return;
		}
		this.#words.push(
			text === word.text ? word : { text, quote: word.quote, span: { ...word.span, end: word.span.end - 1 } },
		);
	}

	#matcher(word: Word): void {
		const message = `request matchers may not be defined globally, they must be in a site block; found ${word.text}`;
		this.#refuse('syntax/matcher-outside-site', word, message, {
			hint: 'Move the definition into the site that uses it.',
		});
	}

	#directive(word: Word): void {
		const place = this.#report.dialect === 'compatfile' ? `${fileAndLine(word.span)}: ` : '';
		this.#report.report({
			code: 'syntax/directive-outside-site',
			severity: 'error',
			message: `${place}parsed '${word.text}' as a site address, but it is a known directive; directives must appear in a site block`,
			span: word.span,
			label: 'outside of any site',
			hint: 'Write the address of a site first, and this between its braces.',
		});
	}

	#refuse(code: string, word: Word, message: string, more: Parameters<typeof structureMistake>[4]): void {
		this.#refused = true;
		this.#report.report(structureMistake(this.#report.dialect, code, word.span, message, more));
	}

	/**
	 * Ends the addresses of a site and prepares for the next one. `open` is the site's `{`; undefined if it has none. Returns the
	 * words of the addresses, and whether any of them was rejected.
	 */
	end(open: SourceSpan | undefined): { words: readonly Word[]; refused: boolean } {
		if (this.expectsMore && this.#comma) {
			const { dialect } = this.#report;
			const message = open
				? "Expected another address but had '{' - check for extra comma"
				: 'unexpected EOF: another address is expected after the comma';
			this.#report.report(
				structureMistake(dialect, 'syntax/extra-comma', this.#comma, message, {
					label: 'an address is missing after this',
				}),
			);
		}
		const words = this.#words;
		const refused = this.#refused;
		this.#words = [];
		this.#refused = false;
		this.started = false;
		this.expectsMore = false;
		return { words, refused };
	}
}

/** Reports whether a word appears literally in the file, without values from the environment or an expansion. */
function asWritten({ span }: ParsedWord, text: string): boolean {
	return span.end - span.start === text.length && span.source.text.startsWith(text, span.start);
}
